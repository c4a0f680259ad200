// SPDX-License-Identifier: BSD-3-Clause
// UB allocation, scalar accesses, flags, remote memory, signals and atomics.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>

#include "npushmem/testing/array_fabric.hpp"
#include "tests/fakes/dead_pe.hpp"

namespace npushmem::npu {
namespace {

using fakes::ArrayPe;
using fakes::on_all_pes;
using fakes::SymmetricArray;
using std::chrono::milliseconds;
using testing::HasSubstr;

template <class Body>
std::string refusal(Body&& body, Code expected) {
    try {
        body();
    } catch (const KernelError& error) {
        EXPECT_EQ(error.code(), expected) << error.what();
        return error.what();
    }
    return "";
}

struct MemoryTest : testing::Test {
    SymmetricArray array{2, 4096};
    ArrayPe pe{array, 0, {.blocks = 2, .vector_cores = 2}};
};

TEST_F(MemoryTest, UbIsAlignedPrivateAndKeepsTheReservedTop) {
    const Status status = pe.run(2, [](Core& core) {
        EXPECT_EQ(core.ub_free(), 188U * 1024);
        const auto bytes = core.ub_alloc<char>(33);
        const auto words = core.ub_alloc<std::uint64_t>(2);
        EXPECT_EQ(reinterpret_cast<std::uintptr_t>(words.data()) % 32, 0U);
        EXPECT_EQ(reinterpret_cast<char*>(words.data()) - bytes.data(), 64);
        core.fill(words, static_cast<std::uint64_t>(core.index()), 2);
        core.core_barrier();
        EXPECT_EQ(core.get(words, 1), static_cast<std::uint64_t>(core.index()));
        const std::size_t mark = core.ub_used();
        EXPECT_EQ(core.ub_alloc<char>(core.ub_free()).size(), 188U * 1024 - mark);
        EXPECT_THAT(refusal([&] { core.ub_alloc<char>(1); }, Code::memory), HasSubstr("core_memory_test.cpp"));
        core.ub_release(mark);
        EXPECT_THAT(refusal([&] { core.ub_alloc<float>(188 * 256); }, Code::memory),
                    HasSubstr("do not fit into 192512 bytes (4096 more are reserved"));
        EXPECT_NE(refusal([&] { core.ub_alloc<std::uint64_t>(SIZE_MAX / 4); }, Code::memory), "");
        EXPECT_EQ(core.ub_used(), mark);
        EXPECT_EQ(core.ub_at<char>(64, 32).data(), bytes.data() + 64);
        EXPECT_NE(refusal([&] { core.ub_at<char>(16, 1); }, Code::argument), "");
        EXPECT_NE(refusal([&] { core.ub_at<char>(188 * 1024, 1); }, Code::memory), "");
    });
    EXPECT_TRUE(status.ok()) << status.message();
}

TEST_F(MemoryTest, UbOverAllocationEndsTheLaunch) {
    const Status status = pe.run(1, [](Core& core) { core.ub_alloc<char>(200 * 1024); });
    EXPECT_EQ(status.code(), Code::memory);
    EXPECT_TRUE(pe.run(1, [](Core& core) { core.ub_alloc<char>(188 * 1024); }).ok());
}

TEST_F(MemoryTest, FlagsCheckTheirIdsOnly) {
    const Status status = pe.run(1, [](Core& core) {
        core.set_flag<Pipe::copy_in, Pipe::vector>(0);
        core.wait_flag<Pipe::copy_in, Pipe::vector>(5);
        core.pipe_barrier<Pipe::vector>();
        core.pipe_barrier<Pipe::all>();
        const auto set = [&](int id) {
            return refusal([&] { core.set_flag<Pipe::copy_in, Pipe::vector>(id); }, Code::range);
        };
        const auto wait = [&](int id) {
            return refusal([&] { core.wait_flag<Pipe::copy_out, Pipe::scalar>(id); }, Code::range);
        };
        EXPECT_THAT(set(6), HasSubstr("belong to the library"));
        EXPECT_THAT(set(-1), HasSubstr("flag id -1 must be 0 to 5"));
        EXPECT_THAT(wait(8), HasSubstr("wait_flag: flag id 8"));
        EXPECT_NE(refusal([&] { core.pipe_barrier<Pipe::scalar>(); }, Code::argument), "");
    });
    EXPECT_TRUE(status.ok()) << status.message();
}

TEST_F(MemoryTest, ScalarAccessesRejectMisalignmentAndOutOfRange) {
    const Status status = pe.run(1, [&](Core& core) {
        auto* bytes = array.at<char>(0);
        EXPECT_NE(refusal([&] { core.store(reinterpret_cast<std::uint32_t*>(bytes + 2), 1U); }, Code::argument), "");
        EXPECT_NE(refusal([&] { static_cast<void>(core.load(static_cast<const int*>(nullptr))); }, Code::argument), "");
        EXPECT_NE(refusal([&] { core.set(gm(bytes, 4), 4, 'x'); }, Code::range), "");
        core.store(reinterpret_cast<float*>(bytes), 2.5F);
        EXPECT_EQ(core.load(reinterpret_cast<float*>(bytes)), 2.5F);
        const auto before = core.cycles();
        EXPECT_GE(core.cycles(), before);
    });
    EXPECT_TRUE(status.ok()) << status.message();
}

TEST_F(MemoryTest, RemoteAddressesComeFromWindowOrFabric) {
    for (bool windowed : {true, false}) {
        const ArrayPe one(array, 1, {.vector_cores = 1}, windowed);
        const Status status = one.run(1, [&](Core& core) {
            EXPECT_EQ(core.my_pe(), 1);
            EXPECT_EQ(core.n_pes(), 2);
            EXPECT_EQ(core.remote(array.at<int>(1, 100), 0), array.at<int>(0, 100));
            EXPECT_EQ(core.remote(gm(array.at<int>(1, 8), 3), 1).data(), array.at<int>(1, 8));
            int local = 0;
            EXPECT_THAT(refusal([&] { static_cast<void>(core.remote(array.at<int>(1), 2)); }, Code::range),
                        HasSubstr("PE 2 must be 0 to 1"));
            EXPECT_NE(refusal([&] { static_cast<void>(core.remote(array.at<int>(1), -1)); }, Code::range), "");
            EXPECT_THAT(refusal([&] { static_cast<void>(core.remote(&local, 0)); }, Code::not_symmetric),
                        HasSubstr("not in symmetric memory"));
        });
        EXPECT_TRUE(status.ok()) << status.message();
    }
    ArrayPe apart(array, 0, {.vector_cores = 1}, false);
    apart.fabric.unreachable = 1;
    EXPECT_EQ(apart.run(1, [&](Core& core) { static_cast<void>(core.remote(array.at<int>(0), 1)); }).code(),
              Code::unreachable);
}

TEST_F(MemoryTest, PutsGetsAndAtomicsReachThePeer) {
    const Status status = pe.run(1, [&](Core& core) {
        if (core.index() != 0) return;
        const int values[3] = {1, 2, 3};
        core.put(array.at<int>(0, 64), values, 3, 1);
        core.put(array.at<int>(0, 64), values, 0, 1);
        EXPECT_EQ(array.at<int>(1, 64)[2], 3);
        int back[3] = {};
        core.get(back, array.at<int>(0, 64), 3, 1);
        EXPECT_THAT(back, testing::ElementsAre(1, 2, 3));
        core.put_signal(array.at<int>(0, 128), values, 1, array.at<std::uint64_t>(0, 256), 9, 1);
        EXPECT_EQ(array.at<int>(1, 128)[0], 1);
        EXPECT_EQ(*array.at<std::uint64_t>(1, 256), 9U);
        core.signal_add_on(array.at<std::uint64_t>(0, 256), 2, 1);
        EXPECT_EQ(core.signal_fetch(core.remote(array.at<std::uint64_t>(0, 256), 1)), 11U);
        auto* word = core.remote(array.at<std::int32_t>(0, 320), 1);
        EXPECT_EQ(core.atomic_fetch_add(word, 5), 0);
        EXPECT_EQ(core.atomic_compare_swap(word, 4, 8), 5);
        EXPECT_EQ(core.atomic_compare_swap(word, 5, 8), 5);
        EXPECT_EQ(core.atomic_swap(word, 1), 8);
        core.fence();
        core.quiet();
        EXPECT_EQ(core.load(word), 1);
    });
    EXPECT_TRUE(status.ok()) << status.message();
}

TEST_F(MemoryTest, AllComparisons) {
    const auto check = [](Compare compare, bool less, bool equal, bool greater) {
        const std::uint64_t values[] = {1, ~0ULL / 2, ~0ULL / 2 + 1, ~0ULL - 1};
        for (std::uint64_t value : values) {
            EXPECT_EQ(satisfied(value - 1, compare, value), less) << name_of(compare);
            EXPECT_EQ(satisfied(value, compare, value), equal) << name_of(compare);
            EXPECT_EQ(satisfied(value + 1, compare, value), greater) << name_of(compare);
        }
    };
    check(Compare::equal, false, true, false);
    check(Compare::not_equal, true, false, true);
    check(Compare::greater, false, false, true);
    check(Compare::greater_equal, false, true, true);
    check(Compare::less, true, false, false);
    check(Compare::less_equal, true, true, false);
}

TEST_F(MemoryTest, CoresOfOneLaunchSignalEachOther) {
    auto* word = array.at<std::uint64_t>(0);
    std::uint64_t seen[4] = {};
    const Status status = pe.run(2, [&](Core& core) {
        // Each core waits for the core with the next higher index, which runs later.
        const auto mine = static_cast<std::uint64_t>(core.count() - core.index());
        if (core.index() < 3) seen[core.index()] = core.signal_wait_until(word, Compare::greater_equal, mine - 1);
        core.signal_add(word, 1);
    });
    EXPECT_TRUE(status.ok()) << status.message();
    EXPECT_THAT(seen, testing::ElementsAre(3, 2, 1, 0));
}

TEST_F(MemoryTest, DcciLoopsLetOtherCoresRun) {
    auto* flags = array.at<std::uint32_t>(0);
    const Status status = pe.run(2, [&](Core& core) {
        // A token passes through the cores against their running order, polled on two lines in turn.
        const auto next = static_cast<std::uint32_t>(core.count() - core.index());
        for (std::uint32_t round = 0; round < 20; ++round) {
            do {
                core.dcci(flags);
                core.dcci(flags + 16);
            } while (core.load(flags) != round * 4 + next - 1);
            core.store(flags, round * 4 + next);
            core.dcci(flags);
        }
    });
    EXPECT_TRUE(status.ok()) << status.message();
    EXPECT_EQ(flags[0], 80U);
}

TEST_F(MemoryTest, SignalWaitForReturnsTheTimeoutInsteadOfThrowing) {
    auto* word = array.at<std::uint64_t>(0);
    const Status status = pe.run(1, [&](Core& core) {
        const auto late = core.signal_wait_for(word, Compare::equal, 3, {.timeout = milliseconds(2)});
        EXPECT_EQ(late.status().code(), Code::timeout);
        EXPECT_THAT(late.status().message(), HasSubstr("to be == 3, last saw 0"));
        core.core_barrier();
        core.signal_set(word, 3);
        EXPECT_EQ(core.signal_wait_for(word, Compare::equal, 3, {}).value(), 3U);
    });
    EXPECT_TRUE(status.ok()) << status.message();
}

TEST_F(MemoryTest, DeadPeersEndOnlyTheWaitsThatNeedThem) {
    fakes::DeadPe waiting(1);
    const auto device = std::move(Device::create({}, pe.fabric, waiting)).value();
    auto* word = array.at<std::uint64_t>(0);
    const auto run = [&](auto kernel) {
        EXPECT_TRUE(launch(device->default_stream(), 1, kernel).ok());
        return device->default_stream().synchronize();
    };
    EXPECT_TRUE(run([&](Core& core) {
                    if (core.index() == 0) {
                        EXPECT_EQ(core.signal_wait_until(word, Compare::equal, 4, 0), 4U);
                    } else {
                        const auto got = core.signal_wait_for(word, Compare::equal, 9, {.from = 1});
                        EXPECT_EQ(got.status().code(), Code::peer_dead);
                        EXPECT_THAT(got.status().message(), HasSubstr("from PE 1"));
                        // PE 0 may wait for PE 1 itself.
                        const auto needed = core.signal_wait_for(word, Compare::equal, 9, {.from = {0, {.count = 2}}});
                        EXPECT_EQ(needed.status().code(), Code::peer_dead);
                        EXPECT_THAT(needed.status().message(), HasSubstr("from PE 0"));
                        core.signal_set(word, 4);
                    }
                }).ok());
    const Status status = run([&](Core& core) { core.signal_wait_until(word, Compare::equal, 9); });
    EXPECT_EQ(status.code(), Code::peer_dead);
    EXPECT_THAT(status.message(), HasSubstr("PE 1 has died"));
}

TEST(Signals, PingPongBetweenTwoDevicesInTwoThreads) {
    SymmetricArray array(2, 4096);
    constexpr std::uint64_t rounds = 2000;
    on_all_pes(2, [&](int me) {
        const ArrayPe pe(array, me, {.launch_timeout = std::chrono::seconds(240)});
        const Status status = pe.run(1, [&](Core& core) {
            if (core.index() != 0) return;
            auto* ball = array.at<std::uint64_t>(me);
            auto* payload = array.at<std::uint64_t>(me, 512);
            for (std::uint64_t i = 1; i <= rounds; ++i) {
                if (me == 1) {
                    ASSERT_EQ(core.signal_wait_until(ball, Compare::greater_equal, i, 0), i);
                }
                if (me == 1) {
                    ASSERT_EQ(core.load(payload), i * 3);
                }
                const std::uint64_t data = i * 3;
                core.put_signal(payload, &data, 1, ball, i, 1 - me);
                if (me == 0) {
                    ASSERT_EQ(core.signal_wait_until(ball, Compare::greater_equal, i, 1), i);
                }
            }
        });
        EXPECT_TRUE(status.ok()) << status.message();
    });
}

}  // namespace
}  // namespace npushmem::npu
