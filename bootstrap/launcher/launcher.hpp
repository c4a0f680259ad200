// What is needed of whatever started the ranks: who this one is, and one short word from rank 0 to all. Everything else
// the ranks do themselves, over the rendezvous, where a failure wakes whoever waits; launchers promise no such thing.
#pragma once

#include <cstddef>
#include <string>

#include "bootstrap/rendezvous/deadline.hpp"
#include "npushmem/plugin/status.hpp"

namespace npushmem::launcher {

using rendezvous::Deadline;

// A message is that long at most, and made of letters and digits, so that it needs no quoting anywhere.
inline constexpr std::size_t start_message_characters = 513;

class Launcher {
public:
    Launcher() = default;
    Launcher(const Launcher&) = delete;
    Launcher& operator=(const Launcher&) = delete;
    virtual ~Launcher() = default;

    [[nodiscard]] virtual int rank() const = 0;
    [[nodiscard]] virtual int nranks() const = 0;
    // Collective; as often as wanted. What rank 0 gave; the others' messages are ignored.
    virtual Result<std::string> broadcast(const std::string& message, Deadline deadline) = 0;
};

}  // namespace npushmem::launcher
