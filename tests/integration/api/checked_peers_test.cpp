// SPDX-License-Identifier: BSD-3-Clause
// What the kernel checkers of a job's processes find together: mistakes between PEs, whenever each of them runs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <sstream>
#include <string>
#include <vector>

#include "tests/integration/run/job_under_test.hpp"

namespace npushmem::api_test {
namespace {

using testing::HasSubstr;
using testing::Not;

// A finding that is no hint, or a wrong result.
const auto has_error = testing::ContainsRegex("[^)] in this launch");

struct Outcome {
    int status;
    std::string output;
};

// `more`: further variables, which may override NPUSHMEM_NPU_CHECK=1.
Outcome run_checked(const std::string& name, const char* variant, const char* pes, const char* schedule = "lazy",
                    const std::vector<std::string>& more = {}) {
    run::JobSettings settings;
    settings.with_bootstrap = true;
    settings.environment = {"NPUSHMEM_NPU_CHECK=1", "NPUSHMEM_SYMMETRIC_SIZE=16M",
                            std::string("NPUSHMEM_NPU_SCHEDULE=") + schedule};
    settings.environment.insert(settings.environment.end(), more.begin(), more.end());
    run::JobUnderTest job({"-n", pes, API_TEST_FOLDER "/api_checked_peers", name, variant}, settings);
    const int status = job.end();
    return {status, job.output() + job.errors()};
}

struct Mistake {
    const char* name;
    const char* pes;
    const char* hazard;
    const char* detail;
};

void PrintTo(const Mistake& mistake, std::ostream* out) { *out << mistake.name; }

class CheckedPeers : public ::testing::TestWithParam<Mistake> {};

// Often enough for processes to meet in many orders.
constexpr int repetitions = 10;

TEST_P(CheckedPeers, FindTheMistakeInEveryRun) {
    for (int i = 0; i < repetitions; ++i) {
        const Outcome wrong = run_checked(GetParam().name, "wrong", GetParam().pes);
        EXPECT_EQ(wrong.status, 0);
        EXPECT_THAT(wrong.output, HasSubstr(std::string(GetParam().hazard) + " in this launch"));
        EXPECT_THAT(wrong.output, HasSubstr(GetParam().detail));
        EXPECT_THAT(wrong.output, HasSubstr("against "));
        EXPECT_THAT(wrong.output, HasSubstr("checked_peers.cpp:"));
    }
}

TEST_P(CheckedPeers, FindNothingWithoutTheMistake) {
    for (int i = 0; i < repetitions; ++i) {
        const Outcome right = run_checked(GetParam().name, "right", GetParam().pes);
        EXPECT_EQ(right.status, 0);
        EXPECT_THAT(right.output, Not(has_error)) << right.output;
        EXPECT_THAT(right.output, HasSubstr("nothing found"));
    }
}

constexpr Mistake mistakes[] = {
    {"halves", "2", "H9", "writes back a whole line"},
    {"halves_before_barrier", "2", "H9", "writes back a whole line"},
    {"unflushed", "3", "H8", "uses data that was announced while it was dirty in the writer's cache"},
    {"barrier_v2", "6", "H13", "unordered"},
    {"relay", "3", "H8", "uses data that was announced while the copy that writes it was not complete"},
};

INSTANTIATE_TEST_SUITE_P(Api, CheckedPeers, ::testing::ValuesIn(mistakes),
                         [](const auto& one) { return std::string(one.param.name); });

TEST(CheckedPeersRight, KernelsWithoutAMistake) {
    for (const char* name : {"ring", "locked_counter", "all_barriers"}) {
        for (const char* schedule : {"lazy", "eager", "random:3", "random:4"}) {
            for (const char* pes : {"2", "4"}) {
                const Outcome right = run_checked(name, "right", pes, schedule);
                EXPECT_EQ(right.status, 0) << name;
                EXPECT_THAT(right.output, Not(has_error)) << name << right.output;
            }
        }
    }
}

// Hosts may order launches by barriers, and by operations that nobody records.
TEST(CheckedPeersOrdered, ByHosts) {
    for (const char* name : {"ordered_by_barriers", "ordered_by_hosts", "ordered_by_running_kernel"}) {
        for (int i = 0; i < repetitions; ++i) {
            const Outcome right = run_checked(name, "right", "3");
            EXPECT_EQ(right.status, 0) << name;
            EXPECT_THAT(right.output, Not(has_error)) << name << right.output;
        }
    }
    const Outcome wrong = run_checked("ordered_by_barriers", "wrong", "3");
    EXPECT_THAT(wrong.output, HasSubstr("H9 in this launch"));
}

TEST(CheckedPeersEnd, WhenAPeIsKilledInItsKernel) {
    for (int i = 0; i < repetitions; ++i) {
        const Outcome killed = run_checked("death", "wrong", "3");
        EXPECT_EQ(killed.status, 128 + SIGKILL) << killed.output;
        EXPECT_THAT(killed.output, Not(has_error)) << killed.output;
    }
    EXPECT_EQ(run_checked("death", "right", "3").status, 0);
}

// A file for each finding, named by PE and number; the message of the launch names it.
TEST(CheckedPeersReport, IsDrawnIntoFiles) {
    const std::filesystem::path folder = std::filesystem::path(testing::TempDir()) / "checked_peers_report";
    std::filesystem::remove_all(folder);
    std::filesystem::create_directories(folder);
    const Outcome wrong =
        run_checked("halves", "wrong", "2", "lazy", {"NPUSHMEM_NPU_CHECK_REPORT=" + (folder / "race.svg").string()});
    EXPECT_EQ(wrong.status, 0);
    int files = 0;
    for (const auto& file : std::filesystem::directory_iterator(folder)) {
        EXPECT_THAT(file.path().filename().string(), testing::MatchesRegex("race.pe[01].[0-9]+.svg"));
        EXPECT_THAT(wrong.output, HasSubstr("report: " + file.path().string()));
        std::string start(5, ' ');
        std::ifstream(file.path()).read(start.data(), 5);
        EXPECT_EQ(start, "<svg ");
        ++files;
    }
    EXPECT_GT(files, 0) << wrong.output;
    std::filesystem::remove_all(folder);
}

// The access of the other process is one of the drawn operations, with its memory.
TEST(CheckedPeersReport, ShowsTheOperationsOfTheOtherProcess) {
    const std::filesystem::path folder = std::filesystem::path(testing::TempDir()) / "checked_peers_operations";
    std::filesystem::remove_all(folder);
    std::filesystem::create_directories(folder);
    const Outcome wrong =
        run_checked("halves", "wrong", "2", "lazy", {"NPUSHMEM_NPU_CHECK_REPORT=" + (folder / "race.json").string()});
    EXPECT_EQ(wrong.status, 0);
    std::string reports;
    for (const auto& file : std::filesystem::directory_iterator(folder)) {
        std::ostringstream text;
        text << std::ifstream(file.path()).rdbuf();
        reports += text.str();
    }
    const std::regex side("\"place\": \"[^\"]*checked_peers.cpp:[0-9]+\",\\s*\"address\": \"0x[0-9a-f]+\"");
    const std::regex event("\"place\": \"[^\"]*checked_peers.cpp:[0-9]+\",\\s*\"landed\":");
    EXPECT_TRUE(std::regex_search(reports, side)) << wrong.output << reports;
    EXPECT_TRUE(std::regex_search(reports, event)) << wrong.output << reports;
    std::filesystem::remove_all(folder);
}

TEST(KernelPrints, LinesAreWholeAndInOrder) {
    for (const char* check : {"0", "1"}) {
        const Outcome printed =
            run_checked("printing", "right", "4", "lazy", {std::string("NPUSHMEM_NPU_CHECK=") + check});
        EXPECT_EQ(printed.status, 0);
        const std::regex form("\\[PE ([0-3]) core ([0-3])\\] line ([0-9]+) (a{200}|b{200}|c{200}|d{200})");
        std::map<std::string, int> next;
        std::istringstream lines(printed.output);
        std::smatch parts;
        for (std::string line; std::getline(lines, line);) {
            if (line.find("nothing found") != std::string::npos) continue;
            ASSERT_TRUE(std::regex_match(line, parts, form)) << line;
            EXPECT_EQ(std::stoi(parts[3]), next[parts[1].str() + "." + parts[2].str()]++) << line;
        }
        EXPECT_EQ(next.size(), 16U);
        for (const auto& [core, count] : next) EXPECT_EQ(count, 100) << core;
    }
}

}  // namespace
}  // namespace npushmem::api_test
