// SPDX-License-Identifier: BSD-3-Clause
// Makes all ranks of a job succeed or fail alike: the abort bit, the agreement on a configuration, and the published
// failures.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <optional>

#include "core/moe/common/combine_config.hpp"
#include "core/moe/common/symmetric_memory.hpp"
#include "npushmem/npu/core.hpp"

namespace npushmem::moe {

// An aborting rank adds this bit, once, to every signal, ring head and ring tail that it writes, so that no rank waits
// for it. The bit is larger than all numbers that occur, so it ends every wait for "at least". The rank's earlier work
// still counts: a call that has received everything from that rank succeeds.
constexpr std::uint64_t abort_bit = std::uint64_t{1} << 63;

constexpr bool is_aborted(std::uint64_t word) { return (word & abort_bit) != 0; }
// The number without it.
constexpr std::uint64_t without_abort_bit(std::uint64_t word) { return word & ~abort_bit; }

inline bool abort_received(const std::uint64_t* word) {
    // Acquire: pairs with the addition of abort_bit, before which its rank wrote its record.
    return is_aborted(__atomic_load_n(word, __ATOMIC_ACQUIRE));
}

// A kernel's wait for a rank also needs all others: the awaited one may have ended its call because of another's death.
inline npu::WaitLimit wait_for_rank(const npu::Core& core, int rank, std::chrono::nanoseconds timeout) {
    return {timeout, {rank, {.count = core.n_pes()}}};
}

// Ranks agree before they allocate or move anything: every rank publishes its configuration, every rank compares all of
// them, and all reach the same result. So no rank continues alone into a call that another rank has rejected.

// The record that a rank publishes. Its layout is the same in every process of a job.
struct AgreementRecord {
    std::array<std::int64_t, 18> values{};  // in the order of the fields that it agrees on; first the kind of the call
    std::int32_t refused = 0;               // code with which this rank rejects its own arguments; 0: it accepts them
    std::array<char, 236> reason{};         // text of that rejection, terminated
};
static_assert(sizeof(AgreementRecord) == 384);

// Names the routing of a call in the life of a job, the same on all ranks.
struct RoutingId {
    std::uint64_t origin = 0;  // a random number of the layer since its create or reset
    std::uint64_t number = 0;  // of the routing in that layer, from 1; 0: none
    bool operator==(const RoutingId&) const = default;
};

// Collective. `block` is a symmetric block of the size of a record, which no other exchange uses until the call
// returns. `own` is this rank's status: ok when it accepts its arguments. Returns the rejection of the lowest rank that
// has one, or the first difference to rank 0, with the rank, the field and both values. Every rank returns the same
// code.
Status agree(SymmetricMemory& memory, std::byte* block, const CombineConfig& config, const Status& own);

// The same with a routing instead of a configuration. `dispatched`: a dispatch made it.
Status agree_on_routing(SymmetricMemory& memory, std::byte* block, const RoutingId& id, bool dispatched,
                        const Status& own);

// The same without values: returns ok if every rank's `own` is ok.
Status agree_all_ok(SymmetricMemory& memory, std::byte* block, const Status& own);

// All ranks that fail report the failure of the rank that failed
// first, also where several fail at once.

// The failure of a rank. Its layout is the same in every process of a job.
struct FailureRecord {
    std::int32_t code = 0;           // 0: the rank has not aborted
    std::int32_t rank = 0;           // the rank that failed first
    std::array<char, 504> reason{};  // terminated
};
static_assert(sizeof(FailureRecord) == 512);

// The failures of one handle. A rank writes its record once, before it signals its abort, and keeps it until clear(),
// so every rank that sees the abort can read the record. One word at rank 0 decides which rank failed first: every
// failing rank tries to set it. A rank whose call succeeds does not access it.
class PublishedFailures {
public:
    static constexpr Bytes size{sizeof(FailureRecord) + 128};

    // `block`: `size` symmetric bytes, zeroed, which must outlive the object.
    PublishedFailures(SymmetricMemory& memory, std::byte* block) : memory_(memory), block_(block) {}

    // Publishes the failure of this rank's call; the caller then signals the abort. Returns the result of the call: the
    // code and reason of the rank that failed first. `reporter`: a rank whose abort this rank has seen; its record
    // counts when rank 0 cannot be reached. If neither record can be read because its rank has died, the result is the
    // failure of that read.
    Status write(const Status& failure, std::optional<int> reporter);
    // Ok, or the reason for which the handle rejects further calls.
    [[nodiscard]] const Status& handle_status() const { return handle_status_; }
    // No other rank may read this rank's record meanwhile.
    void clear();

private:
    [[nodiscard]] FailureRecord own(const Status& failure) const;
    [[nodiscard]] Result<FailureRecord> fetch(int rank);
    // The record of the rank that failed first; nothing if it is this rank, or if the record cannot be read.
    [[nodiscard]] std::optional<FailureRecord> first_failure();
    [[nodiscard]] Status result_of(const FailureRecord& record, const Status& own) const;

    SymmetricMemory& memory_;
    std::byte* block_;
    Status handle_status_;
};

}  // namespace npushmem::moe
