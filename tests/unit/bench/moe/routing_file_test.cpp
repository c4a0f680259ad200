// SPDX-License-Identifier: BSD-3-Clause
#include <gmock/gmock.h>

#include "bench/moe/routing_file.hpp"
#include "bench/moe/routing_generator.hpp"
#include "tests/unit/core/moe/routing_cases.hpp"

namespace npushmem::moe {

namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

const std::string valid = R"({"format": "npushmem-routing", "version": 1, "model": "m", "experts": 4, "top_k": 2,
 "ranks": 2, "tokens_per_rank": [2, 1], "weight_unit": 0.5,
 "expert_ids": [[0, 1, 2, -1], [3, 0]],
 "weights": [[1, 2, 3, 4], [5, 6]]})";

std::string with(const std::string& from, const std::string& to) {
    std::string text = valid;
    text.replace(text.find(from), from.size(), to);
    return text;
}

std::string refusal(const std::string& text) { return parse_routing(text, "f.json").status().message(); }

TEST(RoutingFile, ReadsWhatIsWritten) {
    const auto routing = parse_routing(valid, "f.json");
    ASSERT_TRUE(routing.ok()) << routing.status().message();
    EXPECT_EQ(routing.value().ranks(), 2);
    EXPECT_THAT(routing.value().expert_ids[0], ElementsAre(0, 1, 2, -1));
    EXPECT_THAT(routing.value().weights[1], ElementsAre(2.5F, 3.0F));
}

TEST(RoutingFile, IsTheSameAfterWriteAndParse) {
    GeneratorOptions options;
    options.dropped = 0.2;
    options.tokens = 17;
    options.model = "quote \" and \\";
    const Routing routing = generate_routing(options).value();
    const std::string text = routing_text(routing, generated_weight_unit);
    const auto again = parse_routing(text, "f.json");
    ASSERT_TRUE(again.ok()) << again.status().message();
    EXPECT_EQ(again.value().expert_ids, routing.expert_ids);
    EXPECT_EQ(again.value().weights, routing.weights);
    EXPECT_EQ(again.value().model, routing.model);
    EXPECT_EQ(routing_text(again.value(), generated_weight_unit), text);
}

TEST(RoutingFile, ARankWithoutTokens) {
    const Routing routing{"m", "", 4, 2, {{}, {1, 2}}, {{}, {1, 1}}};
    const auto again = parse_routing(routing_text(routing, 1.0F), "f.json");
    ASSERT_TRUE(again.ok()) << again.status().message();
    EXPECT_TRUE(again.value().expert_ids[0].empty());
}

TEST(RoutingFile, SyntaxErrorsNameLineAndColumn) {
    EXPECT_THAT(refusal(with("\"ranks\": 2,", "\"ranks\": 2;")),
                AllOf(HasSubstr("f.json"), HasSubstr("line 2, column 12")));
    EXPECT_THAT(refusal(valid.substr(0, 200)), AllOf(HasSubstr("line 4, column 16"), HasSubstr("cut off")));
    EXPECT_THAT(refusal(""), HasSubstr("line 1"));
    EXPECT_THAT(refusal("[1]"), HasSubstr("one JSON object"));
}

TEST(RoutingFile, HeaderErrorsNameTheField) {
    EXPECT_THAT(refusal(with("npushmem-routing", "other")), HasSubstr("\"format\""));
    EXPECT_THAT(refusal(with("\"version\": 1", "\"version\": 2")), HasSubstr("is 2, this program reads version 1"));
    EXPECT_THAT(refusal(with("\"experts\": 4,", "")), HasSubstr("\"experts\": is missing"));
    EXPECT_THAT(refusal(with("\"top_k\": 2", "\"top_k\": 0")), HasSubstr("must be a whole number from 1"));
    EXPECT_THAT(refusal(with("\"top_k\": 2", "\"top_k\": 2.5")), HasSubstr("is 2.5"));
    EXPECT_THAT(refusal(with("\"top_k\": 2", "\"top_k\": 99999999999")), HasSubstr("99999999999"));
    EXPECT_THAT(refusal(with("[2, 1]", "[2]")), HasSubstr("array of 2 numbers"));
    EXPECT_THAT(refusal(with("[2, 1]", "[2, -1]")), AllOf(HasSubstr("rank 1"), HasSubstr("-1")));
    EXPECT_THAT(refusal(with("[2, 1]", "[2, 18446744073709551615]")), HasSubstr("rank 1"));
}

TEST(RoutingFile, ContentErrorsNameRankTokenAndChoice) {
    EXPECT_THAT(refusal(with("2, -1]", "2, 4]")), AllOf(HasSubstr("rank 0, token 1, choice 1"), HasSubstr("0 to 3")));
    EXPECT_THAT(refusal(with("2, -1]", "2, -2]")), HasSubstr("is -2"));
    EXPECT_THAT(refusal(with("2, -1]", "2, 18446744073709551615]")), HasSubstr("token 1, choice 1"));
    EXPECT_THAT(refusal(with("2, -1]", "2, \"x\"]")), HasSubstr("is \"x\""));
    EXPECT_THAT(refusal(with("[3, 0]", "[3]")), AllOf(HasSubstr("rank 1"), HasSubstr("has 1 entries, must have 2")));
    EXPECT_THAT(refusal(with("[5, 6]", "[5, null]")), HasSubstr("\"weights\", rank 1, token 0, choice 1"));
    EXPECT_THAT(refusal(with("[5, 6]", "[5, 1e300]")), HasSubstr("finite"));
    EXPECT_THAT(refusal(with("[[1, 2, 3, 4], [5, 6]]", "7")), HasSubstr("array of 2 arrays"));
}

TEST(RoutingFile, ReportsAMissingFileWithTheCommandThatGeneratesOne) {
    const auto routing = read_routing_file("no/such/file.json");
    EXPECT_THAT(routing.status().message(), AllOf(HasSubstr("no/such/file.json"), HasSubstr("npushmem-perf routing")));
}

TEST(RoutingFile, AFolderIsRefused) {
    EXPECT_THAT(read_routing_file("/").status().message(), AllOf(HasSubstr("'/'"), HasSubstr("Is a directory")));
}

// A million arrays in each other exceed the stack of a recursive function.
TEST(RoutingFile, RefusesDeepNestingInAMessage) {
    constexpr std::size_t depth = 1'000'000;
    const std::string nested = std::string(depth, '[') + std::string(depth, ']');
    const std::string text = R"({"format": "npushmem-routing", "version": )" + nested + "}";
    EXPECT_THAT(parse_routing(text, "f").status().message(), HasSubstr("\"version\": is an array, must be"));
}

// Every prefix and every file with one damaged byte is either read or rejected without a crash.
TEST(RoutingFile, ParsesDamagedFilesWithoutACrash) {
    for (std::size_t i = 0; i < valid.size(); ++i) {
        EXPECT_FALSE(parse_routing(valid.substr(0, i), "f").ok());
        for (const char c : {'\0', '9', ']', '"', '-'}) {
            std::string text = valid;
            text[i] = c;
            (void)parse_routing(text, "f");
        }
    }
}

}  // namespace

}  // namespace npushmem::moe
