// Locks: two counters in the lock's word at its home PE, the tickets handed out and the one being served. Whoever asks
// takes a ticket, so that the lock goes around in the order of asking.
//
//     bytes 0..3 of the word: the next ticket    bytes 4..7: the ticket being served    equal: free
#include <fmt/core.h>

#include "core/api/access.hpp"
#include "npushmem.h"

namespace npushmem::api {

namespace {

struct Halves {
    std::uint32_t* next;
    std::uint32_t* served;
    int home;
};

// Locks that lie beside each other have different homes, so that no PE serves them all.
Result<Halves> halves_of(long* lock) {
    Runtime* up = runtime();
    if (up == nullptr) return not_running();
    Status checked = check_object(*up, "the lock", lock, sizeof *lock, up->my_pe());
    const auto address = reinterpret_cast<std::uintptr_t>(lock);
    if (checked.ok() && address % sizeof *lock != 0)
        checked = {Code::argument,
                   fmt::format("the lock {} is not aligned to {} bytes", static_cast<const void*>(lock), sizeof *lock)};
    if (!checked.ok()) return checked;
    auto* words = reinterpret_cast<std::uint32_t*>(lock);
    const auto home = static_cast<int>((address - fast.heap) / sizeof *lock % static_cast<unsigned>(up->npes()));
    return Halves{words, words + 1, home};
}

// Returns when the ticket is served. The order of the fetch acquires what the one before released.
Status await(const Halves& lock, std::uint32_t ticket) {
    Runtime* up = runtime();
    std::uint32_t seen = 0;
    const WaitFor what{.what = "a lock", .needs = {0, 1, up->npes()}, .timeout = up->settings().timeout};
    WaitFailure failure;
    const Code code = up->waiter().until(
        [&] { return (seen = npushmem_uint32_atomic_fetch(lock.served, lock.home)) == ticket; }, what, &failure);
    if (code == Code::ok) return {};
    return {code, fmt::format("{}; ticket {} waits and {} is being served", describe(what, failure), ticket, seen)};
}

}  // namespace

}  // namespace npushmem::api

using namespace npushmem;
using namespace npushmem::api;

extern "C" {

void npushmem_set_lock(long* lock) {
    const auto halves = halves_of(lock);
    Status done = halves.status();
    if (done.ok()) {
        const Halves& h = halves.value();
        done = await(h, npushmem_uint32_atomic_fetch_inc(h.next, h.home));
    }
    if (!done.ok()) fail(__func__, done);
}

void npushmem_clear_lock(long* lock) {
    const auto halves = halves_of(lock);
    if (!halves.ok()) return fail(__func__, halves.status());
    // What was done under the lock is seen by whoever gets it next.
    npushmem_quiet();
    npushmem_uint32_atomic_inc(halves.value().served, halves.value().home);
    npushmem_quiet();
}

int npushmem_test_lock(long* lock) {
    const auto halves = halves_of(lock);
    if (!halves.ok()) {
        fail(__func__, halves.status());
        return 1;
    }
    const Halves& h = halves.value();
    // Free: the next ticket is the one being served, and taking it is taking the lock. Tickets never run behind.
    const std::uint32_t served = npushmem_uint32_atomic_fetch(h.served, h.home);
    if (npushmem_uint32_atomic_compare_swap(h.next, served, served + 1, h.home) == served) return 0;
    runtime()->waiter().give_way();
    return 1;
}

}  // extern "C"
