// SPDX-License-Identifier: BSD-3-Clause
// The emulated NPU's two modes for PEs that are not mapped: kernels get the same results in both.
#include "core/remote/npu_remote.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <thread>
#include <utility>

#include "tests/fakes/fake_slices.hpp"
#include "tests/unit/core/remote/npu_waits_fixture.hpp"

namespace npushmem {

namespace {

using fakes::ArrayPe;
using fakes::FakeFabric;
using npu::Core;
using npu::RemoteMode;
using ::testing::HasSubstr;

SliceAddressing addressing_of(fakes::SymmetricArray& array) {
    return {[&array](const void* address) {
                const auto offset =
                    reinterpret_cast<std::uintptr_t>(address) - reinterpret_cast<std::uintptr_t>(array.base(0));
                return offset < array.part() ? offset : npu::RemoteOperations::no_offset;
            },
            [&array](std::uint64_t offset) { return array.part() - offset; }};
}

// PE 0 of three.
class NpuRemoteModes : public ::testing::TestWithParam<RemoteMode> {
protected:
    NpuRemoteModes() {
        if (GetParam() == RemoteMode::proxy)
            remote = std::make_unique<NpuProxied>(addressing_of(array), *slices.peers, WaitBudget{}, os);
        else
            remote = std::make_unique<NpuDirect>(addressing_of(array), *slices.peers, array.pes());
        pe.emplace(array, 0, npu::DeviceConfig{.blocks = 4, .vector_cores = 1});
        pe->fabric.unmap_others(*remote);
    }
    Status run(const npu::LaunchConfig& config, const std::function<void(Core&)>& kernel) const {
        return pe->run(config, kernel);
    }

    fakes::SymmetricArray array{3, 4096};
    std::uint64_t* mine = array.at<std::uint64_t>(0);
    std::uint64_t* theirs = array.at<std::uint64_t>(1);
    fakes::FakeSlices slices{array, FakeFabric::Delivery::at_once};
    SystemWaitOs os;
    std::unique_ptr<npu::RemoteOperations> remote;
    std::optional<ArrayPe> pe;  // destroyed before the state of its cores
};

TEST_P(NpuRemoteModes, EveryOperationArrives) {
    theirs[20] = 5;
    auto* narrow = reinterpret_cast<std::int32_t*>(mine + 40);
    const Status status = run(1, [&](Core& core) {
        mine[0] = 11;
        core.put(mine + 8, mine, 1, 1);
        mine[0] = 12;
        for (std::size_t i = 0; i < 100; ++i) mine[100 + i] = i;
        core.put(mine + 100, mine + 100, 100, 1);  // larger than an inline source
        core.get(mine + 16, mine + 20, 1, 1);
        EXPECT_EQ(mine[16], 5U);
        core.signal_set_on(mine + 24, 7, 1);
        core.signal_add_on(mine + 24, 2, 1);
        EXPECT_EQ(core.signal_fetch_on(mine + 24, 1), 9U);
        core.put_signal(mine + 9, mine, 1, mine + 32, 3, 1);
        core.fence();
        EXPECT_EQ(core.atomic_fetch_add_on(mine + 24, 1, 1), 9U);
        EXPECT_EQ(core.atomic_swap_on(mine + 24, 100, 1), 10U);
        EXPECT_EQ(core.atomic_compare_swap_on(mine + 24, 100, 200, 1), 100U);
        EXPECT_EQ(core.atomic_fetch_add_on(narrow, -3, 1), 0);
        EXPECT_EQ(core.atomic_fetch_add_on(narrow, 1, 1), -3);
        core.put(mine + 8, mine, 1, 2);
        core.quiet();
        EXPECT_EQ(array.at<std::uint64_t>(2)[8], 12U);
    });
    EXPECT_TRUE(status.ok()) << status.message();
    EXPECT_EQ(theirs[8], 11U);
    EXPECT_EQ(theirs[9], 12U);
    EXPECT_EQ(theirs[199], 99U);
    EXPECT_EQ(theirs[24], 200U);
    EXPECT_EQ(theirs[32], 3U);
}

TEST_P(NpuRemoteModes, ManyCoresAtOnceAndMoreThanMayBeUnfinished) {
    constexpr std::uint64_t rounds = 500;
    const Status status = run(4, [&](Core& core) {
        const auto at = static_cast<std::size_t>(core.index());
        for (std::uint64_t i = 1; i <= rounds; ++i) {
            mine[8 + at] = i;
            core.put(mine + 8 + at, mine + 8 + at, 1, 1);
            core.signal_add_on(mine + 30, 1, 1 + static_cast<int>(i % 2));
        }
        core.core_barrier();
        if (at == 0) core.quiet();
        core.core_barrier();
        EXPECT_EQ(theirs[8 + at], rounds) << "the quiet of one core is for all";
    });
    EXPECT_TRUE(status.ok()) << status.message();
    EXPECT_EQ(theirs[30] + array.at<std::uint64_t>(2)[30], 4 * rounds);
}

TEST_P(NpuRemoteModes, ErrorsAreReportedToTheCallingCore) {
    const Status beyond = run(1, [&](Core& core) { core.put(mine + 500, mine, 20, 1); });
    EXPECT_EQ(beyond.code(), Code::range);
    EXPECT_THAT(beyond.message(), HasSubstr("reach beyond symmetric memory"));
    std::uint64_t local = 0;
    const Status elsewhere = run(1, [&](Core& core) { core.signal_set_on(&local, 1, 1); });
    EXPECT_EQ(elsewhere.code(), Code::not_symmetric);
    EXPECT_TRUE(run(1, [&](Core& core) { core.put(mine + 8, mine, 1, 1); }).ok());
}

INSTANTIATE_TEST_SUITE_P(All, NpuRemoteModes, ::testing::Values(RemoteMode::proxy, RemoteMode::direct),
                         [](const auto& way) { return way.param == RemoteMode::proxy ? "proxy" : "direct"; });

}  // namespace

// Cores that wait for the proxy: for room, without success, and for an operation that has not failed.
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

TEST_F(ProxiedCores, StartNoThreadBeforeTheFirstRequest) {
    EXPECT_EQ(npu->offset_of(&slice[2]), 16U);  // expects no call of the transport
}

// A core at its limit of unfinished requests waits for room; another one does not.
TEST_F(ProxiedCores, WaitForRoomWithoutBlockingOthers) {
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
    const Status reported = npu->quiet(first);
    EXPECT_EQ(reported.code(), Code::peer_dead);
    EXPECT_THAT(reported.message(), HasSubstr("transport mock: a put to PE 1 failed"));
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

// A dead peer or an aborted launch ends the wait of its core; late failures are dropped.
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

// The queues of cores in direct mode, and the completion of other cores' puts.
namespace {

using ::testing::_;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::InSequence;
using ::testing::Mock;
using ::testing::Return;
using Kind = npu::RemoteAtomic::Kind;

// Runs a function the first time it has to wait.
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
    put(2, second, 3);  // another PE's: the core does not wait for it
    InSequence order;
    EXPECT_CALL(transport, quiet(2)).WillOnce(Return(Code::again)).WillOnce(Return(Code::ok));
    EXPECT_CALL(transport, fence(1)).WillOnce(Return(Code::ok));
    EXPECT_CALL(transport, put_signal(1, _, _)).WillOnce(Return(Code::ok));
    EXPECT_TRUE(npu->put_signal(&slice[8], &slice[0], 8, &slice[9], 1, 1, first).ok());
    // A completed operation is not tested again.
    EXPECT_CALL(transport, fence(1)).WillOnce(Return(Code::ok));
    EXPECT_CALL(transport, atomic(1, Field(&npushmem_atomic::operation, NPUSHMEM_ATOMIC_SET), _))
        .WillOnce(Return(Code::ok));
    EXPECT_TRUE(set(1, first).ok());
}

// A fetching operation is complete on return.
TEST_F(DirectCores, DoNotWaitForFetchesOfOthers) {
    EXPECT_CALL(transport, atomic(1, _, _)).WillOnce(Return(Code::ok));
    EXPECT_CALL(transport, atomic(2, _, _)).WillOnce(Return(Code::ok));
    EXPECT_CALL(transport, quiet(_)).Times(0);
    std::uint64_t before = 0;
    EXPECT_TRUE(npu->atomic({Kind::fetch_add, &slice[8], 8, 1}, &before, 1, first).ok());
    EXPECT_TRUE(npu->atomic({Kind::fetch_add, &slice[8], 8, 1}, &before, 1, second).ok());
}

TEST_F(DirectCores, QuietAndFenceCoverOperationsOfAllCores) {
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

// An operation whose completion one core awaits is not complete for another.
TEST_F(DirectCores, ASignalFollowsOperationsThatAnotherCoreIsCompleting) {
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

// Otherwise operations might always be in flight.
TEST_F(DirectCores, PostNoPutWhileAnotherCoreCompletesTheirPuts) {
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
    put(2, first, 2);  // nothing was incomplete: the same queue
}

TEST_F(DirectCores, DestroyTheirQueuesWithTheDevice) {
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

// A program may keep a device after finalize.
TEST_F(DirectCores, MayOutliveTheRemoteObject) {
    put(1, first, 1);
    EXPECT_CALL(transport, destroy_queue(1)).WillOnce(Return(Code::ok));
    npu.reset();
    Mock::VerifyAndClearExpectations(&transport);  // not in the device's destructor: the transport does not exist then
    EXPECT_CALL(transport, destroy_queue(1)).Times(0);
    first.core_state().reset();
    Mock::VerifyAndClearExpectations(&transport);
    NpuWaitsFixture::expect_life();
    npu.emplace(places(), *peers, 3);
    put(1, second, 2);
}

}  // namespace

}  // namespace npushmem
