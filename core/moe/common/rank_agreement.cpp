// SPDX-License-Identifier: BSD-3-Clause
#include "core/moe/common/rank_agreement.hpp"

#include <fmt/format.h>

#include <cstring>
#include <string>

namespace npushmem::moe {

namespace {

using AgreementFields = std::array<const char*, std::tuple_size_v<decltype(AgreementRecord::values)>>;

enum class Call : std::int64_t { create = 1, set_layout, other };
constexpr const char* call_field = "the call (1: create, 2: set_layout, 3: set_routing or set_plan)";

constexpr AgreementFields config_fields{
    call_field,         "experts", "top_k",         "hidden",       "max_tokens",  "input type",
    "output type",      "mode",    "audit",         "ring_rows",    "capacity",    "chunk_tokens",
    "the ring's place", "rows",    "dispatch_type", "combine_type", "scale_block", "expert_alignment"};

constexpr AgreementFields routing_fields{call_field, "the handle that the layout is from", "the routing of the layout",
                                         "whether a dispatch made the layout"};

constexpr AgreementFields no_fields{call_field};

// Elements that share a scale, so that different values for the same layout agree; 0 without scales.
std::int64_t block_of(const CombineConfig& config) {
    const bool scales = config.dispatch_type != NarrowType::none || config.combine_type != NarrowType::none;
    return scales ? static_cast<std::int64_t>(config.narrow().block()) : 0;
}

AgreementRecord record_of(const CombineConfig& config) {
    AgreementRecord record;
    record.values = {static_cast<std::int64_t>(Call::create),
                     config.experts,
                     config.top_k,
                     config.hidden,
                     config.max_tokens,
                     static_cast<std::int64_t>(config.input),
                     static_cast<std::int64_t>(config.output),
                     static_cast<std::int64_t>(config.mode),
                     config.audit ? 1 : 0,
                     config.ring_rows,
                     config.capacity,
                     config.chunk_tokens,
                     static_cast<std::int64_t>(config.ring_place),
                     static_cast<std::int64_t>(config.rows_per),
                     static_cast<std::int64_t>(config.dispatch_type),
                     static_cast<std::int64_t>(config.combine_type),
                     block_of(config),
                     config.expert_alignment};
    return record;
}

Status refusal_of(const AgreementRecord& record, int rank, int self) {
    if (record.refused == 0) return {};
    const auto code = static_cast<Code>(record.refused);
    if (rank == self) return {code, record.reason.data()};
    return {code, fmt::format("rank {} refused: {}", rank, record.reason.data())};
}

Status difference(const AgreementRecord& first, const AgreementRecord& record, int rank,
                  const AgreementFields& fields) {
    for (std::size_t i = 0; i < record.values.size(); ++i) {
        if (record.values[i] == first.values[i]) continue;
        return {Code::mismatch,
                fmt::format("ranks disagree on {}: rank 0 has {}, rank {} has {}; all ranks must give the "
                            "same",
                            fields[i], first.values[i], rank, record.values[i])};
    }
    return {};
}

Status compare_all(SymmetricMemory& memory, const std::byte* block, const AgreementFields& fields) {
    AgreementRecord first;
    Status disagreement;
    for (int rank = 0; rank < memory.n_pes(); ++rank) {
        AgreementRecord record;
        if (Status status = memory.fetch(&record, block, Bytes{sizeof record}, rank); !status.ok()) return status;
        if (Status status = refusal_of(record, rank, memory.my_pe()); !status.ok()) return status;
        if (rank == 0) first = record;
        if (disagreement.ok()) disagreement = difference(first, record, rank, fields);
    }
    return disagreement;
}

Status exchange(SymmetricMemory& memory, std::byte* block, AgreementRecord record, const AgreementFields& fields,
                const Status& own) {
    record.refused = static_cast<std::int32_t>(own.code());
    own.message().copy(record.reason.data(), record.reason.size() - 1);
    std::memcpy(block, &record, sizeof record);
    if (Status status = memory.barrier(); !status.ok()) return status;
    const Status result = compare_all(memory, block, fields);
    // No rank may write its next record before all have read this one.
    const Status barrier_status = memory.barrier();
    return result.ok() ? barrier_status : result;
}

}  // namespace

Status agree(SymmetricMemory& memory, std::byte* block, const CombineConfig& config, const Status& own) {
    return exchange(memory, block, record_of(config), config_fields, own);
}

Status agree_on_routing(SymmetricMemory& memory, std::byte* block, const RoutingId& id, bool dispatched,
                        const Status& own) {
    AgreementRecord record;
    record.values = {static_cast<std::int64_t>(Call::set_layout), static_cast<std::int64_t>(id.origin),
                     static_cast<std::int64_t>(id.number), dispatched ? 1 : 0};
    return exchange(memory, block, record, routing_fields, own);
}

Status agree_all_ok(SymmetricMemory& memory, std::byte* block, const Status& own) {
    AgreementRecord record;
    record.values = {static_cast<std::int64_t>(Call::other)};
    return exchange(memory, block, record, no_fields, own);
}

FailureRecord PublishedFailures::own(const Status& failure) const {
    FailureRecord record;
    record.code = static_cast<std::int32_t>(failure.code());
    record.rank = memory_.my_pe();
    failure.message().copy(record.reason.data(), record.reason.size() - 1);
    return record;
}

Result<FailureRecord> PublishedFailures::fetch(int rank) {
    FailureRecord record;
    if (Status status = memory_.fetch(&record, block_, Bytes{sizeof record}, rank); !status.ok())
        return status.within(fmt::format("rank {} has aborted and its reason cannot be read", rank));
    if (record.code == 0) return Status{Code::aborted, fmt::format("rank {} has not published a reason", rank)};
    record.reason.back() = '\0';
    return record;
}

std::optional<FailureRecord> PublishedFailures::first_failure() {
    constexpr int arbiter = 0;
    auto* word = reinterpret_cast<std::uint64_t*>(block_ + sizeof(FailureRecord));
    const auto own = static_cast<std::uint64_t>(memory_.my_pe()) + 1;  // 0: no rank has failed
    const auto before = memory_.compare_swap(word, 0, own, arbiter);
    if (!before.ok() || before.value() == 0) return std::nullopt;
    const auto record = fetch(static_cast<int>(before.value() - 1));
    return record.ok() ? std::optional(record.value()) : std::nullopt;
}

Status PublishedFailures::result_of(const FailureRecord& record, const Status& own) const {
    if (record.rank == memory_.my_pe()) return own;
    std::string text = fmt::format("rank {} has aborted: {}", record.rank, record.reason.data());
    // An aborted call has no cause of its own.
    if (own.code() != Code::aborted) text += fmt::format(" (rank {}: {})", memory_.my_pe(), own.message());
    return {static_cast<Code>(record.code), text};
}

Status PublishedFailures::write(const Status& failure, std::optional<int> reporter) {
    Status cause = failure;
    FailureRecord record = own(failure);
    if (reporter && failure.code() == Code::aborted) {
        if (const auto theirs = fetch(*reporter); theirs.ok()) {
            record = theirs.value();
        } else if (theirs.status().code() != Code::aborted) {
            // The reporter has been lost since: that is all that this rank knows.
            cause = theirs.status();
            record = own(cause);
        }
    }
    std::memcpy(block_, &record, sizeof record);
    // The record is complete before another rank can see that this rank was first.
    if (const auto first = first_failure()) {
        record = *first;
        cause = failure;
        std::memcpy(block_, &record, sizeof record);
    }
    Status result = result_of(record, cause);
    handle_status_ =
        Status{Code::state,
               "this handle's ranks are out of step since an earlier failure, until a reset: " + result.message()};
    return result;
}

void PublishedFailures::clear() {
    std::memset(block_, 0, size.value());
    handle_status_ = {};
}

}  // namespace npushmem::moe
