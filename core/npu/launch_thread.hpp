// The launches that one thread runs, from claim to completion.
#pragma once

#include <memory>
#include <vector>

#include "core/npu/executor.hpp"
#include "core/npu/runner.hpp"

namespace npushmem::npu::detail {

// Lives on the stack of the thread that runs it.
class LaunchThread final : public WorkSource {
public:
    // `adopts`: takes on further launches, of any stream, while its own wait. A host that helps does not: it must be
    // free again when its own stream has ended.
    LaunchThread(Executor& executor, bool adopts);

    // Until this launch, and all adopted meanwhile, have ended.
    void run(Executor::Claim claim);

    [[nodiscard]] bool has_work() const override;
    bool adopt() override;
    [[nodiscard]] bool stopping() const override { return executor_.stopping(); }

private:
    struct Active {
        Executor::Claim claim;
        std::unique_ptr<CoreSet> cores;
        std::unique_ptr<RunningLaunch> run;
    };

    void start(Executor::Claim claim);
    void finish(const RunningLaunch& run);

    Executor& executor_;
    bool adopts_;
    Runner runner_;
    std::vector<Active> active_;
};

}  // namespace npushmem::npu::detail
