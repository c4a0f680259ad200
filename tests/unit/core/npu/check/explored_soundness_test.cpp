// SPDX-License-Identifier: BSD-3-Clause
// The exploration of kernels against a search without any reduction: tiny kernels are drawn, and every failure and
// every end that a schedule with few deviations reaches must be reached by the exploration.
#include <gtest/gtest.h>

#include <random>
#include <set>

#include "npushmem/npu/checked_job.hpp"
#include "npushmem/npu/npu.hpp"

namespace npushmem::npu {
namespace {

constexpr int drawn_words = 2;  // each in a line of its own

struct Action {
    enum class Kind {
        signal,
        fetch,
        add,
        swap_if_zero,
        wait,
        remote_signal,
        poll,
        wait_briefly,
        store,
        load,
        put,
        copy_around_fetch,  // a copy of the word is issued before a fetch of the other word, and awaited behind it
        poll_long           // gives up behind more reads than a wait loop needs to be recognised
    };
    Kind kind;
    int word;
    std::uint64_t value;
};

using Actions = std::vector<Action>;

// Of all cores: what they have read, and then the memory.
using End = std::vector<std::uint64_t>;

class DrawnKernel {
public:
    DrawnKernel(std::uint64_t seed, const std::vector<Action::Kind>& kinds) {
        std::mt19937_64 random(seed);
        pes_ = 1 + static_cast<int>(random() % 2);
        cores_.resize(pes_ == 2 ? 2 : 2 + random() % 2);
        for (Actions& actions : cores_) {
            actions.resize(cores_.size() == 2 ? 3 : 2);
            for (Action& action : actions)
                action = {kinds[random() % kinds.size()], static_cast<int>(random() % drawn_words), 1 + random() % 2};
        }
    }

    // With more the search without a reduction takes too long.
    [[nodiscard]] int deviations() const {
        for (const Actions& actions : cores_)
            for (const Action& action : actions)
                if (action.kind == Action::Kind::poll_long) return 2;
        return cores_.size() == 2 ? 3 : 2;
    }

    // Returns the report, and adds the ends of all runs that have one.
    CheckReport run(const Schedule& schedule, std::set<End>& ends) const {
        const int per_pe = static_cast<int>(cores_.size()) / pes_;
        CheckedJobConfig config{.pes = pes_, .heap_bytes = 4096, .schedule = schedule};
        config.device.blocks = per_pe;
        config.device.vector_cores = 1;
        config.device.stack_bytes = 64 * 1024;
        const auto job = CheckedJob::create(config).value();
        auto* data = job->allocate<std::uint64_t>(drawn_words * 8);
        End end;
        std::size_t ended = 0;
        job->before_each([&] {
            end.assign(cores_.size(), 0);
            ended = 0;
        });
        return job->run(per_pe, [&](Core& core) {
            const auto me = static_cast<std::size_t>(core.my_pe() * per_pe + core.index());
            for (const Action& action : cores_[me]) act(core, action, job->at(core.my_pe(), data), end[me]);
            core.quiet();
            if (++ended < cores_.size()) return;
            for (int pe = 0; pe < pes_; ++pe)
                for (int word = 0; word < drawn_words; ++word) end.push_back(job->at(pe, data)[word * 8]);
            ends.insert(end);
        });
    }

private:
    static constexpr WaitLimit brief{std::chrono::milliseconds(1), -1};

    // The number of reads, up to a bound.
    static std::uint64_t poll(Core& core, std::uint64_t* word, std::uint64_t value) {
        for (std::uint64_t reads = 0; reads < 3; ++reads)
            if (core.signal_fetch(word) == value) return reads;
        return 3;
    }

    static std::uint64_t copy_around_fetch(Core& core, const std::uint64_t* word, const std::uint64_t* other) {
        const auto copied = core.ub_alloc<std::uint64_t>(4);
        core.data_copy(copied, gm(word, 4), 4);
        core.set_flag<Pipe::copy_in, Pipe::scalar>(0);
        const std::uint64_t fetched = core.signal_fetch(other);
        core.wait_flag<Pipe::copy_in, Pipe::scalar>(0);
        return fetched * 10 + copied.data()[0];
    }

    // Whether it found the value. Numbers of reads beyond those of a recognised loop count as one.
    static bool poll_long(Core& core, const std::uint64_t* word, std::uint64_t value) {
        for (int reads = 0; reads < 40; ++reads)
            if (core.signal_fetch(word) == value) return true;
        return false;
    }

    static void act(Core& core, const Action& action, std::uint64_t* data, std::uint64_t& seen) {
        std::uint64_t* word = data + action.word * 8;
        using Kind = Action::Kind;
        switch (action.kind) {
            case Kind::signal: return core.signal_set(word, action.value);
            case Kind::fetch: seen = seen * 10 + core.signal_fetch(word); return;
            case Kind::add: seen = seen * 10 + core.atomic_fetch_add(word, action.value); return;
            case Kind::swap_if_zero: seen = seen * 10 + core.atomic_compare_swap(word, 0, action.value); return;
            case Kind::wait: core.signal_wait_until(word, Compare::greater_equal, action.value); return;
            case Kind::remote_signal: return core.signal_set_on(word, action.value, core.n_pes() - 1);
            case Kind::poll: seen = seen * 10 + poll(core, word, action.value); return;
            case Kind::wait_briefly:
                seen = seen * 10 + (core.signal_wait_for(word, Compare::equal, action.value, brief).ok() ? 1 : 0);
                return;
            case Kind::store: core.store(word, action.value); return core.dcci(word);
            case Kind::load:
                core.dcci(word);
                seen = seen * 10 + core.load(word);
                return;
            case Kind::copy_around_fetch:
                seen = seen * 100 + copy_around_fetch(core, word, data + (1 - action.word) * 8);
                return;
            case Kind::poll_long: seen = seen * 10 + (poll_long(core, word, action.value) ? 1 : 2); return;
            case Kind::put: return core.put(word, data + (1 - action.word) * 8, 1, core.n_pes() - 1);
        }
    }

    int pes_ = 1;
    std::vector<Actions> cores_;
};

void compare(std::uint64_t seed, const std::vector<Action::Kind>& kinds, std::uint64_t& failures) {
    SCOPED_TRACE(seed);
    const DrawnKernel kernel(seed, kinds);
    Schedule without_reduction{.kind = Schedule::Kind::explore};
    without_reduction.deviations = kernel.deviations();
    std::set<End> expected;
    std::set<End> reached;
    const CheckReport few = kernel.run(without_reduction, expected);
    const CheckReport all = kernel.run({.kind = Schedule::Kind::explore}, reached);
    ASSERT_EQ(all.complete, all.clean());
    ASSERT_EQ(few.complete, few.clean());
    if (!all.clean()) {
        ++failures;
        std::set<End> ends;
        const CheckReport again = kernel.run(Schedule::parse(all.schedule).value(), ends);
        ASSERT_FALSE(again.clean()) << all.text();
        EXPECT_EQ(again.status.message(), all.status.message());
        EXPECT_EQ(again.findings.size(), all.findings.size());
        return;
    }
    ASSERT_TRUE(few.clean()) << few.text();
    for (const End& end : expected) ASSERT_TRUE(reached.contains(end));
}

using Kind = Action::Kind;

// They race with nothing.
const std::vector<Kind> synchronising{Kind::signal, Kind::fetch,         Kind::add,  Kind::swap_if_zero,
                                      Kind::wait,   Kind::remote_signal, Kind::poll, Kind::wait_briefly};
const std::vector<Kind> all_kinds{Kind::signal, Kind::fetch,         Kind::add,   Kind::swap_if_zero, Kind::wait,
                                  Kind::poll,   Kind::remote_signal, Kind::store, Kind::wait_briefly, Kind::load,
                                  Kind::put};

TEST(ExploredSoundness, ReachesEveryEndOfDrawnKernelsThatSynchronise) {
    std::uint64_t failures = 0;
    for (std::uint64_t seed = 1; seed <= 150; ++seed) compare(seed, synchronising, failures);
    EXPECT_GT(failures, 10U);  // waits that never end
    EXPECT_LT(failures, 140U);
}

TEST(ExploredSoundness, ReachesEveryEndOfDrawnKernelsThatCopy) {
    std::uint64_t failures = 0;
    const std::vector<Kind> kinds{Kind::signal, Kind::add, Kind::copy_around_fetch, Kind::wait, Kind::remote_signal};
    for (std::uint64_t seed = 1; seed <= 80; ++seed) compare(seed, kinds, failures);
    EXPECT_LT(failures, 60U);
}

TEST(ExploredSoundness, ReachesEveryEndOfDrawnKernelsThatPollForLong) {
    std::uint64_t failures = 0;
    const std::vector<Kind> kinds{Kind::signal, Kind::add, Kind::poll_long, Kind::fetch};
    for (std::uint64_t seed = 1; seed <= 10; ++seed) compare(seed, kinds, failures);
    EXPECT_LT(failures, 8U);
}

TEST(ExploredSoundness, FindsEveryFailureOfDrawnKernels) {
    std::uint64_t failures = 0;
    for (std::uint64_t seed = 1; seed <= 200; ++seed) compare(seed, all_kinds, failures);
    EXPECT_GT(failures, 50U);
    EXPECT_LT(failures, 190U);
}

}  // namespace
}  // namespace npushmem::npu
