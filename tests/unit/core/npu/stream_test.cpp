// SPDX-License-Identifier: BSD-3-Clause
// Streams and events: order, failures, closing, destruction, and two launches that need each other.
#include "npushmem/npu/stream.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <optional>

#include "npushmem/testing/array_fabric.hpp"

namespace npushmem::npu {
namespace {

using fakes::ArrayPe;
using fakes::SymmetricArray;
using std::chrono::milliseconds;
using testing::HasSubstr;

struct StreamTest : testing::Test {
    SymmetricArray array{1, 4096};
    ArrayPe pe{array, 0, {.blocks = 2, .vector_cores = 1}};
    std::uint64_t* word = array.at<std::uint64_t>(0);

    static auto waits_for(std::uint64_t* gate) {
        return [gate](Core& core) { core.signal_wait_until(gate, Compare::not_equal, 0); };
    }
    static void open(std::uint64_t* gate) {
        // Release: pairs with the kernel's wait.
        std::atomic_ref(*gate).store(1, std::memory_order_release);
    }
};

TEST_F(StreamTest, LaunchesRunInOrder) {
    std::vector<int> order;
    for (int i = 0; i < 100; ++i) ASSERT_TRUE(launch(pe.stream(), 1, [&order, i](Core&) { order.push_back(i); }).ok());
    ASSERT_TRUE(pe.stream().synchronize().ok());
    for (int i = 0; i < 100; ++i) EXPECT_EQ(order.at(static_cast<std::size_t>(i)), i);
}

TEST_F(StreamTest, LaunchIsAsynchronous) {
    ASSERT_TRUE(launch(pe.stream(), 1, waits_for(word)).ok());
    EXPECT_EQ(pe.stream().query(), Code::again);
    open(word);
    EXPECT_TRUE(pe.stream().synchronize().ok());
    EXPECT_EQ(pe.stream().query(), Code::ok);
}

TEST_F(StreamTest, WorkersRunLaunchesWithoutSynchronize) {
    std::atomic<int> ran{0};
    // The second half is launched after hosts have run so many launches themselves that workers are no longer woken for
    // each.
    for (int round = 0; round < 2; ++round) {
        ASSERT_TRUE(launch(pe.stream(), 1, [&](Core&) { ran.fetch_add(1); }).ok());
        while (pe.stream().query() == Code::again) std::this_thread::yield();
        for (int i = 0; i < 50 && round == 0; ++i) ASSERT_TRUE(pe.run(1, [](Core&) {}).ok());
    }
    EXPECT_EQ(ran.load(), 2);
}

TEST_F(StreamTest, TimedSynchronizeReturnsWhileTheLaunchContinues) {
    ASSERT_TRUE(launch(pe.stream(), 1, waits_for(word)).ok());
    const Status status = pe.stream().synchronize(milliseconds(2));
    EXPECT_EQ(status.code(), Code::timeout);
    EXPECT_THAT(status.message(), HasSubstr("0 of 1 launches"));
    open(word);
    EXPECT_TRUE(pe.stream().synchronize(std::chrono::hours(1)).ok());
}

TEST_F(StreamTest, LaunchesAfterAFailureAreSkippedUntilItIsReturned) {
    int ran = 0;
    ASSERT_TRUE(launch(pe.stream(), 1, [](Core&) { throw KernelError(Code::mismatch, "first"); }).ok());
    ASSERT_TRUE(launch(pe.stream(), 1, [&](Core&) { ++ran; }).ok());
    ASSERT_TRUE(launch(pe.stream(), 1, [](Core&) { throw KernelError(Code::range, "second"); }).ok());
    EXPECT_EQ(pe.stream().synchronize().code(), Code::mismatch);
    EXPECT_EQ(ran, 0);
    EXPECT_TRUE(pe.stream().synchronize().ok());
    EXPECT_TRUE(pe.run(1, [&](Core&) { ++ran; }).ok());
    EXPECT_EQ(ran, 1);
}

TEST_F(StreamTest, QueryReportsAFailureWithoutClearingIt) {
    ASSERT_TRUE(launch(pe.stream(), 1, [](Core&) { throw KernelError(Code::mismatch, "x"); }).ok());
    while (pe.stream().query() == Code::again) std::this_thread::yield();
    EXPECT_EQ(pe.stream().query(), Code::mismatch);
    EXPECT_EQ(pe.device->synchronize().code(), Code::mismatch);
    EXPECT_TRUE(pe.device->synchronize().ok());
}

TEST_F(StreamTest, EventsOrderStreams) {
    Stream first(*pe.device);
    Stream second(*pe.device);
    Event event;
    EXPECT_TRUE(event.query());
    EXPECT_TRUE(event.synchronize().ok());
    int value = 0;
    int seen = 0;
    ASSERT_TRUE(launch(first, 1, waits_for(word)).ok());
    ASSERT_TRUE(launch(first, 1, [&](Core&) { value = 7; }).ok());
    ASSERT_TRUE(event.record(first).ok());
    ASSERT_TRUE(second.wait(event).ok());
    ASSERT_TRUE(launch(second, 1, [&](Core&) { seen = value; }).ok());
    EXPECT_FALSE(event.query());
    EXPECT_EQ(second.query(), Code::again);
    open(word);
    EXPECT_TRUE(second.synchronize().ok());
    EXPECT_EQ(seen, 7);
    EXPECT_TRUE(event.query());
    EXPECT_TRUE(event.synchronize().ok());
    EXPECT_TRUE(first.synchronize().ok());
}

TEST_F(StreamTest, EventReportsAFailureWithoutClearingIt) {
    Event event;
    ASSERT_TRUE(launch(pe.stream(), 1, [](Core&) { throw KernelError(Code::range, "x"); }).ok());
    ASSERT_TRUE(event.record(pe.stream()).ok());
    EXPECT_EQ(event.synchronize().code(), Code::range);
    EXPECT_EQ(pe.stream().synchronize().code(), Code::range);
}

TEST_F(StreamTest, EventsOfOtherDevicesAreRejected) {
    const ArrayPe other(array, 0);
    Event event;
    ASSERT_TRUE(launch(other.stream(), 1, waits_for(word)).ok());
    ASSERT_TRUE(event.record(other.stream()).ok());
    EXPECT_EQ(pe.stream().wait(event).code(), Code::argument);
    open(word);
    EXPECT_TRUE(event.synchronize().ok());
}

// Each launch waits for the other: a worker that waits in one must adopt the other.
TEST_F(StreamTest, OneWorkerRunsLaunchesThatNeedEachOther) {
    Stream ping(*pe.device);
    Stream pong(*pe.device);
    auto* other = array.at<std::uint64_t>(0, 64);
    const auto kernel = [](Core& core, std::uint64_t* mine, std::uint64_t* theirs) {
        for (std::uint64_t i = 1; i <= 100; ++i) {
            core.signal_set(theirs, i);
            core.signal_wait_until(mine, Compare::greater_equal, i);
        }
    };
    ASSERT_TRUE(launch(ping, 1, kernel, word, other).ok());
    ASSERT_TRUE(launch(pong, 1, kernel, other, word).ok());
    EXPECT_TRUE(ping.synchronize(std::chrono::hours(1)).ok());
    EXPECT_TRUE(pong.synchronize(std::chrono::hours(1)).ok());
}

// Blocks the thread of a kernel until the test opens it, as a barrier of the host does until the last PE enters.
struct Gate {
    std::atomic<bool> entered{false};
    std::atomic<bool> opened{false};

    [[nodiscard]] auto kernel() {
        return [this](Core&) {
            entered.store(true);
            entered.notify_one();
            opened.wait(false);
        };
    }
    void await_entered() const { entered.wait(false); }
    void open() {
        opened.store(true);
        opened.notify_all();
    }
};

LaunchConfig blocking_launch() {
    LaunchConfig config(1);
    config.blocks_thread = true;
    return config;
}

// A launch that blocks its thread must not stop a launch that waits: another PE may need that one first.
TEST_F(StreamTest, WaitingLaunchContinuesWhileAnotherBlocksItsThread) {
    Stream waiting(*pe.device);
    Stream blocking(*pe.device);
    Gate gate;
    std::atomic<bool> started{false};
    ASSERT_TRUE(launch(waiting, 1, [&](Core& core) {
                    started.store(true);
                    started.notify_one();
                    core.signal_wait_until(word, Compare::not_equal, 0);
                }).ok());
    started.wait(false);
    ASSERT_TRUE(launch(blocking, blocking_launch(), gate.kernel()).ok());
    gate.await_entered();
    open(word);
    EXPECT_TRUE(waiting.synchronize(std::chrono::seconds(20)).ok());
    gate.open();
    EXPECT_TRUE(blocking.synchronize().ok());
}

TEST_F(StreamTest, LaunchesRunWhileOneBlocksItsThread) {
    Stream other(*pe.device);
    Stream blocking(*pe.device);
    Gate gate;
    ASSERT_TRUE(launch(blocking, blocking_launch(), gate.kernel()).ok());
    gate.await_entered();
    for (int i = 0; i < 3; ++i) {
        ASSERT_TRUE(launch(other, 1, [](Core&) {}).ok());
        EXPECT_TRUE(other.synchronize(std::chrono::seconds(20)).ok());
    }
    gate.open();
    EXPECT_TRUE(blocking.synchronize().ok());
}

TEST_F(StreamTest, LaunchesThatBlockTheirThreadsRunAtTheSameTime) {
    std::array<Gate, 4> gates;
    std::vector<Stream> streams;
    for (Gate& gate : gates) {
        streams.emplace_back(*pe.device);
        ASSERT_TRUE(launch(streams.back(), blocking_launch(), gate.kernel()).ok());
        ASSERT_TRUE(launch(streams.back(), blocking_launch(), [](Core&) {}).ok());
    }
    for (const Gate& gate : gates) gate.await_entered();
    for (Gate& gate : gates) gate.open();
    for (Stream& stream : streams) EXPECT_TRUE(stream.synchronize(std::chrono::seconds(20)).ok());
}

TEST_F(StreamTest, SeveralWorkersServeSeveralStreams) {
    const ArrayPe many(array, 0, {.blocks = 2, .workers = 3});
    std::vector<Stream> streams;
    std::atomic<int> ran{0};
    for (int i = 0; i < 6; ++i) streams.emplace_back(*many.device);
    for (int i = 0; i < 300; ++i) {
        ASSERT_TRUE(launch(streams[static_cast<std::size_t>(i % 6)], 2, [&](Core& core) {
                        core.core_barrier();
                        ran.fetch_add(1);
                    }).ok());
    }
    EXPECT_TRUE(many.device->synchronize().ok());
    EXPECT_EQ(ran.load(), 300 * 4);
}

TEST_F(StreamTest, ClosedMovedAndOrphanedStreamsRejectLaunches) {
    int ran = 0;
    const auto kernel = [&](Core&) { ++ran; };
    Stream stream(*pe.device);
    ASSERT_TRUE(launch(stream, 1, kernel).ok());
    EXPECT_TRUE(stream.close().ok());
    EXPECT_EQ(ran, 1);
    EXPECT_THAT(launch(stream, 1, kernel).message(), HasSubstr("closed"));
    EXPECT_TRUE(stream.close().ok());

    Stream from(*pe.device);
    Stream to(std::move(from));
    EXPECT_EQ(launch(from, 1, kernel).code(), Code::state);  // NOLINT(bugprone-use-after-move)
    EXPECT_EQ(from.synchronize().code(), Code::state);
    EXPECT_TRUE(launch(to, 1, kernel).ok());
    EXPECT_TRUE(to.synchronize().ok());

    Stream without_device;
    EXPECT_FALSE(without_device.has_device());
    EXPECT_EQ(launch(without_device, 1, kernel).code(), Code::state);
    without_device = Stream(*pe.device);
    EXPECT_TRUE(without_device.has_device());
    EXPECT_TRUE(without_device.belongs_to(*pe.device));

    auto device = std::move(Device::create({}, pe.fabric)).value();
    Stream orphan(*device);
    EXPECT_FALSE(orphan.belongs_to(*pe.device));
    EXPECT_FALSE(from.belongs_to(*pe.device));
    Event event;
    ASSERT_TRUE(event.record(orphan).ok());
    device.reset();
    EXPECT_THAT(launch(orphan, 1, kernel).message(), HasSubstr("destroyed"));
    EXPECT_EQ(orphan.synchronize().code(), Code::state);
    EXPECT_EQ(orphan.query(), Code::state);
    EXPECT_TRUE(event.query());
    EXPECT_EQ(ran, 2);
}

TEST_F(StreamTest, DestroyingADeviceEndsRunningAndDropsQueuedLaunches) {
    const auto alive = std::make_shared<int>(0);
    std::atomic<bool> running{false};
    std::atomic<int> code{0};
    auto device = std::move(Device::create({}, pe.fabric)).value();
    Stream stream(*device);
    ASSERT_TRUE(launch(stream, 1, [&, alive](Core& core) {
                    running = true;
                    try {
                        core.signal_wait_until(word, Compare::equal, 1);
                    } catch (const KernelError& error) {
                        code = static_cast<int>(error.code());
                        throw;
                    }
                }).ok());
    ASSERT_TRUE(launch(stream, 1, [alive](Core&) { ADD_FAILURE() << "ran after the device was gone"; }).ok());
    while (!running) std::this_thread::yield();
    device.reset();
    EXPECT_EQ(code.load(), static_cast<int>(Code::aborted));
    EXPECT_EQ(alive.use_count(), 1);
}

TEST_F(StreamTest, ManyDevicesCanBeCreatedAndDestroyed) {
    for (int i = 0; i < 50; ++i) {
        const ArrayPe each(array, 0);
        int ran = 0;
        EXPECT_TRUE(each.run(1, [&](Core&) { ++ran; }).ok());
        EXPECT_EQ(ran, 2);
    }
}

TEST(DeviceConfig, RejectsSizesOutOfRange) {
    EXPECT_TRUE(DeviceConfig{}.validate().ok());
    const auto refused = [](const DeviceConfig& config, const char* what) {
        EXPECT_EQ(config.validate().code(), Code::config);
        EXPECT_THAT(config.validate().message(), HasSubstr(what));
    };
    refused({.blocks = 0}, "blocks is 0");
    refused({.vector_cores = 17}, "vector_cores is 17");
    refused({.ub_bytes = 1000}, "ub_bytes is 1000");
    refused({.ub_bytes = 4096, .ub_reserved = 4096}, "ub_reserved");
    refused({.workers = 0}, "workers");
    refused({.stack_bytes = 60 * 1024}, "64 KiB to 1 GiB");
    refused({.wait_timeout = milliseconds(-1)}, "wait_timeout");
    refused({.launch_timeout = milliseconds(-1)}, "launch_timeout");
}

}  // namespace
}  // namespace npushmem::npu
