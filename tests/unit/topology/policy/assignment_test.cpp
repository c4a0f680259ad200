// SPDX-License-Identifier: BSD-3-Clause
#include "topology/policy/assignment.hpp"

#include <gmock/gmock.h>

#include <random>

namespace npushmem::topology {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

NicChoice choice(const std::string& nic, DistanceClass distance, std::vector<std::uint32_t> shared_with = {}) {
    return {nic, 1, 0, 0, distance, 0, std::move(shared_with)};
}

TEST(ReasonOf, ReportsANearestUnsharedNic) {
    EXPECT_EQ(reason_of({choice("n0", DistanceClass::pix)}, {}),
              "n0:1 is the nearest, behind the same PCIe switch (PIX), not shared");
}

TEST(ReasonOf, CountsEquallyNearAndNamesSharers) {
    ReasonFacts facts;
    facts.equally_near = 4;
    EXPECT_EQ(reason_of({choice("n0", DistanceClass::phb, {3})}, facts),
              "n0:1 is one of the 4 nearest, through the same host bridge (PHB), shared with PE 3");
}

TEST(ReasonOf, ReportsTheUsersEntryAndANearerNic) {
    ReasonFacts facts;
    facts.decided_by = "NPUSHMEM_HCA_LIST gives it, in turn, ";
    facts.nearer = "n1:1 (PIX)";
    EXPECT_EQ(
        reason_of({choice("n0", DistanceClass::sys)}, facts),
        "NPUSHMEM_HCA_LIST gives it, in turn, n0:1, across NUMA nodes (SYS), not shared; n1:1 (PIX) would be nearer");
}

TEST(ReasonOf, ListsFurtherNics) {
    EXPECT_EQ(
        reason_of({choice("n0", DistanceClass::pix), choice("n1", DistanceClass::node)}, {}),
        "n0:1 is the nearest, behind the same PCIe switch (PIX), not shared; besides n1:1 (NODE), because there are "
        "more NICs than PEs");
}

TEST(ReasonOf, ReportsAnUnknownPlace) {
    ReasonFacts facts;
    facts.place_known = false;
    EXPECT_EQ(reason_of({choice("n0", DistanceClass::sys)}, facts),
              "n0:1 is the nearest, at an unknown place, which counts as farthest (SYS), not shared");
}

TEST(PesText, AbbreviatesLongLists) {
    EXPECT_EQ(pes_text({7}), "PE 7");
    EXPECT_EQ(pes_text({1, 2}), "PEs 1 and 2");
    EXPECT_EQ(pes_text({1, 2, 3, 4}), "PEs 1, 2, 3 and 4");
    EXPECT_EQ(pes_text({1, 2, 3, 4, 5, 6}), "PEs 1, 2, 3, 4 and 2 more");
}

PeAssignment pe_with(std::uint32_t pe, const std::vector<std::uint32_t>& rail_numbers) {
    PeAssignment out;
    out.pe = pe;
    for (const auto number : rail_numbers) {
        NicChoice nic;
        nic.nic = "n" + std::to_string(number);
        nic.rail_number = number;
        out.nics.push_back(nic);
    }
    return out;
}

std::vector<std::pair<std::uint32_t, std::uint32_t>> rails_of(const std::vector<NicPair>& pairs) {
    std::vector<std::pair<std::uint32_t, std::uint32_t>> out;
    for (const auto& pair : pairs) out.emplace_back(pair.mine.rail_number, pair.theirs.rail_number);
    return out;
}

TEST(PairNics, PairsEqualRails) {
    EXPECT_THAT(rails_of(pair_nics(pe_with(0, {0, 1}), pe_with(9, {1, 0}))),
                ElementsAre(std::pair(0, 0), std::pair(1, 1)));
    EXPECT_THAT(rails_of(pair_nics(pe_with(9, {0, 3}), pe_with(0, {5, 3}))), ElementsAre(std::pair(3, 3)));
}

TEST(PairNics, ReportsThatThereIsNoCommonRail) {
    const auto pairs = pair_nics(pe_with(0, {2}), pe_with(9, {4}));
    EXPECT_THAT(rails_of(pairs), ElementsAre(std::pair(2, 4)));
    EXPECT_EQ(pairs[0].why, "rails 2 and 4, no rail in common");
}

TEST(PairNics, IsEmptyWithoutNics) {
    EXPECT_THAT(pair_nics(pe_with(0, {}), pe_with(1, {1})), IsEmpty());
    EXPECT_THAT(pair_nics(pe_with(0, {1}), pe_with(1, {})), IsEmpty());
}

Assignment sample() {
    Assignment out;
    out.method = "balanced";
    out.notes = {"mlx5_3:1 is down and not used", ""};
    out.pes.push_back({7, "emulated", {{"a", 1, 5, 250, DistanceClass::node, 200'000'000'000, {9}, 3}}, "because"});
    out.pes.push_back({8, "", {}, ""});
    out.pes.push_back(
        {9, "x", {{"a", 1, 0, 0, DistanceClass::pix, 0, {7}, 0}, {"b", 1, 1, 1, DistanceClass::sys, 1, {}, 0}}, "y"});
    return out;
}

void expect_refused(const std::vector<std::byte>& bytes, const std::string& why) {
    const auto read = assignment_from(bytes);
    ASSERT_FALSE(read.ok());
    EXPECT_EQ(read.status().code(), Code::protocol);
    EXPECT_THAT(read.status().message(), HasSubstr(why));
}

TEST(AssignmentBytes, AreDecodedAsTheyWereEncoded) {
    for (const auto& assignment : {sample(), Assignment{}}) {
        const auto read = assignment_from(to_bytes(assignment));
        ASSERT_TRUE(read.ok()) << read.status().message();
        EXPECT_EQ(read.value(), assignment);
    }
}

TEST(AssignmentBytes, BeginWithMagicAndVersion) {
    const auto bytes = to_bytes(sample());
    EXPECT_EQ(std::string(reinterpret_cast<const char*>(bytes.data()), 4), "NPTA");
    EXPECT_EQ(bytes[4], std::byte{4});
}

TEST(AssignmentBytes, GrowWithThePesNotWithTheirSquare) {
    Assignment assignment;
    constexpr std::uint32_t pes = 1024;
    for (std::uint32_t pe = 0; pe < pes; ++pe) {
        NicChoice nic{"eth0", 1, 0, 0, DistanceClass::phb, 0, {}, 0};
        for (std::uint32_t other = 0; other < pes; ++other) {
            if (other != pe) nic.shared_with.push_back(other);
        }
        assignment.pes.push_back({pe, "", {nic}, ""});
    }
    const auto bytes = to_bytes(assignment);
    EXPECT_LT(bytes.size(), pes * 100u);
    EXPECT_EQ(assignment_from(bytes).value(), assignment);
}

TEST(AssignmentBytes, AreRefusedWhenCutOffAnywhere) {
    const auto bytes = to_bytes(sample());
    for (std::size_t size = 0; size < bytes.size(); ++size) {
        EXPECT_FALSE(assignment_from(std::span(bytes).first(size)).ok()) << size << " bytes";
    }
}

TEST(AssignmentBytes, AreRefusedWithTheReason) {
    auto bytes = to_bytes(sample());
    bytes.push_back(std::byte{0});
    expect_refused(bytes, "present");
    bytes = to_bytes(sample());
    bytes[0] = std::byte{'X'};
    expect_refused(bytes, "magic number is wrong");
    bytes = to_bytes(sample());
    bytes[4] = std::byte{2};
    expect_refused(bytes, "version 2, but this library has version 4");
    bytes = to_bytes(sample());
    bytes.back() ^= std::byte{1};
    expect_refused(bytes, "checksum");
}

// Random payloads with a correct checksum, as a faulty writer could send them.
TEST(AssignmentBytes, SurviveAnyPayload) {
    std::mt19937 random(3);
    const auto original = to_bytes(sample());
    constexpr std::size_t header = 24;
    for (int round = 0; round < 2000; ++round) {
        auto bytes = original;
        for (int change = 0; change < 3; ++change) {
            bytes[header + random() % (bytes.size() - header)] = static_cast<std::byte>(random());
        }
        std::uint64_t hash = 0xcbf29ce484222325;
        for (std::size_t i = header; i < bytes.size(); ++i) {
            hash = (hash ^ std::to_integer<std::uint64_t>(bytes[i])) * 0x100000001b3;
        }
        for (std::size_t i = 0; i < 8; ++i) bytes[16 + i] = static_cast<std::byte>(hash >> (8 * i));
        const auto read = assignment_from(bytes);
        if (read.ok()) {
            EXPECT_EQ(to_bytes(read.value()), bytes) << "accepted bytes have one meaning";
        } else {
            EXPECT_THAT(read.status().message(), HasSubstr("lengths do not fit"));
        }
    }
}

}  // namespace
}  // namespace npushmem::topology
