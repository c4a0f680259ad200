// SPDX-License-Identifier: BSD-3-Clause
// A kernel that has a hazard must be caught under every schedule, with the hazard's id and the line to blame; its
// corrected twin must pass under every schedule, without a word.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include "npushmem/npu/checked_job.hpp"
#include "npushmem/npu/npu.hpp"
#include "npushmem/npu/source_location.hpp"

namespace npushmem::npu::test {

// A limit for kernels that have too many schedules, or infinitely many.
inline constexpr std::uint64_t few_schedules = 300;

struct Setup {
    int pes = 1;
    int blocks = 1;
    int vector_cores = 1;
    std::uint64_t max_schedules = 0;  // to explore; 0: all
};

inline std::vector<Schedule> schedules(const Setup& setup = {}) {
    std::vector<Schedule> all;
    for (const char* text : {"eager", "lazy", "random:1", "random:2", "random:3", "explore"}) {
        all.push_back(Schedule::parse(text).value());
    }
    if (setup.max_schedules != 0) all.back().max_schedules = setup.max_schedules;
    return all;
}

inline constexpr Setup two_pes{.pes = 2};
inline constexpr Setup two_cores{.vector_cores = 2};

// Runs `kernel(core, data)` where data is this PE's copy of 1024 zeroed 64-bit words.
template <class Kernel>
CheckReport check(const Setup& setup, const Schedule& schedule, const Kernel& kernel) {
    CheckedJobConfig config{.pes = setup.pes, .heap_bytes = 64 * 1024, .schedule = schedule};
    config.device.blocks = 4;
    config.device.vector_cores = setup.vector_cores;
    config.device.launch_timeout = std::chrono::seconds(60);
    const auto job = CheckedJob::create(config).value();
    auto* data = job->allocate<std::uint64_t>(1024);
    LaunchConfig launch(setup.blocks);
    launch.name = "tested";
    return job->run(launch, [&](Core& core) { kernel(core, job->at(core.my_pe(), data)); });
}

// The line of a file that ends with the comment "blame: <mark>".
inline unsigned line_of(const std::string& mark, const SourceLocation& file = SourceLocation::current()) {
    const std::string_view name = file.file_name();
    std::ifstream source(std::string(NPUSHMEM_TEST_DATA_DIR "/../") +
                         std::string(name.substr(name.rfind("unit/core"))));
    std::string line;
    for (unsigned number = 1; std::getline(source, line); ++number) {
        if (line.ends_with("// blame: " + mark)) return number;
    }
    ADD_FAILURE() << file.file_name() << " has no line that is marked " << mark;
    return 0;
}

inline bool blames(const Finding& finding, Hazard hazard, unsigned line) {
    const auto here = [line](const FindingSide& side) {
        return side.where.line() == line && std::strstr(side.where.file_name(), "_test.cpp") != nullptr;
    };
    return finding.hazard == hazard && (here(finding.here) || (finding.other.what != nullptr && here(finding.other)));
}

// `mark`: of the line that must be blamed, as one of the two sides.
template <class Kernel>
void expect_caught(Hazard hazard, const std::string& mark, const Setup& setup, const Kernel& kernel,
                   const SourceLocation& file = SourceLocation::current()) {
    const unsigned line = line_of(mark, file);
    for (const Schedule& schedule : schedules(setup)) {
        const CheckReport report = check(setup, schedule, kernel);
        const auto found = std::ranges::find_if(report.findings,
                                                [&](const Finding& finding) { return blames(finding, hazard, line); });
        ASSERT_NE(found, report.findings.end()) << id_of(hazard) << " at line " << line << " is not in\n"
                                                << report.text();
        const std::string text = found->text();
        EXPECT_THAT(text, testing::StartsWith(id_of(hazard) + " "));
        EXPECT_THAT(text, testing::HasSubstr("_test.cpp:" + std::to_string(line)));
        EXPECT_THAT(text, testing::HasSubstr(std::string("advice: ") + advice_for(hazard)));
    }
}

template <class Kernel>
void expect_clean(const Setup& setup, const Kernel& kernel) {
    for (const Schedule& schedule : schedules(setup)) {
        const CheckReport report = check(setup, schedule, kernel);
        EXPECT_TRUE(report.status.ok() && report.findings.empty()) << report.text();
        EXPECT_TRUE(report.complete || setup.max_schedules != 0) << report.text();
    }
}

}  // namespace npushmem::npu::test
