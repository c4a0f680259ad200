// SPDX-License-Identifier: BSD-3-Clause
#include "core/plugin/transport_stack.hpp"

#include <gmock/gmock.h>

namespace npushmem {

namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

std::vector<std::string> texts(std::string_view selection) {
    const auto parsed = parse_transport_selection(selection);
    if (!parsed.ok()) return {parsed.status().message()};
    std::vector<std::string> out;
    for (const auto& stack : parsed.value()) out.push_back(stack.text());
    return out;
}

TEST(TransportSelection, ReadsListsAndNests) {
    EXPECT_THAT(texts("self,fault(p2p),trace(fault(p2p))"),
                ::testing::ElementsAre("self", "fault(p2p)", "trace(fault(p2p))"));
    EXPECT_THAT(texts("  self ,\tfault ( p2p ) "), ::testing::ElementsAre("self", "fault(p2p)"));
    EXPECT_THAT(texts("p2p"), ::testing::ElementsAre("p2p"));
    EXPECT_THAT(texts("fault(./dir/libnpushmem_transport_x.so)"),
                ::testing::ElementsAre("fault(./dir/libnpushmem_transport_x.so)"));
}

TEST(TransportSelection, KeepsPositionsAndOrder) {
    const auto parsed = parse_transport_selection("self,trace(p2p)");
    ASSERT_TRUE(parsed.ok());
    const TransportStack& stack = parsed.value()[1];
    ASSERT_EQ(stack.layers.size(), 2U);
    EXPECT_EQ(stack.layers[0].name, "trace");
    EXPECT_EQ(stack.layers[0].position, 6U);
    EXPECT_EQ(stack.innermost(), "p2p");
    EXPECT_EQ(stack.layers[1].position, 12U);
}

struct Malformed {
    const char* text;
    const char* place;
    const char* says;
};

TEST(TransportSelection, ReportsThePositionAndTheError) {
    const Malformed all[] = {{"", "character 1 (the end)", "expected the name"},
                             {"self,", "character 6 (the end)", "expected the name"},
                             {",self", "character 1", "expected the name"},
                             {"fault(p2p", "character 10 (the end)", "expected ')' to close 'fault('"},
                             {"fault()", "character 7", "expected the name"},
                             {"p2p)", "character 4", "unexpected ')'"},
                             {"self p2p", "character 6", "unexpected 'p'"},
                             {"fault(p2p)(self)", "character 11", "unexpected '('"},
                             {"fault(self,p2p)", "character 11", "expected ')'"},
                             {"p2p,self,p2p", "character 10", "'p2p' is listed twice"}};
    for (const auto& [text, place, says] : all) {
        const auto parsed = parse_transport_selection(text);
        ASSERT_FALSE(parsed.ok()) << text;
        EXPECT_EQ(parsed.status().code(), Code::config);
        EXPECT_THAT(parsed.status().message(), AllOf(HasSubstr(place), HasSubstr(says), HasSubstr("self,p2p"))) << text;
    }
}

TEST(TransportSelection, BoundsItsDepth) {
    std::string deep;
    for (int i = 0; i < 10000; ++i) deep += "a(";
    EXPECT_THAT(parse_transport_selection(deep).status().message(), HasSubstr("more than 15 decorators"));
}

}  // namespace

}  // namespace npushmem
