#include "core/moe/failure_notes.hpp"

#include <fmt/format.h>

#include <cstring>
#include <string>

namespace npushmem::moe {

FailureNote FailureNotes::own(const Status& failure) const {
    FailureNote note;
    note.code = static_cast<std::int32_t>(failure.code());
    note.rank = memory_.my_pe();
    failure.message().copy(note.reason.data(), note.reason.size() - 1);
    return note;
}

std::optional<FailureNote> FailureNotes::fetch(int rank) {
    FailureNote note;
    if (!memory_.fetch(&note, block_, Bytes{sizeof note}, rank).ok() || note.code == 0) return std::nullopt;
    note.reason.back() = '\0';
    return note;
}

std::optional<FailureNote> FailureNotes::first_of_all() {
    constexpr int arbiter = 0;
    auto* word = reinterpret_cast<std::uint64_t*>(block_ + sizeof(FailureNote));
    const auto own = static_cast<std::uint64_t>(memory_.my_pe()) + 1;  // 0: no rank has failed
    const auto before = memory_.compare_swap(word, 0, own, arbiter);
    if (!before.ok() || before.value() == 0) return std::nullopt;
    return fetch(static_cast<int>(before.value() - 1));
}

Status FailureNotes::result_of(const FailureNote& note, const Status& own) const {
    if (note.rank == memory_.my_pe()) return own;
    std::string text = fmt::format("rank {} has given up: {}", note.rank, note.reason.data());
    // A call that was aborted has no reason of its own.
    if (own.code() != Code::aborted) text += fmt::format(" (rank {}: {})", memory_.my_pe(), own.message());
    return {static_cast<Code>(note.code), text};
}

Status FailureNotes::write(const Status& failure, std::optional<int> met) {
    std::optional<FailureNote> theirs;
    if (met && failure.code() == Code::aborted) theirs = fetch(*met);
    FailureNote note = theirs ? *theirs : own(failure);
    std::memcpy(block_, &note, sizeof note);
    // The note lies there before another rank can find this rank to be the first.
    if (const auto first = first_of_all()) {
        note = *first;
        std::memcpy(block_, &note, sizeof note);
    }
    Status result = result_of(note, failure);
    broken_ = Status{Code::state, "this handle's ranks are out of step since an earlier failure, until a reset: " +
                                      result.message()};
    return result;
}

void FailureNotes::clear() {
    std::memset(block_, 0, size.value());
    broken_ = {};
}

}  // namespace npushmem::moe
