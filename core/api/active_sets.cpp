// SPDX-License-Identifier: BSD-3-Clause
// Deprecated: collectives over active sets. A set becomes a team when it is first used; its members agree on the team's
// place through pSync, the only memory that they share then, and keep the team until the end.
//
// pSync, zero before and after each call:
//   [0]     members that have arrived, at the first member
//   [1]     the first member's release
//   [2..5]  free places
//   [6]     whether the place could be taken
//   [7]     whether this member maps all members
#include <fmt/core.h>
#include <algorithm>

#include <map>
#include <mutex>
#include <tuple>
#include <utility>
#include <vector>

#include "core/api/access.hpp"
#include "core/api/collectives.hpp"
#include "npushmem.h"
#include "npushmem/plugin/local_atomic.hpp"

namespace npushmem::api {

namespace {

struct Set {
    PeRange members;
    long* sync;

    [[nodiscard]] bool first(int me) const { return me == members.first; }
};

struct Cache {
    std::mutex lock;
    // By world, first, stride, count; under lock.
    std::map<std::tuple<const World*, int, int, int>, TeamName> teams;
};

// Never destroyed, as the library itself.
Cache& cache() {
    static Cache* const instance = new Cache;
    return *instance;
}

// Performs an operation on a member's word of pSync. Returns the value before, of an operation that fetches it.
Result<std::uint64_t> operate(std::uint8_t operation, long* word, int pe, std::uint64_t operand = 0) {
    Runtime* up = runtime();
    std::uint64_t before = 0;
    npushmem_atomic op{};
    op.pe = pe;
    op.operation = operation;
    op.width = sizeof *word;
    op.offset = up->slices().offset_of(word);
    op.operand = operand;
    op.result = &before;
    void* const there = pe == up->my_pe() ? word : up->slices().mapped(pe, op.offset);
    Status done = there != nullptr ? Status{apply_atomic(there, op), ""}
                                   : up->transports().remote().atomic(op, RemoteAccess::Completion::local);
    return done.ok() ? Result<std::uint64_t>(before) : Result<std::uint64_t>(done);
}

// Completes the operations to the members: the death of another PE must not fail the set's calls.
Status complete_members(const Set& set) {
    return complete_members(runtime()->transports().remote(), listed_unless_all(set.members, runtime()->npes()));
}

Status wait_for(const Set& set, long* word, long value) {
    const WaitFor what{
        .what = "the PEs of an active set", .needs = set.members, .timeout = runtime()->settings().timeout};
    WaitFailure failure;
    const Code code = runtime()->waiter().until(
        [&] { return std::atomic_ref<long>(*word).load(std::memory_order_acquire) == value; }, what, &failure);
    return code == Code::ok ? Status{} : Status{code, describe(what, failure)};
}

Status signal_members(const Set& set) {
    if (!set.first(runtime()->my_pe())) {
        const auto counted = operate(NPUSHMEM_ATOMIC_ADD, set.sync, set.members.first, 1);
        if (!counted.ok()) return counted.status();
        if (Status done = wait_for(set, set.sync + 1, 1); !done.ok()) return done;
        std::atomic_ref<long>(set.sync[1]).store(0, std::memory_order_relaxed);
        return {};
    }
    if (Status done = wait_for(set, set.sync, set.members.count - 1); !done.ok()) return done;
    std::atomic_ref<long>(set.sync[0]).store(0, std::memory_order_relaxed);
    Status first;
    for (int i = 1; i < set.members.count; ++i) {
        const auto released = operate(NPUSHMEM_ATOMIC_SET, set.sync + 1, set.members.at(i), 1);
        if (first.ok()) first = released.status();
    }
    Status completed = complete_members(set);
    return first.ok() ? completed : first;
}

// Synchronises the members and leaves pSync unchanged: the first member resets the count before it releases, and each
// member resets its release before it can arrive again.
Status sync_members(const Set& set) {
    return coll::sync_after(complete_members(set), [&set] { return signal_members(set); });
}

// Returns the lowest place that is free on all members; -1 if there is none.
Result<int> common_place(const Set& set) {
    TeamSlotSet free;
    free.fill(~std::uint64_t{0});
    for (int i = 0; i < set.members.count; ++i)
        for (std::size_t word = 0; word < free.size(); ++word) {
            const auto theirs = operate(NPUSHMEM_ATOMIC_FETCH, set.sync + 2 + word, set.members.at(i));
            if (!theirs.ok()) return theirs.status();
            free[word] &= theirs.value();
        }
    const std::vector<int> first = first_slots(free, 1);
    return first.empty() ? -1 : first[0];
}

// Returns the largest value of the members in this word.
Result<long> max_over_members(const Set& set, long* word) {
    long worst = 0;
    for (int i = 0; i < set.members.count; ++i) {
        const auto theirs = operate(NPUSHMEM_ATOMIC_FETCH, word, set.members.at(i));
        if (!theirs.ok()) return theirs.status();
        worst = std::max(worst, static_cast<long>(theirs.value()));
    }
    return worst;
}

// A member's answer about the place: it took it, another caller took it first, or the member has no memory there and
// never will.
enum PlaceOutcome : long { place_taken = 1, place_contended = 2, place_unavailable = 3 };

// One attempt: every member reports its free places, then whether it could take the common one. False: try again.
Result<bool> attempt(const Set& set, TeamName& made) {
    TeamTable& teams = runtime()->teams();
    const TeamSlotSet free = teams.slots().free();
    for (std::size_t word = 0; word < free.size(); ++word) set.sync[2 + word] = static_cast<long>(free[word]);
    if (Status done = sync_members(set); !done.ok()) return done;
    const auto common = common_place(set);
    if (!common.ok()) return common.status();
    const int place = common.value();
    const bool taken = place >= 0 && teams.slots().claim(place);
    Status prepared = taken ? teams.slots().prepare(place) : Status{};
    set.sync[6] = !prepared.ok() ? place_unavailable : taken ? place_taken : place_contended;
    set.sync[7] = maps_all(teams.resources(), set.members) ? place_taken : place_contended;
    if (Status done = sync_members(set); !done.ok()) return done;
    const auto outcome = max_over_members(set, set.sync + 6);
    const auto mapping = max_over_members(set, set.sync + 7);
    if (!outcome.ok() || !mapping.ok()) return outcome.ok() ? mapping.status() : outcome.status();
    const long worst = outcome.value();
    const bool granted = worst == place_taken;
    const bool mapped = mapping.value() == place_taken;
    if (Status done = sync_members(set); !done.ok()) return done;  // no member reads pSync any more
    for (int word = 2; word < 8; ++word) set.sync[word] = NPUSHMEM_SYNC_VALUE;
    if (taken && !granted) teams.slots().release(place);
    if (place < 0) return Status{Code::memory, "no place is free for the team of another active set"};
    if (!prepared.ok()) return prepared;
    if (worst == place_unavailable)
        return Status{Code::memory, "another PE has no memory for the team of an active set"};
    if (granted) made = teams.begin({place, set.members, mapped}, 0);
    return granted;
}

Result<Team*> make_team(const Set& set) {
    constexpr int max_attempts = 1000;
    TeamName made;
    for (int i = 0; i < max_attempts; ++i) {
        const auto granted = attempt(set, made);
        if (!granted.ok()) return granted.status();
        if (!granted.value()) continue;
        const std::lock_guard guard(cache().lock);
        cache().teams[{current_world, set.members.first, set.members.stride, set.members.count}] = made;
        return runtime()->teams().find(made);
    }
    return Status{Code::memory, "no place for the team of an active set was free on all of its PEs"};
}

Status check_set(const Runtime& up, int start, int log_stride, int size, const long* sync) {
    const bool sensible = start >= 0 && log_stride >= 0 && log_stride < 31 && size >= 1;
    const std::int64_t last = sensible ? start + (std::int64_t{size} - 1) * (std::int64_t{1} << log_stride) : -1;
    if (!sensible || last >= up.npes())
        return {Code::range, fmt::format("PE_start {}, logPE_stride {}, PE_size {} are not PEs of 0 to {}", start,
                                         log_stride, size, up.npes() - 1)};
    const PeRange members{start, 1 << log_stride, size};
    if (Members(members).index_of(up.my_pe()) < 0)
        return {Code::argument,
                fmt::format("PE {} is not in the active set of PE_start {}, logPE_stride {}, PE_size {}", up.my_pe(),
                            start, log_stride, size)};
    return check_object_on_all_pes(up, "pSync", sync, NPUSHMEM_SYNC_SIZE * sizeof(long));
}

Result<Team*> team_of_set(int start, int log_stride, int size, long* sync) {
    Runtime* up = runtime();
    if (up == nullptr) return not_running();
    if (Status checked = check_set(*up, start, log_stride, size, sync); !checked.ok()) return checked;
    const int stride = size == 1 ? 1 : 1 << log_stride;
    if (size == up->npes()) return &up->teams().world();
    {
        const std::lock_guard guard(cache().lock);
        const auto known = cache().teams.find({current_world, start, stride, size});
        if (known != cache().teams.end())
            if (Team* team = up->teams().find(known->second)) return team;
    }
    return make_team({{start, stride, size}, sync});
}

void sync_set(const char* function, bool complete, int start, int log_stride, int size, long* sync) {
    const auto team = team_of_set(start, log_stride, size, sync);
    Status done = team.status();
    if (done.ok())
        done = run_same_call(*runtime_unnoted(), *team.value(), function, [&] {
            return coll::sync_after(complete ? runtime()->synchronization().quiet() : Status{},
                                    [&] { return team.value()->barrier().sync(); });
        });
    if (!done.ok()) fail(function, done);
}

template <class T>
void reduce_set(const char* function, coll::ReduceOperation operation, T* dest, const T* source, int count, int start,
                int log_stride, int size, long* sync) {
    (void)reduce_any(function, team_of_set(start, log_stride, size, sync), dest, source,
                     count > 0 ? static_cast<std::size_t>(count) : 0, operation, element_of<T>());
}

}  // namespace

void clear_active_sets(const World& world) {
    const std::lock_guard guard(cache().lock);
    std::erase_if(cache().teams, [&world](const auto& each) { return std::get<0>(each.first) == &world; });
}

// The functions of the tables, by their names there.
#define NPUSHMEM_TO_ALL(NAME, OPERATION)                                                                               \
    template <class T>                                                                                                 \
    void NAME##_to_all(const char* function, T* dest, const T* source, int count, int start, int log_stride, int size, \
                       T*, long* sync) {                                                                               \
        reduce_set(function, coll::ReduceOperation::OPERATION, dest, source, count, start, log_stride, size, sync);    \
    }
NPUSHMEM_TO_ALL(and, and_)
NPUSHMEM_TO_ALL(or, or_)
NPUSHMEM_TO_ALL(xor, xor_)
NPUSHMEM_TO_ALL(max, max)
NPUSHMEM_TO_ALL(min, min)
NPUSHMEM_TO_ALL(sum, sum)
NPUSHMEM_TO_ALL(prod, prod)
#undef NPUSHMEM_TO_ALL

}  // namespace npushmem::api

#define NPUSHMEM_ONLY "npushmem/functions/active_sets.h"
#include "core/api/definitions.hpp"

using namespace npushmem::api;

#define NPUSHMEM_DEFINE_SIZED(BITS, BYTES)                                                                            \
    void npushmem_broadcast##BITS(void* dest, const void* source, size_t count, int root, int start, int log_stride,  \
                                  int size, long* pSync) {                                                            \
        (void)broadcast_any(__func__, team_of_set(start, log_stride, size, pSync), dest, source, count, BYTES, root,  \
                            false);                                                                                   \
    }                                                                                                                 \
    void npushmem_collect##BITS(void* dest, const void* source, size_t count, int start, int log_stride, int size,    \
                                long* pSync) {                                                                        \
        (void)collect_any(__func__, team_of_set(start, log_stride, size, pSync), dest, source, count, BYTES);         \
    }                                                                                                                 \
    void npushmem_fcollect##BITS(void* dest, const void* source, size_t count, int start, int log_stride, int size,   \
                                 long* pSync) {                                                                       \
        (void)fcollect_any(__func__, team_of_set(start, log_stride, size, pSync), dest, source, count, BYTES);        \
    }                                                                                                                 \
    void npushmem_alltoall##BITS(void* dest, const void* source, size_t count, int start, int log_stride, int size,   \
                                 long* pSync) {                                                                       \
        (void)alltoalls_any(__func__, team_of_set(start, log_stride, size, pSync), dest, source, 1, 1, count, BYTES); \
    }                                                                                                                 \
    void npushmem_alltoalls##BITS(void* dest, const void* source, ptrdiff_t dst, ptrdiff_t sst, size_t count,         \
                                  int start, int log_stride, int size, long* pSync) {                                 \
        (void)alltoalls_any(__func__, team_of_set(start, log_stride, size, pSync), dest, source, dst, sst, count,     \
                            BYTES);                                                                                   \
    }

extern "C" {

NPUSHMEM_FOR_EACH_COLLECTIVE_SIZE(NPUSHMEM_DEFINE_SIZED)

void npushmem_barrier(int start, int log_stride, int size, long* pSync) {
    sync_set(__func__, true, start, log_stride, size, pSync);
}

void npushmem_sync(int start, int log_stride, int size, long* pSync) {
    sync_set(__func__, false, start, log_stride, size, pSync);
}

}  // extern "C"
