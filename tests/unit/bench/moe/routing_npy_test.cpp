// SPDX-License-Identifier: BSD-3-Clause
#include "bench/moe/routing_npy.hpp"

#include <gmock/gmock.h>

#include "bench/moe/routing_file.hpp"
#include "bench/moe/routing_load.hpp"

namespace npushmem::moe {

namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string little(std::uint64_t value, int bytes) {
    std::string text;
    for (int i = 0; i < bytes; ++i) text += static_cast<char>(value >> (8 * i));
    return text;
}

std::string file(const std::string& header, const std::string& data, int version = 1) {
    return "\x93NUMPY" + little(static_cast<unsigned>(version), 1) + little(0, 1) +
           little(header.size(), version == 1 ? 2 : 4) + header + data;
}

std::string header(const std::string& type, const std::string& shape, const std::string& order = "False") {
    return "{'descr': '" + type + "', 'fortran_order': " + order + ", 'shape': " + shape + ", }   \n";
}

// Three tokens, two layers, two choices.
std::string npy_example(const std::string& type = "<i4", int bytes = 4, int version = 1) {
    std::string data;
    for (const int id : {0, 1, 10, 11, 2, 3, 12, 13, 4, 5, 14, 15}) data += little(static_cast<unsigned>(id), bytes);
    return file(header(type, "(3, 2, 2)"), data, version);
}

std::string npy_refusal(const std::string& bytes, const NpySelection& selection = {}) {
    return parse_routing(bytes, "f.npy", selection).status().message();
}

TEST(RoutingNpy, ReadsALayerAndDividesTheTokens) {
    for (const int version : {1, 2, 3}) {
        const auto routing = parse_routing(npy_example("<i4", 4, version), "f.npy", {20, 2, 1});
        ASSERT_TRUE(routing.ok()) << routing.status().message();
        EXPECT_EQ(routing.value().experts, 20);
        EXPECT_EQ(routing.value().top_k, 2);
        EXPECT_THAT(routing.value().expert_ids, ElementsAre(ElementsAre(10, 11, 12, 13), ElementsAre(14, 15)));
        EXPECT_THAT(routing.value().weights, ElementsAre(ElementsAre(0.5F, 0.5F, 0.5F, 0.5F), ElementsAre(0.5F, 0.5F)));
    }
    EXPECT_EQ(npy_layers(npy_example(), "f.npy").value(), 2);
}

TEST(RoutingNpy, ReadsEveryTypeOfInteger) {
    for (const auto& [type, bytes] :
         {std::pair{"|i1", 1}, {"|u1", 1}, {"<i2", 2}, {"<u2", 2}, {"<u4", 4}, {"<i8", 8}}) {
        const auto routing = parse_routing(npy_example(type, bytes), "f.npy");
        ASSERT_TRUE(routing.ok()) << type << ": " << routing.status().message();
        EXPECT_THAT(routing.value().expert_ids, ElementsAre(ElementsAre(0, 1, 2, 3, 4, 5))) << type;
        EXPECT_EQ(routing.value().experts, 16) << "the largest number in the file is 15, in layer 1";
    }
}

TEST(RoutingNpy, KeepsDroppedAndRepeatedChoices) {
    const auto routing = parse_routing(
        file(header("<i2", "(2, 1, 2)"), little(0xFFFF, 2) + little(3, 2) + little(3, 2) + little(3, 2)), "f");
    ASSERT_TRUE(routing.ok()) << routing.status().message();
    EXPECT_THAT(routing.value().expert_ids, ElementsAre(ElementsAre(-1, 3, 3, 3)));
}

TEST(RoutingNpy, NoTokensAreARouting) {
    const auto routing = parse_routing(file(header("<i4", "(0, 2, 8)"), ""), "f", {4, 3, 0});
    ASSERT_TRUE(routing.ok()) << routing.status().message();
    EXPECT_THAT(routing.value().expert_ids, ElementsAre(ElementsAre(), ElementsAre(), ElementsAre()));
}

TEST(RoutingNpy, ContentErrorsNameTokenLayerAndChoice) {
    EXPECT_THAT(npy_refusal(npy_example(), {14, 1, 1}),
                AllOf(HasSubstr("'f.npy', npy: token 2, layer 1, choice 0: is 14"), HasSubstr("from 0 to 13, or -1")));
    EXPECT_THAT(npy_refusal(file(header("<i4", "(1, 1, 1)"), little(0xFFFFFFFE, 4))), HasSubstr("choice 0: is -2"));
    EXPECT_THAT(npy_refusal(file(header("<i8", "(1, 1, 1)"), little(0x7FFFFFFFFFFFFFFF, 8))),
                HasSubstr("9223372036854775807"));
    EXPECT_THAT(npy_refusal(npy_example(), {20, 1, 2}), HasSubstr("layer 2 is asked for, it has layers 0 to 1"));
    EXPECT_THAT(npy_refusal(npy_example(), {20, 0, 0}), HasSubstr("0 ranks"));
}

TEST(RoutingNpy, HeaderErrorsNameTheProblem) {
    const std::string data(48, '\0');
    EXPECT_THAT(npy_refusal(file(header("<i4", "(3, 2, 2)", "True"), data)),
                HasSubstr("Fortran order; save numpy.ascontiguousarray"));
    EXPECT_THAT(npy_refusal(file(header("<i4", "(3, 2, 2)", "0"), data)), HasSubstr("expected True or False"));
    EXPECT_THAT(npy_refusal(file(header(">i4", "(3, 2, 2)"), data)),
                HasSubstr("its type is '>i4', must be one of |i1"));
    EXPECT_THAT(npy_refusal(file(header("<f4", "(3, 2, 2)"), data)), HasSubstr("its type is '<f4'"));
    EXPECT_THAT(npy_refusal(file(header("<i4", "(6, 2)"), data)), HasSubstr("has 2 dimensions, must have 3"));
    EXPECT_THAT(npy_refusal(file(header("<i4", "(3, -2, 2)"), data)), HasSubstr("expected a size of 64 bits"));
    EXPECT_THAT(npy_refusal(file(header("<i4", "(3, 0, 2)"), "")), HasSubstr("its shape is (3, 0, 2)"));
    EXPECT_THAT(npy_refusal(file(header("<i4", "(18446744073709551615, 2147483647, 4096)"), data)),
                HasSubstr("at most 16777216 tokens"));
    EXPECT_THAT(npy_refusal(file(header("<i4", "(16777216, 2147483647, 4096)"), data)), HasSubstr("was it cut off?"));
    EXPECT_THAT(npy_refusal(file("{'shape': (1, 1, 1), 'shape': (1, 1, 1)}", data)), HasSubstr("one each of the keys"));
    EXPECT_THAT(npy_refusal(file("{'shape': (1, 1, 1)}", data)), HasSubstr("all of descr, fortran_order and shape"));
    EXPECT_THAT(npy_refusal(file("{'shape': (1, 1, 1) 'descr'}", data)), HasSubstr("expected ',' or '}'"));
    EXPECT_THAT(npy_refusal(file(header("<i4", "(3, 2, 2)") + "x", data)), HasSubstr("expected its end"));
    EXPECT_THAT(npy_refusal(file("", data)), HasSubstr("expected '{'"));
}

TEST(RoutingNpy, SizesThatContradictTheFileAreRefused) {
    EXPECT_THAT(npy_refusal(npy_example().substr(0, 7)), HasSubstr("ends after 7 bytes, in its magic string"));
    EXPECT_THAT(npy_refusal(npy_example().substr(0, 9)), HasSubstr("the length of its header"));
    EXPECT_THAT(npy_refusal(npy_example().substr(0, 30)), HasSubstr("in its header; was it cut off?"));
    EXPECT_THAT(npy_refusal(npy_example().substr(0, npy_example().size() - 1)),
                AllOf(HasSubstr("47 bytes of data"), HasSubstr("cut off")));
    EXPECT_THAT(npy_refusal(npy_example() + "x"), HasSubstr("what is behind its end?"));
    EXPECT_THAT(npy_refusal("\x93NUMPY" + little(4, 2) + little(0, 8)),
                HasSubstr("version 4, this program reads 1 to 3"));
    EXPECT_THAT(npy_refusal("\x93NUMPY" + little(2, 2) + little(0xFFFFFFFF, 4)),
                HasSubstr("header has 4294967295 bytes"));
}

TEST(RoutingNpy, ParsesDamagedFilesWithoutACrash) {
    const std::string whole = npy_example();
    for (std::size_t i = 0; i < whole.size(); ++i) {
        EXPECT_FALSE(parse_routing(whole.substr(0, i), "f").ok());
        for (const char c : {'\0', '\1', '\'', '(', '9', '\x7F', '\xFF'}) {
            std::string bytes = whole;
            bytes[i] = c;
            (void)parse_routing(bytes, "f");
        }
    }
}

TEST(RoutingLoad, CountsRowsOfExpertsRanksAndPairs) {
    // Experts 0 and 1 are on rank 0, 2 on rank 1.
    const Routing routing{"m", "here", 3, 2, {{0, 1, 0, 2}, {2, -1, 2, 2}}, {{1, 1, 1, 1}, {1, 1, 1, 1}}};
    const RoutingLoad load = routing_load(routing);
    EXPECT_THAT(load.expert_rows, ElementsAre(2, 1, 4));
    EXPECT_THAT(load.rank_rows, ElementsAre(3, 4));
    EXPECT_THAT(load.pair_rows, ElementsAre(3, 1, 0, 3));
    EXPECT_THAT(load.pair_token_rows, ElementsAre(2, 1, 0, 2));
    EXPECT_EQ(load.dropped, 1);
    EXPECT_THAT(routing_load_text(routing),
                AllOf(HasSubstr("expert skew 1.714: expert 2 has 4 rows; 0 experts have none"),
                      HasSubstr("rank skew 1.143, rows per rank: 3 4"), HasSubstr("from rank 1: 0 3")));
}

TEST(RoutingLoad, WithoutTokensIsEven) {
    EXPECT_THAT(routing_load_text({"m", "", 3, 2, {{}}, {{}}}),
                HasSubstr("expert skew 1.000: expert 0 has 0 rows; 3 experts"));
}

}  // namespace

}  // namespace npushmem::moe
