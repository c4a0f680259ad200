// SPDX-License-Identifier: BSD-3-Clause
#include <gmock/gmock.h>

#include "npushmem/testing/fake_host.hpp"
#include "npushmem/testing/mocks.hpp"
#include "transports/fault/fault_transport.hpp"

namespace npushmem::fault {
namespace {

using ::testing::HasSubstr;

TEST(FailRules, AreReadInOrder) {
    const auto rules = parse_fail_rules("put:3:timeout, register_memory:1:peer_dead");
    ASSERT_TRUE(rules.ok()) << rules.status().message();
    ASSERT_EQ(rules.value().size(), 2U);
    EXPECT_EQ(rules.value()[0].function, Function::put);
    EXPECT_EQ(rules.value()[0].call, 3U);
    EXPECT_EQ(rules.value()[0].code, Code::timeout);
    EXPECT_EQ(rules.value()[1].function, Function::register_memory);
    EXPECT_EQ(rules.value()[1].code, Code::peer_dead);
    EXPECT_TRUE(parse_fail_rules("").value().empty());
}

TEST(FailRules, ErrorsReportTheMistake) {
    EXPECT_THAT(parse_fail_rules("put").status().message(), HasSubstr("as in put:3:timeout"));
    EXPECT_THAT(parse_fail_rules("putt:1:timeout").status().message(), HasSubstr("expected one of: connect"));
    EXPECT_THAT(parse_fail_rules("put:0:timeout").status().message(), HasSubstr("number of the call"));
    EXPECT_THAT(parse_fail_rules("put:1:late").status().message(), HasSubstr("expected one of: argument"));
    EXPECT_FALSE(parse_fail_rules("put:1:ok").ok());
    EXPECT_FALSE(parse_fail_rules("put:1:again").ok());
}

TEST(FaultSettings, HaveDefaultsAndLimits) {
    fakes::FakeHost host;
    const Host services(&host.table(), "fault");
    ASSERT_TRUE(read_settings(services).ok());
    EXPECT_TRUE(read_settings(services).value().reorder);
    host.set("FAULT_SEED", "77");
    EXPECT_EQ(read_settings(services).value().seed, 77U);
    host.set("FAULT_AGAIN", "91");
    const Status wrong = read_settings(services).status();
    EXPECT_EQ(wrong.code(), Code::config);
    EXPECT_THAT(wrong.message(), HasSubstr("NPUSHMEM_FAULT_AGAIN"));
}

}  // namespace

}  // namespace npushmem::fault

namespace npushmem {
namespace {

using ::testing::_;
using ::testing::HasSubstr;

class Fault : public ::testing::Test {
protected:
    Fault() {
        ON_CALL(inner_, put(_, _, _))
            .WillByDefault([this](std::uint64_t, const npushmem_rma& op, std::uint64_t* token) {
                order_.push_back(op.offset);
                *token = 0;
                return Code::ok;
            });
    }
    std::unique_ptr<Transport> open(int pe = 0) {
        auto opened = FaultTransport::open(Host(&host_.table(), "fault"), table_.params(pe));
        EXPECT_TRUE(opened.ok()) << opened.status().message();
        return std::move(opened).value();
    }
    // The order in which 30 puts arrive; it depends on the seed.
    std::vector<std::uint64_t> order_of_puts(int pe) {
        order_.clear();
        const auto fault = open(pe);
        const std::uint64_t queue = fault->create_queue().value();
        for (std::uint64_t offset = 0; offset < 30; ++offset)
            while (fault->put(queue, {1, 0, 1, offset, nullptr, 0}, nullptr) == Code::again) {
            }
        while (fault->quiet(queue) == Code::again) {
        }
        return order_;
    }

    fakes::FakeHost host_;
    ::testing::NiceMock<MockTransport> inner_;
    fakes::InnerTable table_{inner_};
    std::vector<std::uint64_t> order_;
};

TEST_F(Fault, TheSeedDeterminesTheRun) {
    const auto first = order_of_puts(0);
    EXPECT_EQ(first.size(), 30U);
    EXPECT_FALSE(std::is_sorted(first.begin(), first.end()));
    EXPECT_EQ(order_of_puts(0), first);
    EXPECT_NE(order_of_puts(1), first) << "all PEs do the same";
    host_.set("FAULT_SEED", "2");
    EXPECT_NE(order_of_puts(0), first);
}

TEST_F(Fault, FailsTheRequestedCall) {
    host_.set("FAULT_FAIL", "put:2:timeout,put_strided:1:range,import_memory:1:peer_dead,quiet:3:aborted");
    host_.set("FAULT_AGAIN", "0");
    const auto fault = open();
    const std::uint64_t queue = fault->create_queue().value();
    EXPECT_EQ(fault->put(queue, {}, nullptr), Code::ok);
    EXPECT_EQ(fault->put(queue, {}, nullptr), Code::timeout);
    EXPECT_EQ(fault->put(queue, {}, nullptr), Code::ok);
    EXPECT_EQ(fault->put_strided(queue, {}, nullptr), Code::range);
    EXPECT_EQ(fault->put_strided(queue, {}, nullptr), Code::ok);
    const auto imported = fault->import_memory(0, {});
    EXPECT_EQ(imported.status().code(), Code::peer_dead);
    EXPECT_THAT(imported.status().message(), HasSubstr("FAULT_FAIL"));
    EXPECT_TRUE(fault->import_memory(0, {}).ok());
    (void)fault->quiet(queue);
    (void)fault->quiet(queue);
    EXPECT_EQ(fault->quiet(queue), Code::aborted);
}

TEST_F(Fault, ReturnsAgainAtTheRequestedRate) {
    host_.set("FAULT_AGAIN", "50");
    host_.set("FAULT_DELAY", "0");
    const auto fault = open();
    const std::uint64_t queue = fault->create_queue().value();
    int again = 0;
    for (int i = 0; i < 1000; ++i) {
        again += fault->put(queue, {}, nullptr) == Code::again ? 1 : 0;
        (void)fault->progress();
    }
    EXPECT_GT(again, 400);
    EXPECT_LT(again, 600);
}

TEST_F(Fault, RepeatedPostsToAFullQueueFinallySucceed) {
    host_.set("FAULT_DELAY", "1000");
    const auto fault = open();
    const std::uint64_t queue = fault->create_queue().value();
    for (int i = 0; i < 2000; ++i)
        while (fault->put(queue, {}, nullptr) == Code::again) {
        }
    EXPECT_GE(order_.size(), 2000U - fault::HeldQueue::room);
}

TEST_F(Fault, HidesMappingAndOrder) {
    ON_CALL(inner_, reach(_)).WillByDefault([](const npushmem_peer&) {
        return Reach{NPUSHMEM_CAP_MAP | NPUSHMEM_CAP_ORDERED | NPUSHMEM_CAP_PUT, 0, 0, "near"};
    });
    const Reach reach = open()->reach(npushmem_peer{});
    EXPECT_EQ(reach.capabilities, NPUSHMEM_CAP_PUT);
    EXPECT_EQ(reach.why, "near, with faults (seed 1)");
}

TEST_F(Fault, ADestroyedQueueAccessesNoMemory) {
    host_.set("FAULT_DELAY", "1000000");
    const auto fault = open();
    const std::uint64_t queue = fault->create_queue().value();
    while (fault->put(queue, {}, nullptr) == Code::again) {
    }
    EXPECT_CALL(inner_, destroy_queue(queue));
    EXPECT_EQ(fault->destroy_queue(queue), Code::ok);
    EXPECT_CALL(inner_, put(_, _, _)).Times(0);
    for (int i = 0; i < 10; ++i) (void)fault->progress();
    EXPECT_EQ(fault->quiet(queue), Code::argument);
}

}  // namespace

}  // namespace npushmem
