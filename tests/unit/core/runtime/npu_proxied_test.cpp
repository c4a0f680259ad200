// Cores that wait for the proxy: for room, in vain, and for something else than what has failed.
#include "core/runtime/npu_proxied.hpp"

#include <thread>

#include "tests/unit/core/runtime/npu_waits_fixture.hpp"

namespace npushmem {
namespace {

using ::testing::_;
using ::testing::DoAll;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::Return;
using ::testing::SetArgPointee;
using Wait = fakes::ThreadRemoteWait;

class ProxiedCores : public NpuWaitsFixture {
protected:
    void SetUp() override {
        NpuWaitsFixture::SetUp();
        npu.emplace(places(), *peers, WaitBudget{}, real_os);
    }
    void TearDown() override {
        npu.reset();
        peers.reset();
    }
    Status put(int pe, npu::RemoteWait& wait) { return npu->put(&slice[8], &slice[0], 8, pe, wait); }
    Status fetch(int pe, std::uint64_t& found, npu::RemoteWait& wait) {
        return npu->atomic({npu::RemoteAtomic::Kind::fetch, &slice[8], 8}, &found, pe, wait);
    }
    // Operations on PE 1 get this answer, and those on PE 2 are done at once.
    void answer_pe_1(std::function<Code()> code) {
        EXPECT_CALL(transport, put(_, Field(&npushmem_rma::pe, 1), _)).WillRepeatedly([code](auto, auto&, auto) {
            return code();
        });
        EXPECT_CALL(transport, put(_, Field(&npushmem_rma::pe, 2), _)).WillRepeatedly(Return(Code::ok));
    }
    static void await(const std::atomic<bool>& flag) {
        while (!flag.load(std::memory_order_acquire)) std::this_thread::yield();
    }

    SystemWaitOs real_os;
    std::optional<NpuProxied> npu;
    std::uint64_t before = 0;
};

TEST_F(ProxiedCores, NeedNoThreadBeforeTheyAskForSomething) {
    EXPECT_EQ(npu->offset_of(&slice[2]), 16U);  // and no call of the transport is expected
}

// A core that has asked for more than may be unfinished waits for room; another one does not.
TEST_F(ProxiedCores, WaitForRoomByThemselves) {
    std::atomic<bool> open{false};
    answer_pe_1([&] { return open.load(std::memory_order_acquire) ? Code::ok : Code::again; });
    Wait first;
    Wait second;
    std::thread stuck([&] {
        for (std::uint64_t i = 0; i < 3 * NpuProxied::max_unfinished; ++i) EXPECT_TRUE(put(1, first).ok());
        EXPECT_TRUE(npu->quiet(first).ok());
    });
    await(first.waiting);
    for (std::uint64_t i = 0; i < 3 * NpuProxied::max_unfinished; ++i) EXPECT_TRUE(put(2, second).ok());
    open.store(true, std::memory_order_release);
    stuck.join();
    EXPECT_TRUE(npu->quiet(second).ok());
}

TEST_F(ProxiedCores, ReceiveTheirOwnFailures) {
    answer_pe_1([] { return Code::peer_dead; });
    Wait first;
    Wait second;
    EXPECT_TRUE(put(1, first).ok()) << "it is handed over";
    EXPECT_TRUE(put(2, second).ok());
    EXPECT_TRUE(npu->quiet(second).ok());
    const Status told = npu->quiet(first);
    EXPECT_EQ(told.code(), Code::peer_dead);
    EXPECT_THAT(told.message(), HasSubstr("transport mock: a put to PE 1 failed"));
    EXPECT_TRUE(npu->quiet(first).ok()) << "once";
}

TEST_F(ProxiedCores, DoNotReceiveFailuresOfEarlierLaunches) {
    answer_pe_1([] { return Code::peer_dead; });
    Wait wait;
    Wait other;
    EXPECT_TRUE(put(1, wait).ok());
    EXPECT_TRUE(npu->quiet(other).ok());  // the proxy has seen the put
    wait.core_state()->begin_launch();
    EXPECT_TRUE(npu->quiet(wait).ok());
}

// A peer that dies, or a launch that is given up, ends the wait of its core; what comes late is told to nobody.
TEST_F(ProxiedCores, StopWaitingWhenCancelled) {
    for (const Code reason : {Code::peer_dead, Code::aborted, Code::timeout}) {
        std::atomic<bool> late{false};
        EXPECT_CALL(transport, atomic(_, Field(&npushmem_atomic::pe, 1), _))
            .WillOnce([](auto, const npushmem_atomic& op, std::uint64_t* token) {
                *static_cast<std::uint64_t*>(op.result) = 99;
                *token = 7;
                return Code::ok;
            })
            .RetiresOnSaturation();
        EXPECT_CALL(transport, atomic(_, Field(&npushmem_atomic::pe, 2), _))
            .WillOnce([](auto, const npushmem_atomic& op, std::uint64_t*) {
                *static_cast<std::uint64_t*>(op.result) = 44;
                return Code::ok;
            })
            .RetiresOnSaturation();
        EXPECT_CALL(transport, test(_, 7)).WillRepeatedly([&](auto, auto) {
            return late.load(std::memory_order_acquire) ? Code::ok : Code::again;
        });
        Wait wait;
        std::uint64_t lost = 5;
        std::thread core([&] {
            const Status ended = fetch(1, lost, wait);
            EXPECT_EQ(ended.code(), reason);
            EXPECT_THAT(ended.message(), HasSubstr("an atomic 1"));
        });
        await(wait.waiting);
        wait.end_with.store(reason, std::memory_order_release);
        core.join();
        wait.end_with.store(Code::ok, std::memory_order_release);
        late.store(true, std::memory_order_release);
        EXPECT_TRUE(fetch(2, before, wait).ok());
        EXPECT_EQ(before, 44U);
        EXPECT_EQ(lost, 5U) << "memory of a caller that has left is not written";
        EXPECT_TRUE(npu->quiet(wait).ok());
    }
}

TEST_F(ProxiedCores, MayEndWithRequestsPending) {
    EXPECT_CALL(transport, put(_, _, _)).WillRepeatedly(Return(Code::again));
    Wait wait;
    for (std::uint64_t i = 0; i < NpuProxied::max_unfinished; ++i) EXPECT_TRUE(put(1, wait).ok());
}

}  // namespace
}  // namespace npushmem
