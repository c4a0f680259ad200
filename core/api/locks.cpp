// SPDX-License-Identifier: BSD-3-Clause
// Locks: a ticket lock (core/coll/ticket_lock.hpp) in the lock's word at its home PE.
//
//     bytes 0..3 of the word: the next ticket    bytes 4..7: the ticket being served    equal: free
//
// With NPUSHMEM_ON_PEER_DEATH=survive: the word of core/coll/owner_lock.hpp.
#include <fmt/core.h>

#include <atomic>

#include "core/api/access.hpp"
#include "core/coll/owner_lock.hpp"
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
                       .is_stepwise = true,
                       .call = "npushmem_set_lock",
                       .object = object};
    const Code code = coll::set_lock(lock, [&](std::uint32_t ticket) {
        mine = ticket;
        return up->waiter().until([&] { return (seen = lock.served()) == ticket; }, what, &failure);
    });
    if (code == Code::ok) return {};
    return {code, fmt::format("{}; ticket {} waits and {} is being served", describe(what, failure), mine, seen)};
}

// The same word as the lock of a job that survives the deaths of PEs.
class OwnedLock {
public:
    OwnedLock(Runtime& up, const Lock& lock)
        : up_(up), object_(lock.next), home_(lock.home), offset_(up.slices().offset_of(lock.next)) {}

    Code compare_swap(std::uint64_t expected, std::uint64_t desired, std::uint64_t& before) {
        if (void* here = up_.slices().mapped(home_, offset_)) {
            before = expected;
            // Acquire and release: the holders' operations are ordered.
            std::atomic_ref(*static_cast<std::uint64_t*>(here)).compare_exchange_strong(before, desired);
            return Code::ok;
        }
        return remote(NPUSHMEM_ATOMIC_COMPARE_SWAP, expected, desired, before);
    }
    Status take() {
        const Code code = coll::take_owned(*this, own(), [this](std::uint64_t holder, bool& holder_died) {
            return is_holder(holder) ? wait(pe_of(holder), holder, holder_died) : Code::argument;
        });
        return {code, failure_};
    }
    Status release() {
        const Code code = coll::release_owned(*this, own());
        return {code, failure_};
    }
    // Takes the lock if it is free or its holder is dead.
    bool try_take(Status& done) {
        const Code code = coll::take_owned(*this, own(), [this](std::uint64_t holder, bool& holder_died) {
            if (!is_holder(holder)) return Code::argument;
            holder_died = is_dead(pe_of(holder));
            if (holder_died) return Code::ok;
            if (can_release(pe_of(holder)) || !is_dead(home_)) return Code::again;
            failure_ = lost(pe_of(holder));
            return Code::peer_dead;
        });
        if (code != Code::ok && code != Code::again) done = {code, failure_};
        return code == Code::ok;
    }

private:
    [[nodiscard]] std::uint64_t own() const { return static_cast<std::uint64_t>(up_.my_pe()) + 1; }
    // Sets the failure if no PE has written this word.
    bool is_holder(std::uint64_t word) {
        if (word - 1 < static_cast<std::uint64_t>(up_.npes())) return true;
        failure_ =
            fmt::format("the lock {} holds {:#x}, which is no PE; a lock is 0 before its first use", object_, word);
        return false;
    }
    static int pe_of(std::uint64_t holder) { return static_cast<int>(holder) - 1; }
    [[nodiscard]] bool is_dead(int pe) const { return up_.liveness().find_dead(PeRange::one(pe)).has_value(); }
    // Returns whether the holder can release the lock after the home's death. This PE reads a dead home's word if it
    // maps it; a holder on another host cannot write it any more.
    [[nodiscard]] bool can_release(int holder) const {
        return up_.job().layout().host_of(holder) == up_.job().layout().host_of(home_);
    }
    [[nodiscard]] std::string lost(int holder) const {
        return fmt::format("PE {}, whose memory has the lock, is dead, so PE {} on another host cannot release it",
                           home_, holder);
    }

    Code remote(std::uint8_t operation, std::uint64_t expected, std::uint64_t desired, std::uint64_t& before) {
        npushmem_atomic op{};
        op.pe = home_;
        op.operation = operation;
        op.width = 8;
        op.offset = offset_;
        op.operand = desired;
        op.compare = expected;
        op.result = &before;
        const Status done = up_.transports().remote().atomic(op, RemoteAccess::Completion::local);
        if (!done.ok()) failure_ = done.message();
        return done.code();
    }
    Code load(std::uint64_t& word) {
        if (void* here = up_.slices().mapped(home_, offset_)) {
            word = std::atomic_ref(*static_cast<std::uint64_t*>(here)).load(std::memory_order_acquire);
            return Code::ok;
        }
        return remote(NPUSHMEM_ATOMIC_FETCH, 0, 0, word);
    }
    Code wait(int pe, std::uint64_t holder, bool& holder_died) {
        // A failure to load it, when the home PE is dead, ends the wait too: the next compare_swap() returns it.
        const auto changed = [&] {
            std::uint64_t word = 0;
            return load(word) != Code::ok || word != holder;
        };
        const WaitFor what{.what = "a lock",
                           .needs = can_release(pe) ? PeRange::one(pe) : PeRange{pe, home_ - pe, 2},
                           .timeout = up_.settings().timeout,
                           .is_stepwise = true,
                           .call = "npushmem_set_lock",
                           .object = object_};
        WaitFailure failure;
        const Code waited = up_.waiter().until(changed, what, &failure);
        holder_died = waited == Code::peer_dead && is_dead(pe);
        if (holder_died) return Code::ok;
        if (waited != Code::ok) failure_ = describe(what, failure);
        if (waited == Code::peer_dead) failure_ += "; " + lost(pe);
        return waited;
    }

    Runtime& up_;
    const void* object_;
    int home_;
    std::uint64_t offset_;
    std::string failure_;
};

// Calls `owned` for the lock of a job that survives deaths, `ticket` otherwise.
template <class Owned, class Ticket>
Status with_lock(long* lock, Owned&& owned, Ticket&& ticket) {
    auto found = lock_at(lock);
    if (!found.ok()) return found.status();
    if (!runtime()->settings().survives_deaths) return ticket(found.value());
    OwnedLock as_owned(*runtime(), found.value());
    return owned(as_owned);
}

}  // namespace

}  // namespace npushmem::api

using namespace npushmem;
using namespace npushmem::api;

extern "C" {

void npushmem_set_lock(long* lock) {
    run_call(__func__, [lock] {
        return with_lock(
            lock, [](OwnedLock& owned) { return owned.take(); }, [lock](Lock& ticket) { return take(ticket, lock); });
    });
}

void npushmem_clear_lock(long* lock) {
    const auto release = [](OwnedLock& owned) {
        npushmem_quiet();  // the next holder sees all operations that were done under the lock
        return owned.release();
    };
    const auto serve_next = [](Lock& ticket) {
        coll::clear_lock(ticket);
        return Status{};
    };
    run_call(__func__, [&] { return with_lock(lock, release, serve_next); });
}

int npushmem_test_lock(long* lock) {
    bool taken = false;
    const auto try_owned = [&taken](OwnedLock& owned) {
        Status done;
        taken = owned.try_take(done);
        return done;
    };
    const auto try_ticket = [&taken](Lock& ticket) {
        taken = coll::try_lock(ticket);
        return Status{};
    };
    if (run_call(__func__, [&] { return with_lock(lock, try_owned, try_ticket); }) != 0) return 1;
    if (taken) return 0;
    runtime()->waiter().yield_if_oversubscribed();
    return 1;
}

}  // extern "C"
