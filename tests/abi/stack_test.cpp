// SPDX-License-Identifier: BSD-3-Clause
// Opens the user's selection: decorators outside, transports inside.
#include "core/plugin/transport_stack.hpp"

#include <gmock/gmock.h>

#include "core/plugin/plugin_finder.hpp"
#include "npushmem/testing/fake_host.hpp"

namespace npushmem {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class Stack : public ::testing::Test {
protected:
    Result<std::unique_ptr<OpenedTransport>> open(const char* selection) {
        auto parsed = parse_transport_selection(selection);
        if (!parsed.ok()) return parsed.status();
        auto loaded = load_stack(finder_, parsed.value().at(0));
        if (!loaded.ok()) return loaded.status();
        npushmem_transport_params params{};
        params.struct_size = sizeof params;
        params.npes = 1;
        return open_stack(loaded.value(), host_.table(), params);
    }

    fakes::FakeHost host_;
    PluginFinder finder_{plugin_search_path("")};
};

TEST_F(Stack, OpensTheInnermostTransportFirst) {
    auto opened = open("trace(fault(nomap(p2p)))");
    ASSERT_TRUE(opened.ok()) << opened.status().message();
    EXPECT_EQ(opened.value()->label(), "trace(fault(nomap(p2p)))");
    npushmem_peer self{};
    self.struct_size = sizeof self;
    const Reach reach = opened.value()->reach(self);
    EXPECT_FALSE(reach.has(NPUSHMEM_CAP_MAP));
    EXPECT_TRUE(reach.has(NPUSHMEM_CAP_PUT));
    EXPECT_THAT(reach.why, AllOf(HasSubstr("shared memory"), HasSubstr("mapping hidden"), HasSubstr("seed 1"),
                                 HasSubstr("traced")));
}

TEST_F(Stack, ReportsThePositionOfAnUnknownPart) {
    EXPECT_THAT(open("trace(p2q)").status().message(),
                AllOf(HasSubstr("character 7"), HasSubstr("did you mean 'p2p'"), HasSubstr("trace(p2q)")));
}

TEST_F(Stack, RejectsWrappersWithoutAnInnerTransportAndTheReverse) {
    EXPECT_THAT(open("fault").status().message(), AllOf(HasSubstr("wraps another"), HasSubstr("fault(<transport>)")));
    EXPECT_THAT(open("p2p(self)").status().message(), HasSubstr("'p2p' cannot wrap"));
    EXPECT_EQ(open("fault").status().code(), Code::config);
}

TEST_F(Stack, AFailureOfTheOuterTransportClosesTheInnerOnes) {
    host_.set("FAULT_FAIL", "put:x:y");
    for (int i = 0; i < 100; ++i) {
        const auto opened = open("fault(trace(p2p))");
        ASSERT_FALSE(opened.ok());
        EXPECT_THAT(opened.status().message(), AllOf(HasSubstr("NPUSHMEM_FAULT_FAIL"), HasSubstr("put:x:y")));
    }
    host_.set("FAULT_FAIL", "");
    EXPECT_TRUE(open("fault(trace(p2p))").ok());
}

}  // namespace
}  // namespace npushmem
