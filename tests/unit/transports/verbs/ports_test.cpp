// SPDX-License-Identifier: BSD-3-Clause
#include "transports/verbs/ports.hpp"

#include <gmock/gmock.h>

#include <cstring>

namespace npushmem::verbs {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

npushmem_device port(const std::string& name, const std::string& pci = "", std::uint32_t number = 1) {
    npushmem_device out{};
    out.struct_size = sizeof out;
    out.port = number;
    (void)name.copy(out.name, sizeof out.name - 1);
    (void)pci.copy(out.pci_address, sizeof out.pci_address - 1);
    return out;
}

std::vector<unsigned> numbers_of(const std::vector<npushmem_device>& ports, const std::string& variable = "") {
    const auto rails = rails_of_ports(ports, parse_nic_rails(variable).value());
    EXPECT_TRUE(rails.ok()) << rails.status().message();
    std::vector<unsigned> out;
    for (const RailId& each : rails.value()) out.push_back(each.number);
    return out;
}

ibv_gid gid_of(const std::string& address) {
    // The range of one address begins with it.
    const auto range = GidRange::parse(address);
    EXPECT_TRUE(range.ok());
    ibv_gid out{};
    out.raw[10] = out.raw[11] = 0xff;
    out.raw[12] = 10;
    out.raw[15] = 7;
    EXPECT_TRUE(range.value().begins_with(out.raw)) << address;
    return out;
}

ibv_gid with_prefix(std::uint8_t first, std::uint8_t second) {
    ibv_gid out{};
    out.raw[0] = first;
    out.raw[1] = second;
    out.raw[15] = 7;
    return out;
}

TEST(RailsOfPorts, CountsInTheOrderOfPciAddresses) {
    EXPECT_THAT(numbers_of({port("mlx5_0", "0000:9a:00.0"), port("mlx5_1", "0000:3b:00.0"),
                            port("mlx5_2", "0000:3b:00.1"), port("mlx5_0", "0000:9a:00.0", 2)}),
                ElementsAre(2U, 0U, 1U, 3U));
}

TEST(RailsOfPorts, CountsByNameWithoutPciAddresses) {
    EXPECT_THAT(numbers_of({port("rxe10"), port("rxe2"), port("rxe1")}), ElementsAre(2U, 1U, 0U));
}

TEST(RailsOfPorts, TheUsersNumbersReplaceTheirPlace) {
    const std::vector ports{port("a"), port("b"), port("c")};
    EXPECT_THAT(numbers_of(ports, "b=9"), ElementsAre(0U, 9U, 2U));
    const auto rails = rails_of_ports(ports, parse_nic_rails("b=9").value());
    EXPECT_FALSE(rails.value()[0].given);
    EXPECT_TRUE(rails.value()[1].given);
    EXPECT_THAT(rails_of_ports(ports, parse_nic_rails("d=9").value()).status().message(), HasSubstr("entry 1 \"d=9\""));
}

TEST(SubnetBits, OfAnEthernetPortAreThoseOfItsInterface) {
    const std::vector subnets{GidRange::parse("10.0.0.8/8").value(), GidRange::parse("10.0.0.7/24").value()};
    EXPECT_EQ(subnet_bits(gid_of("10.0.0.7"), true, subnets), 120U);
    EXPECT_EQ(subnet_bits(gid_of("10.0.0.7"), true, std::span(subnets).first(1)), 0U) << "of another interface";
    EXPECT_EQ(subnet_bits(with_prefix(0x20, 1), true, std::vector{GidRange::parse("2000::7/64").value()}), 0U);
    EXPECT_EQ(subnet_bits(with_prefix(0x20, 1), true, std::vector{GidRange::parse("2001::7/64").value()}), 64U);
}

TEST(SubnetBits, OfAnInfiniBandPortAreItsPrefix) { EXPECT_EQ(subnet_bits(with_prefix(0xfe, 0xc0), false, {}), 64U); }

TEST(SubnetBits, LinkLocalAddressesHaveNone) {
    EXPECT_EQ(subnet_bits(with_prefix(0xfe, 0x80), false, {}), 0U)
        << "the prefix of a subnet manager's that nobody set";
    EXPECT_EQ(subnet_bits(with_prefix(0xfe, 0x80), true, std::vector{GidRange::parse("fe80::7/64").value()}), 0U);
}

TEST(HostSubnets, ContainThatOfTheLoopback) {
    const auto subnets = host_subnets();
    EXPECT_TRUE(std::any_of(subnets.begin(), subnets.end(), [](const GidRange& each) {
        return each.text() == "127.0.0.1/8" && each.bits() == 104;
    })) << subnets.size();
}

}  // namespace
}  // namespace npushmem::verbs
