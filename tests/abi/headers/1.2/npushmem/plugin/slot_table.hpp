// SPDX-License-Identifier: BSD-3-Clause
// Numbers for objects across the boundary (queues, imported memory), looked up on the data path.
#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

namespace npushmem {

// Look-ups take no lock and may run concurrently with insertions and removals of other numbers. The caller must not
// remove a number that another thread is using. Numbers are never 0, and a removed one returns only after its slot has
// been reused 2^32 times, so that a stale number is recognised.
template <class T>
class SlotTable {
public:
    SlotTable() = default;
    SlotTable(const SlotTable&) = delete;
    SlotTable& operator=(const SlotTable&) = delete;
    ~SlotTable() {
        for (auto& chunk : chunks_) delete[] chunk.load(std::memory_order_relaxed);  // no look-ups remain
    }

    std::uint64_t insert(T value) {
        const std::lock_guard lock(mutex_);
        const std::uint32_t index = take_index();
        Slot& slot = slot_at(index);
        slot.value = std::move(value);
        const std::uint64_t number = (std::uint64_t{slot.generation} << 32) | (std::uint64_t{index} + 1);
        slot.number.store(number, std::memory_order_release);  // pairs with the load in find: the value is complete
        ++count_;
        return number;
    }

    // Returns null if the number has no object. The object stays at its address until it is removed.
    T* find(std::uint64_t number) {
        const std::uint64_t index = (number & 0xffffffffU) - 1;
        if (index >= capacity) return nullptr;
        const auto [chunk, offset] = place(static_cast<std::uint32_t>(index));
        Slot* slots = chunks_[chunk].load(std::memory_order_acquire);  // pairs with the store in take_index
        if (slots == nullptr) return nullptr;
        Slot& slot = slots[offset];
        // Pairs with the store in insert.
        return slot.number.load(std::memory_order_acquire) == number ? &slot.value : nullptr;
    }

    // Removes and returns the object; nothing if the number has none.
    std::optional<T> remove(std::uint64_t number) {
        const std::lock_guard lock(mutex_);
        T* value = find(number);
        if (value == nullptr) return std::nullopt;
        const auto index = static_cast<std::uint32_t>((number & 0xffffffffU) - 1);
        Slot& slot = slot_at(index);
        slot.number.store(0, std::memory_order_release);  // pairs with find, which then rejects the number
        ++slot.generation;
        free_.push_back(index);
        --count_;
        return std::exchange(*value, T{});
    }

    [[nodiscard]] std::size_t count() const {
        const std::lock_guard lock(mutex_);
        return count_;
    }

    // Calls visit(number, object&) for each object. Insertions and removals wait meanwhile.
    template <class Visit>
    void for_each(Visit&& visit) {
        const std::lock_guard lock(mutex_);
        for (std::uint32_t index = 0; index < used_; ++index) {
            Slot& slot = slot_at(index);
            const std::uint64_t number = slot.number.load(std::memory_order_relaxed);  // changed under the lock only
            if (number != 0) visit(number, slot.value);
        }
    }

private:
    struct Slot {
        std::atomic<std::uint64_t> number{0};
        std::uint32_t generation = 0;
        T value{};
    };
    struct Place {
        std::size_t chunk;
        std::size_t offset;
    };
    // Chunk k has first_chunk << k slots; they never move, so that a look-up needs no lock.
    static constexpr std::uint64_t first_chunk = 32;
    static constexpr std::size_t chunk_count = 26;
    static constexpr std::uint64_t capacity = first_chunk * ((std::uint64_t{1} << chunk_count) - 1);

    static Place place(std::uint32_t index) {
        const std::uint64_t block = index / first_chunk + 1;
        const auto chunk = static_cast<std::size_t>(std::bit_width(block) - 1);
        return {chunk, index - first_chunk * ((std::uint64_t{1} << chunk) - 1)};
    }
    Slot& slot_at(std::uint32_t index) {
        const auto [chunk, offset] = place(index);
        return chunks_[chunk].load(std::memory_order_relaxed)[offset];  // written under the same lock
    }
    std::uint32_t take_index() {
        if (!free_.empty()) {
            const std::uint32_t index = free_.back();
            free_.pop_back();
            return index;
        }
        const std::size_t chunk = place(used_).chunk;
        if (chunks_[chunk].load(std::memory_order_relaxed) == nullptr)  // written under the same lock
            // Pairs with the load in find.
            chunks_[chunk].store(new Slot[first_chunk << chunk], std::memory_order_release);
        return used_++;
    }

    mutable std::mutex mutex_;  // insertions and removals
    std::array<std::atomic<Slot*>, chunk_count> chunks_{};
    std::vector<std::uint32_t> free_;
    std::uint32_t used_ = 0;
    std::size_t count_ = 0;
};

}  // namespace npushmem
