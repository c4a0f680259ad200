// SPDX-License-Identifier: BSD-3-Clause
// Rings between devices in threads: every byte, over many launches in a row, and the errors for a missing peer.
#include "core/moe/ring/core_ring.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <random>

#include "npushmem/npu/device.hpp"
#include "npushmem/npu/launch.hpp"
#include "tests/fakes/dead_pe.hpp"
#include "tests/fakes/thread_world.hpp"
#include "tests/unit/core/moe/ring/ring_kernels.hpp"

namespace npushmem::moe {
namespace {

using ring_test::Exchange;
using ring_test::Script;
using ring_test::total;
using ::testing::AllOf;
using ::testing::HasSubstr;

// The bytes that each PE sends to each PE in a launch. The same on every PE.
Script random_script(int pes, const RingShape& shape, std::uint64_t seed) {
    std::mt19937_64 random(seed);
    Script script(pes, std::vector<std::vector<std::uint64_t>>(pes));
    for (auto& of_source : script) {
        for (auto& batches : of_source) {
            batches.resize(random() % 6);
            for (auto& bytes : batches) {
                bytes = RingShape::unit * (1 + random() % (shape.batch.value() / RingShape::unit));
            }
        }
    }
    return script;
}

std::byte payload(std::uint64_t launch, int source, int destination, std::uint64_t at) {
    return static_cast<std::byte>((launch * 131 + source * 31 + destination * 17 + 1) * (at + 7) >> 2);
}

// One PE's part of successive launches.
class RingPe {
public:
    RingPe(fakes::ThreadWorld& world, int pe, const RingShape& shape, npu::WaitPolicy* waiting = nullptr)
        : pe_(pe), pes_(world.pes()), fabric_(world, pe) {
        npu::DeviceConfig config;
        config.blocks = 1;
        device_ = waiting == nullptr ? std::move(npu::Device::create(config, fabric_)).value()
                                     : std::move(npu::Device::create(config, fabric_, *waiting)).value();
        work_.memory.region = world.base(pe);
        work_.memory.layout = RingLayout(pes_, shape);
    }

    Exchange& work() { return work_; }

    Status exchange(const Script& script, std::uint64_t launch) {
        std::vector<std::byte> x;
        std::uint64_t incoming = 0;
        for (int peer = 0; peer < pes_; ++peer) {
            for (std::uint64_t i = 0; i < total(script[pe_][peer]); ++i) x.push_back(payload(launch, pe_, peer, i));
            incoming += total(script[peer][pe_]);
        }
        out_.assign(incoming, std::byte{0});
        work_.x = x.data();
        work_.out = out_.data();
        work_.script = &script;
        const Status queued = npu::launch(device_->default_stream(), 1, ring_test::exchange, work_);
        return queued.ok() ? device_->default_stream().synchronize() : queued;
    }

    // Returns "" or the first byte that differs from the sent one.
    [[nodiscard]] std::string difference(const Script& script, std::uint64_t launch) const {
        std::size_t at = 0;
        for (int source = 0; source < pes_; ++source) {
            for (std::uint64_t i = 0; i < total(script[source][pe_]); ++i, ++at) {
                if (out_[at] == payload(launch, source, pe_, i)) continue;
                return "launch " + std::to_string(launch) + ", PE " + std::to_string(pe_) + ", byte " +
                       std::to_string(i) + " of PE " + std::to_string(source);
            }
        }
        return "";
    }

    [[nodiscard]] std::uint64_t word(Bytes offset) const {
        return __atomic_load_n(work_.memory.word(offset), __ATOMIC_ACQUIRE);
    }
    [[nodiscard]] const RingLayout& layout() const { return work_.memory.layout; }

private:
    int pe_;
    int pes_;
    fakes::ThreadFabric fabric_;
    std::unique_ptr<npu::Device> device_;
    Exchange work_;
    std::vector<std::byte> out_;
};

void zero(fakes::ThreadWorld& world) {
    for (int pe = 0; pe < world.pes(); ++pe) std::memset(world.base(pe), 0, world.part());
}

void expect_every_byte(int pes, const RingShape& shape, std::uint64_t launches) {
    ASSERT_TRUE(shape.check().ok());
    fakes::ThreadWorld world(pes, RingLayout(pes, shape).total().value());
    zero(world);
    world.run([&](int me) {
        RingPe pe(world, me, shape);
        for (std::uint64_t launch = 1; launch <= launches; ++launch) {
            const Script script = random_script(pes, shape, launch);
            const Status status = pe.exchange(script, launch);
            ASSERT_TRUE(status.ok()) << status.message();
            ASSERT_EQ(pe.difference(script, launch), "");
        }
        world.barrier();
        for (int peer = 0; peer < pes; ++peer) {
            const std::uint64_t taken = pe.word(pe.layout().receiver_state(peer));
            EXPECT_EQ(pe.word(pe.layout().tail(peer)), taken) << "head and tail are equal at the end";
            EXPECT_EQ(pe.word(pe.layout().canary(peer)), 0U);
        }
        world.barrier();
    });
}

TEST(CoreRing, ManyLaunchesInARowWithNothingInBetween) {
    expect_every_byte(2, {Bytes{1024}, Bytes{256}, Bytes{256}}, 150);
    expect_every_byte(3, {Bytes{96}, Bytes{64}, Bytes{32}}, 100);
}

TEST(CoreRing, ARingOfOneBatchOfOneUnitAndOfABatchAndAUnit) {
    expect_every_byte(2, {Bytes{32}, Bytes{32}, Bytes{32}}, 60);
    expect_every_byte(2, {Bytes{2048}, Bytes{2048}, Bytes{2048}}, 60);
    expect_every_byte(2, {Bytes{2080}, Bytes{2048}, Bytes{2048}}, 60);
}

TEST(CoreRing, OneRankAlone) { expect_every_byte(1, {Bytes{96}, Bytes{96}, Bytes{32}}, 60); }

// The error of a PE whose peer does not take part, after it has sent more than fits.
Status alone(npu::WaitPolicy* waiting, std::chrono::nanoseconds timeout, bool sends) {
    const RingShape shape{Bytes{128}, Bytes{64}, Bytes{64}};
    fakes::ThreadWorld world(3, RingLayout(3, shape).total().value());
    zero(world);
    RingPe pe(world, 0, shape, waiting);
    pe.work().memory.timeout = timeout;
    Script script(3, std::vector<std::vector<std::uint64_t>>(3));
    if (sends)
        script[0][1] = {64, 64, 32};
    else
        script[1][0] = {64};
    return pe.exchange(script, 1);
}

TEST(CoreRing, ReportsAMissingReceiverAtTheDeadline) {
    const Status status = alone(nullptr, std::chrono::milliseconds(20), true);
    EXPECT_EQ(status.code(), Code::timeout) << status.message();
    EXPECT_THAT(status.message(), HasSubstr("rank 0 waits for room for 32 bytes in its ring at rank 1: head 0, tail "
                                            "128, 128 of 128 bytes not yet taken, for "));
}

TEST(CoreRing, ReportsAMissingSenderAtTheDeadline) {
    const Status status = alone(nullptr, std::chrono::milliseconds(20), false);
    EXPECT_EQ(status.code(), Code::timeout) << status.message();
    EXPECT_THAT(status.message(), HasSubstr("rank 0 waits for data in its ring from rank 1: head 0, tail 0, for "));
}

// Also another one than the awaited, which may wait for the dead one itself.
TEST(CoreRing, ADeadPeerEndsTheWait) {
    for (const int dead : {1, 2}) {
        for (const bool sends : {true, false}) {
            fakes::DeadPe waiting(dead);
            const Status status = alone(&waiting, std::chrono::nanoseconds{0}, sends);
            EXPECT_EQ(status.code(), Code::peer_dead) << status.message();
            EXPECT_THAT(status.message(),
                        AllOf(HasSubstr("rank 1: head 0"), HasSubstr(fmt::format("PE {} has died", dead))));
        }
    }
}

}  // namespace
}  // namespace npushmem::moe
