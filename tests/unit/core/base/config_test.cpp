// SPDX-License-Identifier: BSD-3-Clause
#include <gmock/gmock.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <set>
#include <span>
#include <string>
#include <string_view>

#include "core/base/config.hpp"
#include "tests/fakes/fake_os.hpp"

namespace npushmem {

namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

Result<Config> with_size(const std::string& text) {
    return Config::read(FakeEnvironment{{"SHMEM_SYMMETRIC_SIZE", text}});
}

struct Size {
    const char* text;
    std::uint64_t bytes;
};

class StandardSize : public ::testing::TestWithParam<Size> {};

TEST_P(StandardSize, IsTheCeilingOfTheProduct) {
    const auto config = with_size(GetParam().text);
    ASSERT_TRUE(config.ok()) << config.status().message();
    EXPECT_EQ(config.value().settings().symmetric_size.value, GetParam().bytes);
}

INSTANTIATE_TEST_SUITE_P(Texts, StandardSize,
                         ::testing::Values(Size{"20m", 20971520}, Size{"3.1m", 3250586}, Size{"3.1M", 3250586},
                                           Size{".5m", 524288}, Size{"0.5m", 524288}, Size{"4096", 4096},
                                           Size{"1.5", 2}, Size{"3.5KiB", 3584}, Size{"2G", 2ULL << 30},
                                           Size{"1t", 1ULL << 40}, Size{"7K", 7168}, Size{"512MB", 512ULL << 20},
                                           Size{" 64m ", 64ULL << 20}, Size{"0", 1}, Size{"1.", 1}));

class NoStandardSize : public ::testing::TestWithParam<const char*> {};

TEST_P(NoStandardSize, IsRejectedWithVariableAndValue) {
    const Status status = with_size(GetParam()).status();
    EXPECT_EQ(status.code(), Code::config);
    EXPECT_THAT(status.message(), HasSubstr(std::string("SHMEM_SYMMETRIC_SIZE='") + GetParam() + "'"));
    EXPECT_THAT(status.message(), HasSubstr("a decimal number"));
}

INSTANTIATE_TEST_SUITE_P(Texts, NoStandardSize,
                         ::testing::Values("", "m", "-1", "1x", "lots", "nan", "inf", "0x10", "1,5m", "99999999t",
                                           "20kk", "1Gfoo", "1g b", "1kibi", "16777216.5t", "1b", "7 k", "1e3"));

TEST(StandardVariables, AnyValueEnablesInfoVersionAndDebug) {
    for (const char* value : {"", "0", "1", "yes", "whatever"}) {
        const auto config =
            Config::read(FakeEnvironment{{"SHMEM_INFO", value}, {"SHMEM_VERSION", value}, {"SHMEM_DEBUG", value}});
        ASSERT_TRUE(config.ok()) << config.status().message();
        EXPECT_EQ(config.value().settings().info, StartReportForm::text);
        EXPECT_TRUE(config.value().settings().version);
        EXPECT_EQ(config.value().settings().debug, "debug");
    }
}

TEST(StandardVariables, OwnNamesPrecedeStandardNamesThenDeprecatedOnes) {
    const auto all = Config::read(FakeEnvironment{{"NPUSHMEM_SYMMETRIC_SIZE", "1M"},
                                                  {"SHMEM_SYMMETRIC_SIZE", "2M"},
                                                  {"SMA_SYMMETRIC_SIZE", "3M"},
                                                  {"SMA_VERSION", "1"}});
    ASSERT_TRUE(all.ok());
    EXPECT_EQ(all.value().settings().symmetric_size.value, 1ULL << 20);
    EXPECT_THAT(all.value().describe_standard(),
                AllOf(HasSubstr("SHMEM_SYMMETRIC_SIZE=2M is overruled by NPUSHMEM_SYMMETRIC_SIZE=1M"),
                      HasSubstr("SMA_VERSION=1 sets NPUSHMEM_VERSION=1")));
    const auto two = Config::read(FakeEnvironment{{"SHMEM_SYMMETRIC_SIZE", "2M"}, {"SMA_SYMMETRIC_SIZE", "3M"}});
    EXPECT_EQ(two.value().settings().symmetric_size.value, 2ULL << 20);
    const auto one = Config::read(FakeEnvironment{{"SMA_SYMMETRIC_SIZE", "3M"}});
    EXPECT_EQ(one.value().settings().symmetric_size.value, 3ULL << 20);
}

TEST(StartReportForms, AreNoneTextAndJson) {
    const auto form_of = [](const char* text) {
        const auto config = Config::read(FakeEnvironment{{"NPUSHMEM_INFO", text}});
        EXPECT_TRUE(config.ok()) << config.status().message();
        return config.value().settings().info;
    };
    EXPECT_EQ(Config::read(FakeEnvironment{}).value().settings().info, StartReportForm::none);
    EXPECT_EQ(form_of("0"), StartReportForm::none);
    EXPECT_EQ(form_of("off"), StartReportForm::none);
    EXPECT_EQ(form_of("1"), StartReportForm::text);
    EXPECT_EQ(form_of("true"), StartReportForm::text);
    EXPECT_EQ(form_of(" JSON "), StartReportForm::json);
    for (const char* text : {"", "2", "xml", "json,1"}) {
        const Status status = Config::read(FakeEnvironment{{"NPUSHMEM_INFO", text}}).status();
        EXPECT_EQ(status.code(), Code::config);
        EXPECT_THAT(status.message(), AllOf(HasSubstr(std::string("NPUSHMEM_INFO='") + text + "'"),
                                            HasSubstr("expected one of: 0, 1, json")));
    }
}

// An overruled malformed value does not fail the start.
TEST(StandardVariables, IgnoresAMalformedOverruledVariable) {
    const auto config =
        Config::read(FakeEnvironment{{"NPUSHMEM_SYMMETRIC_SIZE", "1M"}, {"SHMEM_SYMMETRIC_SIZE", "lots"}});
    EXPECT_TRUE(config.ok()) << config.status().message();
}

TEST(StandardVariables, AreAllDescribed) {
    EXPECT_EQ(standard_variables().size(), 4U);
    for (const auto& variable : standard_variables())
        EXPECT_THAT(describe_standard_variables(), AllOf(HasSubstr(variable.names[0]), HasSubstr(variable.meaning)));
    const auto none = Config::read(FakeEnvironment{});
    EXPECT_EQ(none.value().describe_standard(), "");
    EXPECT_FALSE(none.value().is_standard_variable_set("INFO"));
}

}  // namespace

namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(Config, EveryDefaultParses) {
    const auto config = Config::read(FakeEnvironment{});
    ASSERT_TRUE(config.ok()) << config.status().message();
    EXPECT_EQ(config.value().settings().symmetric_size.value, 1ULL << 30);
    EXPECT_EQ(config.value().settings().transports, "self,p2p");
    EXPECT_EQ(config.value().effective().size(), config_rows().size());
}

TEST(Config, NamesAreUniqueAndDocumented) {
    std::set<std::string> names;
    for (const auto& row : config_rows()) {
        EXPECT_TRUE(names.insert(row.name).second) << row.name;
        EXPECT_STRNE(row.meaning, "") << row.name;
        EXPECT_STRNE(row.type, "") << row.name;
    }
}

TEST(Config, TheEnvironmentOverridesDefaultsAndIsKept) {
    const auto config = Config::read(FakeEnvironment{{"NPUSHMEM_SYMMETRIC_SIZE", "64M"}, {"HOME", "/"}});
    ASSERT_TRUE(config.ok());
    EXPECT_EQ(config.value().settings().symmetric_size.value, 64ULL << 20);
    EXPECT_STREQ(config.value().value("SYMMETRIC_SIZE"), "64M");
    for (const auto& row : config.value().effective()) EXPECT_EQ(row.from_environment, row.name == "SYMMETRIC_SIZE");
}

struct Malformed {
    const char* name;
    const char* value;
    const char* complaint;
};

class MalformedVariable : public ::testing::TestWithParam<Malformed> {};

TEST_P(MalformedVariable, IsReportedWithItsValueAndTheAcceptedSyntax) {
    const std::string name = std::string("NPUSHMEM_") + GetParam().name;
    const auto config = Config::read(FakeEnvironment{{name, GetParam().value}});
    EXPECT_EQ(config.status().code(), Code::config);
    EXPECT_THAT(config.status().message(), HasSubstr(name + "='" + GetParam().value + "'"));
    EXPECT_THAT(config.status().message(), HasSubstr(GetParam().complaint));
}

INSTANTIATE_TEST_SUITE_P(Rows, MalformedVariable,
                         ::testing::Values(Malformed{"SYMMETRIC_SIZE", "1X", "such as 512M"},
                                           Malformed{"SYMMETRIC_SIZE", "0", "cannot have 0 bytes"},
                                           Malformed{"DISABLE_P2P", "maybe", "true or false"},
                                           Malformed{"PE", "-2", "between -1 and"},
                                           Malformed{"TIMEOUT", "soon", "such as 2.5s"},
                                           Malformed{"NIC_POLICY", "best", "balanced, nearest"},
                                           Malformed{"ON_ERROR", "panic", "job, report, exit"},
                                           Malformed{"ON_PEER_DEATH", "cry", "job, survive"},
                                           Malformed{"DEBUG", "loud", "error, warn, info, debug, trace"},
                                           Malformed{"NPU_BLOCKS", "0", "between 1 and 1024"}));

TEST(Config, SuggestsTheNearestNameForUnknownVariables) {
    const auto config = Config::read(FakeEnvironment{{"NPUSHMEM_SYMETRIC_SIZE", "1G"}, {"NPUSHMEM_ZZZZ", "1"}});
    ASSERT_TRUE(config.ok());
    EXPECT_THAT(config.value().unknown_variables(),
                ElementsAre("unknown variable NPUSHMEM_SYMETRIC_SIZE is ignored; did you mean NPUSHMEM_SYMMETRIC_SIZE?",
                            "unknown variable NPUSHMEM_ZZZZ is ignored"));
}

TEST(Config, PluginsAddTheirRows) {
    auto config = Config::read(FakeEnvironment{{"NPUSHMEM_FAKE_DELAY", "3us"}});
    ASSERT_TRUE(config.ok());
    const npushmem_config_row rows[] = {{"FAKE_DELAY", "1us", "duration", "a delay"},
                                        {"FAKE_SEED", "7", "uint", "a seed"}};
    ASSERT_TRUE(config.value().declare("fake", rows).ok());
    ASSERT_TRUE(config.value().declare("fake", rows).ok()) << "repeating is allowed";
    EXPECT_STREQ(config.value().value("FAKE_DELAY"), "3us");
    EXPECT_STREQ(config.value().value("FAKE_SEED"), "7");
    EXPECT_EQ(config.value().value("FAKE_NOTHING"), nullptr);
    EXPECT_THAT(config.value().unknown_variables(), IsEmpty());
}

// The plugin may be closed by then.
TEST(Config, KeepsTheTextsOfAPluginsRows) {
    auto config = Config::read(FakeEnvironment{});
    ASSERT_TRUE(config.ok());
    std::array<std::string, 5> texts{"FAKE_DELAY_OF_A_PLUGIN", "a default value of some length", "string",
                                     "the meaning of the variable", "the name of the plugin"};
    const auto wanted = texts;
    const npushmem_config_row row{texts[0].c_str(), texts[1].c_str(), texts[2].c_str(), texts[3].c_str()};
    ASSERT_TRUE(config.value().declare(texts[4].c_str(), std::span(&row, 1)).ok());
    for (std::string& text : texts) std::ranges::fill(text, '?');
    const Config copy = config.value();
    const EffectiveValue& kept = copy.effective().back();
    EXPECT_EQ((std::array{kept.name, kept.default_value, kept.type, kept.meaning, kept.subsystem}),
              (std::array<std::string_view, 5>{wanted[0], wanted[1], wanted[2], wanted[3], wanted[4]}));
    EXPECT_EQ(kept.value, wanted[1]);
}

TEST(Config, AMalformedPluginValueIsRefused) {
    auto config = Config::read(FakeEnvironment{{"NPUSHMEM_FAKE_SEED", "x"}});
    ASSERT_TRUE(config.ok());
    const npushmem_config_row rows[] = {{"FAKE_SEED", "7", "uint", "a seed"}};
    EXPECT_THAT(config.value().declare("fake", rows).message(), HasSubstr("NPUSHMEM_FAKE_SEED='x'"));
}

TEST(IsSecret, DependsOnWordsOfTheName) {
    for (const char* name : {"UNIQUEID", "FABRIC_SECRET", "BOOTSTRAP_UID_SESSION_ID", "FABRIC_SESSION", "FABRIC_TOKEN",
                             "FABRIC_PASSWORD", "FABRIC_PASSWD_FILE", "FABRIC_CREDENTIALS", "PMIX_COOKIE"})
        EXPECT_TRUE(is_secret(name)) << name;
    for (const char* name : {"", "PE", "BOOTSTRAP", "BOOTSTRAP_UID_SOCK_IFNAME", "FABRIC_PATH", "SYMMETRIC_SIZE"})
        EXPECT_FALSE(is_secret(name)) << name;
}

TEST(CheckTyped, AcceptsTheTypesOfTheInterface) {
    EXPECT_TRUE(check_typed("bool", "on").ok());
    EXPECT_TRUE(check_typed("int", "-3").ok());
    EXPECT_FALSE(check_typed("uint", "-3").ok());
    EXPECT_TRUE(check_typed("size", "4K").ok());
    EXPECT_TRUE(check_typed("list", "a,b").ok());
    EXPECT_THAT(check_typed("colour", "red").message(), HasSubstr("unknown type 'colour'"));
}

TEST(ProcessEnvironment, IsEmptyForAProgramThatHasGainedPrivileges) {
    ASSERT_EQ(::setenv("NPUSHMEM_CONFIG_TEST", "seen", 1), 0);
    EXPECT_EQ(ProcessEnvironment(false).get("NPUSHMEM_CONFIG_TEST"), "seen");
    EXPECT_TRUE(ProcessEnvironment(false).npushmem_variables().contains("NPUSHMEM_CONFIG_TEST"));
    EXPECT_EQ(ProcessEnvironment(true).get("NPUSHMEM_CONFIG_TEST"), std::nullopt);
    EXPECT_TRUE(ProcessEnvironment(true).npushmem_variables().empty());
    ::unsetenv("NPUSHMEM_CONFIG_TEST");
    EXPECT_FALSE(has_gained_privileges());
}

}  // namespace

}  // namespace npushmem
