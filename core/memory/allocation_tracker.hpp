// What lies in the symmetric heap, for NPUSHMEM_CHECK: which objects live, and which ranges belonged to objects that
// have been freed. Any thread.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>

#include "npushmem/plugin/status.hpp"

namespace npushmem {

class AllocationTracker {
public:
    // An object now lives there, whatever was there before.
    void add(std::uint64_t offset, std::uint64_t bytes);
    void remove(std::uint64_t offset);

    // Do these bytes belong to one living object? If not, the Status (Code::argument or Code::range) says what they
    // are.
    [[nodiscard]] Status check(std::uint64_t offset, std::uint64_t bytes) const;

private:
    using Ranges = std::map<std::uint64_t, std::uint64_t>;  // bytes by offset
    static Ranges::const_iterator holding(const Ranges& ranges, std::uint64_t offset);

    mutable std::mutex lock_;
    Ranges live_;   // under lock_
    Ranges freed_;  // under lock_; nothing that lives again
};

}  // namespace npushmem
