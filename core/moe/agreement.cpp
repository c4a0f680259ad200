#include "core/moe/agreement.hpp"

#include <fmt/format.h>

#include <cstring>

namespace npushmem::moe {
namespace {

constexpr std::array<const char*, std::tuple_size_v<decltype(AgreementRecord::values)>> agreement_fields{
    "experts", "top_k", "hidden",    "max_tokens", "input type",   "output type",
    "mode",    "audit", "ring_rows", "capacity",   "chunk_tokens", "the ring's place"};

AgreementRecord record_of(const CombineConfig& config, const Status& own) {
    AgreementRecord record;
    record.values = {config.experts,
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
                     static_cast<std::int64_t>(config.ring_place)};
    record.refused = static_cast<std::int32_t>(own.code());
    own.message().copy(record.reason.data(), record.reason.size() - 1);
    return record;
}

Status refusal_of(const AgreementRecord& record, int rank, int self) {
    if (record.refused == 0) return {};
    const auto code = static_cast<Code>(record.refused);
    if (rank == self) return {code, record.reason.data()};
    return {code, fmt::format("rank {} refused: {}", rank, record.reason.data())};
}

Status difference(const AgreementRecord& first, const AgreementRecord& record, int rank) {
    for (std::size_t i = 0; i < record.values.size(); ++i) {
        if (record.values[i] == first.values[i]) continue;
        return {Code::mismatch,
                fmt::format("ranks disagree on {}: rank 0 has {}, rank {} has {}; all ranks must give the "
                            "same",
                            agreement_fields[i], first.values[i], rank, record.values[i])};
    }
    return {};
}

Status compare_all(SymmetricMemory& memory, const std::byte* block) {
    AgreementRecord first;
    Status disagreement;
    for (int rank = 0; rank < memory.n_pes(); ++rank) {
        AgreementRecord record;
        if (Status status = memory.fetch(&record, block, Bytes{sizeof record}, rank); !status.ok()) return status;
        if (Status status = refusal_of(record, rank, memory.my_pe()); !status.ok()) return status;
        if (rank == 0) first = record;
        if (disagreement.ok()) disagreement = difference(first, record, rank);
    }
    return disagreement;
}

Status exchange(SymmetricMemory& memory, std::byte* block, const AgreementRecord& record) {
    std::memcpy(block, &record, sizeof record);
    if (Status status = memory.barrier(); !status.ok()) return status;
    const Status result = compare_all(memory, block);
    // Nobody may write its next record before all have read this one.
    const Status barrier_status = memory.barrier();
    return result.ok() ? barrier_status : result;
}

}  // namespace

Status agree(SymmetricMemory& memory, std::byte* block, const CombineConfig& config, const Status& own) {
    return exchange(memory, block, record_of(config, own));
}

Status agree_all_ok(SymmetricMemory& memory, std::byte* block, const Status& own) {
    return exchange(memory, block, record_of(CombineConfig{}, own));
}

}  // namespace npushmem::moe
