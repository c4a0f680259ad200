// SPDX-License-Identifier: BSD-3-Clause
// Reports of PEs that make no progress, and jobs that continue after such a report.
#include <gmock/gmock.h>

#include <cstdio>
#include <memory>

#include "tests/integration/api/leftovers.hpp"
#include "tests/integration/api/plain_world.hpp"
#include "tests/integration/run/job_under_test.hpp"

namespace npushmem::api_test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Matches;

WorldSettings reports_soon(const std::string& transports) {
    WorldSettings settings;
    settings.environment = {"NPUSHMEM_REPORT_AFTER=100ms", "NPUSHMEM_TRANSPORTS=" + transports};
    return settings;
}

std::string all_errors(const PlainWorld& world) {
    std::string text;
    for (int rank = 0; rank < world.nranks(); ++rank) text += world.errors(rank);
    return text;
}

// Waits until the reports so far have this text. A PE repeats its report, because others may arrive after the first.
void expect_report(const PlainWorld& world, const std::string& text) {
    EXPECT_TRUE(run::eventually([&] { return Matches(HasSubstr(text))(all_errors(world)); })) << text << "\nis not in\n"
                                                                                              << all_errors(world);
}

std::string output_of_jobs(const std::string& options) {
    const std::string command = std::string(API_TEST_INFO " --jobs ") + options + " 2>&1";
    const std::unique_ptr<FILE, int (*)(FILE*)> pipe(::popen(command.c_str(), "r"), ::pclose);
    EXPECT_NE(pipe, nullptr);
    std::string text;
    for (int c = 0; pipe && (c = std::fgetc(pipe.get())) != EOF;) text += static_cast<char>(c);
    return text;
}

class HangReport : public ::testing::TestWithParam<const char*> {
protected:
    ~HangReport() override { EXPECT_EQ(leftovers_.found(), ""); }

    Leftovers leftovers_;
};

TEST_P(HangReport, NamesThePeThatDoesNotArriveAndThoseInAnotherCall) {
    PlainWorld world(4, {"id", "attr", "2:hold", "3:sync", "!3:barrier", "finalize"}, reports_soon(GetParam()));
    expect_report(world, "PE 3 is in npushmem_sync_all #1 of the team world, PEs 0-1 are in npushmem_barrier_all #1");
    expect_report(world,
                  "PE 2 has not entered npushmem_barrier_all #1 of the team world: the last collective call "
                  "there was #0");
    EXPECT_THAT(output_of_jobs(""),
                AllOf(HasSubstr("Job of 4 PEs: api_scenario"), HasSubstr("npushmem_barrier_all #1 of the team world"),
                      HasSubstr("PE 2 has not entered npushmem_barrier_all #1")));
    EXPECT_THAT(output_of_jobs("--json"), HasSubstr("\"call\": \"npushmem_sync_all\""));
    world.release();
    world.expect_success();
}

TEST_P(HangReport, NamesTheObjectThatAPeWaitsFor) {
    PlainWorld world(2, {"id", "attr", "calloc=64", "1:hold", "0:wait=7", "1:put=0", "finalize"},
                     reports_soon(GetParam()));
    expect_report(world, "s in npushmem_long_wait_until for a value in symmetric memory");
    world.release();
    world.expect_success();
}

TEST_P(HangReport, NamesTheWaitOfAKernel) {
    PlainWorld world(2, {"id", "attr", "calloc=64", "1:hold", "0:kernel_wait=7", "1:put=0", "finalize"},
                     reports_soon(GetParam()));
    expect_report(world, "s in a kernel for a value in symmetric memory");
    world.release();
    world.expect_success();
}

TEST_P(HangReport, NamesTheDestructionOfATeam) {
    PlainWorld world(2, {"id", "attr", "team", "1:hold", "destroy", "finalize"}, reports_soon(GetParam()));
    expect_report(world, "s in team destroy #1 of the team of PEs 0 to 1, every 1 for the other PEs to destroy a team");
    world.release();
    world.expect_success();
}

INSTANTIATE_TEST_SUITE_P(Api, HangReport, ::testing::Values("self,p2p", "self,nomap(p2p)"),
                         [](const auto& parameter) { return parameter.index == 0 ? "mapped" : "not_mapped"; });

}  // namespace
}  // namespace npushmem::api_test
