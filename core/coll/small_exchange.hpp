// SPDX-License-Identifier: BSD-3-Clause
// Exchanges of a few bytes without a barrier: every payload arrives together with its signal. For one member; one
// thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>

#include "npushmem/plugin/status.hpp"

namespace npushmem::coll {

// Every member sends to every other one.
class SmallExchange {
public:
    static constexpr std::uint64_t largest_payload = 4096;  // of any exchange

    SmallExchange() = default;
    SmallExchange(const SmallExchange&) = delete;
    SmallExchange& operator=(const SmallExchange&) = delete;
    virtual ~SmallExchange() = default;

    // Returns how many bytes a call of run() may send to a member.
    [[nodiscard]] virtual std::uint64_t max_payload(bool each) const = 0;

    // Collective. Sends `count` bytes, at most max_payload(each), to every member: `each`: those from source + member *
    // count on, otherwise the same to all. On return all members have called it, and their earlier stores to memory
    // that this one maps are visible.
    virtual Status run(const std::byte* source, std::uint64_t count, bool each) = 0;

    // Returns the payload of a member's last call: aligned to 16 bytes, valid until this member's next call.
    [[nodiscard]] const std::byte* of(int member) const {
        return received_ + static_cast<std::uint64_t>(member) * received_step_;
    }

protected:
    void set_received(const std::byte* first, std::uint64_t step) {
        received_ = first;
        received_step_ = step;
    }

private:
    const std::byte* received_ = nullptr;
    std::uint64_t received_step_ = 0;
};

// One member sends to all others.
class SmallBroadcast {
public:
    SmallBroadcast() = default;
    SmallBroadcast(const SmallBroadcast&) = delete;
    SmallBroadcast& operator=(const SmallBroadcast&) = delete;
    virtual ~SmallBroadcast() = default;

    [[nodiscard]] virtual std::uint64_t max_broadcast() const = 0;

    // Collective. Copies `count` bytes, at most max_broadcast(), from the root's source to every member's dest; null
    // dest: no copy. On return the root has called it. The root waits for others only now and then.
    virtual Status broadcast(const std::byte* source, std::byte* dest, std::uint64_t count, int root) = 0;
};

}  // namespace npushmem::coll
