// SPDX-License-Identifier: BSD-3-Clause
#include "core/tools/info/reports.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "tests/fakes/fake_os.hpp"

namespace npushmem::info {

namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

TEST(DescribeVariables, HidesSecrets) {
    const std::string id(256, 'a');
    auto config = Config::read(FakeEnvironment{{"NPUSHMEM_UNIQUEID", id},
                                               {"NPUSHMEM_X_SESSION_ID", "sesame"},
                                               {"NPUSHMEM_X_SECRETS", "sesame"},
                                               {"NPUSHMEM_X_OPEN", "everybody"}});
    ASSERT_TRUE(config.ok()) << config.status().message();
    const npushmem_config_row rows[] = {
        {"X_SESSION_ID", "", "string", "one"}, {"X_SECRETS", "", "string", "two"}, {"X_OPEN", "", "string", "three"}};
    ASSERT_TRUE(config.value().declare("x", rows).ok());
    const std::string text = describe_variables(config.value());
    EXPECT_THAT(text, Not(HasSubstr(id)));
    EXPECT_THAT(text, Not(HasSubstr("sesame")));
    EXPECT_THAT(text, HasSubstr("NPUSHMEM_UNIQUEID = (set, not shown)"));
    EXPECT_THAT(text, HasSubstr("NPUSHMEM_X_SESSION_ID = (set, not shown)"));
    EXPECT_THAT(text, HasSubstr("NPUSHMEM_X_SECRETS = (set, not shown)"));
    EXPECT_THAT(text, HasSubstr("NPUSHMEM_X_OPEN = everybody"));
}

TEST(DescribeVariables, ShowsTheOriginOfEachValue) {
    const auto config = Config::read(FakeEnvironment{{"NPUSHMEM_CONFIG_FILE", "job.conf"}, {"NPUSHMEM_PE", "1"}},
                                     [](const std::string&) { return Result<std::string>("\nNPUSHMEM_NPES=2"); });
    ASSERT_TRUE(config.ok()) << config.status().message();
    const std::string text = describe_variables(config.value());
    EXPECT_THAT(text, HasSubstr("NPUSHMEM_PE = 1  [environment; default -1]"));
    EXPECT_THAT(text, HasSubstr("NPUSHMEM_NPES = 2  [job.conf:2; default -1]"));
    EXPECT_THAT(text, HasSubstr("NPUSHMEM_TIMEOUT = 0  [default]"));
}

TEST(DescribeVariables, MarksAnUnsetSecretAsEmpty) {
    auto config = Config::read(FakeEnvironment{});
    ASSERT_TRUE(config.ok());
    EXPECT_THAT(describe_variables(config.value()), HasSubstr("NPUSHMEM_UNIQUEID = (empty)"));
}

TEST(VariablesPage, ListsVariablesOfRuntimeAndPluginsWithoutTheirValues) {
    auto config = Config::read(FakeEnvironment{{"NPUSHMEM_SYMMETRIC_SIZE", "77M"}, {"NPUSHMEM_X_DEPTH", "5"}});
    ASSERT_TRUE(config.ok()) << config.status().message();
    const npushmem_config_row rows[] = {{"X_DEPTH", "64", "int", "depth of the queue"}};
    ASSERT_TRUE(config.value().declare("x", rows).ok());
    const std::string page = variables_page(config.value());
    EXPECT_THAT(page, HasSubstr(".SH NAME\nnpushmem\\-variables \\- "));
    EXPECT_THAT(page, HasSubstr(".SH x\n.TP\n\\fBNPUSHMEM_X_DEPTH\\fR\ndepth of the queue. Values: int. "
                                "Default: 64."));
    for (const auto& row : config_rows())
        EXPECT_THAT(page, HasSubstr(std::string("\\fBNPUSHMEM_") + row.name + "\\fR\n"));
    EXPECT_THAT(page, HasSubstr("SHMEM_SYMMETRIC_SIZE, SMA_SYMMETRIC_SIZE"));
    EXPECT_THAT(page, Not(HasSubstr("77M")));
}

std::string barriers(const FakeEnvironment& environment, int pes, int nodes, double cores) {
    auto config = Config::read(environment);
    EXPECT_TRUE(config.ok()) << config.status().message();
    const auto report = preview_barrier(config.value().settings(), pes, nodes, cores);
    return report.ok() ? describe(report.value()) : report.status().message();
}

TEST(PreviewBarrier, ListsTheAlgorithmsAndReportsTheChoiceWithItsReason) {
    EXPECT_THAT(barriers({}, 8, 1, 2), HasSubstr("dissemination_k:k"));
    EXPECT_THAT(barriers({}, 8, 1, 2),
                HasSubstr("barrier of 8 PEs on 1 host of 2 usable cores: shared_counter (4 PEs"));
    EXPECT_THAT(barriers({}, 8, 1, 8), HasSubstr("dissemination (every PE has a core"));
    EXPECT_THAT(barriers({}, 8, 2, 8), HasSubstr("hierarchical (8 PEs on 2 nodes"));
    EXPECT_THAT(barriers({{"NPUSHMEM_BARRIER_ALGO", "knomial_tree:3"}}, 8, 1, 8),
                HasSubstr("knomial_tree:3 (NPUSHMEM_BARRIER_ALGO)"));
    EXPECT_THAT(barriers({{"NPUSHMEM_BARRIER_ALGO", "two_proc"}}, 3, 1, 8), HasSubstr("at most 2 PEs"));
    EXPECT_THAT(barriers({{"NPUSHMEM_COLL_TUNING_FILE", "/nonexistent"}}, 3, 1, 8),
                HasSubstr("NPUSHMEM_COLL_TUNING_FILE: cannot read \"/nonexistent\""));
}

std::string kernels(const FakeEnvironment& environment, int pes, int nodes, double cores) {
    auto config = Config::read(environment);
    EXPECT_TRUE(config.ok()) << config.status().message();
    return preview_kernels(config.value().settings(), pes, nodes, cores).text;
}

TEST(PreviewKernels, ReportsTheRemoteModeWithItsReason) {
    EXPECT_THAT(kernels({}, 8, 2, 8), AllOf(StartsWith("by a proxy thread to PEs that are not mapped"),
                                            HasSubstr("4 PEs with a proxy each have room on 8 CPUs")));
    EXPECT_THAT(kernels({}, 9, 2, 8), AllOf(StartsWith("direct to PEs that are not mapped, each core by itself"),
                                            HasSubstr("5 PEs with a proxy each would share 8 CPUs")));
    EXPECT_THAT(kernels({{"NPUSHMEM_IB_ENABLE_IBGDA", "0"}}, 16, 2, 2),
                AllOf(HasSubstr("by a proxy thread"), HasSubstr("NPUSHMEM_IB_ENABLE_IBGDA=0")));
    EXPECT_THAT(kernels({{"NPUSHMEM_IB_ENABLE_IBGDA", "0"}}, 8, 1, 8),
                AllOf(HasSubstr("direct"), HasSubstr("within a host")));
}

TEST(AbsentPlugins, AreReadFromEveryFolderThatHasAList) {
    const std::string folder = ::testing::TempDir() + "npushmem-absent";
    std::filesystem::create_directories(folder);
    std::ofstream(folder + "/absent-plugins.txt") << "bootstrap pmix built without libpmix: install it\n"
                                                     "transport verbs no libibverbs\n"
                                                     "cut";
    const auto absent = absent_plugins({"/nonexistent", folder});
    ASSERT_EQ(absent.size(), 2U);
    EXPECT_EQ(absent[0].kind, PluginKind::bootstrap);
    EXPECT_EQ(absent[0].name, "pmix");
    EXPECT_EQ(absent[0].why, "built without libpmix: install it");
    EXPECT_EQ(absent[1].kind, PluginKind::transport);
    std::filesystem::remove_all(folder);
}

}  // namespace

}  // namespace npushmem::info
