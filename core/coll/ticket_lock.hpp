// SPDX-License-Identifier: BSD-3-Clause
// A fair lock with two counters: the tickets issued and the ticket being served. Callers get the lock in the order of
// their tickets. The protocol is a template over its memory, so that tests explore the code that runs.
#pragma once

#include <concepts>
#include <cstdint>

#include "npushmem/plugin/status.hpp"

namespace npushmem::coll {

// The lock's counters. They wrap; the protocol only compares them for equality.
template <class M>
concept TicketMemory = requires(M memory, std::uint32_t ticket) {
    // Adds one to the tickets issued; returns the previous number.
    { memory.take_ticket() } -> std::same_as<std::uint32_t>;
    // Takes the ticket if exactly `ticket` tickets have been issued; otherwise returns false.
    { memory.try_take_ticket(ticket) } -> std::same_as<bool>;
    // Returns the ticket being served (acquire: earlier writes under the lock are visible).
    { memory.served() } -> std::same_as<std::uint32_t>;
    // Serves the next ticket, after the caller's earlier operations (release).
    memory.serve_next();
};

// `wait_for(ticket)` returns ok as soon as served() is the ticket.
template <TicketMemory M, class WaitFor>
Code set_lock(M& memory, WaitFor&& wait_for) {
    return wait_for(memory.take_ticket());
}

// Takes the lock if it is free and nobody waits.
template <TicketMemory M>
bool try_lock(M& memory) {
    // The lock is free when the next ticket is the one being served; taking that ticket takes the lock. Tickets never
    // fall behind.
    return memory.try_take_ticket(memory.served());
}

template <TicketMemory M>
void clear_lock(M& memory) {
    memory.serve_next();
}

}  // namespace npushmem::coll
