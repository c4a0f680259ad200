#include "core/team/team_formation.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

namespace npushmem {

namespace {

constexpr int max_proposals = 1000;
constexpr std::uint32_t any_reader = ~std::uint32_t{0};  // in place of a PE: any reader
constexpr std::size_t free_words = 2 * std::tuple_size_v<TeamSlotSet>;

void add_free(TeamMessage& message, const TeamSlotSet& free) {
    for (const std::uint64_t word : free) {
        message.add(static_cast<std::uint32_t>(word));
        message.add(static_cast<std::uint32_t>(word >> 32));
    }
}

TeamSlotSet free_in(const TeamMessage& message, std::size_t at) {
    TeamSlotSet free{};
    for (std::size_t i = 0; i < free_words; ++i) free[i / 2] |= std::uint64_t{message.words[at + i]} << (i % 2 * 32);
    return free;
}

int lowest(const TeamSlotSet& free) {
    for (std::size_t i = 0; i < free.size(); ++i)
        if (free[i] != 0) return static_cast<int>(i * 64) + std::countr_zero(free[i]);
    return -1;
}

}  // namespace

Status TeamFormation::run(int contexts_wanted, TeamName& made) {
    const bool leads = leader_of(id_) == table_.resources().my_pe;
    Status done = leads ? lead() : follow();
    if (leads) close(done);
    if (!done.ok()) {
        release_slot();
        return done;
    }
    made = table_.begin(slot_, {members_, contexts_wanted}, mapped_);
    return {};
}

// A second hello from a PE reports the reuse to the leader.
Status TeamFormation::reject_reuse() {
    if (leader_of(id_) == table_.resources().my_pe)
        mailbox_.deliver_locally(hello_message());
    else
        (void)send_hello();  // the failure is the same either way
    return {Code::argument,
            fmt::format("PE {} has used the id {:#x} before, perhaps in another thread; an id serves for one "
                        "team, formed or rejected",
                        table_.resources().my_pe, id_)};
}

TeamMessage TeamFormation::message(Kind kind) const {
    TeamMessage message;
    message.id = id_;
    message.from = table_.resources().my_pe;
    message.kind = kind;
    return message;
}

Result<TeamMessage> TeamFormation::next(const WaitFor& what, std::optional<std::uint32_t> number) {
    std::optional<TeamMessage> come;
    // A failure of the transports may concern any PE. The wait itself detects the loss of an awaited PE.
    const auto poll = [&] {
        come = mailbox_.take(id_, number);
        if (!come) (void)mailbox_.progress();
        return come.has_value();
    };
    WaitFailure failure;
    const Code code = table_.resources().waiter.until(poll, what, &failure);
    if (code != Code::ok) return Status{code, describe(what, failure)};
    return *come;
}

TeamFormation::Vote TeamFormation::try_slot(int slot) {
    slot_ = slot;
    taken_ = table_.claim_slot(slot);
    const Status prepared = taken_ ? table_.prepare(slot) : Status{};
    return {!prepared.ok() ? never : taken_ ? yes : no, table_.maps(members_.range()), table_.free_slots()};
}

void TeamFormation::release_slot() {
    if (taken_) table_.release_slot(slot_);
    taken_ = false;
}

TeamFormation::Refusal TeamFormation::parse_refusal(std::span<const std::uint32_t> words) const {
    Refusal why{static_cast<Reason>(words[0]), {words[1], words[2], words[3], words[4]}};
    if (why.reason == Reason::surplus && why.details[0] == any_reader)
        why.details[0] = static_cast<std::uint32_t>(table_.resources().my_pe);
    return why;
}

// Gives the same message on all PEs.
Status TeamFormation::text_of(const Refusal& why) const {
    const auto& [a, b, c, d] = why.details;
    switch (why.reason) {
        case Reason::sizes:
            return {Code::mismatch,
                    fmt::format("npes is {} on PE {} and {} on PE {}; all must give the same", a, b, c, d)};
        case Reason::size_range:
            return {Code::range, fmt::format("npes is {} on PE {}, which made the id of the team; the job has {} PEs",
                                             static_cast<std::int32_t>(a), leader_of(id_), table_.resources().npes)};
        case Reason::twice:
            return {Code::mismatch, fmt::format("PE {} has arrived twice to form a team of {} PEs", a, b)};
        case Reason::indices:
            return {Code::mismatch,
                    fmt::format("PE {} and PE {} both gave pe_idx_in_team {}; each index belongs to one PE", a, b, c)};
        case Reason::index_range:
            return {Code::range, fmt::format("PE {} gave pe_idx_in_team {}; the team has 0 to {}", a,
                                             static_cast<std::int32_t>(b), static_cast<std::int32_t>(c) - 1)};
        case Reason::missing:
            return {Code::timeout,
                    fmt::format("only {} of {} PEs arrived to form the team; PE {} made the id and waited "
                                "for the others",
                                a, b, leader_of(id_))};
        case Reason::slots:
            return {Code::memory, "no slot for the team is free on all of its PEs; destroy some teams first"};
        case Reason::surplus:
            return {Code::mismatch,
                    fmt::format("PE {} has arrived to form a team that already has all of its {} PEs", a, b)};
        case Reason::failed:
            return {static_cast<Code>(a),
                    fmt::format("PE {}, which made the id of the team, failed to form it ({}) and "
                                "reported the cause",
                                leader_of(id_), name_of(static_cast<Code>(a)))};
        case Reason::memory: break;
    }
    return {Code::memory, "a PE has no memory left for the state of the team"};
}

// ---- The leader ----

Status TeamFormation::lead() {
    if (size_ < 1 || size_ > table_.resources().npes)
        return refuse({Reason::size_range, {static_cast<std::uint32_t>(size_)}});
    if (Status come = receive_hellos(); !come.ok()) return come;
    if (const auto wrong = contradiction()) return refuse(*wrong);
    pes_.resize(static_cast<std::size_t>(size_));
    for (const Arrival& one : arrivals_) pes_[static_cast<std::size_t>(one.index)] = one.pe;
    members_ = Members::listed(pes_);
    if (Status told = send_roster(); !told.ok()) return told;
    return choose_slot();
}

// Collects hellos until all members have arrived or a hello conflicts, for example by its size. The wait watches the
// PEs that have arrived; the missing ones are unknown.
Status TeamFormation::receive_hellos() {
    arrived_pes_.reserve(static_cast<std::size_t>(size_));
    const auto add = [&](const Arrival& one) {
        arrivals_.push_back(one);
        arrived_pes_.push_back(one.pe);
    };
    add({table_.resources().my_pe, size_, index_, table_.free_slots()});
    while (arrivals_.size() < static_cast<std::size_t>(size_) && arrivals_.back().size == size_) {
        const WaitFor what{.what = "the other PEs of a new team",
                           .needs = {.count = static_cast<int>(arrived_pes_.size()), .table = arrived_pes_.data()},
                           .timeout = table_.resources().timeout};
        const auto message = next(what);
        if (message.status().code() == Code::timeout)
            return refuse(
                {Reason::missing, {static_cast<std::uint32_t>(arrivals_.size()), static_cast<std::uint32_t>(size_)}});
        if (!message.ok()) return message.status();
        if (has_arrived(message.value().from)) return refuse_surplus(message.value().from);
        const auto& words = message.value().words;
        add({message.value().from, static_cast<int>(words[0]), static_cast<int>(words[1]),
             free_in(message.value(), 2)});
    }
    return {};
}

std::optional<TeamFormation::Refusal> TeamFormation::contradiction() const {
    const auto number = [](int value) { return static_cast<std::uint32_t>(value); };
    for (const Arrival& one : arrivals_) {
        if (one.size != size_)
            return Refusal{Reason::sizes, {number(size_), number(arrivals_[0].pe), number(one.size), number(one.pe)}};
        if (one.index < 0 || one.index >= size_)
            return Refusal{Reason::index_range, {number(one.pe), number(one.index), number(size_)}};
    }
    std::vector<const Arrival*> by_index;
    for (const Arrival& one : arrivals_) by_index.push_back(&one);
    std::ranges::sort(by_index, {}, [](const Arrival* one) { return std::pair(one->index, one->pe); });
    for (std::size_t i = 1; i < by_index.size(); ++i)
        if (by_index[i]->index == by_index[i - 1]->index)
            return Refusal{Reason::indices,
                           {number(by_index[i - 1]->pe), number(by_index[i]->pe), number(by_index[i]->index)}};
    return std::nullopt;
}

Status TeamFormation::send_to_all(TeamMessage message) {
    message.number = messages_++;
    Status first;
    for (std::size_t i = 1; i < arrivals_.size(); ++i)
        if (Status sent = mailbox_.send(arrivals_[i].pe, message); first.ok()) first = sent;
    return first;
}

bool TeamFormation::has_arrived(int pe) const { return std::ranges::find(arrived_pes_, pe) != arrived_pes_.end(); }

TeamMessage TeamFormation::refusal_message(const Refusal& why) const {
    TeamMessage reply = message(refusal);
    reply.add(static_cast<std::uint32_t>(why.reason));
    for (const std::uint32_t detail : why.details) reply.add(detail);
    return reply;
}

Status TeamFormation::refuse(const Refusal& why) {
    refusal_ = why;
    (void)send_to_all(refusal_message(why));  // a PE that is not reached fails at its own deadline
    return text_of(why);
}

// A PE that arrives late has no message yet, so for it this is the first one.
Status TeamFormation::refuse_surplus(int pe) {
    const auto number = static_cast<std::uint32_t>(pe);
    if (has_arrived(pe)) return refuse({Reason::twice, {number, static_cast<std::uint32_t>(size_)}});
    const Refusal why{Reason::surplus, {number, static_cast<std::uint32_t>(size_)}};
    (void)mailbox_.send(pe, refusal_message(why));
    return refuse(why);
}

// No PE waits for a leader that has finished. A PE whose hello is not found here finds the table written: it reads the
// table after it put its hello.
void TeamFormation::close(const Status& done) {
    if (!done.ok() && !refusal_) (void)refuse({Reason::failed, {static_cast<std::uint32_t>(done.code())}});
    const TeamMessage reply =
        refusal_message(refusal_.value_or(Refusal{Reason::surplus, {any_reader, static_cast<std::uint32_t>(size_)}}));
    TeamFormationOutcomes::Words words{};
    std::copy_n(reply.words.begin(), words.size(), words.begin());
    outcomes_.close(number_of(id_), words);
    while (const auto late = mailbox_.take(id_))
        if (late->kind == hello && !has_arrived(late->from)) (void)mailbox_.send(late->from, reply);
}

Status TeamFormation::send_roster() {
    for (std::size_t at = 0; at < pes_.size();) {
        TeamMessage part = message(roster);
        for (; at < pes_.size() && part.count < TeamMessage::max_words; ++at)
            part.add(static_cast<std::uint32_t>(pes_[at]));
        if (Status told = send_to_all(part); !told.ok()) return told;
    }
    return {};
}

Status TeamFormation::receive_votes() {
    votes_.resize(1);
    const WaitFor what{.what = "the votes of a new team's PEs on its slot",
                       .needs = members_.range(),
                       .timeout = table_.resources().timeout};
    while (votes_.size() < arrivals_.size()) {
        const auto message = next(what);
        if (!message.ok()) return message.status();
        if (message.value().kind != vote) return refuse_surplus(message.value().from);
        const auto& words = message.value().words;
        votes_.push_back({static_cast<Granted>(words[0]), words[1] != 0, free_in(message.value(), 2)});
    }
    return {};
}

Status TeamFormation::choose_slot() {
    TeamSlotSet free = table_.free_slots();
    for (const Arrival& one : arrivals_)
        for (std::size_t i = 0; i < free.size(); ++i) free[i] &= one.free[i];
    for (int attempt = 0; attempt < max_proposals; ++attempt) {
        const int slot = lowest(free);
        if (slot < 0) return refuse({Reason::slots, {}});
        TeamMessage offer = message(proposal);
        offer.add(static_cast<std::uint32_t>(slot));
        if (Status told = send_to_all(offer); !told.ok()) return told;
        votes_.assign(1, try_slot(slot));
        if (Status heard = receive_votes(); !heard.ok()) return heard;
        const Granted worst = std::ranges::max(votes_, {}, &Vote::granted).granted;
        if (worst == never) return refuse({Reason::memory, {}});
        mapped_ = std::ranges::all_of(votes_, &Vote::mapped);
        TeamMessage decided = message(verdict);
        decided.add(worst);
        decided.add(mapped_ ? 1 : 0);
        if (Status told = send_to_all(decided); !told.ok()) return told;
        if (worst == yes) return {};
        release_slot();
        free = table_.free_slots();
        for (const Vote& one : votes_)
            for (std::size_t i = 0; i < free.size(); ++i) free[i] &= one.free[i];
    }
    return refuse({Reason::slots, {}});
}

// ---- The others ----

TeamMessage TeamFormation::hello_message() const {
    TeamMessage reply = message(hello);
    reply.add(static_cast<std::uint32_t>(size_));
    reply.add(static_cast<std::uint32_t>(index_));
    add_free(reply, table_.free_slots());
    return reply;
}

// Checks the table too: the leader empties its mailbox while it leads, but not necessarily afterwards.
Status TeamFormation::send_hello() {
    Status closed;
    const auto cancelled = [&] { return !(closed = check_closed()).ok(); };
    Status sent = mailbox_.send(leader_of(id_), hello_message(), cancelled);
    if (sent.ok() && closed.ok()) closed = check_closed();
    return sent.ok() ? closed : sent;
}

Status TeamFormation::check_closed() const {
    const auto seen = outcomes_.find(leader_of(id_), number_of(id_));
    if (!seen.ok() || !seen.value()) return seen.status();
    return text_of(parse_refusal(*seen.value()));
}

Status TeamFormation::follow() {
    if (Status sent = send_hello(); !sent.ok()) return sent;
    const WaitFor what{.what = "the PE that made the id of a new team",
                       .needs = PeRange::one(leader_of(id_)),
                       .timeout = table_.resources().timeout};
    for (bool finished = false; !finished;) {
        const auto message = next(what, messages_);
        if (!message.ok()) return message.status();
        ++messages_;
        if (Status done = handle(message.value(), finished); !done.ok()) return done;
    }
    return {};
}

Status TeamFormation::handle(const TeamMessage& come, bool& finished) {
    const auto& words = come.words;
    switch (come.kind) {
        case roster:
            for (std::uint32_t i = 0; i < come.count; ++i) pes_.push_back(static_cast<int>(words[i]));
            return {};
        case proposal: {
            members_ = Members::listed(pes_);
            const Vote mine = try_slot(static_cast<int>(words[0]));
            TeamMessage reply = message(vote);
            reply.add(mine.granted);
            reply.add(mine.mapped ? 1 : 0);
            add_free(reply, mine.free);
            return mailbox_.send(leader_of(id_), reply);
        }
        case verdict:
            finished = words[0] == yes;
            mapped_ = words[1] != 0;
            if (!finished) release_slot();
            return {};
        case refusal: return text_of(parse_refusal(words));
        default: break;
    }
    return {Code::protocol, fmt::format("PE {} sent a message of kind {} about a new team", come.from, come.kind)};
}

}  // namespace npushmem
