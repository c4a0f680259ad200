// SPDX-License-Identifier: BSD-3-Clause
#include "core/plugin/opened_plugin.hpp"

#include <gmock/gmock.h>

#include "npushmem/plugin/host.hpp"
#include "npushmem/testing/fake_host.hpp"
#include "tests/fakes/fake_os.hpp"

namespace npushmem {

namespace {

constexpr npushmem_config_row rows[] = {{"X_COUNT", "3", "uint", "how many"}, {"X_NAME", "", "string", "what"}};

TEST(PluginHost, AnswersWithTheRuntimesValueThenTheRowsDefault) {
    fakes::FakeHost outer;
    outer.set("X_NAME", "given");
    outer.set("DEBUG", "info");
    const PluginHost own(outer.table(), rows);
    const Host seen(&own.table(), "x");
    EXPECT_EQ(seen.config("X_NAME"), "given");
    EXPECT_EQ(seen.config("X_COUNT"), "3");
    EXPECT_EQ(seen.config("DEBUG"), "info") << "the runtime's own variables are visible too";
    EXPECT_EQ(seen.config("NO_ROW", "otherwise"), "otherwise");
}

TEST(PluginHost, AnswersWithTheEnvironmentWhereTheRuntimeDoesNotKnowTheRow) {
    fakes::FakeHost outer;
    const FakeEnvironment environment{{"NPUSHMEM_X_COUNT", "7"}, {"NPUSHMEM_X_NAME", "env"}, {"NPUSHMEM_Y", "1"}};
    outer.set("X_NAME", "runtime");
    const PluginHost own(outer.table(), rows, environment);
    const Host seen(&own.table(), "x");
    EXPECT_EQ(seen.config("X_COUNT"), "7");
    EXPECT_EQ(seen.config("X_NAME"), "runtime");
    EXPECT_EQ(seen.config("Y", "no row"), "no row");
}

TEST(PluginHost, ChecksTheValuesThatThePluginWillSee) {
    fakes::FakeHost outer;
    EXPECT_TRUE(PluginHost(outer.table(), rows).check_values().ok());
    outer.set("X_COUNT", "-1");
    const Status wrong = PluginHost(outer.table(), rows).check_values();
    EXPECT_EQ(wrong.code(), Code::config);
    EXPECT_THAT(wrong.message(), ::testing::HasSubstr("NPUSHMEM_X_COUNT is '-1'"));
}

TEST(PluginHost, PassesLinesOn) {
    fakes::FakeHost outer;
    const PluginHost own(outer.table(), rows);
    Host(&own.table(), "x").log(LogLevel::warn, "a line");
    ASSERT_EQ(outer.lines().size(), 1U);
    EXPECT_EQ(outer.lines()[0].subsystem, "x");
    EXPECT_EQ(outer.lines()[0].text, "a line");
}

TEST(PluginHost, WorksWithAHostWithoutServices) {
    const npushmem_host bare{sizeof bare, 1, 0, nullptr, nullptr, nullptr};
    const PluginHost own(bare, rows);
    const Host seen(&own.table(), "x");
    seen.log(LogLevel::info, "into the void");
    EXPECT_EQ(seen.config("X_COUNT"), "3");
}

}  // namespace

}  // namespace npushmem
