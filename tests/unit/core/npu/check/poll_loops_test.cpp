// SPDX-License-Identifier: BSD-3-Clause
// Loops by which kernels wait, whatever calls they are made of: right ones end under every schedule, those on a stale
// line are H7, those that nobody ends are H17, and every launch ends at its deadline.
#include "tests/unit/core/npu/check/hazards.hpp"

#include <atomic>

namespace npushmem::npu {
namespace {

using test::expect_caught;
using test::expect_clean;
using test::two_cores;
using test::two_pes;
using testing::HasSubstr;

using Word = std::uint64_t*;

// One poll of a word; how a loop looks at it.
struct Poll {
    const char* name;
    std::function<std::uint64_t(Core&, Word)> look;
};

std::uint64_t copied(Core& core, Word word) {
    const auto seen = core.ub_at<std::uint64_t>(0, 4);
    core.data_copy(seen, gm(word, 4), 4);
    core.set_flag<Pipe::copy_in, Pipe::scalar>(0);
    core.wait_flag<Pipe::copy_in, Pipe::scalar>(0);
    return core.get(seen, 0);
}

std::uint64_t refreshed(Core& core, Word word) {
    core.dcci(word);
    return core.load(word);
}

std::vector<Poll> polls() {
    return {{"dcci and load", refreshed},
            {"signal_fetch", [](Core& core, Word word) { return core.signal_fetch(word); }},
            {"compare and swap", [](Core& core, Word word) { return core.atomic_compare_swap(word, 1, 1); }},
            {"fetch and add", [](Core& core, Word word) { return core.atomic_fetch_add(word, 0); }},
            {"data_copy", copied}};
}

// PE 0 signals PE 1, which answers; or core 0 signals core 1.
struct Pair {
    test::Setup setup;
    std::function<int(Core&)> me;
    std::function<Word(Core&, Word, int)> at;  // what the partner has at an address
};

std::vector<Pair> pairs() {
    return {{two_pes, [](Core& core) { return core.my_pe(); },
             [](Core& core, Word word, int who) { return core.remote(word, who); }},
            {two_cores, [](Core& core) { return core.index(); }, [](Core&, Word word, int) { return word; }}};
}

TEST(PollLoops, CorrectLoopsEnd) {
    for (Pair pair : pairs()) {
        pair.setup.max_schedules = test::few_schedules;  // there are thousands
        for (const Poll& poll : polls()) {
            for (const bool yields : {false, true}) {
                SCOPED_TRACE(std::string(poll.name) + (yields ? " with yield" : ""));
                expect_clean(pair.setup, [&](Core& core, Word data) {
                    const int me = pair.me(core);
                    const Word mine = data + 8 * me;
                    const Word theirs = pair.at(core, data + 8 * (1 - me), 1 - me);
                    if (me == 0) core.signal_set(theirs, 1);
                    while (poll.look(core, mine) != 1)
                        if (yields) core.yield();
                    if (me == 1) core.signal_set(theirs, 1);
                });
            }
        }
    }
}

TEST(PollLoops, TheFirstLoadMayPrecedeTheFirstDcci) {
    for (const Pair& pair : pairs()) {
        expect_clean(pair.setup, [&](Core& core, Word data) {
            if (pair.me(core) == 0) return core.signal_set(pair.at(core, data, 1), 1);
            while (core.load(data) != 1) core.dcci(data);
        });
    }
}

// More words than a loop reads before it is taken for one; the last one comes last.
TEST(PollLoops, OverManyWords) {
    constexpr std::size_t words = 40;
    constexpr test::Setup limited{.pes = 2, .max_schedules = test::few_schedules};
    expect_clean(limited, [](Core& core, Word data) {
        if (core.my_pe() == 0) {
            for (std::size_t i = words; i-- > 0;) core.signal_set_on(data + 8 * i, 1, 1);
            return;
        }
        for (std::size_t seen = 0; seen != words;) {
            seen = 0;
            for (std::size_t i = 0; i < words; ++i) seen += core.signal_fetch(data + 8 * i);
        }
    });
}

// What the loop does beside is seen by others: no state comes again, and the partner must get its turn all the same.
TEST(PollLoops, LoopsWithOtherEffectsLetThePartnerRun) {
    for (Pair pair : pairs()) {
        pair.setup.max_schedules = test::few_schedules;
        for (const int waiting : {0, 1}) {
            expect_clean(pair.setup, [&](Core& core, Word data) {
                const int me = pair.me(core);
                if (me != waiting) return core.signal_set(pair.at(core, data, waiting), 1);
                while (core.signal_fetch(data) != 1) core.signal_add(data + 64, 1);
            });
        }
    }
}

// Loops that end by themselves after some looks are no deadlock.
TEST(PollLoops, LoopsWithALimitAreNoDeadlock) {
    expect_clean(two_pes, [](Core& core, Word data) {
        if (core.my_pe() == 0) {
            for (int i = 0; i < 1000; ++i) static_cast<void>(core.signal_fetch(data));
            return core.signal_set_on(data + 8, 1, 1);
        }
        core.signal_wait_until(data + 8, Compare::equal, 1, 0);
    });
}

void count_under_lock(Core& core, Word lock, Word counter, bool by_swap) {
    const auto take = [&] { return by_swap ? core.atomic_swap(lock, 1) : core.atomic_compare_swap(lock, 0, 1); };
    while (take() != 0) {
    }
    core.dcci(counter);
    core.store(counter, core.load(counter) + 1);
    core.dcci(counter);
    core.signal_set(lock, 0);
}

TEST(PollLoops, ALockByAtomics) {
    for (const bool by_swap : {false, true}) {
        // A lock has tens of thousands of schedules: each attempt may be the last one before the loop counts as a wait.
        const test::Setup both{.pes = 2, .vector_cores = 2, .max_schedules = test::few_schedules};
        for (const Schedule& schedule : test::schedules(both)) {
            std::uint64_t counted = 0;
            const CheckReport report = test::check(both, schedule, [&](Core& core, Word data) {
                count_under_lock(core, core.remote(data, 0), core.remote(data + 64, 0), by_swap);
                if (core.my_pe() == 0) counted = std::max(counted, core.atomic_fetch_add(data + 64, 0));
            });
            EXPECT_TRUE(report.clean()) << report.text();
        }
    }
}

TEST(H7StaleRead, OfALinePolledWithoutDcci) {
    for (const Pair& pair : pairs()) {
        for (const bool yields : {false, true}) {
            for (const int waiting : {0, 1}) {
                SCOPED_TRACE(std::string(yields ? "with yield, waiting: " : "waiting: ") + std::to_string(waiting));
                expect_caught(Hazard::stale_read, "H7 OfALinePolledWithoutDcci", pair.setup,
                              [&](Core& core, Word data) {
                                  if (pair.me(core) != waiting) return core.signal_set(pair.at(core, data, waiting), 1);
                                  while (core.load(data) != 1)  // blame: H7 OfALinePolledWithoutDcci
                                      if (yields) core.yield();
                              });
            }
        }
    }
}

// The finding names the line and the word of the loop.
void expect_deadlock(const test::Setup& setup, const std::string& mark,
                     const std::function<void(Core&, Word)>& kernel) {
    const unsigned line = test::line_of(mark);
    for (const Schedule& schedule : test::schedules()) {
        const CheckReport report = test::check(setup, schedule, kernel);
        EXPECT_EQ(report.status.code(), Code::timeout) << report.text();
        const auto found = std::ranges::find(report.findings, Hazard::deadlock, &Finding::hazard);
        ASSERT_NE(found, report.findings.end()) << report.text();
        EXPECT_TRUE(test::blames(*found, Hazard::deadlock, line)) << report.text();
        EXPECT_THAT(found->text(), HasSubstr("polls memory that nobody changes any more"));
        EXPECT_THAT(found->text(), HasSubstr("symmetric allocation 0"));
        EXPECT_THAT(found->text(), HasSubstr("which is 0, never written in this launch"));
    }
}

TEST(H17Deadlock, OfALoopOfAnyKindThatNobodyEnds) {
    for (const bool yields : {false, true}) {
        const auto again = [yields](Core& core, bool more) {
            if (more && yields) core.yield();
            return more;
        };
        expect_deadlock({}, "H17 load", [&](Core& core, Word data) {
            while (again(core, core.load(data) == 0)) continue;  // blame: H17 load
        });
        expect_deadlock(two_pes, "H17 fetch", [&](Core& core, Word data) {
            while (again(core, core.signal_fetch(data) == 0)) continue;  // blame: H17 fetch
        });
        expect_deadlock(two_cores, "H17 swap", [&](Core& core, Word data) {
            while (again(core, core.atomic_compare_swap(data, 1, 0) == 0)) continue;  // blame: H17 swap
        });
        expect_deadlock(two_pes, "H17 add", [&](Core& core, Word data) {
            while (again(core, core.atomic_fetch_add(data, 0) == 0)) continue;  // blame: H17 add
        });
    }
}

TEST(H17Deadlock, OfALoopOfCopiesThatNobodyEnds) {
    for (const Schedule& schedule : test::schedules()) {
        const CheckReport report = test::check(two_pes, schedule, [](Core& core, Word data) {
            while (copied(core, data) == 0) continue;
        });
        EXPECT_EQ(report.status.code(), Code::timeout);
        EXPECT_THAT(report.text(), HasSubstr("polls memory that nobody changes any more"));
    }
}

CheckReport run_until(std::chrono::milliseconds limit, const std::function<void(Core&, Word)>& kernel,
                      const Print& print = {}) {
    CheckedJobConfig config{.pes = 2};
    config.device.launch_timeout = limit;
    config.device.print = print;
    const auto job = CheckedJob::create(config).value();
    auto* data = job->allocate<std::uint64_t>(64);
    return job->run(1, [&](Core& core) { kernel(core, job->at(core.my_pe(), data)); });
}

// No state comes again: what ends it is the deadline, which names where each core is.
TEST(Deadline, EndsALoopThatNeverRepeatsAState) {
    const CheckReport report = run_until(std::chrono::seconds(1), [](Core& core, Word data) {
        if (core.my_pe() == 1) core.signal_wait_until(data, Compare::equal, 1);  // blame: deadline waits
        for (;;) core.signal_add(data + 8, 1);                                   // blame: deadline loops
    });
    EXPECT_EQ(report.status.code(), Code::timeout);
    EXPECT_THAT(report.text(), HasSubstr("has not ended within its deadline of 1 s"));
    for (const char* mark : {"deadline waits", "deadline loops"})
        EXPECT_THAT(report.text(), HasSubstr("_test.cpp:" + std::to_string(test::line_of(mark))));
}

// Nothing can end a loop without calls; somebody says which launch it is.
TEST(Deadline, IsReportedForALoopWithoutCalls) {
    std::atomic<bool> reported{false};
    std::string line;
    const CheckReport report = run_until(
        std::chrono::milliseconds(1),
        [&](Core& core, Word data) {
            core.signal_set(data, 1);  // blame: deadline last call
            while (!reported) continue;
        },
        [&](std::string_view text) {
            line = text;
            reported = true;
        });
    EXPECT_THAT(line, HasSubstr("cannot be ended before its core makes the next call"));
    EXPECT_THAT(line, HasSubstr("the kernel launched at "));
    EXPECT_THAT(line, HasSubstr("PE 0 core 0 made the last one, at "));
    EXPECT_THAT(line, HasSubstr("_test.cpp:" + std::to_string(test::line_of("deadline last call"))));
    EXPECT_NE(report.status.code(), Code::protocol);
}

}  // namespace
}  // namespace npushmem::npu
