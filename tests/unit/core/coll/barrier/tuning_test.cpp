// SPDX-License-Identifier: BSD-3-Clause
#include "core/coll/barrier/tuning.hpp"

#include <gmock/gmock.h>

#include <fstream>

namespace npushmem::barrier {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr const char* sample = R"(# made by hand
barrier  2      *    *       two_proc
barrier  3-16   *    0-1     dissemination_k:8   # a core each

barrier  17-    2-   *       hierarchical
barrier  *      *    1.5-    shared_counter
)";

Tuning parsed(std::string_view text) {
    auto tuning = Tuning::parse(text, "sample");
    EXPECT_TRUE(tuning.ok()) << tuning.status().message();
    return tuning.value();
}

std::string plan_for(const BarrierSelectionInput& selection_input, const Tuning& tuning) {
    const TuningRule* rule = tuning.find(selection_input);
    return rule != nullptr ? name_of(rule->plan) : "none";
}

TEST(Tuning, TheFirstMatchingRuleDecides) {
    const Tuning tuning = parsed(sample);
    EXPECT_EQ(tuning.rules().size(), 4U);
    EXPECT_EQ(plan_for({.members = 2, .pes_per_core = 9}, tuning), "two_proc");
    EXPECT_EQ(plan_for({.members = 16, .pes_per_core = 1}, tuning), "dissemination_k:8");
    EXPECT_EQ(plan_for({.members = 16, .pes_per_core = 1.5}, tuning), "shared_counter");
    EXPECT_EQ(plan_for({.members = 20, .nodes = 10}, tuning), "hierarchical");
    EXPECT_EQ(plan_for({.members = 20, .nodes = 20}, tuning), "none") << "one PE per node";
    EXPECT_EQ(plan_for({.members = 16, .pes_per_core = 1.2}, tuning), "none");
}

TEST(Tuning, AutoReportsTheDecidingLine) {
    const Tuning tuning = parsed(sample);
    const Choice tuned = choose("auto", {.members = 4, .pes_per_core = 0.5}, tuning).value();
    EXPECT_EQ(name_of(tuned.plan), "dissemination_k:8");
    EXPECT_EQ(tuned.why, "line 3 of sample");
    EXPECT_EQ(choose("auto", {.members = 16, .pes_per_core = 1.2}, tuning).value().plan.id, shared_counter_id);
    EXPECT_EQ(choose("tree", {.members = 2}, tuning).value().plan.id, tree_id) << "what is asked for is not tuned";
}

TEST(Tuning, SkipsARuleWhoseAlgorithmCannotServeTheTeam) {
    EXPECT_EQ(plan_for({.members = 3}, parsed("barrier * * * two_proc\n")), "none");
}

TEST(Tuning, MistakesAreNamedByLineAndColumn) {
    const std::pair<const char*, const char*> wrong[] = {
        {"barier 2 * * tree\n", "sample, line 1, column 1: \"barier\" is not a collective"},
        {"\nbarrier 2 * tree\n", "sample, line 2, column 13: 4 fields; a rule has 6"},
        {"barrier 2 * * tree 4\n", "column 15: \"tree\" is not a range"},
        {"barrier 2 * * * 4 mpi\n",
         "7 fields; a rule has 6: collective, PEs, PEs per node, PEs per core, bytes, library"},
        {"reduce 2 * * tree\n", "column 14: 5 fields"},
        {"alltoall * * * * npushmem:ring\n",
         "column 18: npushmem has no method \"ring\" for alltoall; it has: lines, push, pull"},
        {"barrier * * * * npushmem:pull\n", "no method \"pull\" for barrier; it has: none"},
        {"scan * * * * mpi\n", "\"scan\" is not a collective; expected: barrier, broadcast, collect"},
        {"barrier 2- 4 x tree\n", "line 1, column 14: \"x\" is not a range"},
        {"barrier 8-2 * * tree\n", "column 9: \"8-2\" is not a range"},
        {"barrier -2 * * tree\n", "\"-2\" is not a range"},
        {"barrier inf * * tree\n", "\"inf\" is not a range"},
        {"barrier 2 * * treee\n", "column 15: no barrier algorithm is named \"treee\""},
        {"barrier 2 * * knomial_tree:99\n", "\"99\" is not a radix"},
    };
    for (const auto& [text, message] : wrong) {
        const auto refused = Tuning::parse(text, "sample");
        ASSERT_FALSE(refused.ok()) << text;
        EXPECT_EQ(refused.status().code(), Code::config);
        EXPECT_THAT(refused.status().message(), HasSubstr(message));
    }
}

std::string library_for(std::string_view collective, double bytes, const BarrierSelectionInput& input,
                        const Tuning& tuning) {
    const LibraryRule* const rule = tuning.find_library(collective, bytes, input);
    return rule != nullptr ? rule->library : "none";
}

TEST(Tuning, RulesOfSixFieldsSelectALibrary) {
    const Tuning tuning = parsed(
        "reduce 2-4 * * 0-1000 npushmem  # small\n"
        "reduce 2- * 0-1 * mpi\n"
        "barrier * * * * mpi\n"
        "barrier 2 * * two_proc\n");
    EXPECT_EQ(tuning.library_rules().size(), 3U);
    EXPECT_EQ(tuning.library_rules()[1].line, 2);
    EXPECT_EQ(library_for("reduce", 1000, {.members = 4}, tuning), "npushmem");
    EXPECT_EQ(library_for("reduce", 1001, {.members = 4, .pes_per_core = 1}, tuning), "mpi");
    EXPECT_EQ(library_for("reduce", 8, {.members = 5, .pes_per_core = 1}, tuning), "mpi");
    EXPECT_EQ(library_for("reduce", 8, {.members = 5, .pes_per_core = 2}, tuning), "none");
    EXPECT_EQ(library_for("broadcast", 8, {.members = 2}, tuning), "none");
    EXPECT_EQ(library_for("barrier", 0, {.members = 2}, tuning), "mpi");
    EXPECT_EQ(plan_for({.members = 2}, tuning), "two_proc") << "the algorithm of our own barrier";
}

TEST(Tuning, RulesOfNpushmemMaySelectAMethod) {
    const Tuning tuning = parsed(
        "broadcast * * * 0-511 npushmem:ring\n"
        "broadcast * * * * npushmem\n"
        "reduce * * * * mpi:fast\n");
    const auto method_for = [&tuning](std::string_view collective, double bytes) {
        return tuning.find_library(collective, bytes, {.members = 2})->method;
    };
    EXPECT_EQ(tuning.library_rules_for("broadcast", {.members = 2}).size(), 2U);
    EXPECT_TRUE(tuning.library_rules_for("collect", {.members = 2}).empty());
    EXPECT_EQ(method_for("broadcast", 511), coll::Method::ring);
    EXPECT_EQ(method_for("broadcast", 512), coll::Method::automatic);
    EXPECT_EQ(method_for("reduce", 8), coll::Method::automatic);
    EXPECT_EQ(library_for("broadcast", 8, {.members = 2}, tuning), "npushmem");
    EXPECT_EQ(library_for("reduce", 8, {.members = 2}, tuning), "mpi:fast") << "a library may have any name";
}

TEST(Tuning, IsReadFromAFile) {
    EXPECT_TRUE(Tuning::read("").value().rules().empty());
    const std::string path = ::testing::TempDir() + "test-tuning.txt";
    std::ofstream(path) << sample;
    const auto tuning = Tuning::read(path);
    ASSERT_TRUE(tuning.ok());
    EXPECT_EQ(tuning.value().hash(), parsed(sample).hash());
    EXPECT_NE(tuning.value().hash(), Tuning{}.hash());
    EXPECT_EQ(tuning.value().name(), path);
    const auto missing = Tuning::read("/nonexistent/tuning");
    EXPECT_THAT(missing.status().message(), AllOf(HasSubstr("/nonexistent/tuning"), HasSubstr("No such file")));
    EXPECT_EQ(Tuning::read(::testing::TempDir()).status().code(), Code::config) << "a folder";
    std::remove(path.c_str());
}

}  // namespace
}  // namespace npushmem::barrier
