// Why a rank has aborted, where the others can read it. All ranks that fail report the failure of the rank that failed
// first, also where several fail at once.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "core/moe/symmetric_memory.hpp"

namespace npushmem::moe {

// What a rank shows; the same layout in every process of a job.
struct FailureRecord {
    std::int32_t code = 0;           // 0: it has not aborted
    std::int32_t rank = 0;           // whose failure it was at first
    std::array<char, 504> reason{};  // terminated
};
static_assert(sizeof(FailureRecord) == 512);

// The failures of one handle. A rank's record is written once, before it tells anybody that it has aborted, and then
// stays until clear(), so whoever was told can read it. Which rank failed first is decided by one word at rank 0, which
// every rank that fails tries to set; a rank whose call succeeds does not touch it.
class PublishedFailures {
public:
    static constexpr Bytes size{sizeof(FailureRecord) + 128};

    // `block`: `size` symmetric bytes, zeroed, which must outlive the object.
    PublishedFailures(SymmetricMemory& memory, std::byte* block) : memory_(memory), block_(block) {}

    // This rank's call has failed, and it is going to tell the others. Returns what the call returns: the code and
    // reason of the rank that failed first. `reporter`: a rank that has told this one of its failure, whose record
    // counts where rank 0 cannot be reached.
    Status write(const Status& failure, std::optional<int> reporter);
    // Ok, or why nothing can be done with the handle any more.
    [[nodiscard]] const Status& handle_status() const { return handle_status_; }
    // The others must not look at this rank's record meanwhile.
    void clear();

private:
    [[nodiscard]] FailureRecord own(const Status& failure) const;
    [[nodiscard]] std::optional<FailureRecord> fetch(int rank);
    // The record of the rank that failed first, unless that is this rank or cannot be found out.
    [[nodiscard]] std::optional<FailureRecord> first_failure();
    [[nodiscard]] Status result_of(const FailureRecord& record, const Status& own) const;

    SymmetricMemory& memory_;
    std::byte* block_;
    Status handle_status_;
};

}  // namespace npushmem::moe
