// SPDX-License-Identifier: BSD-3-Clause
#include "core/team/team_table.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/team/team_shrink.hpp"

namespace npushmem {

namespace {

constexpr std::uint64_t slot_bits = 16;
constexpr int max_split_attempts = 1000;

TeamName name_of(int slot, std::uint32_t use) {
    return {(std::uint64_t{use} << slot_bits) | static_cast<std::uint64_t>(slot)};
}

Status no_free_slot() {
    return {Code::memory, fmt::format("no slot for the team was free on all PEs in {} attempts", max_split_attempts)};
}

// The number of other members that have left a team, in a slice.
std::atomic_ref<std::uint64_t> departed_at(std::byte* word) {
    return std::atomic_ref<std::uint64_t>(*reinterpret_cast<std::uint64_t*>(word));
}

}  // namespace

Result<std::unique_ptr<TeamTable>> TeamTable::make(TeamResources resources, std::uint64_t pool,
                                                   TeamSlots::Commit commit, Members shared, bool all_mapped) {
    std::unique_ptr<TeamTable> table(new TeamTable(std::move(resources), pool, std::move(commit)));
    if (Status begun = table->begin_predefined(std::move(shared), all_mapped); !begun.ok()) return begun;
    return table;
}

TeamTable::TeamTable(TeamResources resources, std::uint64_t pool, TeamSlots::Commit commit)
    : resources_(std::move(resources)),
      slots_(resources_, pool, pool_bytes, TeamFormation::bytes, predefined_teams, std::move(commit)),
      formation_(resources_, slots_, pool),
      uses_(static_cast<std::size_t>(slots_.count())),
      names_(static_cast<std::size_t>(slots_.count())),
      teams_(static_cast<std::size_t>(slots_.count())) {}

namespace {

Members pes_of_host(const HostLayout& layout, int pe) {
    const auto pes = layout.pes_of(layout.host_of(pe));
    return Members::listed({pes.begin(), pes.end()});
}

Members pes_at_local_index_of(const HostLayout& layout, int pe) {
    const int index = layout.local_index(pe);
    std::vector<int> pes;
    for (int host = 0; host < layout.hosts(); ++host)
        if (const PeRange local = layout.pes_of(host); local.count > index) pes.push_back(local.at(index));
    return Members::listed(std::move(pes));
}

bool contains(const Members& all, const Members& some) {
    int i = 0;
    while (i < some.count() && all.index_of(some.at(i)) >= 0) ++i;
    return i == some.count();
}

}  // namespace

// NPUSHMEM_BARRIER_ALGO must suit the world; other teams have a substitute.
Status TeamTable::begin_predefined(Members shared, bool all_mapped) {
    if (Status done = slots_.commit_first(predefined_teams); !done.ok()) return done.within("state of teams");
    const PeRange all{0, 1, resources_.npes};
    teams_[0] = std::make_unique<Team>(resources_, all, slots_.layout(0), all_mapped, "world", true);
    living_ = teams_[0].get();
    // Members that `shared` contains map each other; every member gets the same answer.
    const auto begin_on_hosts = [&](int slot, const Members& members, const char* name) {
        teams_[static_cast<std::size_t>(slot)] =
            std::make_unique<Team>(resources_, members, slots_.layout(slot), contains(shared, members), name);
    };
    begin_on_hosts(2, pes_of_host(resources_.layout, resources_.my_pe), "node");
    begin_on_hosts(3, pes_at_local_index_of(resources_.layout, resources_.my_pe), "same local index");
    teams_[1] = std::make_unique<Team>(resources_, std::move(shared), slots_.layout(1), true, "shared");
    return world().barrier().choose(resources_.algorithm).status().within("NPUSHMEM_BARRIER_ALGO");
}

int TeamTable::slot_of(TeamName name) { return static_cast<int>(name.value & ((1U << slot_bits) - 1)); }

TeamName TeamTable::name_at(int slot) {
    if (slot < predefined_teams || slot >= slots_.count()) return {};
    const std::lock_guard guard(lock_);
    const std::uint32_t use = uses_[static_cast<std::size_t>(slot)];
    return use != 0 ? name_of(slot, use) : TeamName{};
}

Team* TeamTable::find(TeamName name) const {
    const auto slot = static_cast<std::size_t>(slot_of(name));
    if (slot >= names_.size() || name.value == 0) return nullptr;
    // Acquire. Partner: the release in begin().
    return names_[slot].load(std::memory_order_acquire) == name.value ? teams_[slot].get() : nullptr;
}

bool TeamTable::existed(TeamName name) {
    const auto slot = static_cast<std::size_t>(slot_of(name));
    const std::uint64_t use = name.value >> slot_bits;
    const std::lock_guard guard(lock_);
    return slot < uses_.size() && use >= 1 && use <= uses_[slot] && find(name) == nullptr;
}

TeamName TeamTable::begin(const AgreedTeam& agreed, int contexts_wanted) {
    const auto at = static_cast<std::size_t>(agreed.slot);
    std::uint32_t use = 0;
    {
        const std::lock_guard guard(lock_);
        use = ++uses_[at];
    }
    const TeamName name = name_of(agreed.slot, use);
    teams_[at] = std::make_unique<Team>(resources_, agreed.members, slots_.layout(agreed.slot), agreed.mapped,
                                        "of " + agreed.members.text());
    teams_[at]->contexts_wanted = contexts_wanted;
    // Release. Partner: the acquire in find().
    names_[at].store(name.value, std::memory_order_release);
    return name;
}

Status TeamTable::split(Team& parent, const SplitArguments& arguments, const SplitRules& rules,
                        std::span<const TeamSpec> specs, std::span<TeamName> made) {
    const CollectiveCall call(parent.calls(), "team split");
    for (int attempt = 0; attempt < max_split_attempts; ++attempt) {
        TeamSplit split(resources_, slots_, parent, arguments, rules, specs);
        if (Status proposed = split.propose(!made.empty()); !proposed.ok()) return proposed;
        bool granted = false;
        if (Status claimed = split.claim(granted); !claimed.ok()) return claimed;
        if (!granted) continue;
        for (std::size_t i = 0; i < specs.size(); ++i)
            if (split.is_member(i)) made[i] = begin(split.agreed(i), specs[i].contexts_wanted);
        return {};
    }
    return no_free_slot();
}

Status TeamTable::shrink(Team& parent, bool has_output, TeamName& made) {
    const CollectiveCall call(parent.calls(), "team shrink");
    for (int attempt = 0; attempt < max_split_attempts; ++attempt) {
        AgreedTeam agreed;
        bool granted = false;
        if (Status done = TeamShrink(resources_, slots_, parent, has_output).run(agreed, granted); !done.ok())
            return done;
        if (!granted) continue;
        made = begin(agreed, parent.contexts_wanted);
        if (&parent != &world() && &parent != living_) return {};
        living_ = find(made);
        ++generation_;
        return {};
    }
    return no_free_slot();
}

void TeamTable::publish_ends() {
    for (const auto& team : teams_)
        if (team) ShrinkRecords(resources_, *team).publish_end();
}

Status TeamTable::wait_for_ends() { return npushmem::wait_for_ends(resources_, world()); }

Status TeamTable::form_team(std::uint64_t id, int npes, int index, int contexts_wanted, TeamName& made) {
    const auto agreed = formation_.form({id, npes, index});
    if (!agreed.ok()) return agreed.status();
    made = begin(agreed.value(), contexts_wanted);
    return {};
}

// Adds to the word of a member. Release. Partner: the acquire load in leave(), at the member.
Status TeamTable::add_to_departed(const Team& team, int member, std::uint64_t operand) {
    const std::uint64_t word = team.layout().departed();
    if (std::byte* there = team.mapped_address(member, word)) {
        departed_at(there).fetch_add(operand, std::memory_order_acq_rel);
        return {};
    }
    std::uint64_t before = 0;
    npushmem_atomic op{};
    op.pe = team.members().at(member);
    op.operation = NPUSHMEM_ATOMIC_FETCH_ADD;
    op.width = 8;
    op.offset = word;
    op.operand = operand;
    op.result = &before;
    Status sent = resources_.remote.atomic(op, RemoteAccess::Completion::local);
    if (is_lost(sent) && resources_.report_lost) resources_.report_lost(op.pe);
    return sent;
}

// Returns when no operation of a member is in progress, and no PE writes into this PE's slot any more: it may then
// serve another team, of any PEs. In a tree of members, so that each writes to few others: a member reports to its
// parent when its children have reported, and the root then lets all go. Nobody writes into a slot after its parent's
// release.
Status TeamTable::leave(Team& team) {
    const CollectiveCall call(team.calls(), "team destroy");
    if (Status done = team.complete(); !done.ok()) return done;
    constexpr int arity = 8;
    constexpr std::uint64_t report = 1;
    constexpr std::uint64_t release = std::uint64_t{1} << 32;
    const int first_child = team.index() * arity + 1;
    const int children = std::clamp(team.size() - first_child, 0, arity);
    std::byte* const own = resources_.own_slice + team.layout().departed();
    const WaitFor what{
        .what = "the other PEs to destroy a team", .needs = team.members().range(), .timeout = resources_.timeout};
    const auto wait_for = [&](std::uint64_t expected) -> Status {
        WaitFailure failure;
        const auto arrived = [&] { return departed_at(own).load(std::memory_order_acquire) == expected; };
        const Code code = team.calls().waiter().until(arrived, what, &failure);
        return code == Code::ok ? Status{} : Status{code, describe(what, failure)};
    };
    const std::uint64_t reports = report * static_cast<std::uint64_t>(children);
    Status done = wait_for(reports);
    if (team.index() > 0) {
        if (done.ok()) done = add_to_departed(team, (team.index() - 1) / arity, report);
        if (done.ok()) done = wait_for(reports + release);
    }
    // The others have left too, so a child that cannot be reached keeps none of them.
    const bool all_have_left = done.ok();
    for (int child = 0; child < children && all_have_left; ++child) {
        const Status released = add_to_departed(team, first_child + child, release);
        if (done.ok()) done = released;
    }
    return done;
}

Status TeamTable::destroy(TeamName name) {
    Team* team = find(name);
    if (team == nullptr) return {Code::argument, "the team does not exist, or no longer exists"};
    Status left = leave(*team);
    if (!left.ok() && left.code() != Code::peer_dead) return left;
    const auto slot = static_cast<std::size_t>(slot_of(name));
    names_[slot].store(0, std::memory_order_release);
    if (living_ == team) living_ = &world();
    teams_[slot].reset();
    if (left.ok()) slots_.release(static_cast<int>(slot));
    return left;
}

}  // namespace npushmem
