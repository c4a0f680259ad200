// SPDX-License-Identifier: BSD-3-Clause
#include "core/plugin/opened_plugin.hpp"

#include <dlfcn.h>
#include <gmock/gmock.h>

#include "npushmem/plugin/host.hpp"
#include "npushmem/plugin/transport_export.hpp"
#include "npushmem/testing/fake_host.hpp"
#include "npushmem/testing/mocks.hpp"
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

using ::testing::Return;
using MockInstance = ::testing::StrictMock<MockTransport>;

// A plugin with the functions of a C++ class, whose library is the C library. It owns nothing else.
std::shared_ptr<const LoadedTransport> loaded(const char* name, bool has_forget) {
    npushmem_transport_v1 table{};
    detail::TransportTrampolines::fill(table);
    table.name = name;
    if (!has_forget) table.forget = nullptr;
    TableTraits<npushmem_transport_v1>::fill_defaults(table);
    Dl_info library{};
    EXPECT_NE(::dladdr(::dlsym(RTLD_DEFAULT, "getpid"), &library), 0);
    auto opened = SharedLibrary::open(library.dli_fname);
    EXPECT_TRUE(opened.ok()) << opened.status().message();
    return std::make_shared<const LoadedTransport>(FoundPlugin{PluginKind::transport, name, library.dli_fname, {}},
                                                   std::move(opened).value(), table, has_forget ? 1 : 0);
}

// The instance belongs to the result.
std::unique_ptr<OpenedTransport> opened(const char* name, bool has_forget, Transport* instance,
                                        std::unique_ptr<OpenedTransport> inner = nullptr) {
    return std::make_unique<OpenedTransport>(
        detail::TransportSupport{loaded(name, has_forget), nullptr, std::move(inner)}, instance);
}

TEST(OpenedDecorator, WithoutForgetPassesItToTheInnerTransport) {
    auto* const inner = new MockInstance;
    const auto decorator = opened("old", false, new MockInstance, opened("inner", true, inner));
    EXPECT_CALL(*inner, forget(3)).WillOnce(Return(Code::argument));
    EXPECT_EQ(decorator->forget(3), Code::argument);
}

TEST(OpenedDecorator, WithForgetDecidesItself) {
    auto* const outer = new MockInstance;
    const auto decorator = opened("new", true, outer, opened("inner", true, new MockInstance));
    EXPECT_CALL(*outer, forget(3)).WillOnce(Return(Code::ok));
    EXPECT_EQ(decorator->forget(3), Code::ok);
}

TEST(OpenedTransport, WithoutForgetHasNothingToForget) {
    EXPECT_EQ(opened("old", false, new MockInstance)->forget(3), Code::ok);
}

}  // namespace

}  // namespace npushmem
