#include "topology/nic_mapping.hpp"

#include <gmock/gmock.h>

#include <numeric>

namespace npushmem::topology {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

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
                      Wrong{":1:8", "entry 1", "malformed"}, Wrong{"mlx5_0:a:8", "entry 1", "no port number"},
                      Wrong{"mlx5_0:0:8", "entry 1", "no port number"},
                      Wrong{"mlx5_0:1:0", "entry 1", "no number of PEs"},
                      Wrong{"mlx5_0:1:-8", "entry 1", "no number of PEs"},
                      Wrong{"mlx5_0:1:8.0", "entry 1", "no number of PEs"},
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
