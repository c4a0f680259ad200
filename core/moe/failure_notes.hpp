// Why a rank has given up, where the others can read it. All ranks that fail report the failure of the rank that failed
// first, also where several fail at once.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "core/moe/symmetric_memory.hpp"

namespace npushmem::moe {

// What a rank shows; the same layout in every process of a job.
struct FailureNote {
    std::int32_t code = 0;           // 0: it has not given up
    std::int32_t rank = 0;           // whose failure it was at first
    std::array<char, 504> reason{};  // terminated
};
static_assert(sizeof(FailureNote) == 512);

// One handle's notes. A rank's note is written once, before it tells anybody that it has given up, and then stays until
// clear(), so whoever was told can read it. Which rank failed first is decided by one word at rank 0, which every rank
// that fails tries to set; a rank whose call succeeds does not touch it.
class FailureNotes {
public:
    static constexpr Bytes size{sizeof(FailureNote) + 128};

    // `block`: `size` symmetric bytes, zeroed, which must outlive the object.
    FailureNotes(SymmetricMemory& memory, std::byte* block) : memory_(memory), block_(block) {}

    // This rank's call has failed, and it is going to tell the others. Returns what the call returns: the code and
    // reason of the rank that failed first. `met`: a rank that has told this one of its failure, whose note counts
    // where rank 0 cannot be reached.
    Status write(const Status& failure, std::optional<int> met);
    // Ok, or why nothing can be done with the handle any more.
    [[nodiscard]] const Status& broken() const { return broken_; }
    // The others must not look at this rank's note meanwhile.
    void clear();

private:
    [[nodiscard]] FailureNote own(const Status& failure) const;
    [[nodiscard]] std::optional<FailureNote> fetch(int rank);
    // The note of the rank that failed first, unless that is this rank or cannot be found out.
    [[nodiscard]] std::optional<FailureNote> first_of_all();
    [[nodiscard]] Status result_of(const FailureNote& note, const Status& own) const;

    SymmetricMemory& memory_;
    std::byte* block_;
    Status broken_;
};

}  // namespace npushmem::moe
