// Agreement before anything is allocated or moved: every rank shows its configuration, every rank compares, and all
// come to the same result, so that nobody goes on alone into a call that another has refused.
#pragma once

#include <array>
#include <cstdint>

#include "core/moe/combine_config.hpp"
#include "core/moe/symmetric_memory.hpp"

namespace npushmem::moe {

// What a rank shows to the others; the same layout in every process of a job.
struct AgreementRecord {
    std::array<std::int64_t, 12> values{};  // in the order of agreement_fields
    std::int32_t refused = 0;               // Code of this rank's own refusal, 0 if it has none
    std::array<char, 284> reason{};         // and its text, terminated
};
static_assert(sizeof(AgreementRecord) == 384);

// Collective, on a symmetric record-sized block that belongs to this exchange alone until it returns. `own` is this
// rank's own status: ok when it accepts its arguments. Returns the refusal of the lowest rank that has one, or the
// first difference to rank 0, naming the rank, the field and both values; the same code on every rank.
Status agree(SymmetricMemory& memory, std::byte* block, const CombineConfig& config, const Status& own);

// The same without values: ok if all ranks are.
Status agree_all_ok(SymmetricMemory& memory, std::byte* block, const Status& own);

}  // namespace npushmem::moe
