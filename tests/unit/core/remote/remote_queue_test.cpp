// SPDX-License-Identifier: BSD-3-Clause
#include "core/remote/remote_queue.hpp"

#include <gmock/gmock.h>

#include "tests/unit/core/remote/remote_access_fixture.hpp"

namespace npushmem {
namespace {

using ::testing::_;
using ::testing::AllOf;
using ::testing::DoAll;
using ::testing::Field;
using ::testing::InSequence;
using ::testing::IsNull;
using ::testing::NotNull;
using ::testing::Return;
using ::testing::SetArgPointee;

// The queue 9 to PE 1, whose slice is remote 77.
class RemoteQueueTest : public RemoteAccessFixture {
protected:
    RemoteQueueTest() : RemoteAccessFixture(2) {}

    void open(std::uint64_t capabilities = everything) {
        build_map({capabilities, all_atomics, all_atomics, "mock"});
        EXPECT_CALL(transport, connect(_)).WillOnce(Return(Status{}));
        EXPECT_CALL(transport, import_memory(1, _)).WillOnce(Return(std::uint64_t{77}));
        EXPECT_CALL(transport, create_queue()).WillOnce(Return(std::uint64_t{9}));
        EXPECT_CALL(transport, release_memory(77)).WillOnce(Return(Code::ok));
        const auto link = peers->open(1);
        ASSERT_TRUE(link.ok()) << link.status().message();
        queue.emplace(*peers, link.value());
    }
    void TearDown() override {
        EXPECT_CALL(transport, destroy_queue(9)).WillOnce(Return(Code::ok));
        queue.reset();
        peers.reset();
    }
    npushmem_rma transfer() { return {1, 0, 0, 64, &value, sizeof value}; }
    static npushmem_atomic atomic(std::uint8_t operation) { return {1, operation, 8, 0, 0, 64, 1, 0, nullptr}; }

    std::optional<RemoteQueue> queue;
    std::uint64_t value = 5;
    std::uint64_t token = 0;
};

TEST_F(RemoteQueueTest, FencesUpdatesOnlyAndOnce) {
    open();
    npushmem_rma rma = transfer();
    npushmem_atomic fetch = atomic(NPUSHMEM_ATOMIC_FETCH);
    npushmem_atomic add = atomic(NPUSHMEM_ATOMIC_ADD);
    InSequence order;
    EXPECT_EQ(queue->fence(), Code::ok);
    EXPECT_CALL(transport, get(9, Field(&npushmem_rma::remote, 77), IsNull())).WillOnce(Return(Code::ok));
    EXPECT_CALL(transport, atomic(9, Field(&npushmem_atomic::remote, 77), IsNull())).WillOnce(Return(Code::ok));
    EXPECT_EQ(queue->get(rma, nullptr), Code::ok);
    EXPECT_EQ(queue->atomic(fetch, nullptr), Code::ok);
    EXPECT_EQ(queue->fence(), Code::ok) << "gets and fetches need none";
    EXPECT_CALL(transport, put(9, Field(&npushmem_rma::remote, 77), IsNull())).WillOnce(Return(Code::ok));
    EXPECT_CALL(transport, fence(9)).WillOnce(Return(Code::again)).WillOnce(Return(Code::ok));
    EXPECT_EQ(queue->put(rma, nullptr), Code::ok);
    EXPECT_EQ(queue->fence(), Code::again);
    EXPECT_EQ(queue->fence(), Code::ok);
    EXPECT_EQ(queue->fence(), Code::ok) << "nothing was posted since";
    EXPECT_CALL(transport, atomic(9, _, IsNull())).WillOnce(Return(Code::ok));
    EXPECT_CALL(transport, quiet(9)).WillOnce(Return(Code::ok));
    EXPECT_EQ(queue->atomic(add, nullptr), Code::ok);
    EXPECT_TRUE(queue->outstanding());
    EXPECT_EQ(queue->quiet(), Code::ok);
    EXPECT_FALSE(queue->outstanding());
    EXPECT_EQ(queue->fence(), Code::ok) << "everything is complete";
}

// A quiet would take the failures of tokens that their callers still poll.
TEST_F(RemoteQueueTest, IsNotQuietWhileTokensArePolled) {
    open();
    npushmem_rma rma = transfer();
    EXPECT_CALL(transport, put(9, _, NotNull()))
        .WillOnce(DoAll(SetArgPointee<2>(31), Return(Code::ok)))
        .WillOnce(DoAll(SetArgPointee<2>(32), Return(Code::ok)));
    EXPECT_EQ(queue->put(rma, &token), Code::ok);
    EXPECT_EQ(queue->put(rma, &token), Code::ok);
    EXPECT_EQ(queue->quiet(), Code::again);
    EXPECT_CALL(transport, test(9, 31)).WillOnce(Return(Code::again)).WillOnce(Return(Code::range));
    EXPECT_EQ(queue->test(31), Code::again);
    EXPECT_EQ(queue->test(31), Code::range);
    EXPECT_EQ(queue->quiet(), Code::again) << "one is left";
    queue->abandon_token();
    EXPECT_CALL(transport, quiet(9)).WillOnce(Return(Code::ok));
    EXPECT_EQ(queue->quiet(), Code::ok);
}

TEST_F(RemoteQueueTest, ContinuesAPutWithSignalWhereThereWasNoRoom) {
    open(everything & ~NPUSHMEM_CAP_PUT_SIGNAL);
    npushmem_put_signal op{transfer(), 0, 128, 4, NPUSHMEM_SIGNAL_ADD, 0};
    RemoteQueue::PutSignalProgress progress;
    {
        InSequence order;
        EXPECT_CALL(transport, put(9, Field(&npushmem_rma::remote, 77), NotNull()))
            .WillOnce(Return(Code::again))
            .WillOnce(DoAll(SetArgPointee<2>(31), Return(Code::ok)));
        EXPECT_CALL(transport, fence(9)).WillOnce(Return(Code::again)).WillOnce(Return(Code::ok));
        EXPECT_CALL(transport, atomic(9,
                                      AllOf(Field(&npushmem_atomic::operation, NPUSHMEM_ATOMIC_ADD),
                                            Field(&npushmem_atomic::remote, 77), Field(&npushmem_atomic::offset, 128),
                                            Field(&npushmem_atomic::operand, 4)),
                                      IsNull()))
            .WillOnce(Return(Code::again))
            .WillOnce(Return(Code::ok));
    }
    for (int i = 0; i < 3; ++i) {
        EXPECT_EQ(queue->put_signal(op, progress, &token), Code::again);
        EXPECT_EQ(token, 0U) << "the caller has no token before all is posted";
    }
    EXPECT_EQ(queue->put_signal(op, progress, &token), Code::ok);
    EXPECT_EQ(token, 31U);
    EXPECT_EQ(queue->quiet(), Code::again);
}

}  // namespace
}  // namespace npushmem
