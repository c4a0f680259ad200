// SPDX-License-Identifier: BSD-3-Clause
// The wait of a PE that lasts long, in its control block, for the other PEs of the host and for npushmem-info.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace npushmem {

// Plain values; texts end at their first zero, and longer ones are cut.
struct PeWait {
    std::int64_t since = 0;         // nanoseconds of CLOCK_MONOTONIC; 0: the PE does not wait
    std::uint64_t call_number = 0;  // among the collective calls of the team; 0: no collective call
    std::uint64_t object = 0;       // the offset of the awaited object in its slice; 0: none
    std::int32_t peer = -1;         // the only PE that the wait depends on; -1: none or several
    std::int32_t peers = 0;         // the number of PEs that the wait depends on
    std::array<char, 48> call{};    // the API function; empty: unknown
    std::array<char, 40> what{};    // the awaited condition
    std::array<char, 40> team{};    // empty: no collective call

    bool operator==(const PeWait&) const = default;
};
static_assert(sizeof(PeWait) == 160);

template <std::size_t Size>
void set_text(std::array<char, Size>& to, const char* text) {
    to.fill(0);
    if (text != nullptr) std::string_view(text).copy(to.data(), Size - 1);
}

template <std::size_t Size>
std::string_view text_of(const std::array<char, Size>& from) {
    return {from.data(), static_cast<std::size_t>(std::find(from.begin(), from.end(), '\0') - from.begin())};
}

// A PeWait that one thread at a time writes while others read it. A reader detects by the sequence number that it read
// during a write; the number is odd meanwhile.
class WaitRecord {
public:
    void write(const PeWait& wait) {
        const auto words = std::bit_cast<Words>(wait);
        // Relaxed: only this thread writes.
        const std::uint64_t sequence = sequence_.load(std::memory_order_relaxed);
        sequence_.store(sequence + 1, std::memory_order_relaxed);
        // Release fence. Partner: the acquire fence in read(). A reader of a new word sees the odd number.
        std::atomic_thread_fence(std::memory_order_release);
        for (std::size_t i = 0; i < words.size(); ++i) words_[i].store(words[i], std::memory_order_relaxed);
        // Release. Partner: the acquire load in read().
        sequence_.store(sequence + 2, std::memory_order_release);
    }

    // Returns nothing if every attempt met a write, for example of a process that died in it.
    [[nodiscard]] std::optional<PeWait> read() const {
        constexpr int attempts = 16;
        for (int i = 0; i < attempts; ++i) {
            const std::uint64_t before = sequence_.load(std::memory_order_acquire);
            Words words{};
            for (std::size_t word = 0; word < words.size(); ++word)
                words[word] = words_[word].load(std::memory_order_relaxed);
            std::atomic_thread_fence(std::memory_order_acquire);
            if (before % 2 == 0 && sequence_.load(std::memory_order_relaxed) == before)
                return std::bit_cast<PeWait>(words);
        }
        return std::nullopt;
    }

    [[nodiscard]] std::uint64_t sequence() const { return sequence_.load(std::memory_order_relaxed); }

private:
    using Words = std::array<std::uint64_t, sizeof(PeWait) / sizeof(std::uint64_t)>;

    std::atomic<std::uint64_t> sequence_{0};
    std::array<std::atomic<std::uint64_t>, sizeof(PeWait) / sizeof(std::uint64_t)> words_{};
};

}  // namespace npushmem
