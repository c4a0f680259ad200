// SPDX-License-Identifier: BSD-3-Clause
#include "core/team/shrink_records.hpp"

#include <algorithm>
#include <atomic>
#include <span>

#include "core/base/hash.hpp"

namespace npushmem {

namespace {

constexpr std::size_t header_words = TeamLayout::shrink_header_bytes / sizeof(std::uint64_t);
constexpr std::uint64_t mapped_bit = std::uint64_t{1} << 32;
constexpr std::uint64_t left_bit = std::uint64_t{1} << 33;
static_assert(header_words == 4 + std::tuple_size_v<TeamSlotSet>);

std::uint64_t checksum(const std::vector<std::uint64_t>& words) {
    return fnv1a<std::uint64_t>(std::span(words).subspan(1));
}

std::vector<std::uint64_t> words_of(const ShrinkRecord& record) {
    std::vector<std::uint64_t> words{
        0, record.call, static_cast<std::uint64_t>(record.phase) | static_cast<std::uint64_t>(record.claim) << 32,
        static_cast<std::uint64_t>(record.slot + 1) | (record.mapped ? mapped_bit : 0) |
            (record.has_left ? left_bit : 0)};
    words.insert(words.end(), record.free.begin(), record.free.end());
    words.insert(words.end(), record.failed.words().begin(), record.failed.words().end());
    words[0] = checksum(words);
    return words;
}

std::atomic_ref<std::uint64_t> word_at(std::byte* record, std::size_t i) {
    return std::atomic_ref<std::uint64_t>(reinterpret_cast<std::uint64_t*>(record)[i]);
}

}  // namespace

void ShrinkRecords::publish(const ShrinkRecord& record) {
    std::byte* const own = resources_.own_slice + team_.layout().shrink_record(record.call);
    const Words words = words_of(record);
    // Release. Partner: the acquire in load(), or the transport's delivery. A reader of a claim may write into the slot
    // that this PE has cleared.
    for (std::size_t i = 0; i < words.size(); ++i) word_at(own, i).store(words[i], std::memory_order_release);
}

void ShrinkRecords::publish_end() {
    // Where there is no record yet, the number is of no call.
    for (const std::uint64_t no_call : {std::uint64_t{0}, ~std::uint64_t{0}}) {
        ShrinkRecord own = parse(load(resources_.own_slice + team_.layout().shrink_record(no_call)))
                               .value_or(ShrinkRecord(team_.size()));
        own.has_left = true;
        if (own.phase == ShrinkRecord::Phase::none) own.call = no_call;
        publish(own);
    }
}

ShrinkRecords::Words ShrinkRecords::load(const std::byte* from) const {
    auto* const record = const_cast<std::byte*>(from);  // atomic_ref has no form for const objects; it is only read
    Words words(header_words + MemberSet(team_.size()).words().size());
    for (std::size_t i = 0; i < words.size(); ++i) words[i] = word_at(record, i).load(std::memory_order_acquire);
    return words;
}

Result<std::optional<ShrinkRecord>> ShrinkRecords::read(int member, std::uint64_t call) const {
    const std::uint64_t at = team_.layout().shrink_record(call);
    if (const std::byte* there = team_.mapped_address(member, at)) return parse(load(there));
    Words words(header_words + MemberSet(team_.size()).words().size());
    Status got = resources_.remote.get(team_.members().at(member), at, words.data(),
                                       words.size() * sizeof(std::uint64_t), RemoteAccess::Completion::local);
    if (!got.ok()) return got;
    return parse(words);
}

std::optional<ShrinkRecord> ShrinkRecords::parse(const Words& words) const {
    ShrinkRecord record(team_.size());
    if (words[1] == 0 && words[0] == 0) return record;
    if (words[0] != checksum(words)) return std::nullopt;
    record.call = words[1];
    record.phase = static_cast<ShrinkRecord::Phase>(static_cast<std::uint32_t>(words[2]));
    record.claim = static_cast<SlotClaim>(words[2] >> 32);
    record.slot = static_cast<int>(static_cast<std::uint32_t>(words[3])) - 1;
    record.mapped = (words[3] & mapped_bit) != 0;
    record.has_left = (words[3] & left_bit) != 0;
    std::copy_n(words.begin() + 4, record.free.size(), record.free.begin());
    std::copy(words.begin() + static_cast<std::ptrdiff_t>(header_words), words.end(), record.failed.words().begin());
    return record;
}

}  // namespace npushmem
