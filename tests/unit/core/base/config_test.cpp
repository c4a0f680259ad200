#include "core/base/config.hpp"

#include <gmock/gmock.h>

#include <set>

#include "tests/fakes/fake_environment.hpp"

namespace npushmem {
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

TEST(Config, TheEnvironmentWinsAndIsRemembered) {
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

TEST_P(MalformedVariable, IsNamedWithItsValueAndWhatIsAccepted) {
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
                                           Malformed{"DEBUG", "loud", "error, warn, info, debug, trace"},
                                           Malformed{"NPU_BLOCKS", "0", "between 1 and 1024"}));

TEST(Config, UnknownVariablesGetTheNearestName) {
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

TEST(Config, AMalformedPluginValueIsRefused) {
    auto config = Config::read(FakeEnvironment{{"NPUSHMEM_FAKE_SEED", "x"}});
    ASSERT_TRUE(config.ok());
    const npushmem_config_row rows[] = {{"FAKE_SEED", "7", "uint", "a seed"}};
    EXPECT_THAT(config.value().declare("fake", rows).message(), HasSubstr("NPUSHMEM_FAKE_SEED='x'"));
}

TEST(CheckTyped, KnowsTheTypesOfTheInterface) {
    EXPECT_TRUE(check_typed("bool", "on").ok());
    EXPECT_TRUE(check_typed("int", "-3").ok());
    EXPECT_FALSE(check_typed("uint", "-3").ok());
    EXPECT_TRUE(check_typed("size", "4K").ok());
    EXPECT_TRUE(check_typed("list", "a,b").ok());
    EXPECT_THAT(check_typed("colour", "red").message(), HasSubstr("unknown type 'colour'"));
}

}  // namespace
}  // namespace npushmem
