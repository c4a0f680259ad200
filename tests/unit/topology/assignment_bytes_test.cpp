#include "topology/assignment_bytes.hpp"

#include <gmock/gmock.h>

#include <random>

namespace npushmem::topology {
namespace {

using ::testing::HasSubstr;

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

TEST(AssignmentBytes, ComeBackAsTheyWere) {
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
    expect_refused(bytes, "something else");
    bytes = to_bytes(sample());
    bytes[4] = std::byte{2};
    expect_refused(bytes, "version 2 where this library has 4");
    bytes = to_bytes(sample());
    bytes.back() ^= std::byte{1};
    expect_refused(bytes, "check sum");
}

// A matching check sum over nonsense: what a faulty writer could send.
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
