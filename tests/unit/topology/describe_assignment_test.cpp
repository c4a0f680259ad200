#include <gmock/gmock.h>

#include "topology/describe.hpp"
#include "topology/reason.hpp"

namespace npushmem::topology {
namespace {

Assignment sample_assignment() {
    Assignment out;
    out.method = "balanced";
    out.notes = {"n2:1 is down and not used"};
    out.pes.push_back({0, "here", {{"n0", 1, 0, 0, DistanceClass::pix, 100'000'000'000, {}}}, "because"});
    out.pes.push_back(
        {10, "there", {{"n1", 1, 1, 1, DistanceClass::node, 0, {}}, {"n3", 2, 2, 2, DistanceClass::sys, 0, {}}}, "so"});
    return out;
}

TEST(DescribeAssignment, IsATableWithReasons) {
    EXPECT_EQ(describe(sample_assignment()),
              "NIC assignment (balanced): 2 PEs on 3 NIC ports\n"
              "  PE  NIC   path  rate      why\n"
              "  0   n0:1  PIX   100 Gb/s  because\n"
              "  10  n1:1  NODE  ?         so\n"
              "      n3:2  SYS   ?\n"
              "  PE  device\n"
              "  0   here\n"
              "  10  there\n"
              "  note: n2:1 is down and not used\n");
}

TEST(DescribeAssignment, StaysAsShortAsAsked) {
    EXPECT_EQ(describe(sample_assignment(), 1),
              "NIC assignment (balanced): 2 PEs on 3 NIC ports\n"
              "  PE  NIC   path  rate      why\n"
              "  0   n0:1  PIX   100 Gb/s  because\n"
              "  PE  device\n"
              "  0   here\n"
              "  ... and 1 PE more\n"
              "  note: n2:1 is down and not used\n");
}

Assignment eight_on_one_nic() {
    Assignment out;
    out.method = "balanced";
    for (std::uint32_t pe = 0; pe < 8; ++pe) {
        std::vector<std::uint32_t> others;
        for (std::uint32_t other = 0; other < 8; ++other)
            if (other != pe) others.push_back(other);
        const std::vector<NicChoice> nics{{"eth0", 1, 0, 0, DistanceClass::phb, 0, others}};
        out.pes.push_back({pe, pe % 4 == 0 ? "at the left" : "at the right", nics, reason_of(nics, {})});
    }
    return out;
}

TEST(DescribeAssignment, GivesEqualPesOneLine) {
    EXPECT_EQ(describe(eight_on_one_nic()),
              "NIC assignment (balanced): 8 PEs on 1 NIC port\n"
              "  PE   NIC     path  rate  why\n"
              "  0-7  eth0:1  PHB   ?     eth0:1 is the nearest, through the same host bridge (PHB), shared by 8 PEs\n"
              "  PE       device\n"
              "  0,4      at the left\n"
              "  1-3,5-7  at the right\n");
}

TEST(DescribeAssignment, KeepsLinesApartThatDifferInAnything) {
    Assignment mixed = eight_on_one_nic();
    mixed.pes[3].nics[0].bits_per_second = 1'000'000'000;
    mixed.pes[5].reason = "so";
    const std::string text = describe(mixed);
    EXPECT_THAT(text, ::testing::HasSubstr("\n  0-2,4,6-7  eth0:1"));
    EXPECT_THAT(text, ::testing::HasSubstr("\n  3          eth0:1  PHB   1 Gb/s"));
    EXPECT_THAT(text, ::testing::HasSubstr("\n  5          eth0:1  PHB   ?       so\n"));
}

TEST(DescribeAssignment, SaysPlainlyThatThereIsNoNic) {
    Assignment none;
    none.method = "none, because this host has no NIC";
    none.pes.push_back({0, "here", {}, "this host has no NIC"});
    EXPECT_EQ(describe(none),
              "NIC assignment: none, because this host has no NIC\n"
              "  transports within one host (self, p2p) need none\n"
              "  PE  device\n"
              "  0   here\n");
}

}  // namespace
}  // namespace npushmem::topology
