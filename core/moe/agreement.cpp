#include "core/moe/agreement.hpp"

#include <fmt/format.h>

#include <cstring>

namespace npushmem::moe {
namespace {

constexpr std::array<const char*, std::tuple_size_v<decltype(AgreementCard::values)>> agreement_fields{
    "experts", "top_k", "hidden",    "max_tokens", "input type",   "output type",
    "mode",    "audit", "ring_rows", "capacity",   "chunk_tokens", "the ring's place"};

AgreementCard card_of(const CombineConfig& config, const Status& own) {
    AgreementCard card;
    card.values = {config.experts,
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
    card.refused = static_cast<std::int32_t>(own.code());
    own.message().copy(card.reason.data(), card.reason.size() - 1);
    return card;
}

Status refusal_of(const AgreementCard& card, int rank, int self) {
    if (card.refused == 0) return {};
    const auto code = static_cast<Code>(card.refused);
    if (rank == self) return {code, card.reason.data()};
    return {code, fmt::format("rank {} refused: {}", rank, card.reason.data())};
}

Status difference(const AgreementCard& first, const AgreementCard& card, int rank) {
    for (std::size_t i = 0; i < card.values.size(); ++i) {
        if (card.values[i] == first.values[i]) continue;
        return {Code::mismatch,
                fmt::format("ranks disagree on {}: rank 0 has {}, rank {} has {}; all ranks must give the "
                            "same",
                            agreement_fields[i], first.values[i], rank, card.values[i])};
    }
    return {};
}

Status verdict(SymmetricMemory& memory, const std::byte* block) {
    AgreementCard first;
    Status disagreement;
    for (int rank = 0; rank < memory.n_pes(); ++rank) {
        AgreementCard card;
        if (Status status = memory.fetch(&card, block, Bytes{sizeof card}, rank); !status.ok()) return status;
        if (Status status = refusal_of(card, rank, memory.my_pe()); !status.ok()) return status;
        if (rank == 0) first = card;
        if (disagreement.ok()) disagreement = difference(first, card, rank);
    }
    return disagreement;
}

Status exchange(SymmetricMemory& memory, std::byte* block, const AgreementCard& card) {
    std::memcpy(block, &card, sizeof card);
    if (Status status = memory.barrier(); !status.ok()) return status;
    const Status result = verdict(memory, block);
    // Nobody may write its next card before all have read this one.
    const Status met = memory.barrier();
    return result.ok() ? met : result;
}

}  // namespace

Status agree(SymmetricMemory& memory, std::byte* block, const CombineConfig& config, const Status& own) {
    return exchange(memory, block, card_of(config, own));
}

Status agree_all_ok(SymmetricMemory& memory, std::byte* block, const Status& own) {
    return exchange(memory, block, card_of(CombineConfig{}, own));
}

}  // namespace npushmem::moe
