#include "transports/hccs/hccs_settings.hpp"

#include <gmock/gmock.h>

#include "tests/fakes/fake_host.hpp"

namespace npushmem::hccs {
namespace {

using ::testing::HasSubstr;

Result<Settings> read(const std::vector<std::pair<std::string, std::string>>& values) {
    fakes::FakeHost host;
    for (const auto& [name, value] : values) host.set(name, value);
    return read_settings(Host(&host.table(), "hccs"));
}

std::string refusal(const std::string& name, const std::string& value) {
    const auto settings = read({{name, value}});
    EXPECT_FALSE(settings.ok()) << name << "=" << value;
    EXPECT_EQ(settings.status().code(), Code::config);
    return settings.status().message();
}

TEST(HccsSettings, DefaultsAreAServerOfEight) {
    const auto settings = read({});
    ASSERT_TRUE(settings.ok()) << settings.status().message();
    EXPECT_EQ(settings.value().links.between(0, 7).value().kind, LinkKind::direct);
    EXPECT_EQ(settings.value().speeds.direct.bytes_per_second, 28e9);
    EXPECT_EQ(settings.value().speeds.switched.latency, Nanoseconds(2000));
    EXPECT_FALSE(settings.value().timed);
    EXPECT_TRUE(settings.value().failed.empty());
}

TEST(HccsSettings, TheTopologyFileGivesTheLinksUnlessTheUserDoes) {
    const std::string file = NPUSHMEM_TEST_DATA_DIR "/topologies/sixteen-accelerators.xml";
    const auto by_file = read({{"TOPO_FILE", file}});
    ASSERT_TRUE(by_file.ok()) << by_file.status().message();
    EXPECT_EQ(by_file.value().links.group_of(15), 1);
    EXPECT_EQ(by_file.value().links.group_of(16), -1);
    EXPECT_EQ(read({{"TOPO_FILE", file}, {"HCCS_LINKS", "0-31"}}).value().links.group_of(31), 0);
}

TEST(HccsSettings, LinksThatFailAreReadInAnyDirection) {
    const auto failed = parse_failed_links("3-1, 2-5@100");
    ASSERT_TRUE(failed.ok()) << failed.status().message();
    ASSERT_EQ(failed.value().size(), 2U);
    EXPECT_EQ(failed.value()[0].low, 1);
    EXPECT_EQ(failed.value()[0].high, 3);
    EXPECT_EQ(failed.value()[0].after, 0U);
    EXPECT_EQ(failed.value()[1].after, 100U);
}

TEST(HccsSettings, WhatIsWrongIsNamed) {
    EXPECT_THAT(refusal("HCCS_FAIL", "3"), HasSubstr("'3' is no link"));
    EXPECT_THAT(refusal("HCCS_FAIL", "3@1-2"), HasSubstr("is no link"));
    EXPECT_THAT(refusal("HCCS_FAIL", "3-3"), HasSubstr("no link to itself"));
    EXPECT_THAT(refusal("HCCS_FAIL", "3-x"), HasSubstr("NPUSHMEM_HCCS_FAIL"));
    EXPECT_THAT(refusal("HCCS_FAIL", "0-1@many"), HasSubstr("number of transfers in '0-1@many'"));
    EXPECT_THAT(refusal("HCCS_LINKS", "0-7,3"), HasSubstr("NPUSHMEM_HCCS_LINKS"));
    EXPECT_THAT(refusal("HCCS_ENGINES", "0"), HasSubstr("NPUSHMEM_HCCS_ENGINES"));
    EXPECT_THAT(refusal("HCCS_DEPTH", "-1"), HasSubstr("NPUSHMEM_HCCS_DEPTH"));
    EXPECT_THAT(refusal("HCCS_TIMED", "maybe"), HasSubstr("NPUSHMEM_HCCS_TIMED"));
    EXPECT_THAT(refusal("HCCS_BANDWIDTH", "0"), HasSubstr("carries nothing"));
    EXPECT_THAT(refusal("HCCS_SWITCH_BANDWIDTH", "fast"), HasSubstr("NPUSHMEM_HCCS_SWITCH_BANDWIDTH"));
    EXPECT_THAT(refusal("HCCS_LATENCY", "soon"), HasSubstr("NPUSHMEM_HCCS_LATENCY"));
    EXPECT_THAT(refusal("TOPO_FILE", "/nowhere"), HasSubstr("cannot read"));
}

}  // namespace
}  // namespace npushmem::hccs
