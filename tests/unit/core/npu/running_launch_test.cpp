// SPDX-License-Identifier: BSD-3-Clause
#include "core/npu/running_launch.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <numeric>
#include <stdexcept>

#include "core/npu/runner.hpp"
#include "npushmem/npu/source_location.hpp"
#include "npushmem/testing/array_fabric.hpp"

namespace npushmem::npu {
namespace {

// Enough for a deadline of milliseconds to pass, and finite, so that a failing test ends.
constexpr int max_waits = 100'000'000;

class PollingPolicy final : public WaitPolicy {
public:
    Code until(const std::function<bool()>& ready, std::chrono::nanoseconds) override {
        return ready() ? Code::ok : Code::timeout;
    }
    [[nodiscard]] int polls() const override { return 256; }
    void pause(std::uint64_t) override {}
};

class FunctionBody final : public detail::KernelBody {
public:
    explicit FunctionBody(std::function<void()> body) : body_(std::move(body)) {}
    void run(Core&) const override { body_(); }

private:
    std::function<void()> body_;
};

// A launch on one core.
struct OneCore {
    OneCore(fakes::SymmetricArray& array, std::chrono::milliseconds timeout, std::function<void()> body)
        : fabric(array, 0), cores(detail::CoreSet::create(device).value()) {
        EXPECT_TRUE(cores->prepare(1).ok());
        LaunchConfig config(1);
        config.timeout = timeout;
        job = std::make_unique<detail::QueuedLaunch>(
            detail::QueuedLaunch{config, std::make_unique<FunctionBody>(std::move(body)), 0});
        run = std::make_unique<detail::RunningLaunch>(*job, device, fabric, *cores);
    }

    DeviceConfig device{.blocks = 1, .vector_cores = 1};
    fakes::ArrayFabric fabric;
    std::unique_ptr<detail::CoreSet> cores;
    std::unique_ptr<detail::QueuedLaunch> job;
    std::unique_ptr<detail::RunningLaunch> run;
};

class OneLaunchQueued final : public detail::WorkSource {
public:
    [[nodiscard]] bool has_work() const override { return queued != nullptr; }
    bool adopt() override {
        if (queued == nullptr) return false;
        OneCore& launch = *std::exchange(queued, nullptr);
        runner->add(*launch.run, *launch.cores);
        return true;
    }
    [[nodiscard]] bool stopping() const override { return false; }

    OneCore* queued = nullptr;
    detail::Runner* runner = nullptr;
};

struct RunnerTest : testing::Test {
    // Waits for a value that is already present.
    void wait(OneCore& launch) {
        const detail::Condition condition{array.at<std::uint64_t>(0), Compare::equal, 0, -1};
        (void)runner.await_word(launch.run->core(0), condition, std::chrono::nanoseconds{0}, SourceLocation::current());
    }
    void run(OneCore& launch) {
        source.runner = &runner;
        runner.add(*launch.run, *launch.cores);
        runner.run([](const detail::RunningLaunch&) {});
    }

    fakes::SymmetricArray array{1, 4096};
    PollingPolicy policy;
    OneLaunchQueued source;
    detail::Runner runner{policy, source};
};

TEST_F(RunnerTest, WaitsThatEndAtOnceDoNotEscapeTheDeadline) {
    OneCore launch(array, std::chrono::milliseconds(5), [&] {
        for (int i = 0; i < max_waits; ++i) wait(launch);
    });
    run(launch);
    EXPECT_EQ(launch.run->failure().code(), Code::timeout);
}

TEST_F(RunnerTest, WaitsThatEndAtOnceDoNotStarveOtherLaunches) {
    bool ran = false;
    OneCore other(array, std::chrono::milliseconds(0), [&] { ran = true; });
    OneCore launch(array, std::chrono::milliseconds(0), [&] {
        source.queued = &other;
        for (int i = 0; i < max_waits && !ran; ++i) wait(launch);
        EXPECT_TRUE(ran);
    });
    run(launch);
    EXPECT_TRUE(launch.run->failure().ok()) << launch.run->failure().message();
}

// The awaited store arrives after two timeouts.
class ReportingPolicy final : public WaitPolicy {
public:
    explicit ReportingPolicy(std::uint64_t* word) : word_(word) {}
    Code until(const std::function<bool()>& ready, std::chrono::nanoseconds) override {
        if (timeouts_++ < 2) return Code::timeout;
        *word_ = 1;
        return ready() ? Code::ok : Code::timeout;
    }
    void pause(std::uint64_t) override {}
    void observe(const void* id, const LongWait& wait) override {
        id_ = id;
        reported.push_back(wait);
    }
    void end_observation(const void* id) override { ended += id == id_ ? 1 : 0; }

    std::vector<LongWait> reported;
    int ended = 0;

private:
    std::uint64_t* word_;
    const void* id_ = nullptr;
    int timeouts_ = 0;
};

TEST(LongWaits, OfCoresAreReportedUntilTheyEnd) {
    fakes::SymmetricArray array{1, 4096};
    auto* const word = array.at<std::uint64_t>(0);
    ReportingPolicy policy(word);
    OneLaunchQueued source;
    detail::Runner runner{policy, source};
    OneCore launch(array, std::chrono::milliseconds(0), [&] {
        const detail::Condition condition{word, Compare::equal, 1, 3};
        (void)runner.await_word(launch.run->core(0), condition, std::chrono::nanoseconds{0}, SourceLocation::current());
    });
    source.runner = &runner;
    runner.add(*launch.run, *launch.cores);
    runner.run([](const detail::RunningLaunch&) {});
    EXPECT_TRUE(launch.run->failure().ok()) << launch.run->failure().message();
    ASSERT_EQ(policy.reported.size(), 2U);
    EXPECT_EQ(policy.ended, 1);
    EXPECT_EQ(policy.reported[0].began, policy.reported[1].began);
    EXPECT_EQ(policy.reported[0].word, word);
    EXPECT_EQ(policy.reported[0].pe, 3);
    EXPECT_GT(policy.reported[0].where.line(), 0U);
}

using fakes::ArrayPe;
using fakes::SymmetricArray;
using std::chrono::milliseconds;
using testing::HasSubstr;

struct LaunchTest : testing::Test {
    SymmetricArray array{1, 4096};
};

TEST_F(LaunchTest, RunsOnceOnEveryVectorCoreOfEveryBlock) {
    for (int vector_cores : {1, 2, 3}) {
        const ArrayPe pe(array, 0, {.blocks = 20, .vector_cores = vector_cores});
        for (int blocks = 1; blocks <= 20; ++blocks) {
            std::vector<int> seen(static_cast<std::size_t>(blocks * vector_cores));
            ASSERT_TRUE(pe.run(blocks, [&](Core& core) {
                              EXPECT_EQ(core.block_count(), blocks);
                              EXPECT_EQ(core.sub_core_count(), vector_cores);
                              EXPECT_EQ(core.count(), blocks * vector_cores);
                              EXPECT_EQ(core.index(), core.block_index() * vector_cores + core.sub_core_index());
                              ++seen.at(static_cast<std::size_t>(core.index()));
                          }).ok());
            EXPECT_THAT(seen, testing::Each(1)) << blocks;
        }
    }
}

TEST_F(LaunchTest, PrintedLinesNameTheirCore) {
    std::vector<std::string> lines;
    DeviceConfig config{.blocks = 2, .vector_cores = 1};
    config.print = [&](std::string_view line) { lines.emplace_back(line); };
    const ArrayPe pe(array, 0, config);
    ASSERT_TRUE(pe.run(2, [](Core& core) {
                      core.print("%d of %s", core.index(), "two");
                      if (core.index() == 0) core.print("%s\n", std::string(5000, 'x').c_str());
                  }).ok());
    ASSERT_EQ(lines.size(), 3U);
    EXPECT_EQ(lines[0], "[PE 0 core 0] 0 of two\n");
    EXPECT_EQ(lines[1], "[PE 0 core 0] " + std::string(1023, 'x') + "\n");
    EXPECT_EQ(lines[2], "[PE 0 core 1] 1 of two\n");
}

TEST_F(LaunchTest, EveryPrintedLineHasThePrefix) {
    std::string output;
    DeviceConfig config{.blocks = 1, .vector_cores = 1};
    config.print = [&](std::string_view line) { output += line; };
    const ArrayPe pe(array, 0, config);
    ASSERT_TRUE(pe.run(1, [](Core& core) {
                      core.print("a\n\nb");
                      core.print("%s", "");
                  }).ok());
    EXPECT_EQ(output, "[PE 0 core 0] a\n[PE 0 core 0] \n[PE 0 core 0] b\n[PE 0 core 0] \n");
}

TEST_F(LaunchTest, PrintsToStandardOutputAtOnce) {
    const ArrayPe pe(array, 0, {.blocks = 2, .vector_cores = 1});
    testing::internal::CaptureStdout();
    const Status status = pe.run(2, [](Core& core) { core.print("%d", core.index()); });
    const std::string output = testing::internal::GetCapturedStdout();
    ASSERT_TRUE(status.ok());
    EXPECT_EQ(output, "[PE 0 core 0] 0\n[PE 0 core 1] 1\n");
}

TEST_F(LaunchTest, RejectsBlockDimsOutsideTheDevice) {
    const ArrayPe pe(array, 0, {.blocks = 4});
    for (int blocks : {0, -1, 5}) {
        bool ran = false;
        const Status status = launch(pe.stream(), blocks, [&](Core&) { ran = true; });
        EXPECT_EQ(status.code(), Code::range);
        EXPECT_THAT(status.message(), HasSubstr(std::to_string(blocks) + " must be 1 to 4"));
        EXPECT_TRUE(pe.stream().synchronize().ok());
        EXPECT_FALSE(ran);
    }
}

TEST_F(LaunchTest, PassesCopiesOfArgumentsAndReferencesThroughRef) {
    const ArrayPe pe(array, 0);
    std::vector<int> copied{1, 2, 3};
    int total = 0;
    auto kernel = [](Core& core, const std::vector<int>& values, int& sum) {
        if (core.index() == 0) sum = std::accumulate(values.begin(), values.end(), 0);
    };
    ASSERT_TRUE(launch(pe.stream(), 1, kernel, copied, std::ref(total)).ok());
    copied.assign(3, 100);
    ASSERT_TRUE(pe.stream().synchronize().ok());
    EXPECT_EQ(total, 6);
}

TEST_F(LaunchTest, ExceptionEndsTheLaunchButNotTheDevice) {
    const ArrayPe pe(array, 0);
    LaunchConfig config(4);
    config.name = "thrower";
    const Status status = pe.run(config, [](Core& core) {
        if (core.index() == 5) throw std::runtime_error("the cause");
        core.core_barrier();
        ADD_FAILURE() << "passed a barrier that one core never reached";
    });
    EXPECT_EQ(status.code(), Code::aborted);
    for (const char* part : {"thrower", "the cause", "PE 0", "block 2 sub-core 1"}) {
        EXPECT_THAT(status.message(), HasSubstr(part));
    }
    int ran = 0;
    EXPECT_TRUE(pe.run(1, [&](Core&) { ++ran; }).ok());
    EXPECT_EQ(ran, 2);
}

TEST_F(LaunchTest, ForeignExceptionsAndKernelErrorsAreReported) {
    const ArrayPe pe(array, 0);
    EXPECT_EQ(pe.run(1, [](Core&) { throw 42; }).code(), Code::aborted);
    const Status status = pe.run(1, [](Core&) { throw KernelError(Code::mismatch, "own words"); });
    EXPECT_EQ(status.code(), Code::mismatch);
    EXPECT_THAT(status.message(), HasSubstr("own words"));
}

TEST_F(LaunchTest, LocalsOfUnwoundCoresAreDestroyed) {
    const ArrayPe pe(array, 0);
    const auto alive = std::make_shared<int>(0);
    EXPECT_FALSE(pe.run(20, [alive](Core& core) {
                       const auto local = std::make_shared<std::shared_ptr<int>>(alive);
                       if (core.index() == 39) throw std::runtime_error("last");
                       core.core_barrier();
                   }).ok());
    EXPECT_EQ(alive.use_count(), 1);
}

TEST_F(LaunchTest, AKernelThatSwallowsTheUnwindingStillEnds) {
    const ArrayPe pe(array, 0);
    int caught = 0;
    EXPECT_FALSE(pe.run(1, [&](Core& core) {
                       if (core.index() == 1) throw std::runtime_error("x");
                       for (int i = 0; i < 3; ++i) {
                           try {
                               core.core_barrier();
                           } catch (const KernelError& error) {
                               EXPECT_EQ(error.code(), Code::aborted);
                               ++caught;
                           }
                       }
                   }).ok());
    EXPECT_EQ(caught, 3);
}

TEST_F(LaunchTest, CoresMayWaitInsideCatchBlocks) {
    const ArrayPe pe(array, 0);
    std::vector<std::string> seen(8);
    ASSERT_TRUE(pe.run(4, [&](Core& core) {
                      try {
                          throw std::runtime_error(std::to_string(core.index()));
                      } catch (const std::exception&) {
                          core.core_barrier();
                          try {
                              throw;
                          } catch (const std::exception& error) {
                              seen.at(static_cast<std::size_t>(core.index())) = error.what();
                          }
                      }
                  }).ok());
    EXPECT_THAT(seen, testing::ElementsAre("0", "1", "2", "3", "4", "5", "6", "7"));
}

TEST_F(LaunchTest, CoreBarrierKeepsCoresTogether) {
    for (const auto& [blocks, vector_cores] :
         std::vector<std::pair<int, int>>{{1, 1}, {2, 1}, {7, 1}, {4, 2}, {20, 2}}) {
        const ArrayPe pe(array, 0, {.blocks = 20, .vector_cores = vector_cores});
        int entered = 0;
        const Status status = pe.run(blocks, [&](Core& core) {
            for (int round = 1; round <= 50; ++round) {
                ++entered;
                core.core_barrier();
                EXPECT_EQ(entered, round * core.count());
                core.core_barrier();
            }
        });
        EXPECT_TRUE(status.ok()) << status.message();
    }
}

TEST_F(LaunchTest, UnequalCoreBarriersAreAMismatch) {
    const ArrayPe pe(array, 0);
    for (int odd : {0, 1}) {
        const Status status = pe.run(1, [odd](Core& core) {
            if (core.index() != odd) core.core_barrier();
        });
        EXPECT_EQ(status.code(), Code::mismatch);
        EXPECT_THAT(status.message(), HasSubstr("core_barrier was reached by"));
    }
}

TEST_F(LaunchTest, LaunchTimeoutEndsAnUnsatisfiedWait) {
    const ArrayPe pe(array, 0);
    LaunchConfig config(1);
    config.timeout = milliseconds(5);
    auto* word = array.at<std::uint64_t>(0);
    const Status status = pe.run(config, [word](Core& core) { core.signal_wait_until(word, Compare::equal, 77); });
    EXPECT_EQ(status.code(), Code::timeout);
    EXPECT_THAT(status.message(), HasSubstr("== 77, last saw 0"));
    EXPECT_TRUE(pe.run(1, [](Core&) {}).ok());
}

TEST_F(LaunchTest, LaunchTimeoutEndsAPollingLoop) {
    const ArrayPe pe(array, 0, {.launch_timeout = milliseconds(5)});
    auto* word = array.at<std::uint64_t>(0);
    const Status status = pe.run(1, [word](Core& core) {
        do core.dcci(word);
        while (core.load(word) == 0);
    });
    EXPECT_EQ(status.code(), Code::timeout);
    EXPECT_EQ(pe.run(1, [word](Core& core) { core.load(word) != 0 ? void() : core.yield(); }).code(), Code::ok);
}

TEST_F(LaunchTest, LaunchTimeoutEndsCoresThatAreAlwaysRunnable) {
    const ArrayPe pe(array, 0, {.launch_timeout = milliseconds(5)});
    EXPECT_EQ(pe.run(1,
                     [](Core& core) {
                         for (;;) core.core_barrier();
                     })
                  .code(),
              Code::timeout);
}

TEST_F(LaunchTest, WaitTimeoutNamesTheWait) {
    const ArrayPe pe(array, 0, {.wait_timeout = milliseconds(3)});
    const Status status = pe.run(1, [](Core& core) {
        if (core.index() == 0)
            core.core_barrier();
        else
            core.signal_wait_until(reinterpret_cast<std::uint64_t*>(core.ub_alloc<std::uint64_t>(4).data()),
                                   Compare::greater, ~0ULL);
    });
    EXPECT_EQ(status.code(), Code::timeout);
}

TEST_F(LaunchTest, StackOverflowsHitAGuardPage) {
    const ArrayPe pe(array, 0, {.stack_bytes = 64 * 1024});
    EXPECT_DEATH(static_cast<void>(pe.run(1,
                                          [](Core& core) {
                                              struct Recursion {
                                                  static std::size_t deeper(Core& c, std::size_t depth) {
                                                      char room[4096];
                                                      c.store(room, static_cast<char>(depth));
                                                      return depth == 0
                                                                 ? 0
                                                                 : deeper(c, depth - 1) +
                                                                       static_cast<std::size_t>(c.load(room)) + 1;
                                                  }
                                              };
                                              const std::size_t reached = Recursion::deeper(core, 1000);
                                              EXPECT_EQ(reached, 0U);
                                          })),
                 "");
}

}  // namespace
}  // namespace npushmem::npu
