// SPDX-License-Identifier: BSD-3-Clause
#include <gmock/gmock.h>

#include "npushmem/testing/fake_host.hpp"
#include "transports/hccs/links.hpp"

namespace npushmem::hccs {
namespace {

using ::testing::HasSubstr;

std::string refusal(std::string_view text) {
    const auto links = Links::parse(text);
    EXPECT_FALSE(links.ok()) << text;
    EXPECT_EQ(links.status().code(), Code::config);
    return links.status().message();
}

TEST(Links, AFullMeshOfEightHasALinkForEachPair) {
    const auto links = Links::parse("mesh:8");
    ASSERT_TRUE(links.ok());
    for (int a = 0; a < 8; ++a)
        for (int b = 0; b < 8; ++b)
            EXPECT_EQ(links.value().between(a, b).value().kind, a == b ? LinkKind::none : LinkKind::direct);
    EXPECT_EQ(links.value().between(5, 2).value().name(), "HCCS link 2-5");
}

TEST(Links, ASwitchJoinsGroups) {
    for (const char* text : {"mesh:8", "0-7,8-15"}) {
        const auto links = Links::parse(text);
        ASSERT_TRUE(links.ok()) << links.status().message();
        EXPECT_EQ(links.value().between(9, 15).value().kind, LinkKind::direct);
        EXPECT_EQ(links.value().between(7, 8).value().kind, LinkKind::switched);
        EXPECT_EQ(links.value().between(8, 7).value().name(), "the switch between NPU 7 and NPU 8");
    }
}

TEST(Links, ReportsAnNpuInNoGroup) {
    const auto links = Links::parse("0-3,6");
    ASSERT_TRUE(links.ok());
    EXPECT_TRUE(links.value().between(6, 0).ok());
    EXPECT_THAT(links.value().between(0, 4).status().message(), HasSubstr("NPU 4 is in no group"));
    EXPECT_FALSE(links.value().between(-1, 0).ok());
}

TEST(Links, MalformedGroupsAreRejected) {
    EXPECT_THAT(refusal(""), HasSubstr("no group"));
    EXPECT_THAT(refusal("0-7,7-9"), HasSubstr("NPU 7 twice"));
    EXPECT_THAT(refusal("7-0"), HasSubstr("the last NPU of group 7-0 is below its first"));
    EXPECT_THAT(refusal("a-b"), HasSubstr("'a' is not an integer"));
    EXPECT_THAT(refusal("0-"), HasSubstr("number of an NPU"));
    EXPECT_THAT(refusal("mesh:0"), HasSubstr("mesh:0"));
    EXPECT_THAT(refusal("0-999999999"), HasSubstr("999999999"));
}

TEST(Links, ATopologyFileCanDefineThem) {
    const std::string folder = NPUSHMEM_TEST_DATA_DIR "/topologies/";
    EXPECT_EQ(links_in_topology_file(folder + "atlas-800-a2.xml").value(), "0-7");
    EXPECT_EQ(links_in_topology_file(folder + "sixteen-accelerators.xml").value(), "0-7,8-15");
    EXPECT_EQ(links_in_topology_file(folder + "one-nic.xml").value(), "");
    EXPECT_THAT(links_in_topology_file("/").status().message(), HasSubstr("Is a directory"));
    EXPECT_THAT(links_in_topology_file("/nowhere/machine.xml").status().message(),
                HasSubstr("cannot read NPUSHMEM_TOPO_FILE=/nowhere/machine.xml: No such file"));
}

constexpr LinkSpeeds speeds{{1e9, Nanoseconds(100)}, {0.5e9, Nanoseconds(1000)}};  // a byte per ns, and half of it

TEST(LinkClock, TransfersInOneDirectionRunOneAfterTheOther) {
    LinkClock clock(speeds);
    const Path path{LinkKind::direct, 0, 1};
    EXPECT_EQ(clock.transfer(path, Direction::out, 1000, Nanoseconds(50)), Nanoseconds(1150));
    EXPECT_EQ(clock.transfer(path, Direction::out, 500, Nanoseconds(60)), Nanoseconds(1650));
    EXPECT_EQ(clock.transfer(path, Direction::in, 500, Nanoseconds(60)), Nanoseconds(660)) << "the other direction";
    EXPECT_EQ(clock.transfer({LinkKind::direct, 0, 2}, Direction::out, 10, Nanoseconds(60)), Nanoseconds(170))
        << "another link";
    EXPECT_EQ(clock.transfer(path, Direction::out, 8, Nanoseconds(9000)), Nanoseconds(9108)) << "free again";
}

TEST(LinkClock, AllPeersBehindTheSwitchShareOnePort) {
    LinkClock clock(speeds);
    EXPECT_EQ(clock.transfer({LinkKind::switched, 0, 8}, Direction::out, 100, Nanoseconds(0)), Nanoseconds(1200));
    EXPECT_EQ(clock.transfer({LinkKind::switched, 0, 9}, Direction::out, 100, Nanoseconds(0)), Nanoseconds(1400));
}

TEST(LinkClock, ATransferToTheSameNpuTakesNoTime) {
    EXPECT_EQ(LinkClock(speeds).transfer({LinkKind::none, 3, 3}, Direction::out, 1 << 20, Nanoseconds(7)),
              Nanoseconds(7));
}

}  // namespace

namespace {

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

TEST(HccsSettings, ErrorsNameTheVariable) {
    EXPECT_THAT(refusal("HCCS_FAIL", "3"), HasSubstr("'3' is not a link"));
    EXPECT_THAT(refusal("HCCS_FAIL", "3@1-2"), HasSubstr("is not a link"));
    EXPECT_THAT(refusal("HCCS_FAIL", "3-3"), HasSubstr("no link to itself"));
    EXPECT_THAT(refusal("HCCS_FAIL", "3-x"), HasSubstr("NPUSHMEM_HCCS_FAIL"));
    EXPECT_THAT(refusal("HCCS_FAIL", "0-1@many"), HasSubstr("number of transfers in '0-1@many'"));
    EXPECT_THAT(refusal("HCCS_LINKS", "0-7,3"), HasSubstr("NPUSHMEM_HCCS_LINKS"));
    EXPECT_THAT(refusal("HCCS_ENGINES", "0"), HasSubstr("NPUSHMEM_HCCS_ENGINES"));
    EXPECT_THAT(refusal("HCCS_DEPTH", "-1"), HasSubstr("NPUSHMEM_HCCS_DEPTH"));
    EXPECT_THAT(refusal("HCCS_TIMED", "maybe"), HasSubstr("NPUSHMEM_HCCS_TIMED"));
    EXPECT_THAT(refusal("HCCS_BANDWIDTH", "0"), HasSubstr("the bandwidth is 0"));
    EXPECT_THAT(refusal("HCCS_SWITCH_BANDWIDTH", "fast"), HasSubstr("NPUSHMEM_HCCS_SWITCH_BANDWIDTH"));
    EXPECT_THAT(refusal("HCCS_LATENCY", "soon"), HasSubstr("NPUSHMEM_HCCS_LATENCY"));
    EXPECT_THAT(refusal("TOPO_FILE", "/nowhere"), HasSubstr("cannot read"));
}

}  // namespace

}  // namespace npushmem::hccs
