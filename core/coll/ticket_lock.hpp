// A fair lock: two counters, the tickets handed out and the one being served. Whoever asks takes a ticket, so the lock
// goes round in the order of asking. The protocol over an interface, so that what is explored is what runs.
#pragma once

#include <concepts>
#include <cstdint>

#include "npushmem/plugin/status.hpp"

namespace npushmem::coll {

// The lock's counters, wherever they are. They wrap; all that counts is whether two are equal.
template <class M>
concept TicketMemory = requires(M memory, std::uint32_t ticket) {
    // Adds one to the tickets handed out; returns what was there.
    { memory.take_ticket() } -> std::same_as<std::uint32_t>;
    // As take_ticket, if no more than `ticket` have been handed out; false otherwise.
    { memory.try_take_ticket(ticket) } -> std::same_as<bool>;
    // The ticket being served (acquire: what was done under the lock before is seen).
    { memory.served() } -> std::same_as<std::uint32_t>;
    // Serves the next one, after everything that the caller did before (release).
    memory.serve_next();
};

// `wait_for(ticket)` returns ok as soon as served() is the ticket.
template <TicketMemory M, class WaitFor>
Code set_lock(M& memory, WaitFor&& wait_for) {
    return wait_for(memory.take_ticket());
}

// Takes the lock if nobody has it and nobody waits.
template <TicketMemory M>
bool try_lock(M& memory) {
    // Free: the next ticket is the one being served, and taking it is taking the lock. Tickets never run behind.
    return memory.try_take_ticket(memory.served());
}

template <TicketMemory M>
void clear_lock(M& memory) {
    memory.serve_next();
}

}  // namespace npushmem::coll
