// SPDX-License-Identifier: BSD-3-Clause
// The corpus in jobs of npushmem-run with NPUSHMEM_NPU_CHECK. The library itself checks the calls of host programs, so
// kernels with such calls are left out.
#include <gtest/gtest.h>

#include <algorithm>
#include <regex>
#include <sstream>

#include "tests/corpus/table.hpp"
#include "tests/integration/run/job_under_test.hpp"

namespace npushmem::npu::corpus {
namespace {

std::string output_of(const Kernel& kernel, const std::string& schedule) {
    run::JobSettings settings;
    settings.with_bootstrap = true;
    settings.environment = {"NPUSHMEM_NPU_CHECK=1", "NPUSHMEM_SYMMETRIC_SIZE=16M", "NPUSHMEM_NPU_SCHEDULE=" + schedule,
                            "NPUSHMEM_NPU_VECTOR_CORES=" + std::to_string(kernel.setup.vector_cores)};
    run::JobUnderTest job({"-n", std::to_string(kernel.setup.pes), CORPUS_JOB, kernel.name}, settings);
    EXPECT_EQ(job.end(), 0);
    return job.output() + job.errors();
}

// The lines of all PEs that begin with the prefix, without it.
std::vector<std::string> lines_with(const std::string& prefix, const std::string& output) {
    std::vector<std::string> lines;
    std::istringstream all(output);
    for (std::string line; std::getline(all, line);)
        if (line.starts_with(prefix)) lines.push_back(line.substr(prefix.size()));
    return lines;
}

Verdict verdict_of(const Kernel& kernel, const std::string& schedule, std::string& output) {
    output = output_of(kernel, schedule);
    const auto is_nothing = [](const std::string& line) { return line == "nothing found"; };
    const auto right = lines_with("right: ", output);
    const auto wrong = lines_with("wrong: ", output);
    const auto pes = static_cast<std::size_t>(kernel.setup.pes);
    Verdict verdict{.mode = "job:" + schedule, .caught = !std::ranges::all_of(wrong, is_nothing)};
    verdict.twin_is_clean = right.size() == pes && std::ranges::all_of(right, is_nothing);
    for (const std::string& line : wrong) {
        std::smatch id;
        const bool finding = std::regex_search(line, id, std::regex("^(H[0-9]+) "));
        if (finding && (verdict.hazard.empty() || id[1] == id_of(kernel.hazard))) verdict.hazard = id[1];
        verdict.line = verdict.line || names_marked_line(line, kernel.name);
    }
    return verdict;
}

std::vector<Kernel> kernels_of_jobs() {
    std::vector<Kernel> found;
    std::ranges::copy_if(kernels(), std::back_inserter(found),
                         [](const Kernel& kernel) { return kernel.prepare == nullptr; });
    return found;
}

class CorpusJob : public ::testing::TestWithParam<Kernel> {
public:
    void expect_mistake_is_found(const char* schedule) {
        std::string output;
        const Verdict verdict = verdict_of(GetParam(), schedule, output);
        expect_found(GetParam(), verdict, true, output);
        record(GetParam(), {verdict});
    }
};

TEST_P(CorpusJob, Lazy) { expect_mistake_is_found("lazy"); }
TEST_P(CorpusJob, Eager) { expect_mistake_is_found("eager"); }
TEST_P(CorpusJob, Random1) { expect_mistake_is_found("random:1"); }
TEST_P(CorpusJob, Random2) { expect_mistake_is_found("random:2"); }
TEST_P(CorpusJob, Random3) { expect_mistake_is_found("random:3"); }

INSTANTIATE_TEST_SUITE_P(Kernels, CorpusJob, ::testing::ValuesIn(kernels_of_jobs()),
                         [](const auto& one) { return std::string(one.param.name); });

}  // namespace
}  // namespace npushmem::npu::corpus
