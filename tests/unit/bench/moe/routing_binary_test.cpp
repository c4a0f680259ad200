// SPDX-License-Identifier: BSD-3-Clause
#include <gmock/gmock.h>

#include "bench/moe/routing_binary.hpp"
#include "bench/moe/routing_file.hpp"
#include "bench/moe/routing_generator.hpp"

namespace npushmem::moe {

namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// Two ranks, of two tokens and of one; weights without a common unit.
Routing example() { return {"m", "here", 4, 2, {{0, 1, 2, -1}, {3, 0}}, {{0.1F, 2, 1e-30F, -4}, {5.5F, 6}}}; }

constexpr std::size_t tokens_at = 32;
constexpr std::size_t ids_at = tokens_at + 2 * 4 + 5;  // model and origin have five bytes
constexpr std::size_t weights_at = ids_at + 4 * 4;

std::string with(std::size_t at, std::uint32_t word) {
    std::string bytes = routing_binary(example());
    for (std::size_t i = 0; i < 4; ++i) bytes[at + i] = static_cast<char>(word >> (8 * i));
    return bytes;
}

std::string binary_refusal(const std::string& bytes) { return parse_routing(bytes, "f.bin").status().message(); }

void expect_equal(const Routing& a, const Routing& b) {
    EXPECT_EQ(a.model, b.model);
    EXPECT_EQ(a.origin, b.origin);
    EXPECT_EQ(a.experts, b.experts);
    EXPECT_EQ(a.top_k, b.top_k);
    EXPECT_EQ(a.expert_ids, b.expert_ids);
    EXPECT_EQ(a.weights, b.weights);
}

TEST(RoutingBinary, IsReadAsItWasWritten) {
    GeneratorOptions options;
    options.dropped = 0.2;
    options.tokens = 17;
    for (const Routing& routing : {example(), generate_routing(options).value(), Routing{"", "", 1, 1, {{}}, {{}}}}) {
        const auto again = parse_routing(routing_binary(routing), "f.bin");
        ASSERT_TRUE(again.ok()) << again.status().message();
        expect_equal(again.value(), routing);
    }
}

TEST(RoutingBinary, AgreesWithTheTextBitForBit) {
    const auto text = parse_routing(routing_text(example()), "f.json");
    ASSERT_TRUE(text.ok()) << text.status().message();
    expect_equal(text.value(), example());
    EXPECT_EQ(routing_binary(text.value()), routing_binary(example()));
}

TEST(RoutingBinary, KeepsUnusualTextsAndWeights) {
    const Routing odd{"a\nb\"\\", std::string("\0\x1F", 2), 1, 1, {{0, 0}}, {{-0.0F, 0.0F}}};
    const auto text = parse_routing(routing_text(odd), "f.json");
    ASSERT_TRUE(text.ok()) << text.status().message();
    EXPECT_EQ(routing_binary(text.value()), routing_binary(odd));
    const auto replaced = parse_routing(routing_text({"\xFF", "", 1, 1, {{}}, {{}}}), "f.json");
    ASSERT_TRUE(replaced.ok()) << replaced.status().message();
    EXPECT_EQ(replaced.value().model, "\xEF\xBF\xBD") << "what is no UTF-8";
}

// The format is stable for recorded files: these bytes never change.
TEST(RoutingBinary, HasTheDocumentedBytes) {
    const std::string expected(
        "NPUSHRT\0\1\0\0\0\1\0\0\0\3\0\0\0\1\0\0\0\1\0\0\0\2\0\0\0\1\0\0\0abc\2\0\0\0\0\0\200\77", 47);
    EXPECT_EQ(routing_binary({"a", "bc", 3, 1, {{2}}, {{1.0F}}}), expected);
}

TEST(RoutingBinary, HeaderErrorsNameTheField) {
    EXPECT_THAT(binary_refusal(with(8, 2)),
                AllOf(HasSubstr("'f.bin', binary"), HasSubstr("version 2"), HasSubstr("reads version 1")));
    EXPECT_THAT(binary_refusal(with(12, 0)), HasSubstr("the number of ranks is 0, must be from 1"));
    EXPECT_THAT(binary_refusal(with(16, 0x80000000U)), HasSubstr("the number of experts is 2147483648"));
    EXPECT_THAT(binary_refusal(with(20, 0)), HasSubstr("top_k is 0, must be from 1 to 4096"));
    EXPECT_THAT(binary_refusal(with(20, 4097)), HasSubstr("top_k is 4097"));
    EXPECT_THAT(binary_refusal(with(tokens_at + 4, 0xFFFFFFFFU)), HasSubstr("tokens of rank 1 is 4294967295"));
}

TEST(RoutingBinary, SizesThatContradictTheHeaderAreRefused) {
    const std::string whole = routing_binary(example());
    EXPECT_THAT(binary_refusal(whole.substr(0, 31)), AllOf(HasSubstr("has 31 bytes"), HasSubstr("header alone 32")));
    EXPECT_THAT(binary_refusal(whole.substr(0, whole.size() - 1)),
                AllOf(HasSubstr("has 92 bytes"), HasSubstr("must have at least 93"), HasSubstr("cut off")));
    EXPECT_THAT(binary_refusal(whole + "x"), AllOf(HasSubstr("has 94 bytes"), HasSubstr("behind its end")));
    EXPECT_THAT(binary_refusal(with(12, 0x7FFFFFFFU)), AllOf(HasSubstr("2147483647 ranks"), HasSubstr("cut off")));
    EXPECT_THAT(binary_refusal(with(24, 0xFFFFFFFFU)), HasSubstr("cut off"));
    EXPECT_THAT(binary_refusal(with(28, 0xFFFFFFFFU)), HasSubstr("cut off"));
    EXPECT_THAT(binary_refusal(with(tokens_at, 1 << 24)), HasSubstr("cut off"));
}

TEST(RoutingBinary, ContentErrorsNameRankTokenAndChoice) {
    EXPECT_THAT(binary_refusal(with(ids_at + 3 * 4, 4)),
                AllOf(HasSubstr("expert, rank 0, token 1, choice 1: is 4"), HasSubstr("from 0 to 3, or -1")));
    EXPECT_THAT(binary_refusal(with(ids_at, 0xFFFFFFFEU)), HasSubstr("token 0, choice 0: is -2"));
    EXPECT_THAT(binary_refusal(with(weights_at + 2 * 4, 0x7FC00000U)),
                AllOf(HasSubstr("weight, rank 0, token 1, choice 0"), HasSubstr("must be finite")));
    EXPECT_THAT(binary_refusal(with(weights_at + 4 * 4 + 2 * 4, 0x7F800000U)),
                HasSubstr("weight, rank 1, token 0, choice 0"));
}

TEST(RoutingBinary, ParsesDamagedFilesWithoutACrash) {
    const std::string whole = routing_binary(example());
    for (std::size_t i = 0; i < whole.size(); ++i) {
        EXPECT_FALSE(parse_routing(whole.substr(0, i), "f").ok());
        for (const char c : {'\0', '\1', '\x7F', '\xFF'}) {
            std::string bytes = whole;
            bytes[i] = c;
            (void)parse_routing(bytes, "f");
        }
    }
}

}  // namespace

}  // namespace npushmem::moe
