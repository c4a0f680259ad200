// SPDX-License-Identifier: BSD-3-Clause
#include "core/team/formation_leader.hpp"

#include <algorithm>

namespace npushmem {

namespace {

constexpr int max_proposals = 1000;

std::uint32_t as_word(int value) { return static_cast<std::uint32_t>(value); }

}  // namespace

Status FormationLeader::run(AgreedTeam& agreed) {
    Status done = form(agreed);
    close(done);
    return done;
}

Status FormationLeader::form(AgreedTeam& agreed) {
    if (request_.size < 1 || request_.size > messages_.resources().npes)
        return refuse({Reason::size_range, {as_word(request_.size)}});
    if (Status received = receive_hellos(); !received.ok()) return received;
    if (const auto conflict = find_conflict()) return refuse(*conflict);
    const std::vector<int> pes = pes_by_index();
    agreed.members = Members::listed(pes);
    if (Status sent = send_roster(pes); !sent.ok()) return sent;
    return choose_slot(agreed);
}

// Collects hellos until all members have arrived or a hello conflicts, for example by its size. The missing PEs are
// unknown, so the wait watches all whose death the program does not know.
Status FormationLeader::receive_hellos() {
    const auto size = static_cast<std::size_t>(request_.size);
    arrivals_.push_back({messages_.resources().my_pe, request_.size, request_.index, slot_.free()});
    while (arrivals_.size() < size && arrivals_.back().size == request_.size) {
        const auto& any_pe = messages_.resources().awaited_pes;
        const WaitFor what{.what = "the other PEs of a new team",
                           .needs = any_pe ? any_pe() : PeRange{},
                           .timeout = messages_.resources().timeout};
        const auto arrived = static_cast<std::uint32_t>(arrivals_.size());
        WaitFailure failure;
        const auto message = messages_.receive(what, {}, &failure);
        if (message.status().code() == Code::timeout)
            return refuse({Reason::missing, {arrived, as_word(request_.size)}});
        if (message.status().code() == Code::peer_dead)
            return refuse({Reason::dead, {as_word(failure.dead_pe), arrived, as_word(request_.size)}});
        if (!message.ok()) return message.status();
        const TeamMessage& hello = message.value();
        if (has_arrived(hello.from)) return refuse_surplus(hello.from);
        arrivals_.push_back(
            {hello.from, static_cast<int>(hello.words[0]), static_cast<int>(hello.words[1]), slots_in(hello)});
    }
    return {};
}

std::optional<FormationRefusal> FormationLeader::find_conflict() const {
    const int size = request_.size;
    for (const Arrival& one : arrivals_) {
        if (one.size != size)
            return FormationRefusal{Reason::sizes,
                                    {as_word(size), as_word(arrivals_[0].pe), as_word(one.size), as_word(one.pe)}};
        if (one.index < 0 || one.index >= size)
            return FormationRefusal{Reason::index_range, {as_word(one.pe), as_word(one.index), as_word(size)}};
    }
    std::vector<const Arrival*> by_index;
    for (const Arrival& one : arrivals_) by_index.push_back(&one);
    std::ranges::sort(by_index, {}, [](const Arrival* one) { return std::pair(one->index, one->pe); });
    for (std::size_t i = 1; i < by_index.size(); ++i)
        if (by_index[i]->index == by_index[i - 1]->index)
            return FormationRefusal{
                Reason::indices, {as_word(by_index[i - 1]->pe), as_word(by_index[i]->pe), as_word(by_index[i]->index)}};
    return std::nullopt;
}

std::vector<int> FormationLeader::pes_by_index() const {
    std::vector<int> pes(arrivals_.size());
    for (const Arrival& one : arrivals_) pes[static_cast<std::size_t>(one.index)] = one.pe;
    return pes;
}

bool FormationLeader::has_arrived(int pe) const {
    return std::ranges::find(arrivals_, pe, &Arrival::pe) != arrivals_.end();
}

Status FormationLeader::send_to_all(TeamMessage message) {
    message.number = sent_++;
    Status first;
    for (std::size_t i = 1; i < arrivals_.size(); ++i) {
        const Status sent = messages_.send(arrivals_[i].pe, message);
        if (sent.code() == Code::peer_dead && lost_ < 0) lost_ = arrivals_[i].pe;
        if (first.ok()) first = sent;
    }
    return first;
}

Status FormationLeader::send_roster(const std::vector<int>& pes) {
    for (std::size_t at = 0; at < pes.size();) {
        TeamMessage piece = messages_.make(FormationMessage::roster);
        for (; at < pes.size() && piece.count < TeamMessage::max_words; ++at) piece.add(as_word(pes[at]));
        if (Status sent = send_to_all(piece); !sent.ok()) return sent;
    }
    return {};
}

Status FormationLeader::choose_slot(AgreedTeam& agreed) {
    TeamSlotSet free = slot_.free();
    for (const Arrival& one : arrivals_) intersect(free, one.free);
    for (int attempt = 0; attempt < max_proposals; ++attempt) {
        const std::vector<int> lowest = first_slots(free, 1);
        if (lowest.empty()) return refuse({Reason::slots, {}});
        TeamMessage proposal = messages_.make(FormationMessage::proposal);
        proposal.add(as_word(lowest[0]));
        if (Status sent = send_to_all(proposal); !sent.ok()) return sent;
        votes_.assign(1, slot_.claim(lowest[0], agreed.members.range()));
        if (Status received = receive_votes(agreed.members.range()); !received.ok()) return received;
        const SlotClaim worst = std::ranges::max(votes_, {}, &FormationVote::claim).claim;
        if (worst == SlotClaim::unavailable) return refuse({Reason::memory, {}});
        agreed.mapped = std::ranges::all_of(votes_, &FormationVote::mapped);
        TeamMessage verdict = messages_.make(FormationMessage::verdict);
        verdict.add(static_cast<std::uint32_t>(worst));
        verdict.add(agreed.mapped ? 1 : 0);
        if (Status sent = send_to_all(verdict); !sent.ok()) return sent;
        if (worst == SlotClaim::claimed) return {};
        slot_.release();
        free = slot_.free();
        for (const FormationVote& vote : votes_) intersect(free, vote.free);
    }
    return refuse({Reason::slots, {}});
}

Status FormationLeader::receive_votes(const PeRange& members) {
    const WaitFor what{.what = "the votes of a new team's PEs on its slot",
                       .needs = members,
                       .timeout = messages_.resources().timeout};
    while (votes_.size() < arrivals_.size()) {
        WaitFailure failure;
        const auto message = messages_.receive(what, {}, &failure);
        if (message.status().code() == Code::peer_dead && lost_ < 0) lost_ = failure.dead_pe;
        if (!message.ok()) return message.status();
        if (message.value().kind != static_cast<std::uint32_t>(FormationMessage::vote))
            return refuse_surplus(message.value().from);
        votes_.push_back(FormationVote::parse(message.value()));
    }
    return {};
}

Status FormationLeader::refuse(const FormationRefusal& refusal) {
    refusal_ = refusal;
    (void)send_to_all(messages_.make_refusal(refusal));  // a PE that is not reached fails at its own deadline
    return refusal.status(messages_.leader(), messages_.resources().npes);
}

// A PE that arrives late has no message yet, so for it this is the first one.
Status FormationLeader::refuse_surplus(int pe) {
    if (has_arrived(pe)) return refuse({Reason::twice, {as_word(pe), as_word(request_.size)}});
    const FormationRefusal refusal{Reason::surplus, {as_word(pe), as_word(request_.size)}};
    (void)messages_.send(pe, messages_.make_refusal(refusal));
    return refuse(refusal);
}

// No PE waits for a leader that has finished. A PE whose hello is not found here finds the table written: it reads the
// table after it put its hello.
void FormationLeader::close(const Status& done) {
    if (!done.ok() && !refusal_)
        (void)refuse({Reason::failed, {static_cast<std::uint32_t>(done.code()), as_word(lost_ + 1)}});
    const FormationRefusal late =
        refusal_.value_or(FormationRefusal{Reason::surplus, {FormationRefusal::any_reader, as_word(request_.size)}});
    outcomes_.close(number_of_team(request_.id), late.words());
    const TeamMessage reply = messages_.make_refusal(late);
    while (const auto message = messages_.poll())
        if (message->kind == static_cast<std::uint32_t>(FormationMessage::hello) && !has_arrived(message->from))
            (void)messages_.send(message->from, reply);
}

}  // namespace npushmem
