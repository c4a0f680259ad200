// SPDX-License-Identifier: BSD-3-Clause
#include "topology/machine/annotations.hpp"

#include <gmock/gmock.h>

namespace npushmem::topology {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

TEST(PortAnnotations, AreReadAsTheyWereWritten) {
    for (const auto state : {PortState::active, PortState::down})
        EXPECT_EQ(parse_port_state(state_text(state)).value(), state);
    for (const std::uint64_t rate : {2'500'000'000ULL, 100'000'000'000ULL, 12'500'000ULL, 65'000ULL, 249'000ULL})
        EXPECT_EQ(parse_port_rate(rate_text_of(rate)).value(), rate);
}

TEST(PortAnnotations, RefuseWhatIsNoNumber) {
    for (const char* text : {"", "x", "4x", " 4", "-1"}) {
        EXPECT_EQ(parse_port_state(text).status().code(), Code::config) << text;
        EXPECT_EQ(parse_port_rate(text).status().code(), Code::config) << text;
    }
    for (const char* text : {"nan", "inf", "1e9"}) EXPECT_FALSE(parse_port_rate(text).ok()) << text;
}

TEST(NpuSites, AcceptAnyOrder) {
    NpuSites sites;
    ASSERT_TRUE(sites.place("2, 0", {7, std::nullopt}).ok());
    ASSERT_TRUE(sites.place("1", {std::nullopt, 3}).ok());
    const auto all = sites.sites();
    ASSERT_TRUE(all.ok());
    ASSERT_THAT(all.value(), SizeIs(3));
    EXPECT_EQ(all.value()[1].numa, 3u);
    EXPECT_EQ(all.value()[2].pci, 7u);
}

TEST(NpuSites, RejectGapsRepetitionsAndWords) {
    NpuSites sites;
    EXPECT_THAT(sites.place("one", {}).message(), HasSubstr("\"one\" is not an NPU number"));
    EXPECT_THAT(sites.place("4000000000", {}).message(), HasSubstr("is not an NPU number"));
    ASSERT_TRUE(sites.place("1", {}).ok());
    EXPECT_THAT(sites.place("1", {}).message(), HasSubstr("placed twice"));
    EXPECT_THAT(sites.sites().status().message(), HasSubstr("NPU 1 is placed, but not NPU 0"));
}

}  // namespace
}  // namespace npushmem::topology
