// SPDX-License-Identifier: BSD-3-Clause
#include "transports/network/wire_event_handler.hpp"

#include <gtest/gtest.h>

#include "tests/unit/transports/network/network_world.hpp"

namespace npushmem::network {
namespace {

using fakes::World;

// A fetch of PE 0 from PE 1, under way, and answers to it that its target has not sent.
class AnswerTest : public ::testing::Test {
protected:
    AnswerTest() {
        world_.start();
        npushmem_atomic fetch = world_.atomic(1, NPUSHMEM_ATOMIC_FETCH_ADD, 0, 1);
        fetch.result = &fetched_;
        EXPECT_EQ(world_.at(0).atomic(world_.queue[0], fetch, &ticket_), Code::ok);
    }
    void answer(int origin, std::int32_t code) {
        Answer forged = make_message<Answer>(MessageKind::answer, origin);
        forged.ticket = ticket_;
        forged.value = 99;
        forged.code = code;
        EXPECT_EQ(world_.wires[static_cast<std::size_t>(origin)]->send({0, 0}, bytes_of(forged), {}), Code::ok);
    }

    // Until nothing can arrive.
    void deliver() {
        while (world_.network.step())
            for (auto& pe : world_.pes) (void)pe->progress();
        for (auto& pe : world_.pes) (void)pe->progress();
    }
    Code test() { return world_.at(0).test(world_.queue[0], ticket_); }

    World world_{Delivery::in_order};
    std::uint64_t ticket_ = 0;
    std::uint64_t fetched_ = 7;
};

TEST_F(AnswerTest, OfAnotherPeIsIgnored) {
    world_.network.hold = {1, 0};  // the target's answer arrives last
    answer(2, NPUSHMEM_OK);
    deliver();
    EXPECT_EQ(test(), Code::again);
    EXPECT_EQ(fetched_, 7U);
    world_.network.hold.reset();
    EXPECT_EQ(world_.finish([&] { return test(); }), Code::ok);
    EXPECT_EQ(fetched_, 0U);
}

TEST_F(AnswerTest, WithTheCodeAgainEndsTheOperationWithAnError) {
    answer(1, NPUSHMEM_AGAIN);
    deliver();
    EXPECT_EQ(test(), Code::protocol);
}

TEST_F(AnswerTest, WithAnUnknownCodeEndsTheOperationWithAnError) {
    answer(1, 12345);
    deliver();
    EXPECT_EQ(test(), Code::protocol);
}

}  // namespace
}  // namespace npushmem::network
