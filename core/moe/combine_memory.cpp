// SPDX-License-Identifier: BSD-3-Clause
#include "core/moe/combine_memory.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "core/moe/stream/row_order.hpp"

namespace npushmem::moe {
namespace {

constexpr auto canary_byte = std::byte{0xC5};

Status take_block(Result<SymmetricBlock> allocated, SymmetricBlock& block) {
    if (!allocated.ok()) return allocated.status();
    block = std::move(allocated).value();
    return {};
}

}  // namespace

CombineMemory::CombineMemory(const CombineConfig& config, std::int32_t ranks)
    : config_(config.transport(ranks)),
      ranks_(ranks),
      layout_(ranks, config_.chunk_slots(), config_.returned_row()),
      in_place_layout_(ranks, config.experts) {}

Result<CombineMemory> CombineMemory::allocate(const CombineConfig& config, SymmetricMemory& memory) {
    CombineMemory made(config, memory.n_pes());
    if (Status s = made.allocate_blocks(memory); !s.ok()) return s;
    made.plant_canaries();
    return made;
}

Status CombineMemory::allocate_blocks(SymmetricMemory& memory) {
    Status s = take_block(allocate_block(memory, layout_.total(), "two buffers of slots"), region_);
    if (!s.ok()) return s;
    if (config_.allows_in_place()) {
        s = take_block(allocate_block(memory, in_place_layout_.total(), "rows in place"), in_place_);
        if (!s.ok()) return s;
    }
    if (config_.streams()) {
        s = take_block(allocate_block(memory, rings().layout.total(), "the rings"), rings_);
        if (!s.ok()) return s;
    }
    if (!config_.audit) return {};
    expected_.assign(2 * layout_.slots().value(), 0);
    const Bytes counters{expected_.size() * sizeof(std::uint64_t)};
    return take_block(allocate_block(memory, counters, "the audit's counters"), arrivals_);
}

void CombineMemory::plant_canaries() {
    for (const std::uint64_t parity : {0U, 1U}) {
        std::byte* canary = region_.data() + layout_.canary(parity).value();
        std::fill_n(canary, SlotLayout::line, canary_byte);
    }
}

RingMemory CombineMemory::rings() const {
    return {rings_.data(), RingLayout(ranks_, ring_shape(config_, ranks_), config_.ring_place), config_.timeout};
}

void CombineMemory::clear() {
    std::memset(region_.data(), 0, layout_.buffer(0).value());
    for (int rank = 0; in_place().exists() && rank < ranks_; ++rank) *in_place().word(in_place_layout_.read(rank)) = 0;
    if (config_.streams()) std::memset(rings_.data(), 0, rings().layout.ring(0).value());
    std::ranges::fill(expected_, 0);
    if (config_.audit) std::memset(arrivals_.data(), 0, expected_.size() * sizeof(std::uint64_t));
}

void CombineMemory::count_expected(std::span<const std::int32_t> experts, std::uint64_t epoch) {
    std::uint64_t* counts = expected_.data() + (epoch & 1U) * layout_.slots().value();
    for (std::size_t slot = 0; slot < experts.size(); ++slot) {
        counts[layout_.in_buffer(slot)] += experts[slot] >= 0 ? 1 : 0;
    }
}

Status CombineMemory::check_canary(std::uint64_t epoch) const {
    const std::byte* canary = region_.data() + layout_.canary(epoch).value();
    const std::byte* end = canary + SlotLayout::line;
    const std::byte* wrong = std::find_if(canary, end, [](std::byte b) { return b != canary_byte; });
    if (wrong == end) return {};
    return {Code::protocol,
            fmt::format("moe: byte {} after the last slot of buffer {} was overwritten", wrong - canary, epoch & 1U)};
}

// Checks that the canaries after the rings are zero, and that the heads at the senders equal the bytes taken.
Status CombineMemory::check_rings_at_rest(std::uint64_t epoch) const {
    const RingMemory memory = rings();
    for (int source = 0; source < memory.layout.ranks(); ++source) {
        const std::byte* canary = memory.region + memory.layout.canary(source).value();
        const std::byte* end = canary + RingLayout::line;
        const std::byte* wrong = std::find_if(canary, end, [](std::byte b) { return b != std::byte{0}; });
        if (wrong != end) {
            return {Code::protocol,
                    fmt::format("moe: byte {} after the ring of rank {} was overwritten", wrong - canary, source)};
        }
        RingReceiverState state;
        std::memcpy(static_cast<void*>(&state), memory.word(memory.layout.receiver_state(source)), sizeof state);
        if (state.taken == state.head) continue;
        return {Code::protocol,
                fmt::format("moe, call {}: {} bytes of rank {} were taken from its ring, but its head is "
                            "{}",
                            epoch, state.taken, source, state.head)};
    }
    return {};
}

Status CombineMemory::check_arrivals(std::uint64_t epoch) const {
    // Only the buffer of the last call is stable: a rank that is ahead may already fill the other one.
    const std::size_t first = (epoch & 1U) * layout_.slots().value();
    for (std::size_t i = first; i < first + layout_.slots().value(); ++i) {
        // Acquire: pairs with the sender's atomic add, made before the signal that this call waited for.
        const std::uint64_t seen = __atomic_load_n(arrivals() + i, __ATOMIC_ACQUIRE);
        if (seen == expected_[i]) continue;
        return {Code::protocol,
                fmt::format("moe, call {}: {} rows have been put into slot {} of buffer {} since creation, the "
                            "routing says {}",
                            epoch, seen, i - first, epoch & 1U, expected_[i])};
    }
    return {};
}

Status CombineMemory::check(std::uint64_t epoch) const {
    for (const std::uint64_t parity : {0U, 1U}) {
        if (Status s = check_canary(parity); !s.ok()) return s;
    }
    if (config_.streams()) {
        if (Status s = check_rings_at_rest(epoch); !s.ok()) return s;
    }
    return config_.audit ? check_arrivals(epoch) : Status{};
}

}  // namespace npushmem::moe
