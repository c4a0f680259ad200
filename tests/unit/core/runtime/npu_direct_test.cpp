// Which queues the cores use that post by themselves, and what one does about what the others have put.
#include "core/runtime/npu_direct.hpp"

#include <functional>
#include <utility>

#include "tests/unit/core/runtime/npu_waits_fixture.hpp"

namespace npushmem {
namespace {

using ::testing::_;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::InSequence;
using ::testing::Mock;
using ::testing::Return;
using Kind = npu::RemoteAtomic::Kind;

// Does something the first time that it has to wait.
class MeanwhileWait final : public npu::RemoteWait {
public:
    explicit MeanwhileWait(std::function<void()> meanwhile) : meanwhile_(std::move(meanwhile)) {}
    Status until(const std::function<bool()>& ready, const char*, int) override {
        while (!ready())
            if (meanwhile_) std::exchange(meanwhile_, nullptr)();
        return {};
    }
    std::unique_ptr<npu::RemoteCoreState>& core_state() override { return own_; }

private:
    std::function<void()> meanwhile_;
    std::unique_ptr<npu::RemoteCoreState> own_;
};

class DirectCores : public NpuWaitsFixture {
protected:
    void SetUp() override {
        NpuWaitsFixture::SetUp();
        npu.emplace(places(), *peers, 3);
    }
    void TearDown() override {
        for (auto* wait : {&first, &second}) wait->core_state().reset();
        npu.reset();
        peers.reset();
    }
    void put(int pe, npu::RemoteWait& wait, std::uint64_t queue) {
        EXPECT_CALL(transport, put(queue, Field(&npushmem_rma::pe, pe), _)).WillOnce(Return(Code::ok));
        EXPECT_TRUE(npu->put(&slice[8], &slice[0], 8, pe, wait).ok());
    }
    Status set(int pe, npu::RemoteWait& wait) { return npu->atomic({Kind::set, &slice[8], 8, 1}, nullptr, pe, wait); }

    std::optional<NpuDirect> npu;
    fakes::ThreadRemoteWait first;
    fakes::ThreadRemoteWait second;
};

TEST_F(DirectCores, HaveQueuesOfTheirOwn) {
    put(1, first, 1);
    put(1, second, 2);
    put(2, second, 3);
    put(1, first, 1);
}

TEST_F(DirectCores, FenceTheirOwnAndCompleteTheOthersBeforeASignal) {
    put(1, first, 1);
    put(1, second, 2);
    put(2, second, 3);  // another PE's: not waited for
    InSequence order;
    EXPECT_CALL(transport, quiet(2)).WillOnce(Return(Code::again)).WillOnce(Return(Code::ok));
    EXPECT_CALL(transport, fence(1)).WillOnce(Return(Code::ok));
    EXPECT_CALL(transport, put_signal(1, _, _)).WillOnce(Return(Code::ok));
    EXPECT_TRUE(npu->put_signal(&slice[8], &slice[0], 8, &slice[9], 1, 1, first).ok());
    // What was complete is not asked again.
    EXPECT_CALL(transport, fence(1)).WillOnce(Return(Code::ok));
    EXPECT_CALL(transport, atomic(1, Field(&npushmem_atomic::operation, NPUSHMEM_ATOMIC_SET), _))
        .WillOnce(Return(Code::ok));
    EXPECT_TRUE(set(1, first).ok());
}

// What an operation has fetched is done.
TEST_F(DirectCores, WaitForNoFetchOfOthers) {
    EXPECT_CALL(transport, atomic(1, _, _)).WillOnce(Return(Code::ok));
    EXPECT_CALL(transport, atomic(2, _, _)).WillOnce(Return(Code::ok));
    EXPECT_CALL(transport, quiet(_)).Times(0);
    std::uint64_t before = 0;
    EXPECT_TRUE(npu->atomic({Kind::fetch_add, &slice[8], 8, 1}, &before, 1, first).ok());
    EXPECT_TRUE(npu->atomic({Kind::fetch_add, &slice[8], 8, 1}, &before, 1, second).ok());
}

TEST_F(DirectCores, QuietAndFenceAreForWhatAllHaveBegun) {
    put(1, first, 1);
    put(2, second, 2);
    EXPECT_CALL(transport, fence(1)).WillOnce(Return(Code::ok));
    EXPECT_CALL(transport, quiet(2)).WillOnce(Return(Code::ok));
    EXPECT_TRUE(npu->fence(first).ok());
    put(2, second, 2);
    EXPECT_CALL(transport, quiet(1)).WillOnce(Return(Code::ok));
    EXPECT_CALL(transport, quiet(2)).WillOnce(Return(Code::peer_dead)).WillOnce(Return(Code::ok));
    const Status failed = npu->quiet(first);
    EXPECT_EQ(failed.code(), Code::peer_dead);
    EXPECT_THAT(failed.message(), HasSubstr("quiet to PE 2 failed"));
    EXPECT_TRUE(npu->quiet(first).ok()) << "what failed is asked again";
    EXPECT_CALL(transport, quiet(_)).WillRepeatedly(Return(Code::ok));
    EXPECT_EQ(npu->quiet(second).code(), Code::peer_dead) << "it had put what failed";
    EXPECT_TRUE(npu->quiet(second).ok());
}

// What is being completed for one core is not complete for another.
TEST_F(DirectCores, ASignalOvertakesNothingThatAnotherCoreIsCompleting) {
    put(1, first, 1);
    int looks = 0;
    EXPECT_CALL(transport, quiet(1)).WillRepeatedly([&] { return ++looks < 3 ? Code::again : Code::ok; });
    EXPECT_CALL(transport, fence(_)).WillRepeatedly(Return(Code::ok));
    EXPECT_CALL(transport, put_signal(_, _, _)).Times(2).WillRepeatedly([&] {
        EXPECT_GE(looks, 3);
        return Code::ok;
    });
    MeanwhileWait waits([&] { EXPECT_TRUE(npu->put_signal(&slice[8], &slice[0], 8, &slice[9], 1, 1, second).ok()); });
    EXPECT_TRUE(npu->put_signal(&slice[8], &slice[0], 8, &slice[9], 1, 1, waits).ok());
    waits.core_state().reset();
}

// Else there might never be a moment in which nothing of it is under way.
TEST_F(DirectCores, PutNothingMoreWhileOthersCompleteWhatTheyHavePut) {
    fakes::ThreadRemoteWait puts;
    puts.end_with.store(Code::timeout, std::memory_order_release);  // for its own until()
    put(1, puts, 1);
    EXPECT_CALL(transport, quiet(1)).WillOnce(Return(Code::again)).WillRepeatedly(Return(Code::ok));
    EXPECT_CALL(transport, fence(_)).WillRepeatedly(Return(Code::ok));
    EXPECT_CALL(transport, put_signal(_, _, _)).WillOnce(Return(Code::ok));
    EXPECT_CALL(transport, put(1, _, _)).Times(0);
    MeanwhileWait waits([&] { EXPECT_EQ(npu->put(&slice[8], &slice[0], 8, 1, puts).code(), Code::timeout); });
    EXPECT_TRUE(npu->put_signal(&slice[8], &slice[0], 8, &slice[9], 1, 1, waits).ok());
    Mock::VerifyAndClearExpectations(&transport);
    EXPECT_CALL(transport, poll_event(_)).WillRepeatedly(Return(Code::again));
    EXPECT_CALL(transport, destroy_queue(_)).WillRepeatedly(Return(Code::ok));
    EXPECT_CALL(transport, release_memory(_)).WillRepeatedly(Return(Code::ok));
    EXPECT_CALL(transport, put(1, _, _)).WillOnce(Return(Code::ok));
    EXPECT_TRUE(npu->put(&slice[8], &slice[0], 8, 1, puts).ok());
    waits.core_state().reset();
    puts.core_state().reset();
}

TEST_F(DirectCores, DoNotWaitForOperationsOfEarlierLaunches) {
    put(1, first, 1);
    first.core_state()->begin_launch();
    EXPECT_CALL(transport, quiet(1)).Times(0);
    put(2, first, 2);
    EXPECT_CALL(transport, quiet(2)).WillOnce(Return(Code::ok));
    EXPECT_TRUE(npu->quiet(first).ok());
    first.core_state()->begin_launch();
    put(2, first, 2);  // nothing was left: the same queue
}

TEST_F(DirectCores, LeaveTheirQueuesWithTheDevice) {
    put(1, first, 1);
    put(1, second, 2);
    EXPECT_CALL(transport, destroy_queue(2)).WillOnce(Return(Code::ok));
    second.core_state().reset();
    Mock::VerifyAndClearExpectations(&transport);
    EXPECT_CALL(transport, poll_event(_)).WillRepeatedly(Return(Code::again));
    EXPECT_CALL(transport, quiet(1)).WillOnce(Return(Code::ok));
    EXPECT_TRUE(npu->quiet(first).ok());
    EXPECT_CALL(transport, destroy_queue(1)).WillOnce(Return(Code::ok));
    EXPECT_CALL(transport, release_memory(_)).WillRepeatedly(Return(Code::ok));
}

// A program may keep a device beyond finalize.
TEST_F(DirectCores, MayOutliveIt) {
    put(1, first, 1);
    EXPECT_CALL(transport, destroy_queue(1)).WillOnce(Return(Code::ok));
    npu.reset();
    Mock::VerifyAndClearExpectations(&transport);  // not when the device goes: then there is no transport any more
    EXPECT_CALL(transport, destroy_queue(1)).Times(0);
    first.core_state().reset();
    Mock::VerifyAndClearExpectations(&transport);
    NpuWaitsFixture::expect_life();
    npu.emplace(places(), *peers, 3);
    put(1, second, 2);
}

}  // namespace
}  // namespace npushmem
