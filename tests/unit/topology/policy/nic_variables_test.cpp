// SPDX-License-Identifier: BSD-3-Clause
#include "topology/policy/nic_variables.hpp"

#include <gmock/gmock.h>

#include <numeric>

namespace npushmem::topology {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

const std::vector<Rail> listed{{"mlx5_0", 1, PortState::active, 0, {}},
                               {"mlx5_1", 1, PortState::active, 0, {}},
                               {"mlx5_1", 2, PortState::unknown, 0, {}},
                               {"mlx5_10", 1, PortState::active, 0, {}},
                               {"mlx5_2", 1, PortState::down, 0, {}}};

Result<std::vector<std::size_t>> select(const std::string& text) {
    const auto list = parse_nic_list(text);
    if (!list.ok()) return list.status();
    return select_rails(list.value(), listed);
}

TEST(NicList, ParsesNamesPortsAndExclusion) {
    const auto list = parse_nic_list(" ^ mlx5_0 , mlx5_1:2 ");
    ASSERT_TRUE(list.ok()) << list.status().message();
    EXPECT_TRUE(list.value().exclude);
    ASSERT_THAT(list.value().entries, SizeIs(2));
    EXPECT_EQ(list.value().entries[0].nic, "mlx5_0");
    EXPECT_EQ(list.value().entries[0].port, std::nullopt);
    EXPECT_EQ(list.value().entries[1].port, 2u);
}

TEST(NicList, KeepsTheUsersOrder) {
    const auto chosen = select("mlx5_10,mlx5_1:2,mlx5_0");
    ASSERT_TRUE(chosen.ok()) << chosen.status().message();
    EXPECT_THAT(chosen.value(), ElementsAre(3, 2, 0));
}

TEST(NicList, MatchesNamesExactly) {
    const auto chosen = select("mlx5_1");
    ASSERT_TRUE(chosen.ok());
    EXPECT_THAT(chosen.value(), ElementsAre(1, 2)) << "mlx5_10 only begins like mlx5_1";
}

TEST(NicList, ExcludesWholeNicsAndSinglePorts) {
    const auto chosen = select("^mlx5_0,mlx5_1:2");
    ASSERT_TRUE(chosen.ok());
    EXPECT_THAT(chosen.value(), ElementsAre(1, 3, 4));
}

TEST(NicList, MayExcludeAPortThatIsDown) { EXPECT_TRUE(select("^mlx5_2").ok()); }

struct WrongList {
    const char* text;
    const char* entry;  // part of the message that names the entry
    const char* complaint;
};

class WrongNicList : public ::testing::TestWithParam<WrongList> {};

TEST_P(WrongNicList, IsRefusedNamingTheEntry) {
    const auto chosen = select(GetParam().text);
    ASSERT_FALSE(chosen.ok());
    EXPECT_EQ(chosen.status().code(), Code::config);
    EXPECT_THAT(chosen.status().message(),
                AllOf(HasSubstr("NPUSHMEM_HCA_LIST"), HasSubstr(GetParam().entry), HasSubstr(GetParam().complaint)));
}

INSTANTIATE_TEST_SUITE_P(
    Texts, WrongNicList,
    ::testing::Values(
        WrongList{"^", "", "names no NIC"}, WrongList{"  ", "", "names no NIC"},
        WrongList{"mlx5_0,,mlx5_1", "entry 2 \"\"", "is empty"}, WrongList{"mlx5_0,", "entry 2", "is empty"},
        WrongList{"mlx5_0,^mlx5_1", "entry 2 \"^mlx5_1\"", "write ^ once"},
        WrongList{"^^mlx5_0", "entry 1", "write ^ once"},
        WrongList{"mlx5_0:1:1", "entry 1 \"mlx5_0:1:1\"", "malformed"}, WrongList{":1", "entry 1", "malformed"},
        WrongList{"mlx5_0:", "entry 1", "not a port number"}, WrongList{"mlx5_0:0", "entry 1", "ports count from 1"},
        WrongList{"mlx5_0:one", "entry 1", "not a port number"}, WrongList{"mlx5_0:1x", "entry 1", "not a port number"},
        WrongList{"mlx5_0:-1", "entry 1", "not a port number"},
        WrongList{"mlx5_0:99999999999999999999", "entry 1", "not a port number"},
        WrongList{"mlx5_0,mlx5_3", "entry 2 \"mlx5_3\"", "no NIC has the name \"mlx5_3\""},
        WrongList{"mlx5-10", "entry 1", "did you mean \"mlx5_10\"?"},
        WrongList{"mlx5_0:2", "entry 1 \"mlx5_0:2\"", "no port 2; it has port 1"},
        WrongList{"mlx5_1:3", "entry 1", "it has port 1, 2"},
        WrongList{"mlx5_1,mlx5_0,mlx5_1:2", "entry 3 \"mlx5_1:2\"", "named twice, see entry 1"},
        WrongList{"^mlx5_0,mlx5_0", "entry 2", "named twice, see entry 1"},
        WrongList{"mlx5_0,mlx5_2:1", "entry 2 \"mlx5_2:1\"", "the port is down"},
        WrongList{"mlx5_2", "entry 1", "every port of the NIC is down"},
        WrongList{"^mlx5_0,mlx5_1,mlx5_10,mlx5_2", "", "excludes every NIC"}));

TEST(NicList, ReportsAHostWithoutNics) {
    const auto chosen = select_rails(parse_nic_list("mlx5_0").value(), {});
    ASSERT_FALSE(chosen.ok());
    EXPECT_THAT(chosen.status().message(), HasSubstr("this host has no NIC"));
}

const std::vector<Rail> rails{{"mlx5_0", 1, PortState::active, 0, {}},
                              {"mlx5_2", 1, PortState::active, 0, {}},
                              {"mlx5_2", 2, PortState::unknown, 0, {}},
                              {"mlx5_3", 1, PortState::down, 0, {}}};
constexpr std::size_t pes = 8;

Result<std::vector<MappedPe>> map_text(const std::string& text) {
    const auto mapping = parse_nic_mapping(text);
    if (!mapping.ok()) return mapping.status();
    std::vector<std::size_t> numbers(pes);
    std::iota(numbers.begin(), numbers.end(), std::size_t{0});
    return map_pes(mapping.value(), rails, numbers, false);
}

std::vector<std::size_t> rails_of_pes(const std::string& text) {
    const auto mapped = map_text(text);
    EXPECT_TRUE(mapped.ok()) << mapped.status().message();
    std::vector<std::size_t> out;
    if (!mapped.ok()) return out;
    for (const auto& pe : mapped.value()) out.push_back(pe.rail);
    return out;
}

TEST(NicMapping, GivesPesToPortsInTheUsersOrder) {
    EXPECT_EQ(rails_of_pes("mlx5_0:1:3,mlx5_2:2:5"), (std::vector<std::size_t>{0, 0, 0, 2, 2, 2, 2, 2}));
    EXPECT_EQ(rails_of_pes(" mlx5_2:2:1 , mlx5_2:1:6,mlx5_0:1:1"), (std::vector<std::size_t>{2, 1, 1, 1, 1, 1, 1, 0}));
}

TEST(NicMapping, RemembersTheEntryOfEachPe) {
    const auto mapped = map_text("mlx5_0:1:3,mlx5_2:2:5");
    ASSERT_TRUE(mapped.ok());
    EXPECT_EQ(mapped.value()[2].entry, 0u);
    EXPECT_EQ(mapped.value()[3].entry, 1u);
}

struct Wrong {
    const char* text;
    const char* entry;
    const char* complaint;
};

class WrongNicMapping : public ::testing::TestWithParam<Wrong> {};

TEST_P(WrongNicMapping, IsRefusedNamingTheEntry) {
    const auto mapped = map_text(GetParam().text);
    ASSERT_FALSE(mapped.ok());
    EXPECT_EQ(mapped.status().code(), Code::config);
    EXPECT_THAT(mapped.status().message(), AllOf(HasSubstr("NPUSHMEM_HCA_PE_MAPPING"), HasSubstr(GetParam().entry),
                                                 HasSubstr(GetParam().complaint)));
}

INSTANTIATE_TEST_SUITE_P(
    Texts, WrongNicMapping,
    ::testing::Values(Wrong{" ", "", "names no NIC"}, Wrong{"mlx5_0:1:3,,mlx5_2:2:5", "entry 2", "is empty"},
                      Wrong{"mlx5_0:1:8,", "entry 2", "is empty"}, Wrong{"mlx5_0", "entry 1 \"mlx5_0\"", "malformed"},
                      Wrong{"mlx5_0:1", "entry 1", "malformed"}, Wrong{"mlx5_0:1:8:9", "entry 1", "malformed"},
                      Wrong{":1:8", "entry 1", "malformed"}, Wrong{"mlx5_0:a:8", "entry 1", "not a port number"},
                      Wrong{"mlx5_0:0:8", "entry 1", "not a port number"},
                      Wrong{"mlx5_0:1:0", "entry 1", "not a number of PEs"},
                      Wrong{"mlx5_0:1:-8", "entry 1", "not a number of PEs"},
                      Wrong{"mlx5_0:1:8.0", "entry 1", "not a number of PEs"},
                      Wrong{"^mlx5_0:1:8", "entry 1", "no NIC has the name \"^mlx5_0\""},
                      Wrong{"mlx5_0:1:3,mlx5_9:1:5", "entry 2 \"mlx5_9:1:5\"",
                            "this host has mlx5_0:1, mlx5_2:1, mlx5_2:2, mlx5_3:1"},
                      Wrong{"mlx5_0:1:3,mlx5_2:3:5", "entry 2", "no port 3; it has port 1, 2"},
                      Wrong{"mlx5_0:1:3,mlx5_2:1:2,mlx5_0:1:3", "entry 3", "named twice, see entry 1"},
                      Wrong{"mlx5_3:1:8", "entry 1", "the port is down"},
                      Wrong{"mlx5_0:1:3,mlx5_2:2:4", "", "add up to 7, but this host has 8 PEs"},
                      Wrong{"mlx5_0:1:9", "", "add up to 9, but this host has 8 PEs"},
                      Wrong{"mlx5_0:1:4294967295,mlx5_2:1:4294967295", "", "add up to 8589934590"}));

}  // namespace
}  // namespace npushmem::topology
