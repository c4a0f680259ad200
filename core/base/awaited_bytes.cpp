// SPDX-License-Identifier: BSD-3-Clause
#include "core/base/awaited_bytes.hpp"

#include <algorithm>
#include <limits>

namespace npushmem {

namespace {

// The kernel needs the address of the plain word.
std::uint32_t* futex_of(AwaitedBytes& awaited) { return reinterpret_cast<std::uint32_t*>(&awaited.wakes); }
static_assert(sizeof(std::atomic<std::uint32_t>) == sizeof(std::uint32_t));

}  // namespace

[[gnu::cold]] void wake_sleepers_in(std::byte* slice, const void* target, std::uint64_t bytes) {
    AwaitedBytes& awaited = awaited_bytes_of(slice);
    const auto offset = static_cast<std::uint64_t>(static_cast<const std::byte*>(target) - slice);
    const std::uint64_t first = awaited.offset.load(std::memory_order_relaxed);
    const std::uint64_t count = awaited.bytes.load(std::memory_order_relaxed);
    if (offset + bytes <= first || (offset > first && offset - first >= count)) return;
    // Sequentially consistent. Partner: the load in announce().
    awaited.wakes.fetch_add(1);
    wake_sleepers_on(futex_of(awaited), std::numeric_limits<std::uint32_t>::max());
}

void AwaitedBytesParking::announce() {
    if (woken_) return withdraw();
    const std::uint32_t others = announced_ ? awaited_.sleepers.load() - 1 : awaited_.sleepers.fetch_add(1);
    announced_ = true;
    awaited_.offset.store(others == 0 ? offset_ : 0, std::memory_order_relaxed);
    awaited_.bytes.store(others == 0 ? bytes_ : std::numeric_limits<std::uint64_t>::max(), std::memory_order_relaxed);
    seen_ = awaited_.wakes.load();
    // Orders the announcement before the caller's next check of the condition.
    full_fence();
}

void AwaitedBytesParking::park(WaitOs& os, std::chrono::nanoseconds longest) {
    if (!announced_) {
        os.sleep(std::min(pause_, longest));
        pause_ = std::min(2 * pause_, longest_pause);
        woken_ = false;
        return;
    }
    const std::chrono::nanoseconds now = os.now();
    if (!began_) began_ = now;
    os.sleep_on(futex_of(awaited_), seen_,
                std::min(std::max((now - *began_) / sleeps_per_wait, shortest_sleep), longest));
    woken_ = awaited_.wakes.load() != seen_;
}

void AwaitedBytesParking::withdraw() {
    if (announced_) awaited_.sleepers.fetch_sub(1);
    announced_ = false;
}

}  // namespace npushmem
