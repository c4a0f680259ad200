// SPDX-License-Identifier: BSD-3-Clause
// Locks: a ticket lock (core/coll/ticket_lock.hpp) in the lock's word at its home PE.
//
//     bytes 0..3 of the word: the next ticket    bytes 4..7: the ticket being served    equal: free
#include <fmt/core.h>

#include "core/api/access.hpp"
#include "core/coll/ticket_lock.hpp"
#include "npushmem.h"

namespace npushmem::api {

namespace {

// The lock, the same on every PE.
struct Lock {
    std::uint32_t* next;
    std::uint32_t* serving;
    int home;

    std::uint32_t take_ticket() { return npushmem_uint32_atomic_fetch_inc(next, home); }
    bool try_take_ticket(std::uint32_t ticket) {
        return npushmem_uint32_atomic_compare_swap(next, ticket, ticket + 1, home) == ticket;
    }
    // The fetch acquires what the previous holder released.
    [[nodiscard]] std::uint32_t served() const { return npushmem_uint32_atomic_fetch(serving, home); }
    void serve_next() {
        // The next holder sees all operations that were done under the lock.
        npushmem_quiet();
        npushmem_uint32_atomic_inc(serving, home);
        npushmem_quiet();
    }
};
static_assert(coll::TicketMemory<Lock>);

// Adjacent locks have different homes, so that no PE serves all of them.
Result<Lock> lock_at(long* lock) {
    Runtime* up = runtime();
    if (up == nullptr) return not_running();
    Status checked = check_object_on_all_pes(*up, "the lock", lock, sizeof *lock);
    const auto address = reinterpret_cast<std::uintptr_t>(lock);
    if (checked.ok() && address % sizeof *lock != 0)
        checked = {Code::argument,
                   fmt::format("the lock {} is not aligned to {} bytes", static_cast<const void*>(lock), sizeof *lock)};
    if (!checked.ok()) return checked;
    auto* words = reinterpret_cast<std::uint32_t*>(lock);
    const auto home = static_cast<int>(up->slices().offset_of(lock) / sizeof *lock % static_cast<unsigned>(up->npes()));
    return Lock{words, words + 1, home};
}

Status take(Lock& lock, const long* object) {
    Runtime* up = runtime();
    std::uint32_t mine = 0;
    std::uint32_t seen = 0;
    WaitFailure failure;
    const WaitFor what{.what = "a lock",
                       .needs = {0, 1, up->npes()},
                       .timeout = up->settings().timeout,
                       .call = "npushmem_set_lock",
                       .object = object};
    const Code code = coll::set_lock(lock, [&](std::uint32_t ticket) {
        mine = ticket;
        return up->waiter().until([&] { return (seen = lock.served()) == ticket; }, what, &failure);
    });
    if (code == Code::ok) return {};
    return {code, fmt::format("{}; ticket {} waits and {} is being served", describe(what, failure), mine, seen)};
}

}  // namespace

}  // namespace npushmem::api

using namespace npushmem;
using namespace npushmem::api;

extern "C" {

void npushmem_set_lock(long* lock) {
    auto found = lock_at(lock);
    const Status done = found.ok() ? take(found.value(), lock) : found.status();
    if (!done.ok()) fail(__func__, done);
}

void npushmem_clear_lock(long* lock) {
    auto found = lock_at(lock);
    if (!found.ok()) return fail(__func__, found.status());
    coll::clear_lock(found.value());
}

int npushmem_test_lock(long* lock) {
    auto found = lock_at(lock);
    if (!found.ok()) {
        fail(__func__, found.status());
        return 1;
    }
    if (coll::try_lock(found.value())) return 0;
    runtime()->waiter().yield_if_oversubscribed();
    return 1;
}

}  // extern "C"
