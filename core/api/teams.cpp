// SPDX-License-Identifier: BSD-3-Clause
// Teams: predefined, split from others, destroyed, and queries of them.
#include "core/api/teams.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <vector>

#include "core/api/access.hpp"
#include "core/api/contexts.hpp"
#include "npushmem.h"
#include "npushmemx.h"

namespace npushmem::api {

namespace {

std::uintptr_t number_of(npushmem_team_t handle) { return reinterpret_cast<std::uintptr_t>(handle); }

// A handle is the team's name with the mark of its world in the upper bits, which no name uses. Predefined teams have
// none.
constexpr int mark_shift = 48;
std::uint64_t mark_of(const World& world) {
    constexpr std::uint32_t marks = (1U << (64 - mark_shift)) - 1;
    return world.number == 0 ? 0 : (world.number - 1) % marks + 1;
}
npushmem_team_t handle_of(TeamName name) {
    const std::uint64_t mark = name.value != 0 ? mark_of(*current_world) : 0;
    return reinterpret_cast<npushmem_team_t>(mark << mark_shift | name.value);
}
TeamName name_in(npushmem_team_t handle) { return {number_of(handle) & ((std::uint64_t{1} << mark_shift) - 1)}; }
bool is_of_current_world(npushmem_team_t handle) { return number_of(handle) >> mark_shift == mark_of(*current_world); }

TeamSpec spec(Members members, const npushmem_team_config_t* config, long mask) {
    const bool given = config != nullptr && (mask & NPUSHMEM_TEAM_NUM_CONTEXTS) != 0;
    return {std::move(members), given ? config->num_contexts : 0};
}

Status check_triplet(const Team& parent, int start, int stride, int size) {
    const std::int64_t last = start + static_cast<std::int64_t>(stride) * (std::int64_t{size} - 1);
    const bool inside = size >= 1 && start >= 0 && start < parent.size() && last >= 0 && last < parent.size();
    if (inside && (stride != 0 || size == 1)) return {};
    return {Code::range, fmt::format("start {}, stride {}, size {} are not PEs of the team {}, which has {}", start,
                                     stride, size, parent.name(), parent.size())};
}

// Runs an operation on a team's barrier with the plan that a text names there.
template <class Action>
Status with_barrier_plan(npushmem_team_t handle, const char* algorithm, Action&& action) {
    const auto found = team_of(handle);
    if (!found.ok()) return found.status();
    if (algorithm == nullptr) return {Code::argument, "algorithm is NULL"};
    const auto choice = found.value()->barrier().choose(algorithm);
    return choice.ok() ? action(*found.value(), choice.value().plan) : choice.status();
}

Status split_strided(npushmem_team_t handle, int start, int stride, int size, const npushmem_team_config_t* config,
                     long mask, npushmem_team_t* out) {
    const auto found = team_of(handle);
    if (!found.ok()) return found.status();
    Team& parent = *found.value();
    if (Status same = check_same_call(parent, "npushmem_team_split_strided"); !same.ok()) return same;
    const SplitRules rules = {runtime()->settings().check ? SplitArgumentRule::alike : SplitArgumentRule::triplets,
                              [&](const SplitArguments& given) {
                                  const auto at = [&](std::size_t i) {
                                      return static_cast<int>(static_cast<std::int64_t>(given[i]));
                                  };
                                  return check_triplet(parent, at(0), at(1), at(2));
                              }};
    const SplitArguments arguments = {static_cast<std::uint64_t>(start), static_cast<std::uint64_t>(stride),
                                      static_cast<std::uint64_t>(size)};
    std::vector<TeamSpec> specs;
    if (rules.check(arguments).ok()) specs.push_back(spec(parent.members().every(start, stride, size), config, mask));
    std::vector<TeamName> made(out != nullptr ? 1 : 0);
    Status done = runtime()->teams().split(parent, arguments, rules, specs, made);
    if (out != nullptr) *out = handle_of(made[0]);
    return done;
}

Status init_team(npushmem_team_t& out, const npushmemx_team_config_t* config, long mask, int npes, int index) {
    Runtime* up = runtime();
    if (up == nullptr) return not_running();
    if (config == nullptr || (mask & NPUSHMEMX_TEAM_UNIQUEID) == 0)
        return {Code::argument, "config is NULL, or config_mask is without NPUSHMEMX_TEAM_UNIQUEID"};
    TeamName made;
    const int contexts = (mask & NPUSHMEM_TEAM_NUM_CONTEXTS) != 0 ? config->num_contexts : 0;
    Status done = up->teams().form_team(config->uniqueid, npes, index, contexts, made);
    out = handle_of(made);
    return done;
}

// The program learns of the dead by the result. This PE may not have found all of them dead itself.
Status shrink(npushmem_team_t handle, npushmem_team_t* out) {
    const auto found = team_of(handle);
    if (!found.ok()) return found.status();
    const Team& parent = *found.value();
    TeamName made;
    Status done = runtime()->teams().shrink(*found.value(), out != nullptr, made);
    if (!done.ok()) return done;
    *out = handle_of(made);
    const Members& living = runtime()->teams().find(made)->members();
    for (int member = 0; member < parent.size(); ++member) {
        const int pe = parent.members().at(member);
        if (living.index_of(pe) >= 0) continue;
        runtime()->liveness().learn_dead(pe);
        runtime()->liveness().acknowledge(pe);
    }
    return {};
}

Status find_failed(npushmem_team_t handle, int max, int* failed, int* count) {
    const auto found = team_of(handle);
    if (!found.ok()) return found.status();
    if (count == nullptr || max < 0 || (failed == nullptr && max > 0))
        return {Code::argument, "count is NULL, or failed is NULL, or max is negative"};
    *count = 0;
    JobLiveness& liveness = runtime()->liveness();
    for (int member = 0; member < found.value()->size(); ++member) {
        const int pe = found.value()->members().at(member);
        if (!liveness.is_acknowledged(pe) && !liveness.find_dead(PeRange::one(pe))) continue;
        if (*count < max) {
            failed[*count] = member;
            liveness.acknowledge(pe);
        }
        ++*count;
    }
    return {};
}

// For functions that accept NPUSHMEM_TEAM_INVALID without a report: returns null for it, and for an unknown handle.
Team* team_or_report(const char* function, npushmem_team_t handle) {
    Team* const found = find_team(handle);
    if (found == nullptr && handle != NPUSHMEM_TEAM_INVALID)
        end_on_bad_alloc(function, [&] { fail_by_value(function, team_of(handle).status()); });
    return found;
}

// Runs `before` on this PE, then synchronises the team.
template <class Before>
int sync_team(const char* function, npushmem_team_t team, Before&& before) {
    return run_call(function, [&] {
        const auto found = team_of(team);
        if (!found.ok()) return found.status();
        return run_same_call(*runtime_unnoted(), *found.value(), function, [&] {
            return coll::sync_after(before(), [&] { return found.value()->barrier().sync(); });
        });
    });
}

struct Axis {
    const npushmem_team_config_t* config;
    long mask;
    npushmem_team_t* team;
};

Status check_xrange(const SplitArguments& arguments) {
    const auto xrange = static_cast<std::int64_t>(arguments[1]);
    return xrange >= 1 ? Status{} : Status{Code::range, fmt::format("xrange is {}; it must be at least 1", xrange)};
}

Status split_2d(npushmem_team_t handle, int xrange, const Axis& x, const Axis& y) {
    const auto found = team_of(handle);
    if (!found.ok()) return found.status();
    Team& parent = *found.value();
    if (Status same = check_same_call(parent, "npushmem_team_split_2d"); !same.ok()) return same;
    const SplitArguments arguments = {2, static_cast<std::uint64_t>(xrange), 0};
    std::vector<TeamSpec> specs;
    if (check_xrange(arguments).ok()) {
        const int width = std::min(xrange, parent.size());
        const int column = parent.index() % width;
        const int row = parent.index() / width;
        const int rest = parent.size() - row * width;
        specs = {spec(parent.members().every(row * width, 1, std::min(width, rest)), x.config, x.mask),
                 spec(parent.members().every(column, width, (parent.size() - column + width - 1) / width), y.config,
                      y.mask)};
    }
    std::vector<TeamName> made(x.team != nullptr && y.team != nullptr ? 2 : 0);
    Status done = runtime()->teams().split(parent, arguments, {SplitArgumentRule::alike, check_xrange}, specs, made);
    if (made.empty()) return done;
    *x.team = handle_of(made[0]);
    *y.team = handle_of(made[1]);
    return done;
}

Status destroy_team(const char* function, npushmem_team_t team) {
    Runtime* up = runtime();
    if (up == nullptr) return not_running();
    if (number_of(team) <= number_of(NPUSHMEMX_TEAM_SAME_MYPE_NODE))
        return {Code::argument, "a predefined team cannot be destroyed"};
    const auto found = team_of(team);
    if (!found.ok()) return found.status();
    if (Status same = check_same_call(*found.value(), function); !same.ok()) return same;
    Status done = destroy_contexts_of(team);
    // Done in any case, because the other members wait for it.
    Status destroyed = up->teams().destroy(name_in(team));
    const bool has_dead_member = destroyed.code() == Code::peer_dead && up->settings().survives_deaths;
    return done.ok() && !has_dead_member ? destroyed : done;
}

}  // namespace

Team* find_team(npushmem_team_t handle) {
    Runtime* up = runtime();
    if (up == nullptr || handle == NPUSHMEM_TEAM_INVALID) return nullptr;
    if (handle == NPUSHMEM_TEAM_WORLD) return &up->teams().world();
    if (handle == NPUSHMEM_TEAM_SHARED) return &up->teams().shared();
    if (handle == NPUSHMEMX_TEAM_NODE) return &up->teams().node();
    if (handle == NPUSHMEMX_TEAM_SAME_MYPE_NODE) return &up->teams().same_local_index();
    return is_of_current_world(handle) ? up->teams().find(name_in(handle)) : nullptr;
}

Result<Team*> team_of(npushmem_team_t handle) {
    if (Team* team = find_team(handle)) return team;
    if (runtime() == nullptr) return not_running();
    if (handle == NPUSHMEM_TEAM_INVALID) return Status{Code::argument, "the team is NPUSHMEM_TEAM_INVALID"};
    if (!is_of_current_world(handle))
        return Status{Code::argument, fmt::format("the team {:#x} belongs to another world than the thread's current "
                                                  "one; call npushmemx_world_make_current first",
                                                  number_of(handle))};
    if (runtime()->teams().existed(name_in(handle)))
        return Status{Code::argument, fmt::format("the team {:#x} has been destroyed", number_of(handle))};
    return Status{Code::argument, fmt::format("the team {:#x} does not exist on PE {}, which may be no member of it",
                                              number_of(handle), runtime()->my_pe())};
}

}  // namespace npushmem::api

using namespace npushmem;
using namespace npushmem::api;

extern "C" {

int npushmem_team_my_pe(npushmem_team_t team) {
    const Team* found = team_or_report(__func__, team);
    return found != nullptr ? found->index() : -1;
}

int npushmem_team_n_pes(npushmem_team_t team) {
    const Team* found = team_or_report(__func__, team);
    return found != nullptr ? found->size() : -1;
}

int npushmem_team_get_config(npushmem_team_t team, long config_mask, npushmem_team_config_t* config) {
    return code_of_call(__func__, [&] {
        const auto found = team_of(team);
        if (found.ok() && config != nullptr && (config_mask & NPUSHMEM_TEAM_NUM_CONTEXTS) != 0)
            config->num_contexts = found.value()->contexts_wanted;
        return found.status();
    });
}

int npushmem_team_translate_pe(npushmem_team_t src_team, int src_pe, npushmem_team_t dest_team) {
    const Team* from = team_or_report(__func__, src_team);
    const Team* to = team_or_report(__func__, dest_team);
    if (from == nullptr || to == nullptr || src_pe < 0 || src_pe >= from->size()) return -1;
    return to->members().index_of(from->members().at(src_pe));
}

int npushmem_team_split_strided(npushmem_team_t parent_team, int start, int stride, int size,
                                const npushmem_team_config_t* config, long config_mask, npushmem_team_t* new_team) {
    if (new_team != nullptr) *new_team = NPUSHMEM_TEAM_INVALID;
    return code_of_call(__func__,
                        [&] { return split_strided(parent_team, start, stride, size, config, config_mask, new_team); });
}

int npushmem_team_split_2d(npushmem_team_t parent_team, int xrange, const npushmem_team_config_t* xaxis_config,
                           long xaxis_mask, npushmem_team_t* xaxis_team, const npushmem_team_config_t* yaxis_config,
                           long yaxis_mask, npushmem_team_t* yaxis_team) {
    for (npushmem_team_t* team : {xaxis_team, yaxis_team})
        if (team != nullptr) *team = NPUSHMEM_TEAM_INVALID;
    return code_of_call(__func__, [&] {
        return split_2d(parent_team, xrange, {xaxis_config, xaxis_mask, xaxis_team},
                        {yaxis_config, yaxis_mask, yaxis_team});
    });
}

void npushmem_team_destroy(npushmem_team_t team) {
    if (team != NPUSHMEM_TEAM_INVALID)
        run_call(__func__, [team, function = __func__] { return destroy_team(function, team); });
}

void* npushmem_team_ptr(npushmem_team_t team, const void* object, int pe) {
    const Team* found = team_or_report(__func__, team);
    if (found == nullptr || pe < 0 || pe >= found->size()) return nullptr;
    return npushmem_ptr(object, found->members().at(pe));
}

int32_t npushmemx_team_to_index(npushmem_team_t team) {
    const std::uintptr_t number = number_of(team);
    if (number <= TeamTable::predefined_teams) return static_cast<int32_t>(number) - 1;
    return TeamTable::slot_of({number});
}

npushmem_team_t npushmemx_team_from_index(int32_t index) {
    if (index < TeamTable::predefined_teams)
        return reinterpret_cast<npushmem_team_t>(index < 0 ? std::uintptr_t{0}
                                                           : static_cast<std::uintptr_t>(index) + 1);
    Runtime* up = runtime_unnoted();
    return up != nullptr ? handle_of(up->teams().name_at(index)) : NPUSHMEM_TEAM_INVALID;
}

int npushmemx_team_get_uniqueid(npushmemx_team_uniqueid_t* uniqueid) {
    return code_of_call(__func__, [&]() -> Status {
        Runtime* up = runtime();
        if (up == nullptr) return not_running();
        if (uniqueid == nullptr) return {Code::argument, "uniqueid is NULL"};
        *uniqueid = up->teams().make_id();
        return {};
    });
}

int npushmemx_team_init(npushmem_team_t* team, const npushmemx_team_config_t* config, long config_mask, int npes,
                        int pe_idx_in_team) {
    return code_of_call(__func__, [&]() -> Status {
        if (team == nullptr) return {Code::argument, "team is NULL"};
        *team = NPUSHMEM_TEAM_INVALID;
        return init_team(*team, config, config_mask, npes, pe_idx_in_team);
    });
}

int npushmemx_team_shrink(npushmem_team_t parent, npushmem_team_t* new_team) {
    if (new_team != nullptr) *new_team = NPUSHMEM_TEAM_INVALID;
    return code_of_call(__func__, [&] { return shrink(parent, new_team); });
}

int npushmemx_team_get_failed(npushmem_team_t team, int max, int* failed, int* count) {
    return code_of_call(__func__, [&] { return find_failed(team, max, failed, count); });
}

int npushmemx_team_set_barrier(npushmem_team_t team, const char* algorithm) {
    const auto set = [](Team& found, const barrier::Plan& plan) {
        found.barrier().set_default_plan(plan);
        return Status{};
    };
    return code_of_call(__func__, [&] { return with_barrier_plan(team, algorithm, set); });
}

int npushmemx_team_set_collectives(npushmem_team_t team, const char* library) {
    return code_of_call(__func__, [&]() -> Status {
        const auto found = team_of(team);
        if (!found.ok()) return found.status();
        return library != nullptr ? found.value()->select_collectives(library)
                                  : Status{Code::argument, "library is NULL"};
    });
}

int npushmemx_team_sync_by(npushmem_team_t team, const char* algorithm) {
    const auto run_sync = [function = __func__](Team& found, const barrier::Plan& plan) {
        const CollectiveCall call(found.calls(), function);
        return found.barrier().sync(plan);
    };
    return code_of_call(__func__, [&] { return with_barrier_plan(team, algorithm, run_sync); });
}

int npushmem_team_sync(npushmem_team_t team) {
    return sync_team(__func__, team, [] { return Status{}; });
}

int npushmemx_team_barrier(npushmem_team_t team) {
    return sync_team(__func__, team, [] { return runtime()->synchronization().quiet(); });
}

}  // extern "C"
