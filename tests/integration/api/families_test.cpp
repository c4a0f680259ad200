// SPDX-License-Identifier: BSD-3-Clause
// Every family of functions, with 1 to 8 PEs, over every transport: mapped memory, the same without the map,
// traced calls, and calls that are late, out of order or rejected because a queue is full.
#include <gmock/gmock.h>

#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "tests/integration/api/leftovers.hpp"
#include "tests/integration/api/transport_selections.hpp"
#include "tests/integration/run/job_under_test.hpp"

namespace npushmem::api_test {
namespace {

struct FamilySetup {
    std::string name;
    std::vector<std::string> environment;
    std::vector<int> pes{1, 2, 3, 4, 8};
};

void PrintTo(const FamilySetup& transport_setup, std::ostream* out) { *out << transport_setup.name; }

std::vector<FamilySetup> family_setups() {
    const std::string fault = "NPUSHMEM_TRANSPORTS=self,fault(p2p)";
    return {
        {"default", {}},
        {"p2p_alone", {"NPUSHMEM_TRANSPORTS=p2p"}},
        {"not_mapped", {"NPUSHMEM_TRANSPORTS=self,nomap(p2p)"}},
        {"hccs", {"NPUSHMEM_TRANSPORTS=hccs"}},
        {"hccs_timed", {"NPUSHMEM_TRANSPORTS=hccs", "NPUSHMEM_HCCS_TIMED=1", "NPUSHMEM_HCCS_LINKS=mesh:4"}},
        {"traced", {"NPUSHMEM_TRANSPORTS=self,trace(p2p)"}},
        {"faulty", {fault, "NPUSHMEM_FAULT_SEED=7"}},
        {"faulty_late", {fault, "NPUSHMEM_FAULT_SEED=11", "NPUSHMEM_FAULT_DELAY=40", "NPUSHMEM_FAULT_AGAIN=0"}},
        {"faulty_in_order",
         {fault, "NPUSHMEM_FAULT_SEED=13", "NPUSHMEM_FAULT_REORDER=false", "NPUSHMEM_FAULT_AGAIN=60"}},
        {"checked", {"NPUSHMEM_CHECK=1"}},
        {"checked_not_mapped", {"NPUSHMEM_CHECK=1", "NPUSHMEM_TRANSPORTS=self,nomap(p2p)"}},
        {"checked_faulty", {"NPUSHMEM_CHECK=1", fault, "NPUSHMEM_FAULT_SEED=19"}},
    };
}

// A transport that does not map memory serves each PE itself.
std::vector<FamilySetup> setups_with_unmapped_self() {
    std::vector<FamilySetup> family_setups;
    for (const std::string& selection : unmapped_self_selections())
        family_setups.push_back(
            {name_of_selection(selection), {"NPUSHMEM_TRANSPORTS=" + selection, "NPUSHMEM_FAULT_SEED=17"}, {1, 3}});
    return family_setups;
}

constexpr const char* families[] = {"active_sets",     "rma",       "checks",           "contexts",      "threads",
                                    "handles",         "teams",     "collectives",      "atomics",       "waits",
                                    "ordering",        "heap",      "buffers",          "setup",         "errors",
                                    "openshmem",       "overloads", "statics",          "statics_fixed", "statics_c",
                                    "statics_c_fixed", "streams",   "openshmem_habits", "selections",    "half",
                                    "typed_streams",   "worlds"};

// Compiled with npushmem/inline.h or NPUSHMEM_INLINE.
constexpr const char* inlined_families[] = {"rma_inlined",       "atomics_inlined",  "waits_inlined",
                                            "ordering_inlined",  "errors_inlined",   "worlds_inlined",
                                            "openshmem_inlined", "overloads_inlined"};

// The choice between instruction and call: all, some and no PEs mapped, and checked calls.
std::vector<FamilySetup> inlined_setups() {
    const std::vector<int> pes{3};
    return {{"default", {}, pes},
            {"not_mapped", {"NPUSHMEM_TRANSPORTS=self,nomap(p2p)"}, pes},
            {"traced", {"NPUSHMEM_TRANSPORTS=trace(p2p)"}, pes},
            {"faulty", {"NPUSHMEM_TRANSPORTS=self,fault(p2p)", "NPUSHMEM_FAULT_SEED=7"}, pes},
            {"checked", {"NPUSHMEM_CHECK=1"}, pes}};
}

// Programs that report failing calls on standard error.
bool reports_errors(std::string_view family) {
    return family == "heap" || family == "buffers" || family == "checks" || family == "handles" || family == "teams" ||
           family == "setup" || family == "errors" || family == "errors_inlined" || family == "statics" ||
           family == "statics_fixed" || family == "streams" || family == "selections" || family == "half" ||
           family == "typed_streams";
}

// Removes the lines that begin with the library's prefix.
std::string differences(const std::string& errors) {
    std::istringstream lines(errors);
    std::string out;
    for (std::string line; std::getline(lines, line);)
        if (line.rfind("npushmem ", 0) != 0) out += "\n" + line;
    return out;
}

class Families : public ::testing::TestWithParam<std::tuple<const char*, FamilySetup>> {};

TEST_P(Families, Pass) {
    const auto& [family, transport_setup] = GetParam();
    const Leftovers leftovers;
    for (const int npes : transport_setup.pes) {
        SCOPED_TRACE(std::to_string(npes) + " PEs");
        if (std::string_view(family) == "buffers" && npes % 2 == 0) continue;  // to save time: of few forms
        run::JobSettings settings;
        settings.with_bootstrap = true;
        settings.environment = transport_setup.environment;
        settings.environment.emplace_back("NPUSHMEM_SYMMETRIC_SIZE=16M");  // one of them uses it up
        const std::string program = std::string(API_TEST_FOLDER) + "/api_" + family;
        run::JobUnderTest job({"-n", std::to_string(npes), program}, settings);
        EXPECT_EQ(job.end(), 0) << differences(job.errors());
        if (!reports_errors(family)) {
            EXPECT_EQ(job.errors(), "");
        }
        EXPECT_EQ(leftovers.found(), "");
    }
}

std::string name_of_case(const ::testing::TestParamInfo<std::tuple<const char*, FamilySetup>>& info) {
    return std::string(std::get<0>(info.param)) + "_" + std::get<1>(info.param).name;
}

INSTANTIATE_TEST_SUITE_P(Api, Families,
                         ::testing::Combine(::testing::ValuesIn(families), ::testing::ValuesIn(family_setups())),
                         name_of_case);
INSTANTIATE_TEST_SUITE_P(UnmappedSelf, Families,
                         ::testing::Combine(::testing::ValuesIn(families),
                                            ::testing::ValuesIn(setups_with_unmapped_self())),
                         name_of_case);

INSTANTIATE_TEST_SUITE_P(Inlined, Families,
                         ::testing::Combine(::testing::ValuesIn(inlined_families),
                                            ::testing::ValuesIn(inlined_setups())),
                         name_of_case);

// Calls of words on mapped PEs do not reach the library, all others do; also after a restart with another heap.
TEST(InlinedCalls, ReachTheLibraryOnlyWhereTheyMust) {
    for (const FamilySetup& setup : inlined_setups()) {
        run::JobSettings settings;
        settings.with_bootstrap = true;
        settings.environment = setup.environment;
        const char* const expected = setup.name == "default" ? "expanded" : "called";
        run::JobUnderTest job({"-n", "3", API_TEST_FOLDER "/api_inlined", expected}, settings);
        EXPECT_EQ(job.end(), 0) << setup.name << "\n" << job.errors();
    }
}

// Checked mode finds no hazard in kernels that access mapped and unmapped PEs.
TEST(CheckedKernels, AreQuietWhateverReachesTheOtherPes) {
    std::vector<std::string> selections = unmapped_self_selections();
    selections.insert(selections.end(), {"p2p", "self,nomap(p2p)", "fault(nomap(p2p))"});
    for (const std::string& transports : selections) {
        run::JobSettings settings;
        settings.with_bootstrap = true;
        settings.environment = {"NPUSHMEM_NPU_CHECK=1", "NPUSHMEM_TRANSPORTS=" + transports,
                                "NPUSHMEM_SYMMETRIC_SIZE=16M"};
        run::JobUnderTest job({"-n", "3", API_TEST_FOLDER "/api_streams"}, settings);
        EXPECT_EQ(job.end(), 0) << transports << differences(job.errors());
    }
}

// Every algorithm by name, over memory and over transports that are late and out of order.
constexpr const char* barrier_algorithms[] = {"linear",
                                              "double_ring",
                                              "recursive_doubling",
                                              "bruck",
                                              "two_proc",
                                              "tree",
                                              "central_counter",
                                              "tournament",
                                              "recursive_doubling_shmem",
                                              "dissemination",
                                              "basic",
                                              "adaptive",
                                              "dissemination_k:3",
                                              "knomial_tree:3",
                                              "hierarchical",
                                              "shared_counter"};

void expect_order_kept(std::string_view algorithm, const std::string& transports, const char* npes) {
    run::JobSettings settings;
    settings.with_bootstrap = true;
    settings.environment = {"NPUSHMEM_BARRIER_ALGO=" + std::string(algorithm), "NPUSHMEM_TRANSPORTS=" + transports,
                            "NPUSHMEM_SYMMETRIC_SIZE=16M"};
    if (algorithm == "two_proc") npes = "2";
    run::JobUnderTest job({"-n", npes, API_TEST_FOLDER "/api_ordering"}, settings);
    EXPECT_EQ(job.end(), 0) << job.errors();
    EXPECT_EQ(job.errors(), "");
}

class BarrierAlgorithms : public ::testing::TestWithParam<std::tuple<const char*, const char*>> {};

TEST_P(BarrierAlgorithms, KeepTheOrder) {
    const auto& [algorithm, transports] = GetParam();
    expect_order_kept(algorithm, transports, "5");
}

INSTANTIATE_TEST_SUITE_P(Api, BarrierAlgorithms,
                         ::testing::Combine(::testing::ValuesIn(barrier_algorithms),
                                            ::testing::Values("self,p2p", "self,nomap(p2p)", "self,fault(p2p)")),
                         [](const auto& parameter) {
                             return name_of_selection(std::string(std::get<0>(parameter.param)) + "_over_" +
                                                      std::get<1>(parameter.param));
                         });

class BarriersWithUnmappedSelf : public ::testing::TestWithParam<std::string> {};

TEST_P(BarriersWithUnmappedSelf, KeepTheOrder) {
    for (const char* algorithm : barrier_algorithms) {
        SCOPED_TRACE(algorithm);
        expect_order_kept(algorithm, GetParam(), "3");
    }
}

INSTANTIATE_TEST_SUITE_P(Api, BarriersWithUnmappedSelf, ::testing::ValuesIn(unmapped_self_selections()),
                         [](const auto& parameter) { return name_of_selection(parameter.param); });

std::string errors_with_failing_link(const char* transports, const char* links, int& status) {
    run::JobSettings settings;
    settings.with_bootstrap = true;
    settings.environment = {"NPUSHMEM_TRANSPORTS=" + std::string(transports),
                            "NPUSHMEM_HCCS_FAIL=" + std::string(links)};
    run::JobUnderTest job({"-n", "3", API_TEST_FOLDER "/api_ordering"}, settings);
    status = job.end();
    return job.errors();
}

TEST(HccsLink, ThatIsDownIsNamedWithBothEnds) {
    int status = 0;
    const std::string errors = errors_with_failing_link("hccs", "0-1", status);
    EXPECT_NE(status, 0);
    // Either end may report it first and end the job.
    EXPECT_THAT(errors,
                ::testing::AnyOf(::testing::HasSubstr("HCCS link 0-1 (NPU 0 of PE 0 to NPU 1 of PE 1) is down"),
                                 ::testing::HasSubstr("HCCS link 0-1 (NPU 1 of PE 1 to NPU 0 of PE 0) is down")));
}

TEST(HccsLink, ThatIsDownIsReplacedByTheNextTransport) {
    int status = 0;
    EXPECT_EQ(errors_with_failing_link("hccs,p2p", "0-1", status), "");
    EXPECT_EQ(status, 0);
}

TEST(HccsLink, ThatFailsLaterEndsTheJobAndIsNamed) {
    int status = 0;
    const std::string errors = errors_with_failing_link("hccs", "0-1@40", status);
    EXPECT_NE(status, 0);
    EXPECT_THAT(errors,
                ::testing::ContainsRegex("HCCS link 0-1 between PE [01] .NPU [01]. and PE [01] .NPU [01]. is down"));
}

// All PEs reject at start an algorithm that does not support the team.
TEST(BarrierAlgorithm, ThatTheTeamIsTooLargeForIsRefused) {
    run::JobSettings settings;
    settings.with_bootstrap = true;
    settings.environment = {"NPUSHMEM_BARRIER_ALGO=two_proc"};
    run::JobUnderTest job({"-n", "3", API_TEST_FOLDER "/api_ordering"}, settings);
    EXPECT_NE(job.end(), 0);
    EXPECT_THAT(job.errors(), ::testing::HasSubstr("two_proc serves teams of at most 2 PEs; this one has 3"));
}

}  // namespace
}  // namespace npushmem::api_test
