// Does at the target what networks lack: every atomic operation on 32 and 64 bits, atomic with those that the CPUs of
// the target's host do, and data with a signal behind it. Knows no network: messages in, answers out.
//
// Whoever drives a transport calls it, in the program's thread or in the transport's own while the program computes.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "transports/network/message.hpp"
#include "transports/network/region_table.hpp"

namespace npushmem::network {

class TargetHandler {
public:
    TargetHandler(int my_pe, const RegionTable& regions) : my_pe_(my_pe), regions_(regions) {}

    // Is the request there whole, as far as it says who asks? Nobody could be told of the failure of one that is not.
    [[nodiscard]] static bool is_complete(const MessageHeader& head, std::span<const std::byte> message);

    // Carries out an atomic, put, put_signal or flush request that is `message`, whose head has been looked at; one
    // that is not whole does nothing. An answer is for the PE in the head. A request that nobody waits for and that
    // fails is told with the next flush of the queue that it came from.
    std::optional<Answer> handle(const MessageHeader& head, std::span<const std::byte> message);

    // The origin is gone: what was kept for it can go too.
    void forget(int origin);

private:
    using Requester = std::pair<int, std::uint32_t>;  // origin, its queue

    Answer handle_atomic(const AtomicRequest& request) const;
    Code handle_put(const PutRequest& request, std::span<const std::byte> data) const;
    Code handle_put_signal(const PutSignalRequest& request, std::span<const std::byte> data) const;
    [[nodiscard]] Answer answer(std::uint64_t ticket, Code code, std::uint64_t value = 0) const;
    Code take_failure(const Requester& requester);
    void keep_failure(const Requester& requester, Code code);

    int my_pe_;
    const RegionTable& regions_;
    std::map<Requester, Code> failed_;  // first failure since the requester's last flush
};

}  // namespace npushmem::network
