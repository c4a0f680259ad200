#include "core/team/team_table.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "core/memory/symmetric_heap.hpp"
#include "core/team/team_formation.hpp"

namespace npushmem {

namespace {

constexpr std::uint64_t slot_bits = 16;
constexpr int max_attempts = 1000;

TeamName name_of(int slot, std::uint32_t use) {
    return {(std::uint64_t{use} << slot_bits) | static_cast<std::uint64_t>(slot)};
}

bool contains(const TeamSlotSet& set, int slot) {
    return (set[static_cast<std::size_t>(slot) / 64] >> (slot % 64) & 1U) != 0;
}

void insert(TeamSlotSet& set, int slot) { set[static_cast<std::size_t>(slot) / 64] |= std::uint64_t{1} << (slot % 64); }
void remove(TeamSlotSet& set, int slot) {
    set[static_cast<std::size_t>(slot) / 64] &= ~(std::uint64_t{1} << (slot % 64));
}

// Returns the first `count` slots of the set, or all if it has fewer.
std::vector<int> first_of(const TeamSlotSet& set, std::size_t count) {
    std::vector<int> slots;
    for (int slot = 0; slot < max_teams && slots.size() < count; ++slot)
        if (contains(set, slot)) slots.push_back(slot);
    return slots;
}

}  // namespace

Result<std::unique_ptr<TeamTable>> TeamTable::make(TeamResources resources, std::uint64_t pool,
                                                   std::function<Status(std::uint64_t, std::uint64_t)> commit,
                                                   Members shared, bool all_mapped) {
    const std::uint64_t stride = TeamLayout::bytes(resources.npes);
    const int slots = static_cast<int>(std::min<std::uint64_t>(max_teams, (pool_bytes - slots_offset) / stride));
    std::unique_ptr<TeamTable> table(new TeamTable(std::move(resources), pool, std::move(commit), slots));
    // One commit for all, because the PEs of a host commit memory one after another.
    if (Status got = table->commit(0, slots_offset + 2 * stride); !got.ok()) return got.within("state of teams");
    for (const int slot : {0, 1})
        if (Status prepared = table->prepare(slot); !prepared.ok()) return prepared.within("state of teams");
    table->begin_predefined(std::move(shared), all_mapped);
    const auto choice = table->world().barrier().choose(table->resources_.algorithm);
    if (!choice.ok()) return choice.status().within("NPUSHMEM_BARRIER_ALGO");
    return table;
}

TeamTable::TeamTable(TeamResources resources, std::uint64_t pool,
                     std::function<Status(std::uint64_t, std::uint64_t)> commit, int slots)
    : resources_(std::move(resources)),
      pool_(pool),
      stride_(TeamLayout::bytes(resources_.npes)),
      commit_(std::move(commit)),
      slots_(slots),
      mailbox_(resources_, pool),
      outcomes_(resources_, pool + TeamMailbox::bytes),
      committed_(pool_bytes / CommitMap::unit),
      uses_(static_cast<std::size_t>(slots)),
      names_(static_cast<std::size_t>(slots)),
      teams_(static_cast<std::size_t>(slots)) {
    for (int slot = 2; slot < slots; ++slot) insert(free_, slot);
}

void TeamTable::begin_predefined(Members shared, bool all_mapped) {
    const PeRange world{0, 1, resources_.npes};
    teams_[0] = std::make_unique<Team>(resources_, world, layout_of(0), all_mapped, "world", true);
    teams_[1] = std::make_unique<Team>(resources_, std::move(shared), layout_of(1), true, "shared");
}

bool TeamTable::maps(const PeRange& members) const { return maps_all(resources_, members); }

Team* TeamTable::find(TeamName name) const {
    const std::uint64_t slot = name.value & ((1U << slot_bits) - 1);
    if (slot >= names_.size() || name.value == 0) return nullptr;
    // Acquire. Partner: the release in begin().
    return names_[slot].load(std::memory_order_acquire) == name.value ? teams_[slot].get() : nullptr;
}

bool TeamTable::existed(TeamName name) {
    const std::uint64_t slot = name.value & ((1U << slot_bits) - 1);
    const std::uint64_t use = name.value >> slot_bits;
    const std::lock_guard guard(lock_);
    return slot < uses_.size() && use >= 1 && use <= uses_[slot] && find(name) == nullptr;
}

TeamSlotSet TeamTable::free_slots() {
    const std::lock_guard guard(lock_);
    return free_;
}

bool TeamTable::claim_slot(int slot) {
    const std::lock_guard guard(lock_);
    const bool was_free = contains(free_, slot);
    remove(free_, slot);
    return was_free;
}

void TeamTable::release_slot(int slot) {
    const std::lock_guard guard(lock_);
    insert(free_, slot);
}

// Commits the memory and clears it: no PE writes into it before all members have synchronised again, and the writes of
// an earlier team arrived before that team was destroyed.
Status TeamTable::prepare(int slot) {
    if (Status done = commit(offset_of(slot) - pool_, stride_); !done.ok()) return done;
    std::memset(resources_.own_slice + offset_of(slot), 0, stride_);
    return {};
}

// `begin` is an offset in the pool.
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

TeamName TeamTable::begin(int slot, const TeamSpec& spec, bool mapped) {
    const auto at = static_cast<std::size_t>(slot);
    std::uint32_t use = 0;
    {
        const std::lock_guard guard(lock_);
        use = ++uses_[at];
    }
    const TeamName name = name_of(slot, use);
    teams_[at] = std::make_unique<Team>(resources_, spec.members, layout_of(slot), mapped, "of " + spec.members.text());
    teams_[at]->contexts_wanted = spec.contexts_wanted;
    names_[at].store(name.value, std::memory_order_release);
    return name;
}

// One attempt of the parent's members to agree. Each writes its part into its split_record, all synchronise, and each
// reads all records.
class TeamTable::SplitProtocol {
public:
    SplitProtocol(TeamTable& table, Team& parent, const Arguments& arguments, const SplitRules& rules,
                  std::span<const TeamSpec> specs)
        : table_(table), parent_(parent), rules_(rules), specs_(specs) {
        mine_.free = table.free_slots();
        std::ranges::copy(arguments, mine_.arguments);
    }

    // Chooses slots that are free at all members, one for each spec. `may_get`: this PE has passed memory for the new
    // teams' names.
    Status propose(bool may_get) {
        mine_.granted = may_get ? yes : never;
        if (Status told = exchange(); !told.ok()) return told;
        if (Status good = check(); !good.ok()) return good;
        if (Status agreed = compare(); !agreed.ok()) return agreed;
        TeamSlotSet free = mine_.free;
        for (const SplitRecord& theirs : all_)
            for (std::size_t i = 0; i < free.size(); ++i) free[i] &= theirs.free[i];
        slots_ = first_of(free, specs_.size());
        if (slots_.size() == specs_.size()) return {};
        return {Code::memory, fmt::format("some PE has {} teams already; destroy some first", table_.slots_)};
    }

    // Claims the slots; another thread of a PE may have been faster. *granted: all members claimed all slots.
    Status take(bool& granted) {
        mine_.granted = yes;
        Status prepared;
        for (std::size_t i = 0; i < slots_.size(); ++i) {
            taken_.push_back(table_.claim_slot(slots_[i]));
            if (!taken_.back()) mine_.granted = no;
            if (taken_.back() && is_member(i) && prepared.ok()) prepared = table_.prepare(slots_[i]);
            if (table_.maps(specs_[i].members.range())) mine_.mapped |= 1U << i;
        }
        if (!prepared.ok()) mine_.granted = never;
        Status told = exchange();
        std::uint32_t worst = yes;
        for (const SplitRecord& theirs : all_) worst = std::max(worst, theirs.granted);
        granted = told.ok() && worst == yes;
        for (std::size_t i = 0; i < slots_.size(); ++i)
            if (taken_[i] && !(granted && is_member(i))) table_.release_slot(slots_[i]);
        if (!told.ok() || !prepared.ok()) return told.ok() ? prepared : told;
        return worst == never ? Status{Code::memory, "another PE has no memory left for the state of the team"}
                              : Status{};
    }

    void begin(std::span<TeamName> made) {
        for (std::size_t i = 0; i < slots_.size(); ++i)
            if (is_member(i)) made[i] = table_.begin(slots_[i], specs_[i], mapped_by_all(i));
    }

private:
    enum Granted : std::uint32_t { yes = 1, no = 2, never = 3 };

    [[nodiscard]] bool is_member(std::size_t i) const {
        return specs_[i].members.index_of(table_.resources_.my_pe) >= 0;
    }
    [[nodiscard]] const SplitRecord& of(int member) const { return all_[static_cast<std::size_t>(member)]; }

    [[nodiscard]] bool mapped_by_all(std::size_t i) const {
        const PeRange& members = specs_[i].members.range();
        for (int m = 0; m < members.count; ++m)
            if ((of(parent_.members().index_of(members.at(m))).mapped >> i & 1U) == 0) return false;
        return true;
    }

    // All members check the same records, here and in compare(), so all get the same result.
    [[nodiscard]] Status check() const {
        for (int member = 0; member < parent_.size(); ++member) {
            const SplitRecord& theirs = of(member);
            const auto who = fmt::format("PE {} of the team {}", member, parent_.name());
            if (theirs.granted == never) return {Code::argument, who + " gave NULL for the handle of the new team"};
            if (!rules_.check) continue;
            if (Status good = rules_.check(std::to_array(theirs.arguments)); !good.ok()) return good.within(who);
        }
        return {};
    }
    [[nodiscard]] Status compare() const {
        for (int member = 0; member < parent_.size(); ++member) {
            if (alike(mine_, of(member))) continue;
            return rules_.rule == ArgumentRule::triplets && each_named_agrees() ? Status{}
                                                                                : mismatch(member, of(member));
        }
        return {};
    }
    [[nodiscard]] static bool alike(const SplitRecord& one, const SplitRecord& other) {
        return std::ranges::equal(one.arguments, other.arguments);
    }
    [[nodiscard]] bool each_named_agrees() const {
        return std::ranges::all_of(all_, [this](const SplitRecord& theirs) {
            const auto at = [&](std::size_t i) { return static_cast<std::int64_t>(theirs.arguments[i]); };
            for (std::int64_t i = 0; i < at(2); ++i)
                if (!alike(theirs, of(static_cast<int>(at(0) + i * at(1))))) return false;
            return true;
        });
    }

    [[nodiscard]] Status mismatch(int member, const SplitRecord& theirs) const {
        return {Code::mismatch,
                fmt::format("PE {} of the team {} gave {} and PE {} gave {}; all must give the same arguments",
                            parent_.index(), parent_.name(), fmt::join(mine_.arguments, ", "), member,
                            fmt::join(theirs.arguments, ", "))};
    }

    Status exchange() {
        const std::uint64_t at = parent_.layout().split_record(parent_.next_split_record());
        std::memcpy(parent_.mapped_address(parent_.index(), at), &mine_, sizeof mine_);
        all_.assign(static_cast<std::size_t>(parent_.size()), SplitRecord{});
        Status done = parent_.sync();
        for (int member = 0; member < parent_.size() && done.ok(); ++member) {
            SplitRecord& theirs = all_[static_cast<std::size_t>(member)];
            if (const std::byte* there = parent_.mapped_address(member, at))
                std::memcpy(&theirs, there, sizeof theirs);
            else
                done = parent_.get(member, at, &theirs, sizeof theirs);
        }
        return done;
    }

    TeamTable& table_;
    Team& parent_;
    const SplitRules& rules_;
    std::span<const TeamSpec> specs_;
    SplitRecord mine_{};
    std::vector<SplitRecord> all_;
    std::vector<int> slots_;
    std::vector<bool> taken_;
};

Status TeamTable::split(Team& parent, const Arguments& arguments, const SplitRules& rules,
                        std::span<const TeamSpec> specs, std::span<TeamName> made) {
    for (int attempt = 0; attempt < max_attempts; ++attempt) {
        SplitProtocol protocol(*this, parent, arguments, rules, specs);
        if (Status proposed = protocol.propose(!made.empty()); !proposed.ok()) return proposed;
        bool granted = false;
        if (Status taken = protocol.take(granted); !taken.ok()) return taken;
        if (!granted) continue;
        protocol.begin(made);
        return {};
    }
    return {Code::memory, fmt::format("no slot for the team was free on all PEs in {} attempts", max_attempts)};
}

std::uint64_t TeamTable::make_id() {
    const std::lock_guard guard(lock_);
    const std::uint64_t id = TeamFormation::id_of(resources_.my_pe, ++ids_);
    open_ids_.insert(id);
    outcomes_.publish_made(ids_);
    mailbox_.expect(id);  // other PEs may arrive before this one
    return id;
}

// An id serves for one team.
Status TeamTable::check_id(std::uint64_t id) {
    const int leader = TeamFormation::leader_of(id);
    if (leader >= 0 && leader < resources_.npes) {
        const auto made = outcomes_.was_made(leader, TeamFormation::number_of(id));
        if (!made.ok()) return made.status();
        if (made.value()) return {};
    }
    return {Code::argument, fmt::format("no PE of this job has made the id {:#x}", id)};
}

Status TeamTable::form_team(std::uint64_t id, int npes, int index, int contexts_wanted, TeamName& made) {
    if (Status checked = check_id(id); !checked.ok()) return checked;
    TeamFormation formation(*this, mailbox_, outcomes_, id, npes, index);
    bool first = false;
    if (TeamFormation::leader_of(id) == resources_.my_pe) {
        const std::lock_guard guard(lock_);
        first = open_ids_.erase(id) != 0;
    } else {
        first = mailbox_.expect(id);
    }
    if (!first) return formation.reject_reuse();
    Status done = formation.run(contexts_wanted, made);
    mailbox_.forget(id);
    return done;
}

std::atomic_ref<std::uint64_t> TeamTable::departed(const Team& team) const {
    return std::atomic_ref<std::uint64_t>(
        *reinterpret_cast<std::uint64_t*>(resources_.own_slice + team.layout().departed()));
}

// Each member reports to all others that none of its operations is in progress. Then no PE writes into this PE's slot
// any more, and it may serve another team, of any PEs.
Status TeamTable::leave(Team& team) {
    if (Status done = team.complete(); !done.ok()) return done;
    const std::uint64_t word = team.layout().departed();
    for (int i = 1; i < team.size(); ++i) {
        const int member = (team.index() + i) % team.size();
        if (std::byte* there = team.mapped_address(member, word)) {
            // Release. Partner: the acquire load below, at the member.
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
        if (Status told = resources_.remote.atomic(op, RemoteAccess::Completion::local); !told.ok()) return told;
    }
    const auto others = static_cast<std::uint64_t>(team.size() - 1);
    const WaitFor what{
        .what = "the other PEs to destroy a team", .needs = team.members().range(), .timeout = resources_.timeout};
    WaitFailure failure;
    const auto all_left = [&] { return departed(team).load(std::memory_order_acquire) == others; };
    const Code code = resources_.waiter.until(all_left, what, &failure);
    return code == Code::ok ? Status{} : Status{code, describe(what, failure)};
}

Status TeamTable::destroy(TeamName name) {
    Team* team = find(name);
    if (team == nullptr) return {Code::argument, "the team does not exist, or no longer exists"};
    if (Status left = leave(*team); !left.ok()) return left;
    const auto slot = static_cast<std::size_t>(name.value & ((1U << slot_bits) - 1));
    names_[slot].store(0, std::memory_order_release);
    teams_[slot].reset();
    release_slot(static_cast<int>(slot));
    return {};
}

}  // namespace npushmem
