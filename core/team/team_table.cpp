#include "core/team/team_table.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "core/memory/commit_map.hpp"
#include "core/team/team_gathering.hpp"

namespace npushmem {

namespace {

constexpr std::uint64_t place_bits = 16;
constexpr int most_attempts = 1000;

TeamName name_of(int place, std::uint32_t use) {
    return {(std::uint64_t{use} << place_bits) | static_cast<std::uint64_t>(place)};
}

bool contains(const PlaceSet& set, int place) {
    return (set[static_cast<std::size_t>(place) / 64] >> (place % 64) & 1U) != 0;
}

void insert(PlaceSet& set, int place) { set[static_cast<std::size_t>(place) / 64] |= std::uint64_t{1} << (place % 64); }
void remove(PlaceSet& set, int place) {
    set[static_cast<std::size_t>(place) / 64] &= ~(std::uint64_t{1} << (place % 64));
}

// The first `count` of the set; fewer when it has fewer.
std::vector<int> first_of(const PlaceSet& set, std::size_t count) {
    std::vector<int> places;
    for (int place = 0; place < most_teams && places.size() < count; ++place)
        if (contains(set, place)) places.push_back(place);
    return places;
}

}  // namespace

Result<std::unique_ptr<TeamTable>> TeamTable::make(TeamParts parts, std::uint64_t pool,
                                                   std::function<Status(std::uint64_t, std::uint64_t)> commit,
                                                   Members shared, bool all_mapped) {
    const std::uint64_t stride = TeamLayout(parts.npes).bytes();
    const int places = static_cast<int>(std::min<std::uint64_t>(most_teams, (pool_bytes - places_at) / stride));
    std::unique_ptr<TeamTable> table(new TeamTable(std::move(parts), pool, std::move(commit), places));
    // At once, because the PEs of a host take memory one after another.
    if (Status got = table->commit(0, places_at + 2 * stride); !got.ok()) return got.within("state of teams");
    for (const int place : {0, 1})
        if (Status prepared = table->prepare(place); !prepared.ok()) return prepared.within("state of teams");
    table->begin_predefined(std::move(shared), all_mapped);
    return table;
}

TeamTable::TeamTable(TeamParts parts, std::uint64_t pool, std::function<Status(std::uint64_t, std::uint64_t)> commit,
                     int places)
    : parts_(std::move(parts)),
      pool_(pool),
      stride_(TeamLayout(parts_.npes).bytes()),
      commit_(std::move(commit)),
      places_(places),
      mail_(parts_, pool),
      closed_(parts_, pool + TeamMail::bytes),
      committed_(pool_bytes / CommitMap::unit),
      uses_(static_cast<std::size_t>(places)),
      names_(static_cast<std::size_t>(places)),
      teams_(static_cast<std::size_t>(places)) {
    for (int place = 2; place < places; ++place) insert(free_, place);
}

void TeamTable::begin_predefined(Members shared, bool all_mapped) {
    const PeRange world{0, 1, parts_.npes};
    teams_[0] = std::make_unique<Team>(parts_, world, offset_of(0), all_mapped, "world", false);
    teams_[1] = std::make_unique<Team>(parts_, std::move(shared), offset_of(1), true, "shared");
}

bool TeamTable::maps(const PeRange& members) const {
    for (int i = 0; i < members.count; ++i)
        if (slice_of(parts_, members.at(i)) == nullptr) return false;
    return true;
}

Team* TeamTable::find(TeamName name) const {
    const std::uint64_t place = name.value & ((1U << place_bits) - 1);
    if (place >= names_.size() || name.value == 0) return nullptr;
    // Acquire: pairs with the release in begin().
    return names_[place].load(std::memory_order_acquire) == name.value ? teams_[place].get() : nullptr;
}

bool TeamTable::was_there(TeamName name) {
    const std::uint64_t place = name.value & ((1U << place_bits) - 1);
    const std::uint64_t use = name.value >> place_bits;
    const std::lock_guard guard(lock_);
    return place < uses_.size() && use >= 1 && use <= uses_[place] && find(name) == nullptr;
}

PlaceSet TeamTable::free_places() {
    const std::lock_guard guard(lock_);
    return free_;
}

bool TeamTable::take(int place) {
    const std::lock_guard guard(lock_);
    const bool was_free = contains(free_, place);
    remove(free_, place);
    return was_free;
}

void TeamTable::give_back(int place) {
    const std::lock_guard guard(lock_);
    insert(free_, place);
}

// Memory that is there and zero: nobody writes into it before all members have met again, and what an earlier team
// wrote had landed before that one was destroyed.
Status TeamTable::prepare(int place) {
    if (Status done = commit(offset_of(place) - pool_, stride_); !done.ok()) return done;
    std::memset(parts_.own_slice + offset_of(place), 0, stride_);
    return {};
}

// `begin`: in the pool.
Status TeamTable::commit(std::uint64_t begin, std::uint64_t bytes) {
    const std::lock_guard guard(lock_);
    const auto last = committed_.begin() + static_cast<std::ptrdiff_t>((begin + bytes - 1) / CommitMap::unit) + 1;
    auto first = committed_.begin() + static_cast<std::ptrdiff_t>(begin / CommitMap::unit);
    while ((first = std::find(first, last, false)) != last) {
        const auto end = std::find(first, last, true);
        const auto at = static_cast<std::uint64_t>(first - committed_.begin());
        const auto units = static_cast<std::uint64_t>(end - first);
        if (Status done = commit_(pool_ + at * CommitMap::unit, units * CommitMap::unit); !done.ok()) return done;
        std::fill(first, end, true);
    }
    return {};
}

TeamName TeamTable::begin(int place, const Wish& wish, bool mapped) {
    const auto at = static_cast<std::size_t>(place);
    std::uint32_t use = 0;
    {
        const std::lock_guard guard(lock_);
        use = ++uses_[at];
    }
    const TeamName name = name_of(place, use);
    teams_[at] = std::make_unique<Team>(parts_, wish.members, offset_of(place), mapped, "of " + wish.members.text());
    teams_[at]->contexts_wanted = wish.contexts_wanted;
    names_[at].store(name.value, std::memory_order_release);
    return name;
}

// One attempt of the parent's members to agree. What they tell each other, each writes into its agreement; all meet;
// each reads all.
class TeamTable::Talk {
public:
    Talk(TeamTable& table, Team& parent, const Arguments& arguments, const Terms& terms, std::span<const Wish> wishes)
        : table_(table), parent_(parent), terms_(terms), wishes_(wishes) {
        mine_.free = table.free_places();
        std::ranges::copy(arguments, mine_.arguments);
    }

    // The places that are free at all members, one for each wish. `may_get`: this PE has told where to put them.
    Status propose(bool may_get) {
        mine_.granted = may_get ? yes : never;
        if (Status told = exchange(); !told.ok()) return told;
        if (Status good = check(); !good.ok()) return good;
        if (Status agreed = compare(); !agreed.ok()) return agreed;
        PlaceSet free = mine_.free;
        for (const Agreement& theirs : all_)
            for (std::size_t i = 0; i < free.size(); ++i) free[i] &= theirs.free[i];
        places_ = first_of(free, wishes_.size());
        if (places_.size() == wishes_.size()) return {};
        return {Code::memory,
                fmt::format("there are {} teams already, on one PE or another; destroy some first", table_.places_)};
    }

    // Takes them; another thread of a PE may have been faster. *granted: all members have got all.
    Status take(bool& granted) {
        mine_.granted = yes;
        Status prepared;
        for (std::size_t i = 0; i < places_.size(); ++i) {
            taken_.push_back(table_.take(places_[i]));
            if (!taken_.back()) mine_.granted = no;
            if (taken_.back() && is_member(i) && prepared.ok()) prepared = table_.prepare(places_[i]);
            if (table_.maps(wishes_[i].members.range())) mine_.mapped |= 1U << i;
        }
        if (!prepared.ok()) mine_.granted = never;
        Status told = exchange();
        std::uint32_t worst = yes;
        for (const Agreement& theirs : all_) worst = std::max(worst, theirs.granted);
        granted = told.ok() && worst == yes;
        for (std::size_t i = 0; i < places_.size(); ++i)
            if (taken_[i] && !(granted && is_member(i))) table_.give_back(places_[i]);
        if (!told.ok() || !prepared.ok()) return told.ok() ? prepared : told;
        return worst == never ? Status{Code::memory, "another PE has no memory for the state of the team"} : Status{};
    }

    void begin(std::span<TeamName> made) {
        for (std::size_t i = 0; i < places_.size(); ++i)
            if (is_member(i)) made[i] = table_.begin(places_[i], wishes_[i], mapped_by_all(i));
    }

private:
    enum Granted : std::uint32_t { yes = 1, no = 2, never = 3 };

    [[nodiscard]] bool is_member(std::size_t i) const { return wishes_[i].members.index_of(table_.parts_.my_pe) >= 0; }
    [[nodiscard]] const Agreement& of(int member) const { return all_[static_cast<std::size_t>(member)]; }

    [[nodiscard]] bool mapped_by_all(std::size_t i) const {
        const PeRange& members = wishes_[i].members.range();
        for (int m = 0; m < members.count; ++m)
            if ((of(parent_.index_of(members.at(m))).mapped >> i & 1U) == 0) return false;
        return true;
    }

    // All members look at the same, here and in compare(), so all come to the same end.
    [[nodiscard]] Status check() const {
        for (int member = 0; member < parent_.size(); ++member) {
            const Agreement& theirs = of(member);
            const auto who = fmt::format("PE {} of the team {}", member, parent_.name());
            if (theirs.granted == never) return {Code::argument, who + " gave NULL for where the new team is told"};
            if (!terms_.check) continue;
            if (Status good = terms_.check(std::to_array(theirs.arguments)); !good.ok()) return good.within(who);
        }
        return {};
    }
    [[nodiscard]] Status compare() const {
        for (int member = 0; member < parent_.size(); ++member) {
            if (alike(mine_, of(member))) continue;
            return terms_.given == Given::triplets && each_named_agrees() ? Status{} : mismatch(member, of(member));
        }
        return {};
    }
    [[nodiscard]] static bool alike(const Agreement& one, const Agreement& other) {
        return std::ranges::equal(one.arguments, other.arguments);
    }
    [[nodiscard]] bool each_named_agrees() const {
        return std::ranges::all_of(all_, [this](const Agreement& theirs) {
            const auto at = [&](std::size_t i) { return static_cast<std::int64_t>(theirs.arguments[i]); };
            for (std::int64_t i = 0; i < at(2); ++i)
                if (!alike(theirs, of(static_cast<int>(at(0) + i * at(1))))) return false;
            return true;
        });
    }

    [[nodiscard]] Status mismatch(int member, const Agreement& theirs) const {
        return {Code::mismatch,
                fmt::format("PE {} of the team {} gave {} and PE {} gave {}; all must give the same arguments",
                            parent_.index(), parent_.name(), fmt::join(mine_.arguments, ", "), member,
                            fmt::join(theirs.arguments, ", "))};
    }

    Status exchange() {
        const std::uint64_t at = parent_.place() + parent_.layout().agreement(parent_.next_agreement());
        std::memcpy(parent_.find(parent_.index(), at), &mine_, sizeof mine_);
        all_.assign(static_cast<std::size_t>(parent_.size()), Agreement{});
        Status done = parent_.sync();
        for (int member = 0; member < parent_.size() && done.ok(); ++member) {
            Agreement& theirs = all_[static_cast<std::size_t>(member)];
            if (const std::byte* there = parent_.find(member, at))
                std::memcpy(&theirs, there, sizeof theirs);
            else
                done = parent_.get(member, at, &theirs, sizeof theirs);
        }
        return done;
    }

    TeamTable& table_;
    Team& parent_;
    const Terms& terms_;
    std::span<const Wish> wishes_;
    Agreement mine_{};
    std::vector<Agreement> all_;
    std::vector<int> places_;
    std::vector<bool> taken_;
};

Status TeamTable::split(Team& parent, const Arguments& arguments, const Terms& terms, std::span<const Wish> wishes,
                        std::span<TeamName> made) {
    for (int attempt = 0; attempt < most_attempts; ++attempt) {
        Talk talk(*this, parent, arguments, terms, wishes);
        if (Status proposed = talk.propose(!made.empty()); !proposed.ok()) return proposed;
        bool granted = false;
        if (Status taken = talk.take(granted); !taken.ok()) return taken;
        if (!granted) continue;
        talk.begin(made);
        return {};
    }
    return {Code::memory, fmt::format("no place for the team was free on all PEs in {} attempts", most_attempts)};
}

std::uint64_t TeamTable::make_id() {
    const std::lock_guard guard(lock_);
    const std::uint64_t id = TeamGathering::id_of(parts_.my_pe, ++ids_);
    open_ids_.insert(id);
    closed_.note_made(ids_);
    mail_.expect(id);  // others may come before this PE does
    return id;
}

// An id serves once.
Status TeamTable::check_id(std::uint64_t id) {
    const int leader = TeamGathering::leader_of(id);
    if (leader >= 0 && leader < parts_.npes) {
        const auto made = closed_.was_made(leader, TeamGathering::number_of(id));
        if (!made.ok()) return made.status();
        if (made.value()) return {};
    }
    return {Code::argument, fmt::format("{:#x} is no id that a PE of this job has made", id)};
}

Status TeamTable::gather(std::uint64_t id, int npes, int index, int contexts_wanted, TeamName& made) {
    if (Status checked = check_id(id); !checked.ok()) return checked;
    TeamGathering gathering(*this, mail_, closed_, id, npes, index);
    bool first = false;
    if (TeamGathering::leader_of(id) == parts_.my_pe) {
        const std::lock_guard guard(lock_);
        first = open_ids_.erase(id) != 0;
    } else {
        first = mail_.expect(id);
    }
    if (!first) return gathering.come_again();
    Status done = gathering.run(contexts_wanted, made);
    mail_.forget(id);
    return done;
}

std::atomic_ref<std::uint64_t> TeamTable::departed(std::uint64_t place) const {
    return std::atomic_ref<std::uint64_t>(
        *reinterpret_cast<std::uint64_t*>(parts_.own_slice + place + TeamLayout(parts_.npes).departed()));
}

// Everybody tells everybody that nothing of its own is under way any more. When all have told this PE, nobody will
// write into its place, and it may serve another team, of whatever PEs.
Status TeamTable::leave(Team& team) {
    if (Status done = team.complete(); !done.ok()) return done;
    const std::uint64_t word = team.place() + team.layout().departed();
    for (int i = 1; i < team.size(); ++i) {
        const int member = (team.index() + i) % team.size();
        if (std::byte* there = team.find(member, word)) {
            // Release: pairs with the acquire load below, at the member.
            std::atomic_ref<std::uint64_t>(*reinterpret_cast<std::uint64_t*>(there))
                .fetch_add(1, std::memory_order_acq_rel);
            continue;
        }
        std::uint64_t before = 0;
        npushmem_atomic op{};
        op.pe = team.members().at(member);
        op.operation = NPUSHMEM_ATOMIC_FETCH_ADD;
        op.width = 8;
        op.offset = word;
        op.operand = 1;
        op.result = &before;
        if (Status told = parts_.remote.atomic(op, RemoteAccess::Completion::local); !told.ok()) return told;
    }
    const auto others = static_cast<std::uint64_t>(team.size() - 1);
    const WaitFor what{
        .what = "the other PEs to destroy a team", .needs = team.members().range(), .timeout = parts_.timeout};
    WaitFailure failure;
    const auto all_left = [&] { return departed(team.place()).load(std::memory_order_acquire) == others; };
    const Code code = parts_.waiter.until(all_left, what, &failure);
    return code == Code::ok ? Status{} : Status{code, describe(what, failure)};
}

Status TeamTable::destroy(TeamName name) {
    Team* team = find(name);
    if (team == nullptr) return {Code::argument, "the team does not exist, or not any more"};
    if (Status left = leave(*team); !left.ok()) return left;
    const auto place = static_cast<std::size_t>(name.value & ((1U << place_bits) - 1));
    names_[place].store(0, std::memory_order_release);
    teams_[place].reset();
    give_back(static_cast<int>(place));
    return {};
}

}  // namespace npushmem
