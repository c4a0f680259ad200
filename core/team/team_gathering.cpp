#include "core/team/team_gathering.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

namespace npushmem {

namespace {

constexpr int most_offers = 1000;
constexpr std::uint32_t whoever_reads = ~std::uint32_t{0};  // in place of a PE
constexpr std::size_t free_words = 2 * std::tuple_size_v<PlaceSet>;

void add_free(Letter& letter, const PlaceSet& free) {
    for (const std::uint64_t word : free) {
        letter.add(static_cast<std::uint32_t>(word));
        letter.add(static_cast<std::uint32_t>(word >> 32));
    }
}

PlaceSet free_in(const Letter& letter, std::size_t at) {
    PlaceSet free{};
    for (std::size_t i = 0; i < free_words; ++i) free[i / 2] |= std::uint64_t{letter.words[at + i]} << (i % 2 * 32);
    return free;
}

int lowest(const PlaceSet& free) {
    for (std::size_t i = 0; i < free.size(); ++i)
        if (free[i] != 0) return static_cast<int>(i * 64) + std::countr_zero(free[i]);
    return -1;
}

}  // namespace

Status TeamGathering::run(int contexts_wanted, TeamName& made) {
    const bool leads = leader_of(id_) == table_.parts().my_pe;
    Status done = leads ? lead() : follow();
    if (leads) close(done);
    if (!done.ok()) {
        give_back();
        return done;
    }
    made = table_.begin(place_, {members_, contexts_wanted}, mapped_);
    return {};
}

// The leader hears that a PE has come twice as it hears that another one has come.
Status TeamGathering::come_again() {
    if (leader_of(id_) == table_.parts().my_pe)
        mail_.keep(hello_letter());
    else
        (void)say_hello();  // the failure is the same
    return {Code::argument,
            fmt::format("PE {} has come with the id {:#x} before, or another thread of it has; an id has "
                        "been used when one team has been made of it, or refused",
                        table_.parts().my_pe, id_)};
}

Letter TeamGathering::letter(Kind kind) const {
    Letter letter;
    letter.id = id_;
    letter.from = table_.parts().my_pe;
    letter.kind = kind;
    return letter;
}

Result<Letter> TeamGathering::next(const WaitFor& what, std::optional<std::uint32_t> number) {
    std::optional<Letter> come;
    // What the transports fail at meanwhile may be about any PE; that one of those waited for is lost, the wait finds
    // out.
    const auto look = [&] {
        come = mail_.take(id_, number);
        if (!come) (void)mail_.progress();
        return come.has_value();
    };
    WaitFailure failure;
    const Code code = table_.parts().waiter.until(look, what, &failure);
    if (code != Code::ok) return Status{code, describe(what, failure)};
    return *come;
}

TeamGathering::Vote TeamGathering::try_place(int place) {
    place_ = place;
    taken_ = table_.take(place);
    const Status prepared = taken_ ? table_.prepare(place) : Status{};
    return {!prepared.ok() ? never : taken_ ? yes : no, table_.maps(members_.range()), table_.free_places()};
}

void TeamGathering::give_back() {
    if (taken_) table_.give_back(place_);
    taken_ = false;
}

TeamGathering::Refusal TeamGathering::said_in(std::span<const std::uint32_t> words) const {
    Refusal why{static_cast<Reason>(words[0]), {words[1], words[2], words[3], words[4]}};
    if (why.reason == Reason::one_more && why.details[0] == whoever_reads)
        why.details[0] = static_cast<std::uint32_t>(table_.parts().my_pe);
    return why;
}

// The same sentence on all of them.
Status TeamGathering::text_of(const Refusal& why) const {
    const auto& [a, b, c, d] = why.details;
    switch (why.reason) {
        case Reason::sizes:
            return {Code::mismatch,
                    fmt::format("npes is {} on PE {} and {} on PE {}; all must give the same", a, b, c, d)};
        case Reason::size_range:
            return {Code::range, fmt::format("npes is {} on PE {}, which made the id of the team; the job has {} PEs",
                                             static_cast<std::int32_t>(a), leader_of(id_), table_.parts().npes)};
        case Reason::twice: return {Code::mismatch, fmt::format("PE {} has come twice to make a team of {} PEs", a, b)};
        case Reason::indices:
            return {Code::mismatch,
                    fmt::format("PE {} and PE {} both gave pe_idx_in_team {}; each index belongs to one PE", a, b, c)};
        case Reason::index_range:
            return {Code::range, fmt::format("PE {} gave pe_idx_in_team {}; the team has 0 to {}", a,
                                             static_cast<std::int32_t>(b), static_cast<std::int32_t>(c) - 1)};
        case Reason::missing:
            return {Code::timeout,
                    fmt::format("only {} of {} PEs have come to make the team, of which PE {} made the id "
                                "and waited",
                                a, b, leader_of(id_))};
        case Reason::places:
            return {Code::memory, "there is no place for the team that is free on all of its PEs; destroy some first"};
        case Reason::one_more:
            return {Code::mismatch,
                    fmt::format("PE {} has come to make a team of which all {} PEs were there already", a, b)};
        case Reason::failed:
            return {static_cast<Code>(a),
                    fmt::format("PE {}, which made the id of the team, has given it up ({}), as it "
                                "has reported",
                                leader_of(id_), name_of(static_cast<Code>(a)))};
        case Reason::memory: break;
    }
    return {Code::memory, "a PE has no memory for the state of the team"};
}

// ---- The leader ----

Status TeamGathering::lead() {
    if (size_ < 1 || size_ > table_.parts().npes)
        return refuse({Reason::size_range, {static_cast<std::uint32_t>(size_)}});
    if (Status come = hear_all(); !come.ok()) return come;
    if (const auto wrong = contradiction()) return refuse(*wrong);
    pes_.resize(static_cast<std::size_t>(size_));
    for (const Arrival& one : come_) pes_[static_cast<std::size_t>(one.index)] = one.pe;
    members_ = Members::listed(pes_);
    if (Status told = tell_roster(); !told.ok()) return told;
    return choose_place();
}

// Until all have come, or somebody who thinks of another number, and then may be the last. Who does not come is not
// known, and so is not watched; who has come is.
Status TeamGathering::hear_all() {
    come_pes_.reserve(static_cast<std::size_t>(size_));
    const auto add = [&](const Arrival& one) {
        come_.push_back(one);
        come_pes_.push_back(one.pe);
    };
    add({table_.parts().my_pe, size_, index_, table_.free_places()});
    while (come_.size() < static_cast<std::size_t>(size_) && come_.back().size == size_) {
        const WaitFor what{.what = "the other PEs of a team to be made",
                           .needs = {.count = static_cast<int>(come_pes_.size()), .table = come_pes_.data()},
                           .timeout = table_.parts().timeout};
        const auto letter = next(what);
        if (letter.status().code() == Code::timeout)
            return refuse(
                {Reason::missing, {static_cast<std::uint32_t>(come_.size()), static_cast<std::uint32_t>(size_)}});
        if (!letter.ok()) return letter.status();
        if (has_come(letter.value().from)) return refuse_one_more(letter.value().from);
        const auto& words = letter.value().words;
        add({letter.value().from, static_cast<int>(words[0]), static_cast<int>(words[1]), free_in(letter.value(), 2)});
    }
    return {};
}

std::optional<TeamGathering::Refusal> TeamGathering::contradiction() const {
    const auto number = [](int value) { return static_cast<std::uint32_t>(value); };
    for (const Arrival& one : come_) {
        if (one.size != size_)
            return Refusal{Reason::sizes, {number(size_), number(come_[0].pe), number(one.size), number(one.pe)}};
        if (one.index < 0 || one.index >= size_)
            return Refusal{Reason::index_range, {number(one.pe), number(one.index), number(size_)}};
    }
    std::vector<const Arrival*> by_index;
    for (const Arrival& one : come_) by_index.push_back(&one);
    std::ranges::sort(by_index, {}, [](const Arrival* one) { return std::pair(one->index, one->pe); });
    for (std::size_t i = 1; i < by_index.size(); ++i)
        if (by_index[i]->index == by_index[i - 1]->index)
            return Refusal{Reason::indices,
                           {number(by_index[i - 1]->pe), number(by_index[i]->pe), number(by_index[i]->index)}};
    return std::nullopt;
}

Status TeamGathering::tell_all(Letter letter) {
    letter.number = letters_++;
    Status first;
    for (std::size_t i = 1; i < come_.size(); ++i)
        if (Status sent = mail_.send(come_[i].pe, letter); first.ok()) first = sent;
    return first;
}

bool TeamGathering::has_come(int pe) const { return std::ranges::find(come_pes_, pe) != come_pes_.end(); }

Letter TeamGathering::letter_of(const Refusal& why) const {
    Letter said = letter(refusal);
    said.add(static_cast<std::uint32_t>(why.reason));
    for (const std::uint32_t detail : why.details) said.add(detail);
    return said;
}

Status TeamGathering::refuse(const Refusal& why) {
    refusal_ = why;
    (void)tell_all(letter_of(why));  // whoever cannot be told finds out by its own deadline
    return text_of(why);
}

// A PE that has not come yet has been told nothing, so that for it this is the first letter.
Status TeamGathering::refuse_one_more(int pe) {
    const auto number = static_cast<std::uint32_t>(pe);
    if (has_come(pe)) return refuse({Reason::twice, {number, static_cast<std::uint32_t>(size_)}});
    const Refusal why{Reason::one_more, {number, static_cast<std::uint32_t>(size_)}};
    (void)mail_.send(pe, letter_of(why));
    return refuse(why);
}

// Nobody waits for a leader who is done. Whose hello is not found here finds the board written: it has looked at that
// after its hello was put.
void TeamGathering::close(const Status& done) {
    if (!done.ok() && !refusal_) (void)refuse({Reason::failed, {static_cast<std::uint32_t>(done.code())}});
    const Letter said =
        letter_of(refusal_.value_or(Refusal{Reason::one_more, {whoever_reads, static_cast<std::uint32_t>(size_)}}));
    ClosedIds::Words words{};
    std::copy_n(said.words.begin(), words.size(), words.begin());
    closed_.close(number_of(id_), words);
    while (const auto late = mail_.take(id_))
        if (late->kind == hello && !has_come(late->from)) (void)mail_.send(late->from, said);
}

Status TeamGathering::tell_roster() {
    for (std::size_t at = 0; at < pes_.size();) {
        Letter part = letter(roster);
        for (; at < pes_.size() && part.count < Letter::most_words; ++at)
            part.add(static_cast<std::uint32_t>(pes_[at]));
        if (Status told = tell_all(part); !told.ok()) return told;
    }
    return {};
}

Status TeamGathering::hear_votes() {
    votes_.resize(1);
    const WaitFor what{.what = "what the PEs of a new team say of its place",
                       .needs = members_.range(),
                       .timeout = table_.parts().timeout};
    while (votes_.size() < come_.size()) {
        const auto letter = next(what);
        if (!letter.ok()) return letter.status();
        if (letter.value().kind != vote) return refuse_one_more(letter.value().from);
        const auto& words = letter.value().words;
        votes_.push_back({static_cast<Granted>(words[0]), words[1] != 0, free_in(letter.value(), 2)});
    }
    return {};
}

Status TeamGathering::choose_place() {
    PlaceSet free = table_.free_places();
    for (const Arrival& one : come_)
        for (std::size_t i = 0; i < free.size(); ++i) free[i] &= one.free[i];
    for (int attempt = 0; attempt < most_offers; ++attempt) {
        const int place = lowest(free);
        if (place < 0) return refuse({Reason::places, {}});
        Letter offer = letter(proposal);
        offer.add(static_cast<std::uint32_t>(place));
        if (Status told = tell_all(offer); !told.ok()) return told;
        votes_.assign(1, try_place(place));
        if (Status heard = hear_votes(); !heard.ok()) return heard;
        const Granted worst = std::ranges::max(votes_, {}, &Vote::granted).granted;
        if (worst == never) return refuse({Reason::memory, {}});
        mapped_ = std::ranges::all_of(votes_, &Vote::mapped);
        Letter decided = letter(verdict);
        decided.add(worst);
        decided.add(mapped_ ? 1 : 0);
        if (Status told = tell_all(decided); !told.ok()) return told;
        if (worst == yes) return {};
        give_back();
        free = table_.free_places();
        for (const Vote& one : votes_)
            for (std::size_t i = 0; i < free.size(); ++i) free[i] &= one.free[i];
    }
    return refuse({Reason::places, {}});
}

// ---- The others ----

Letter TeamGathering::hello_letter() const {
    Letter said = letter(hello);
    said.add(static_cast<std::uint32_t>(size_));
    said.add(static_cast<std::uint32_t>(index_));
    add_free(said, table_.free_places());
    return said;
}

// The leader empties its box while it leads, and need not do so afterwards.
Status TeamGathering::say_hello() {
    Status closed;
    const auto needless = [&] { return !(closed = look_whether_closed()).ok(); };
    Status said = mail_.send(leader_of(id_), hello_letter(), needless);
    if (said.ok() && closed.ok()) closed = look_whether_closed();
    return said.ok() ? closed : said;
}

Status TeamGathering::look_whether_closed() const {
    const auto seen = closed_.look(leader_of(id_), number_of(id_));
    if (!seen.ok() || !seen.value()) return seen.status();
    return text_of(said_in(*seen.value()));
}

Status TeamGathering::follow() {
    if (Status said = say_hello(); !said.ok()) return said;
    const WaitFor what{.what = "the PE that made the id of a new team",
                       .needs = PeRange::one(leader_of(id_)),
                       .timeout = table_.parts().timeout};
    for (bool finished = false; !finished;) {
        const auto letter = next(what, letters_);
        if (!letter.ok()) return letter.status();
        ++letters_;
        if (Status done = act_on(letter.value(), finished); !done.ok()) return done;
    }
    return {};
}

Status TeamGathering::act_on(const Letter& come, bool& finished) {
    const auto& words = come.words;
    switch (come.kind) {
        case roster:
            for (std::uint32_t i = 0; i < come.count; ++i) pes_.push_back(static_cast<int>(words[i]));
            return {};
        case proposal: {
            members_ = Members::listed(pes_);
            const Vote mine = try_place(static_cast<int>(words[0]));
            Letter said = letter(vote);
            said.add(mine.granted);
            said.add(mine.mapped ? 1 : 0);
            add_free(said, mine.free);
            return mail_.send(leader_of(id_), said);
        }
        case verdict:
            finished = words[0] == yes;
            mapped_ = words[1] != 0;
            if (!finished) give_back();
            return {};
        case refusal: return text_of(said_in(words));
        default: break;
    }
    return {Code::protocol, fmt::format("PE {} sent a letter of kind {} about a new team", come.from, come.kind)};
}

}  // namespace npushmem
