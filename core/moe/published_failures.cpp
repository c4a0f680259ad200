#include "core/moe/published_failures.hpp"

#include <fmt/format.h>

#include <cstring>
#include <string>

namespace npushmem::moe {

FailureRecord PublishedFailures::own(const Status& failure) const {
    FailureRecord record;
    record.code = static_cast<std::int32_t>(failure.code());
    record.rank = memory_.my_pe();
    failure.message().copy(record.reason.data(), record.reason.size() - 1);
    return record;
}

std::optional<FailureRecord> PublishedFailures::fetch(int rank) {
    FailureRecord record;
    if (!memory_.fetch(&record, block_, Bytes{sizeof record}, rank).ok() || record.code == 0) return std::nullopt;
    record.reason.back() = '\0';
    return record;
}

std::optional<FailureRecord> PublishedFailures::first_failure() {
    constexpr int arbiter = 0;
    auto* word = reinterpret_cast<std::uint64_t*>(block_ + sizeof(FailureRecord));
    const auto own = static_cast<std::uint64_t>(memory_.my_pe()) + 1;  // 0: no rank has failed
    const auto before = memory_.compare_swap(word, 0, own, arbiter);
    if (!before.ok() || before.value() == 0) return std::nullopt;
    return fetch(static_cast<int>(before.value() - 1));
}

Status PublishedFailures::result_of(const FailureRecord& record, const Status& own) const {
    if (record.rank == memory_.my_pe()) return own;
    std::string text = fmt::format("rank {} has aborted: {}", record.rank, record.reason.data());
    // A call that was aborted has no reason of its own.
    if (own.code() != Code::aborted) text += fmt::format(" (rank {}: {})", memory_.my_pe(), own.message());
    return {static_cast<Code>(record.code), text};
}

Status PublishedFailures::write(const Status& failure, std::optional<int> reporter) {
    std::optional<FailureRecord> theirs;
    if (reporter && failure.code() == Code::aborted) theirs = fetch(*reporter);
    FailureRecord record = theirs ? *theirs : own(failure);
    std::memcpy(block_, &record, sizeof record);
    // The record lies there before another rank can find this rank to be the first.
    if (const auto first = first_failure()) {
        record = *first;
        std::memcpy(block_, &record, sizeof record);
    }
    Status result = result_of(record, failure);
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
