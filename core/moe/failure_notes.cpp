#include "core/moe/failure_notes.hpp"

#include <fmt/format.h>

#include <cstring>

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
    if (!memory_.fetch(&note, block_, size, rank).ok() || note.code == 0) return std::nullopt;
    note.reason.back() = '\0';
    return note;
}

Status FailureNotes::write(const Status& failure, std::optional<int> met) {
    std::optional<FailureNote> theirs;
    if (met && failure.code() == Code::aborted) theirs = fetch(*met);
    const FailureNote note = theirs ? *theirs : own(failure);
    // The signal that follows publishes it.
    std::memcpy(block_, &note, sizeof note);
    const Status result = theirs ? Status{static_cast<Code>(note.code),
                                          fmt::format("rank {} has given up: {}", note.rank, note.reason.data())}
                                 : failure;
    broken_ = Status{Code::state, "this handle's ranks are out of step since an earlier failure, until a reset: " +
                                      result.message()};
    return result;
}

void FailureNotes::clear() {
    std::memset(block_, 0, size.value());
    broken_ = {};
}

}  // namespace npushmem::moe
