#include "topology/nic_list.hpp"

#include <gmock/gmock.h>

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
        WrongList{"mlx5_0,^mlx5_1", "entry 2 \"^mlx5_1\"", "stands once"},
        WrongList{"^^mlx5_0", "entry 1", "stands once"}, WrongList{"mlx5_0:1:1", "entry 1 \"mlx5_0:1:1\"", "malformed"},
        WrongList{":1", "entry 1", "malformed"}, WrongList{"mlx5_0:", "entry 1", "no port number"},
        WrongList{"mlx5_0:0", "entry 1", "ports count from 1"}, WrongList{"mlx5_0:one", "entry 1", "no port number"},
        WrongList{"mlx5_0:1x", "entry 1", "no port number"}, WrongList{"mlx5_0:-1", "entry 1", "no port number"},
        WrongList{"mlx5_0:99999999999999999999", "entry 1", "no port number"},
        WrongList{"mlx5_0,mlx5_3", "entry 2 \"mlx5_3\"", "no NIC has the name \"mlx5_3\""},
        WrongList{"mlx5-10", "entry 1", "did you mean \"mlx5_10\"?"},
        WrongList{"mlx5_0:2", "entry 1 \"mlx5_0:2\"", "no port 2; it has port 1"},
        WrongList{"mlx5_1:3", "entry 1", "it has port 1, 2"},
        WrongList{"mlx5_1,mlx5_0,mlx5_1:2", "entry 3 \"mlx5_1:2\"", "named twice, see entry 1"},
        WrongList{"^mlx5_0,mlx5_0", "entry 2", "named twice, see entry 1"},
        WrongList{"mlx5_0,mlx5_2:1", "entry 2 \"mlx5_2:1\"", "the port is down"},
        WrongList{"mlx5_2", "entry 1", "every port of the NIC is down"},
        WrongList{"^mlx5_0,mlx5_1,mlx5_10,mlx5_2", "", "excludes every NIC"}));

TEST(NicList, SaysWhenTheHostHasNoNic) {
    const auto chosen = select_rails(parse_nic_list("mlx5_0").value(), {});
    ASSERT_FALSE(chosen.ok());
    EXPECT_THAT(chosen.status().message(), HasSubstr("this host has no NIC"));
}

}  // namespace
}  // namespace npushmem::topology
