// SPDX-License-Identifier: BSD-3-Clause
// The corpus in a CheckedJob, under every kind of schedule: each mistake is found at a marked line, each twin is clean.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "npushmem/npu/checked_job.hpp"
#include "tests/corpus/table.hpp"

namespace npushmem::npu::corpus {
namespace {

class CheckedHost final : public Host {
public:
    CheckedHost(CheckedJob& job, int pe) : job_(job), pe_(pe) {}

    [[nodiscard]] int my_pe() const override { return pe_; }
    Word* allocate(std::size_t words, const SourceLocation& where) override {
        return static_cast<Word*>(job_.allocate_on(pe_, words * sizeof(Word), where));
    }
    void release(Word* memory) override {
        if (pe_ == 0) job_.release(memory);
    }

private:
    CheckedJob& job_;
    int pe_;
};

CheckReport run(const Kernel& kernel, const char* schedule, bool wrong) {
    CheckedJobConfig config{.pes = kernel.setup.pes, .heap_bytes = 64 * 1024};
    config.schedule = Schedule::parse(schedule).value();
    config.schedule.max_schedules = 2000;  // of a twin with many: enough for a test of seconds
    config.device.blocks = 4;
    config.device.vector_cores = kernel.setup.vector_cores;
    config.device.launch_timeout = std::chrono::seconds(60);
    const auto job = CheckedJob::create(config).value();
    auto* data = job->allocate<Word>(data_words);
    auto* signals = job->allocate<Word>(signal_lines * words_per_line);
    auto* barriers = job->allocate<BarrierState>(barrier_states);
    std::vector<Word*> prepared(static_cast<std::size_t>(job->pes()));
    for (int pe = 0; pe < job->pes() && kernel.prepare != nullptr; ++pe) {
        CheckedHost host(*job, pe);
        prepared[static_cast<std::size_t>(pe)] = kernel.prepare(host, wrong);
    }
    LaunchConfig launch(kernel.setup.blocks);
    launch.name = kernel.name;
    return job->run(
        launch, [&](int pe) { return kernel.blocks != nullptr ? kernel.blocks(pe, wrong) : kernel.setup.blocks; },
        [&](Core& core) {
            const int me = core.my_pe();
            const Memory memory{job->at(me, data), job->at(me, signals), job->at(me, barriers),
                                prepared[static_cast<std::size_t>(me)]};
            kernel.run(core, memory, wrong);
        });
}

Verdict verdict_of(const Kernel& kernel, const char* schedule, std::string& text) {
    const CheckReport wrong = run(kernel, schedule, true);
    const CheckReport right = run(kernel, schedule, false);
    Verdict verdict{.mode = schedule, .caught = !wrong.status.ok() || !wrong.findings.empty()};
    std::string found;  // of the expected hazard
    if (!wrong.findings.empty()) verdict.hazard = id_of(wrong.findings.front().hazard);
    for (const Finding& finding : wrong.findings) {
        if (finding.hazard != kernel.hazard) {
            verdict.others += (verdict.others.empty() ? "" : " ") + id_of(finding.hazard);
            continue;
        }
        verdict.hazard = id_of(finding.hazard);
        found += finding.text();
    }
    verdict.line = kernel.any_line ? names_marked_line(found, kernel.name) : names_marked_lines(found, kernel.name);
    verdict.twin_is_clean = right.status.ok() && right.findings.empty();
    EXPECT_TRUE(right.complete) << "without the mistake: " << right.text();
    text = "with the mistake: " + wrong.text() + "without: " + right.text();
    return verdict;
}

class CheckedCorpus : public ::testing::TestWithParam<Kernel> {};

TEST_P(CheckedCorpus, IsFound) {
    std::vector<Verdict> verdicts;
    for (const char* schedule : {"eager", "lazy", "random:1", "random:2", "random:3", "explore"}) {
        std::string report;
        verdicts.push_back(verdict_of(GetParam(), schedule, report));
        expect_found(GetParam(), verdicts.back(), false, report);
    }
    record(GetParam(), verdicts);
}

INSTANTIATE_TEST_SUITE_P(Kernels, CheckedCorpus, ::testing::ValuesIn(kernels()),
                         [](const auto& one) { return std::string(one.param.name); });

TEST(Corpus, HasThreeKernelsForEachHazard) {
    std::map<Hazard, int> count;
    std::set<std::string> names;
    for (const Kernel& kernel : kernels()) {
        ++count[kernel.hazard];
        EXPECT_TRUE(names.insert(kernel.name).second) << kernel.name;
    }
    EXPECT_GE(names.size(), 120U);
    constexpr int hazards = 27;
    for (int hazard = 1; hazard <= hazards; ++hazard) EXPECT_GE(count[static_cast<Hazard>(hazard)], 3) << "H" << hazard;
}

TEST(Corpus, IsFoundByExploration) {
    const auto missed = [](const char* mode) {
        return std::ranges::count_if(kernels(), [&](const Kernel& kernel) { return is_missed(kernel, mode); });
    };
    EXPECT_EQ(missed("explore"), 0);
    EXPECT_EQ(missed("job:explore"), 0);
    EXPECT_LE(missed("lazy"), 5);
}

}  // namespace
}  // namespace npushmem::npu::corpus
