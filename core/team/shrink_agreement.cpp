// SPDX-License-Identifier: BSD-3-Clause
#include "core/team/shrink_agreement.hpp"

#include <algorithm>
#include <utility>

namespace npushmem {

using Phase = ShrinkRecord::Phase;

bool MemberSet::add_all(const MemberSet& others) {
    const std::vector<std::uint64_t> before = words_;
    for (std::size_t i = 0; i < words_.size(); ++i) words_[i] |= others.words_[i];
    return words_ != before;
}

ShrinkAgreement::ShrinkAgreement(int size, int own, std::uint64_t call)
    : size_(size), own_(own), record_(size), agreed_(size) {
    record_.call = call;
}

bool ShrinkAgreement::awaits(int member) const {
    return member != own_ && !has_decided() && !is_excluded_ && !record_.failed.has(member) &&
           (must_propose_ || !agreed_.has(member));
}

void ShrinkAgreement::learn_failed(int member) {
    if (has_decided() || record_.failed.has(member)) return;
    record_.failed.add(member);
    start_again();
}

void ShrinkAgreement::start_again() {
    must_propose_ = true;
    agreed_.clear();
}

void ShrinkAgreement::learn(int member, const ShrinkRecord& theirs) {
    const bool is_later = theirs.phase != Phase::none && theirs.call > record_.call;
    const bool is_same = theirs.phase != Phase::none && theirs.call == record_.call;
    // A later call needs this member, unless an earlier one has excluded it. Two calls share a record.
    if (is_later || (is_same && theirs.phase == Phase::decided && theirs.failed.has(own_))) {
        is_excluded_ = true;
        return;
    }
    if (is_same && theirs.phase == Phase::decided) return adopt(theirs);
    if (theirs.has_left) return learn_failed(member);
    if (!is_same) return;
    if (theirs.failed.has(own_)) {
        is_excluded_ = true;
        return;
    }
    if (record_.failed.add_all(theirs.failed)) start_again();
    if (!must_propose_ && theirs.failed == record_.failed && theirs.phase >= record_.phase) agree(member, theirs);
}

void ShrinkAgreement::adopt(const ShrinkRecord& theirs) {
    record_ = theirs;
    record_.has_left = false;
    must_publish_ = true;
}

void ShrinkAgreement::agree(int member, const ShrinkRecord& theirs) {
    agreed_.add(member);
    intersect(common_, theirs.free);
    if (record_.phase != Phase::claimed) return;
    worst_ = std::max(worst_, theirs.claim);
    all_mapped_ = all_mapped_ && theirs.mapped;
}

bool ShrinkAgreement::all_agree() const {
    for (int member = 0; member < size_; ++member)
        if (awaits(member)) return false;
    return true;
}

bool ShrinkAgreement::advance(ShrinkSlots& slots) {
    if (std::exchange(must_publish_, false)) return true;
    if (has_decided() || is_excluded_) return false;
    if (std::exchange(must_propose_, false)) {
        record_.phase = Phase::proposed;
        record_.slot = -1;
        record_.free = common_ = slots.free();
        return true;
    }
    if (!all_agree()) return false;
    if (record_.phase == Phase::proposed) {
        claim(slots);
    } else {
        record_.phase = Phase::decided;
        record_.claim = worst_;
        record_.mapped = all_mapped_;
    }
    return true;
}

void ShrinkAgreement::claim(ShrinkSlots& slots) {
    const std::vector<int> first = first_slots(common_, 1);
    record_.slot = first.empty() ? -1 : first[0];
    const ShrinkSlots::Claim own =
        first.empty() ? ShrinkSlots::Claim{SlotClaim::unavailable, true} : slots.claim(record_.slot, record_.failed);
    record_.phase = Phase::claimed;
    record_.claim = worst_ = own.claim;
    record_.mapped = all_mapped_ = own.mapped;
    agreed_.clear();
}

}  // namespace npushmem
