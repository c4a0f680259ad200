// SPDX-License-Identifier: BSD-3-Clause
// The corpus in jobs of npushmem-run with NPUSHMEM_NPU_CHECK, and with --npu-check=explore. In jobs the library itself
// compares symmetric allocations (H27), so kernels with such mistakes are left out.
#include <gtest/gtest.h>

#include <algorithm>
#include <regex>
#include <sstream>

#include "tests/corpus/table.hpp"
#include "tests/integration/run/job_under_test.hpp"

namespace npushmem::npu::corpus {
namespace {

// Long for a kernel that ends.
constexpr int deadline_of_right = 60;
// Under one schedule, a kernel with the mistake may wait for ever.
constexpr int deadline_of_wrong = 2;

struct Mode {
    std::string schedule;
    int runs_of_right = 0;  // explore: the maximum number of runs
    int runs_of_wrong = 0;

    [[nodiscard]] bool explores() const { return runs_of_right > 0; }
};

struct Outcome {
    int status;
    std::string output;
};

Outcome run(const Kernel& kernel, const Mode& mode, bool wrong) {
    run::JobSettings settings;
    settings.with_bootstrap = true;
    settings.environment = {"NPUSHMEM_SYMMETRIC_SIZE=1M",
                            "NPUSHMEM_NPU_VECTOR_CORES=" + std::to_string(kernel.setup.vector_cores)};
    std::vector<std::string> arguments{"-n", std::to_string(kernel.setup.pes)};
    if (mode.explores()) {
        const int runs = wrong ? mode.runs_of_wrong : mode.runs_of_right;
        arguments.insert(arguments.end(), {"--npu-check=explore", "--npu-check-runs=" + std::to_string(runs)});
    } else {
        settings.environment.insert(settings.environment.end(),
                                    {"NPUSHMEM_NPU_CHECK=1", "NPUSHMEM_NPU_SCHEDULE=" + mode.schedule});
    }
    const int deadline = wrong && !mode.explores() ? deadline_of_wrong : deadline_of_right;
    arguments.insert(arguments.end(), {CORPUS_JOB, kernel.name, wrong ? "wrong" : "right", std::to_string(deadline)});
    run::JobUnderTest job(arguments, settings);
    const int status = job.end();
    return {status, job.output() + job.errors()};
}

std::vector<std::string> lines_of(const std::string& output) {
    std::vector<std::string> lines;
    std::istringstream all(output);
    for (std::string line; std::getline(all, line);) lines.push_back(line);
    return lines;
}

// "H7" if the line begins a finding.
std::string hazard_in(const std::string& line) {
    static const std::regex finding("(^|checked mode: )(H[0-9]+) (\\(hint\\) )?in ");
    std::smatch parts;
    return std::regex_search(line, parts, finding) ? parts[2].str() : std::string();
}

bool is_clean(const Kernel& kernel, const Outcome& outcome) {
    const auto lines = lines_of(outcome.output);
    const auto pes = std::ranges::count(lines, "nothing found");
    return outcome.status == 0 && pes == kernel.setup.pes &&
           std::ranges::all_of(lines, [](const std::string& line) { return hazard_in(line).empty(); });
}

Verdict verdict_of(const Kernel& kernel, const Mode& mode, std::string& report) {
    const Outcome right = run(kernel, mode, false);
    const Outcome wrong = run(kernel, mode, true);
    report = "with the mistake:\n" + wrong.output + "without:\n" + right.output;
    Verdict verdict{.mode = "job:" + mode.schedule, .caught = !is_clean(kernel, wrong)};
    verdict.twin_is_clean = is_clean(kernel, right);
    for (const std::string& line : lines_of(wrong.output)) {
        const std::string hazard = hazard_in(line);
        if (!hazard.empty() && (verdict.hazard.empty() || hazard == id_of(kernel.hazard))) verdict.hazard = hazard;
        verdict.line = verdict.line || names_marked_line(line, kernel.name);
    }
    return verdict;
}

std::vector<Kernel> kernels_of_jobs() {
    std::vector<Kernel> found;
    std::ranges::copy_if(kernels(), std::back_inserter(found),
                         [](const Kernel& kernel) { return kernel.hazard != Hazard::asymmetric_heap; });
    return found;
}

class CorpusJob : public ::testing::TestWithParam<Kernel> {
public:
    void expect_mistake_is_found(const Mode& mode) {
        std::string report;
        const Verdict verdict = verdict_of(GetParam(), mode, report);
        expect_found(GetParam(), verdict, !mode.explores(), report);
        record(GetParam(), {verdict});
    }
};

TEST_P(CorpusJob, Lazy) { expect_mistake_is_found({"lazy"}); }
TEST_P(CorpusJob, Eager) { expect_mistake_is_found({"eager"}); }
TEST_P(CorpusJob, Random1) { expect_mistake_is_found({"random:1"}); }
TEST_P(CorpusJob, Random2) { expect_mistake_is_found({"random:2"}); }
TEST_P(CorpusJob, Random3) { expect_mistake_is_found({"random:3"}); }
TEST_P(CorpusJob, Explore) { expect_mistake_is_found({"explore", 4, 100}); }
TEST_P(CorpusJob, ExploreMore) { expect_mistake_is_found({"explore", 32, 100}); }

INSTANTIATE_TEST_SUITE_P(Kernels, CorpusJob, ::testing::ValuesIn(kernels_of_jobs()),
                         [](const auto& one) { return std::string(one.param.name); });

}  // namespace
}  // namespace npushmem::npu::corpus
