// A wait that always ends at once, where the policy polls: deadlines and other launches come in between.
#include "core/npu/runner.hpp"

#include <gtest/gtest.h>

#include <source_location>

#include "tests/fakes/array_fabric.hpp"

namespace npushmem::npu {
namespace {

// Enough for a deadline of milliseconds to pass; a test that fails ends, too.
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
            detail::QueuedLaunch{config, std::make_unique<FunctionBody>(std::move(body))});
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
    // Waits for what is there already.
    void wait(OneCore& launch) {
        const detail::Condition condition{array.at<std::uint64_t>(0), Compare::equal, 0, -1};
        (void)runner.await_word(launch.run->core(0), condition, std::chrono::nanoseconds{0},
                                std::source_location::current());
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

TEST_F(RunnerTest, WaitsThatEndAtOnceDoNotHideFromTheDeadline) {
    OneCore launch(array, std::chrono::milliseconds(5), [&] {
        for (int i = 0; i < max_waits; ++i) wait(launch);
    });
    run(launch);
    EXPECT_EQ(launch.run->failure().code(), Code::timeout);
}

TEST_F(RunnerTest, WaitsThatEndAtOnceDoNotKeepOtherLaunchesOut) {
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

}  // namespace
}  // namespace npushmem::npu
