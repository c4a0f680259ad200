// SPDX-License-Identifier: BSD-3-Clause
#include "core/tools/info/options.hpp"

#include <gmock/gmock.h>

#include "core/base/config.hpp"
#include "tests/fakes/fake_os.hpp"

namespace npushmem::info {

namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

EarlyExit exit_of(const std::vector<std::string>& arguments) {
    const auto parsed = parse_options(arguments);
    const auto* exit = std::get_if<EarlyExit>(&parsed);
    return exit != nullptr ? *exit : EarlyExit{-1, "no exit"};
}

TEST(InfoOptions, SelectsReports) {
    const auto parsed = parse_options({"-p", "-t", "-n", "12"});
    ASSERT_TRUE(std::holds_alternative<Options>(parsed));
    const auto& options = std::get<Options>(parsed);
    EXPECT_TRUE(options.plugins && options.topology);
    EXPECT_FALSE(options.variables || options.version);
    EXPECT_EQ(options.pes, 12);
}

TEST(InfoOptions, BarriersAloneAreAReport) {
    const auto parsed = parse_options({"-b", "--nodes", "2"});
    const auto* options = std::get_if<Options>(&parsed);
    ASSERT_NE(options, nullptr);
    EXPECT_TRUE(options->barriers);
    EXPECT_EQ(options->nodes, 2);
}

// As in npushmem-run, where -v is --verbose.
TEST(InfoOptions, TheVersionOptionIsACapitalLetter) {
    const auto parsed = parse_options({"-V"});
    const auto* options = std::get_if<Options>(&parsed);
    ASSERT_NE(options, nullptr);
    EXPECT_TRUE(options->version);
    EXPECT_EQ(exit_of({"-v"}).status, 2);
}

TEST(InfoOptions, PrintsHelp) {
    EXPECT_EQ(exit_of({"--help"}).status, 0);
    EXPECT_THAT(exit_of({"--help"}).text, HasSubstr("--topology"));
}

TEST(InfoOptions, TheSummaryIsPrintedWhenNothingElseIs) {
    for (const auto& arguments : {std::vector<std::string>{}, {"--json"}, {"-n", "3"}}) {
        const auto parsed = parse_options(arguments);
        const auto* options = std::get_if<Options>(&parsed);
        ASSERT_NE(options, nullptr);
        EXPECT_TRUE(options->summary);
        EXPECT_EQ(options->pes_given, !arguments.empty() && arguments[0] == "-n");
    }
    for (const char* argument : {"-p", "-t", "-c", "-b", "-V", "--doctor", "--draw=x.svg", "--save=x.xml"}) {
        const auto parsed = parse_options({argument});
        const auto* options = std::get_if<Options>(&parsed);
        ASSERT_NE(options, nullptr);
        EXPECT_FALSE(options->summary) << argument;
    }
}

TEST(InfoOptions, MistakesReturnStatus2AndPrintTheProgramsName) {
    for (const auto& arguments : {std::vector<std::string>{"--plugin"},
                                  {"-n", "0", "-t"},
                                  {"-n", "many"},
                                  {"-t", "surplus"},
                                  {"-t", "-n", "2", "--nodes", "3"}}) {
        const EarlyExit exit = exit_of(arguments);
        EXPECT_EQ(exit.status, 2) << arguments[0];
        EXPECT_THAT(exit.text, AllOf(StartsWith("npushmem-info: "), HasSubstr("--help")));
    }
}

TEST(ReadableEnvironment, IsEverythingWhenNothingIsMalformed) {
    const FakeEnvironment all{{"NPUSHMEM_PLUGIN_PATH", "/mine"}, {"NPUSHMEM_NO_SUCH", "1"}};
    const ReadableEnvironment readable(all);
    EXPECT_TRUE(readable.errors().empty());
    EXPECT_EQ(readable.npushmem_variables(), all.npushmem_variables());
    EXPECT_EQ(readable.get("NPUSHMEM_PLUGIN_PATH"), "/mine");
    EXPECT_EQ(readable.get("NPUSHMEM_PE"), std::nullopt);
}

TEST(ReadableEnvironment, LeavesOutAndNamesEachMalformedVariable) {
    const FakeEnvironment all{
        {"NPUSHMEM_DISABLE_P2P", "perhaps"}, {"NPUSHMEM_PLUGIN_PATH", "/mine"}, {"NPUSHMEM_SYMMETRIC_SIZE", "large"}};
    const ReadableEnvironment readable(all);
    ASSERT_EQ(readable.errors().size(), 2U);
    EXPECT_THAT(readable.errors()[0].message(), HasSubstr("NPUSHMEM_DISABLE_P2P"));
    EXPECT_THAT(readable.errors()[1].message(), HasSubstr("NPUSHMEM_SYMMETRIC_SIZE"));
    const auto config = Config::read(readable);
    ASSERT_TRUE(config.ok()) << config.status().message();
    EXPECT_EQ(config.value().settings().plugin_path, "/mine");
}

}  // namespace

}  // namespace npushmem::info
