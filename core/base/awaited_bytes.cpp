// SPDX-License-Identifier: BSD-3-Clause
#include "core/base/awaited_bytes.hpp"

#include <algorithm>
#include <limits>

namespace npushmem {

namespace {

// The kernel needs the address of the plain word.
std::uint32_t* futex_of(AwaitedBytes& awaited) { return reinterpret_cast<std::uint32_t*>(&awaited.wakes); }
static_assert(sizeof(std::atomic<std::uint32_t>) == sizeof(std::uint32_t));

// The wait of this thread has announced itself there; null: it has not.
thread_local const AwaitedBytes* announced_here = nullptr;

// `count` is the range's bytes. Removes the range first, so that other writers wake nobody. A thread that publishes its
// range between the load of `count` and the removal has loaded `wakes` before, so its sleep ends at once.
std::uint32_t wake_sleepers_of(AwaitedBytes& awaited, std::uint64_t count) {
    awaited.bytes.compare_exchange_strong(count, 0);
    awaited.wakes.fetch_add(1);
    return wake_sleepers_on(futex_of(awaited), std::numeric_limits<std::uint32_t>::max());
}

}  // namespace

std::uint32_t wake_sleepers_in(std::byte* slice, const void* target, std::uint64_t bytes) {
    AwaitedBytes& awaited = awaited_bytes_of(slice);
    // Acquire. Partner: the addition in announce(), before which the thread published its range.
    if (awaited.sleepers.load(std::memory_order_acquire) == 0) return 0;
    const auto offset = static_cast<std::uint64_t>(static_cast<const std::byte*>(target) - slice);
    const std::uint64_t first = awaited.offset.load(std::memory_order_relaxed);
    const std::uint64_t count = awaited.bytes.load(std::memory_order_relaxed);
    if (count == 0 || offset + bytes <= first || (offset > first && offset - first >= count)) return 0;
    return wake_sleepers_of(awaited, count);
}

void wake_all_sleepers_in(std::byte* slice) {
    AwaitedBytes& awaited = awaited_bytes_of(slice);
    full_fence();  // partner: the fence of announce()
    const std::uint32_t own = announced_here == &awaited ? 1 : 0;
    if (awaited.sleepers.load(std::memory_order_acquire) <= own) return;
    const std::uint64_t count = awaited.bytes.load(std::memory_order_relaxed);
    if (count != 0) wake_sleepers_of(awaited, count);
}

// Returns whether nothing was published before, or a writer has taken it.
bool AwaitedBytesParking::publish(bool all) {
    awaited_.offset.store(all ? 0 : offset_, std::memory_order_relaxed);
    return awaited_.bytes.exchange(all ? std::numeric_limits<std::uint64_t>::max() : bytes_) == 0;
}

void AwaitedBytesParking::announce() {
    if (woken_) return withdraw();
    seen_ = awaited_.wakes.load();
    // Before the announcement, so that a writer that sees it sees the range. Other threads keep theirs.
    const bool was_unpublished = publish(awaited_.sleepers.load() > (announced_ ? 1U : 0U));
    // A writer may have missed this announcement.
    is_new_ = was_unpublished || !announced_;
    if (!announced_) {
        host_sleepers_.fetch_add(1);
        awaited_.sleepers.fetch_add(1);
        announced_ = true;
        announced_here = &awaited_;
    }
    // Orders the announcement before the caller's next check of the condition. Of two threads that announce themselves
    // at the same time at least the later one sees the other.
    full_fence();
    if (awaited_.sleepers.load() > 1) publish(true);
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
    const auto sleep = is_new_ ? shortest_sleep : std::max((now - *began_) / fallback_divisor, shortest_sleep);
    is_new_ = false;
    os.sleep_on(futex_of(awaited_), seen_, std::min(sleep, longest));
    woken_ = awaited_.wakes.load() != seen_;
}

void AwaitedBytesParking::withdraw() {
    if (announced_) {
        awaited_.sleepers.fetch_sub(1);
        host_sleepers_.fetch_sub(1);
        announced_here = nullptr;
    }
    announced_ = false;
}

}  // namespace npushmem
