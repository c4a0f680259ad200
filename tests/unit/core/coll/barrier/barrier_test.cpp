// SPDX-License-Identifier: BSD-3-Clause
#include <gmock/gmock.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstring>
#include <functional>
#include <new>
#include <random>
#include <thread>
#include <utility>
#include <vector>

#include "core/coll/barrier/barrier.hpp"
#include "core/coll/barrier/mapped_fabric.hpp"
#include "core/coll/barrier/signal_fabric.hpp"
#include "tests/fakes/fake_os.hpp"

namespace npushmem::barrier::testing {

// The states of a whole team in one process's memory, all zero.

class TeamMemory {
public:
    explicit TeamMemory(int n) : n_(n), lines_(state_bytes(n) / line_bytes * static_cast<std::size_t>(n)) {}

    std::byte* first() { return lines_.front().bytes; }
    [[nodiscard]] std::ptrdiff_t distance() const { return static_cast<std::ptrdiff_t>(state_bytes(n_)); }
    std::byte* of(int member) { return first() + member * distance(); }

private:
    struct alignas(line_bytes) Line {
        std::byte bytes[line_bytes] = {};
    };

    int n_;
    std::vector<Line> lines_;
};

// A virtual fabric over shared memory that delays signals and delivers them in random order (seeded), as a network may
// do with writes that no fence orders. Signals are delivered only while their sender is active, and at its end.

class ReorderingFabric final : public SignalFabric {
public:
    ReorderingFabric(TeamMemory& memory, int own, std::uint32_t seed)
        : memory_(memory),
          own_(own),
          random_(seed),
          waiter_({.yield_for = std::chrono::milliseconds(4)}, os_, counters_, nullptr, &land_) {}
    ReorderingFabric(const ReorderingFabric&) = delete;
    ReorderingFabric& operator=(const ReorderingFabric&) = delete;
    ~ReorderingFabric() override {
        while (!pending_.empty()) land_one();
    }

    Code signal(int member, int slot, std::uint64_t value) override {
        if (member == own_) {
            // Release. Partner: the acquire load of any reader.
            slot_at(memory_.of(own_), slot).store(value, std::memory_order_release);
            return Code::ok;
        }
        pending_.push_back({member, slot, value});
        if (random_() % 2 == 0) land_one();
        return Code::ok;
    }

    Code add(int member, int slot, std::uint64_t value, std::uint64_t& before) override {
        // Acquire and release: this member's data is published, and the data of earlier members becomes visible.
        before = slot_at(memory_.of(member), slot).fetch_add(value, std::memory_order_acq_rel);
        return Code::ok;
    }

    Code wait(const AwaitedSlot& awaited, std::uint64_t value) override {
        // Acquire. Partner: the release store in land_one.
        const auto ready = [&] {
            return reached(slot_at(memory_.of(awaited.member), awaited.slot).load(std::memory_order_acquire), value);
        };
        return waiter_.until(ready, {.what = "a signal"});
    }

    Code complete() override {
        while (!pending_.empty()) land_one();
        return Code::ok;
    }

    [[nodiscard]] FabricFailure failure() const override { return {}; }

private:
    struct Pending {
        int member;
        int slot;
        std::uint64_t value;
    };

    void land_one() {
        if (pending_.empty()) return;
        std::swap(pending_[random_() % pending_.size()], pending_.back());
        const Pending one = pending_.back();
        pending_.pop_back();
        // Release. Partner: the acquire load of the waiting member.
        slot_at(memory_.of(one.member), one.slot).store(one.value, std::memory_order_release);
    }

    TeamMemory& memory_;
    int own_;
    std::mt19937 random_;
    std::vector<Pending> pending_;
    WaitProgress land_{[this] { land_one(); }};
    SystemWaitOs os_;
    WaitCounters counters_;
    Waiter waiter_;
};

}  // namespace npushmem::barrier::testing

namespace npushmem::barrier {

namespace {

using npushmem::testing::FakeWaitOs;
using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::ReorderingFabric;
using testing::TeamMemory;
using namespace std::chrono_literals;

// Threads outnumber the cores of most machines.
constexpr WaitBudget oversubscribed{.polls = 0, .spin_for = 0us, .yield_for = 4ms};

// Every member writes the number of the call before it enters and checks all members' numbers afterwards. The words are
// plain, like a user's data: only the barrier orders them, and the thread sanitizer detects a missing order.
class EntryLog {
public:
    explicit EntryLog(int n) : entered_(static_cast<std::size_t>(n)) {}

    void enter(int member, std::uint64_t call) { entered_[static_cast<std::size_t>(member)] = call; }
    [[nodiscard]] bool all_entered(std::uint64_t call) const {
        return std::all_of(entered_.begin(), entered_.end(), [&](std::uint64_t seen) { return seen == call; });
    }

private:
    std::vector<std::uint64_t> entered_;
};

// Two barriers per call: after the first all have entered; the second separates the next call's writes from this call's
// reads.
template <class AnyBarrier>
bool run_calls(AnyBarrier& barrier, const std::vector<AlgorithmId>& algorithms, int calls, int member, EntryLog& log) {
    for (int call = 1; call <= calls; ++call) {
        const AlgorithmId id = algorithms[static_cast<std::size_t>(call) % algorithms.size()];
        log.enter(member, static_cast<std::uint64_t>(call));
        if (barrier.run(Plan{id}) != Code::ok) return false;
        if (!log.all_entered(static_cast<std::uint64_t>(call))) return false;
        if (barrier.run(Plan{id}) != Code::ok) return false;
    }
    return true;
}

// Runs `member(index)` on a thread for each and counts the successes.
template <class Member>
int count_successes(int n, Member member) {
    std::atomic<int> good{0};
    std::vector<std::thread> threads;
    for (int index = 0; index < n; ++index) {
        threads.emplace_back([&, index] {
            if (member(index)) good.fetch_add(1, std::memory_order_relaxed);  // joined before it is read
        });
    }
    for (std::thread& thread : threads) thread.join();
    return good.load(std::memory_order_relaxed);
}

int run_mapped_team(int n, const std::vector<AlgorithmId>& algorithms, int calls) {
    TeamMemory memory(n);
    EntryLog log(n);
    SystemWaitOs os;
    WaitCounters counters;
    const Waiter waiter(oversubscribed, os, counters);
    const PeRange members{0, 1, n};
    return count_successes(n, [&](int index) {
        Barrier barrier(MappedFabric(StridedStates{memory.first(), memory.distance()}, members, waiter), members, index,
                        Plan{algorithms.front()});
        return run_calls(barrier, algorithms, calls, index, log);
    });
}

// All algorithms that a team of n can use.
std::vector<AlgorithmId> serving(int n) {
    std::vector<AlgorithmId> ids;
    for (std::size_t i = 0; i < Algorithms::count; ++i)
        if (n <= Algorithms::table[i].max_members) ids.push_back(AlgorithmId{i});
    return ids;
}

class MappedTeam : public ::testing::TestWithParam<int> {};

TEST_P(MappedTeam, NoMemberLeavesBeforeAllHaveEntered) {
    const int n = GetParam();
    for (const AlgorithmId id : serving(n)) {
        EXPECT_EQ(run_mapped_team(n, {id}, 20), n) << Algorithms::info(id).name;
    }
}

TEST_P(MappedTeam, AlgorithmsMayAlternateFromCallToCall) {
    const int n = GetParam();
    EXPECT_EQ(run_mapped_team(n, {tree_id, dissemination_id, shared_counter_id, dissemination_id}, 40), n);
}

INSTANTIATE_TEST_SUITE_P(Sizes, MappedTeam,
                         ::testing::Values(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 31, 32, 33));

TEST(TabledStates, LocateStatesAtArbitraryAddresses) {
    constexpr int n = 3;
    TeamMemory memory(n);
    const std::vector<std::byte*> table{memory.of(2), memory.of(0), memory.of(1)};
    EntryLog log(n);
    SystemWaitOs os;
    WaitCounters counters;
    const Waiter waiter(oversubscribed, os, counters);
    const PeRange members{10, 5, n};
    EXPECT_EQ(
        count_successes(
            n,
            [&](int index) {
                Barrier barrier(MappedFabric(TabledStates{table, 0}, members, waiter), members, index, Plan{tree_id});
                return run_calls(barrier, {tree_id, shared_counter_id}, 50, index, log);
            }),
        n);
}

class UnorderedTeam : public ::testing::TestWithParam<int> {};

TEST_P(UnorderedTeam, SurvivesReorderedSignals) {
    const int n = GetParam();
    for (const AlgorithmId id : serving(n)) {
        TeamMemory memory(n);
        EntryLog log(n);
        const int good = count_successes(n, [&](int index) {
            ReorderingFabric fabric(memory, index, static_cast<std::uint32_t>(n * 100 + index));
            Barrier barrier(SignalFabricRef(fabric), PeRange{0, 1, n}, index, Plan{id});
            return run_calls(barrier, {id}, 15, index, log);
        });
        EXPECT_EQ(good, n) << Algorithms::info(id).name;
    }
}

INSTANTIATE_TEST_SUITE_P(Sizes, UnorderedTeam, ::testing::Values(2, 3, 4, 5, 8, 13));

struct DeadPe final : Liveness {
    explicit DeadPe(int pe) : dead(pe) {}
    std::optional<int> find_dead(const PeRange& pes) override {
        for (int i = 0; i < pes.count; ++i) {
            if (pes.at(i) == dead) return dead;
        }
        return std::nullopt;
    }
    int dead;
};

// Member 1 of PEs 2, 4, 6, 8, alone: no other member arrives.
struct SingleMember : ::testing::Test {
    using Mapped = MappedFabric<StridedStates>;

    Barrier<Mapped> barrier(const Waiter& waiter, AlgorithmId id, std::chrono::nanoseconds timeout = {}) {
        return {Mapped({memory.first(), memory.distance()}, members, waiter, timeout), members, 1, Plan{id}};
    }

    TeamMemory memory{4};
    PeRange members{2, 2, 4};
    FakeWaitOs os;
    WaitCounters counters;
};

TEST_F(SingleMember, FailsAtTheDeadlineAndNamesTheAwaitedSignal) {
    const Waiter waiter(oversubscribed, os, counters);
    auto lonely = barrier(waiter, dissemination_id, 1s);
    EXPECT_EQ(lonely.run(), Code::timeout);
    EXPECT_THAT(lonely.failure_text("rows"),
                AllOf(HasSubstr("barrier of team rows (4 PEs, algorithm dissemination, call 1) at PE 4, round 0"),
                      HasSubstr("waited 1.0"), HasSubstr("the signal from PE 2"),
                      HasSubstr("expected 1 or later, last saw 0")));
}

TEST_F(SingleMember, FailsWhenAnIndirectlyAwaitedPeDies) {
    for (const AlgorithmId id : serving(4)) {
        DeadPe liveness(8);
        const Waiter waiter(oversubscribed, os, counters, &liveness);
        auto lonely = barrier(waiter, id);
        EXPECT_EQ(lonely.run(), Code::peer_dead);
        EXPECT_EQ(lonely.failure().wait.dead_pe, 8);
        EXPECT_THAT(lonely.failure_text("world"),
                    AllOf(HasSubstr("PE 8 has died"), HasSubstr(Algorithms::info(id).name)));
    }
}

TEST_F(SingleMember, StaysFailed) {
    DeadPe liveness(8);
    const Waiter waiter(oversubscribed, os, counters, &liveness);
    auto lonely = barrier(waiter, shared_counter_id);
    EXPECT_EQ(lonely.run(), Code::peer_dead);
    const auto waits = counters.waits.load();
    EXPECT_EQ(lonely.run(), Code::peer_dead);
    EXPECT_EQ(lonely.run(Plan{tree_id}), Code::peer_dead);
    EXPECT_EQ(counters.waits, waits) << "a failed barrier must not touch the team's state again";
}

TEST_F(SingleMember, ReturnsATransportsFailure) {
    struct Refusing final : SignalFabric {
        Code signal(int, int, std::uint64_t) override { return Code::unreachable; }
        Code add(int, int, std::uint64_t, std::uint64_t&) override { return Code::unreachable; }
        Code wait(const AwaitedSlot&, std::uint64_t) override { return Code::unreachable; }
        Code complete() override { return Code::ok; }
        [[nodiscard]] FabricFailure failure() const override { return {}; }
    } refusing;
    for (const AlgorithmId id : serving(4)) {
        Barrier barrier(SignalFabricRef(refusing), members, 0, Plan{id});
        EXPECT_EQ(barrier.run(), Code::unreachable);
    }
}

}  // namespace

}  // namespace npushmem::barrier
