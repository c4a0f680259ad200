// SPDX-License-Identifier: BSD-3-Clause
// Checked mode on a device: what a program gets with NPUSHMEM_NPU_CHECK=1.
#include "npushmem/npu/checked_hooks.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>

#include "npushmem/testing/array_fabric.hpp"

namespace npushmem::npu {
namespace {

using fakes::ArrayFabric;
using fakes::ArrayPe;
using fakes::on_all_pes;
using fakes::SymmetricArray;
using testing::HasSubstr;

DeviceConfig checked(const Fabric& fabric, const char* schedule) {
    DeviceConfig config{.blocks = 4, .vector_cores = 2, .launch_timeout = std::chrono::seconds(60)};
    config.hooks = checked_hooks(Schedule::parse(schedule).value(), fabric).value();
    return config;
}

TEST(CheckedDevice, ALaunchWithAHazardFailsWithTheFindings) {
    for (const char* schedule : {"eager", "lazy", "random:4"}) {
        SymmetricArray array(1, 4096);
        const ArrayFabric fabric(array, 0);
        const ArrayPe pe(array, 0, checked(fabric, schedule));
        auto* values = array.at<float>(0);
        const auto add = [&](bool flag) {
            return pe.run(1, [&](Core& core) {
                const auto tile = core.ub_alloc<float>(64);
                core.data_copy(tile, gm(values, 64), 64);
                if (flag) core.pipe_barrier<Pipe::all>();
                core.add(tile, tile, tile, 64);
            });
        };
        const Status wrong = add(false);
        EXPECT_EQ(wrong.code(), Code::protocol);
        EXPECT_THAT(wrong.message(), HasSubstr("H4 in this launch: reads what another pipe may still be writing"));
        EXPECT_THAT(wrong.message(), HasSubstr("checked_hooks_test.cpp:"));
        const Status right = add(true);
        EXPECT_TRUE(right.ok()) << right.message();
    }
}

TEST(CheckedDevice, RefusesToExplore) {
    SymmetricArray array(1, 4096);
    const ArrayFabric fabric(array, 0);
    const auto hooks = checked_hooks(Schedule::parse("explore").value(), fabric);
    EXPECT_EQ(hooks.status().code(), Code::config);
    EXPECT_THAT(hooks.status().message(), HasSubstr("all PEs in one process"));
}

// Each PE checks for itself; what one puts off, the others need not wait for.
TEST(CheckedDevice, BarriersBetweenDevicesPass) {
    constexpr int pes = 3;
    for (const char* schedule : {"eager", "lazy", "random:5"}) {
        SymmetricArray array(pes, 2 * sizeof(BarrierState));
        on_all_pes(pes, [&](int me) {
            const ArrayFabric fabric(array, me);
            const ArrayPe pe(array, me, checked(fabric, schedule));
            for (const char* text : {"v1", "v2:3", "v3"}) {
                const BarrierChoice choice = BarrierChoice::parse(text).value();
                const Status status = pe.run(2, [&](Core& core) {
                    for (int round = 0; round < 10; ++round) {
                        sync_with_choice(core, choice, {0, 1, pes}, array.at<BarrierState>(me));
                    }
                });
                EXPECT_TRUE(status.ok()) << text << " " << schedule << ": " << status.message();
            }
        });
    }
}

// The checker of this process does not see accesses of PEs of other processes: here, accesses without a Core.
struct ExternalPeers : testing::Test {
    using Kernel = std::function<void(Core&)>;

    // What is found under a schedule that puts commands off.
    Status run(const Kernel& kernel) {
        const ArrayPe pe(array, 0, checked(fabric, "lazy"));
        return pe.run(1, [&](Core& core) {
            if (core.index() == 0) kernel(core);
        });
    }
    void expect_found(const char* hazard, const char* detail, const Kernel& kernel) {
        const Status status = run(kernel);
        EXPECT_EQ(status.code(), Code::protocol) << hazard;
        EXPECT_THAT(status.message(), HasSubstr(std::string(hazard) + " in this launch"));
        EXPECT_THAT(status.message(), HasSubstr(detail));
        EXPECT_THAT(status.message(), HasSubstr("checked_hooks_test.cpp:"));
        EXPECT_THAT(status.message(), HasSubstr("memory: symmetric heap + "));
    }
    void expect_clean(const Kernel& kernel) {
        const Status status = run(kernel);
        EXPECT_TRUE(status.ok()) << status.message();
    }

    SymmetricArray array{2, 4096};
    ArrayFabric fabric{array, 0};
    std::uint64_t* mine = array.at<std::uint64_t>(0);
    std::uint64_t* word = mine + 256;
};

TEST_F(ExternalPeers, H7ALineCachedBeforeTheWait) {
    const auto kernel = [this](bool forget, std::uint64_t written) {
        return [=, this](Core& core) {
            static_cast<void>(core.load(mine));
            *mine = written;
            *word = written;
            core.signal_wait_until(word, Compare::equal, written, 1);
            if (forget) core.dcci(mine);
            EXPECT_EQ(core.load(mine) == written, forget);
        };
    };
    expect_found("H7", "a PE of another process wrote since", kernel(false, 1));
    expect_clean(kernel(true, 2));
}

TEST_F(ExternalPeers, H8ACopyThatItsSignalOvertakes) {
    std::uint64_t* data = mine + 8;
    expect_found("H8", "before a copy to it is complete", [=, this](Core& core) {
        core.put(data, mine, 8, 1);
        core.signal_set_on(word, 1, 1);
    });
    expect_clean([=, this](Core& core) {
        core.put(data, mine, 8, 1);
        core.fence();
        core.signal_set_on(word, 1, 1);
    });
    // One at a time is announced while the next is under way.
    expect_clean([=, this](Core& core) {
        for (std::uint64_t i = 0; i < 3; ++i) {
            core.put(data + i * 8, mine, 8, 1);
            core.set_flag<Pipe::copy_out, Pipe::scalar>(static_cast<int>(i));
            if (i > 0) core.wait_flag<Pipe::copy_out, Pipe::scalar>(static_cast<int>(i) - 1);
            if (i > 0) core.signal_set_on(word, i, 1);
        }
        core.wait_flag<Pipe::copy_out, Pipe::scalar>(2);
        core.signal_set_on(word, 3, 1);
    });
}

// What is under way when a signal leaves that grants something else, and is announced by somebody else later.
TEST_F(ExternalPeers, H8ACreditOvertakesWhatAnotherCoreAnnounces) {
    std::uint64_t* data = mine + 8;
    const auto kernel = [=, this](bool complete, bool by_atomic) {
        return [=, this](Core& core) {
            if (core.index() == 0) {
                core.put(data, mine, 8, 1);
                core.set_flag<Pipe::copy_out, Pipe::scalar>(0);
                core.signal_set_on(word + 8, 1, 1);
                if (complete) core.wait_flag<Pipe::copy_out, Pipe::scalar>(0);
            }
            core.core_barrier();
            if (core.index() == 0 && !complete) core.wait_flag<Pipe::copy_out, Pipe::scalar>(0);
            if (core.index() == 0) return;
            if (by_atomic) return static_cast<void>(core.atomic_fetch_add_on(word, 1, 1));
            core.signal_set_on(word, 1, 1);
        };
    };
    for (const bool by_atomic : {false, true}) {
        const ArrayPe pe(array, 0, checked(fabric, "lazy"));
        const Status clean = pe.run(1, kernel(true, by_atomic));
        EXPECT_TRUE(clean.ok()) << clean.message();
        const Status wrong = pe.run(1, kernel(false, by_atomic));
        EXPECT_EQ(wrong.code(), Code::protocol);
        EXPECT_THAT(wrong.message(), HasSubstr("H8 in this launch: signals to a PE before a copy to it is complete"));
        EXPECT_THAT(wrong.message(), HasSubstr("checked_hooks_test.cpp:"));
    }
}

// An atomic on memory of this process announces nothing to anybody.
TEST_F(ExternalPeers, H8AnAtomicOnPrivateMemoryAnnouncesNothing) {
    alignas(64) std::uint64_t own[8] = {};
    expect_found("H8", "before a copy to it is complete", [&, this](Core& core) {
        core.put(mine + 8, mine, 8, 1);
        core.set_flag<Pipe::copy_out, Pipe::scalar>(0);
        core.signal_set_on(word, 1, 1);
        core.wait_flag<Pipe::copy_out, Pipe::scalar>(0);
        core.atomic_fetch_add(own, 1);
    });
}

TEST_F(ExternalPeers, H9ALineThatOthersWriteTo) {
    const auto kernel = [this](std::size_t theirs) {
        return [=, this](Core& core) {
            core.store(mine, 5);
            mine[theirs] += 1;
            core.dcci(mine);
        };
    };
    expect_found("H9", "over bytes that a PE of another process wrote", kernel(1));
    expect_clean(kernel(8));
}

TEST_F(ExternalPeers, H8AStoreThatItsSignalOvertakes) {
    const auto kernel = [this](bool flush, bool again) {
        return [=, this](Core& core) {
            core.store(core.remote(mine, 1), 5);
            if (flush) core.dcci(core.remote(mine, 1));
            core.signal_set_on(word, 1, 1);
            if (again) core.dcci(core.remote(mine, 1));
            if (again) core.signal_set_on(word, 2, 1);
        };
    };
    expect_found("H8", "signals to a PE while a store to its memory is still in the cache", kernel(false, false));
    expect_clean(kernel(true, false));
    // The second signal announces it.
    expect_clean(kernel(false, true));
}

TEST_F(ExternalPeers, H9HalvesOfALine) {
    for (const char* schedule : {"eager", "lazy", "random:4"}) {
        const ArrayPe pe(array, 0, checked(fabric, schedule));
        const auto halves = [&](int apart) {
            return pe.run(1, [&](Core& core) {
                core.store(mine + apart * core.index(), 1);
                core.dcci(mine + apart * core.index());
            });
        };
        const Status wrong = halves(1);
        EXPECT_EQ(wrong.code(), Code::protocol);
        EXPECT_THAT(wrong.message(), HasSubstr("H9 in this launch"));
        const Status right = halves(8);
        EXPECT_TRUE(right.ok()) << right.message();
    }
}

TEST_F(ExternalPeers, AKernelThatThrowsKeepsItsFindings) {
    const Status status = run([this](Core& core) {
        const auto tile = core.ub_alloc<std::uint64_t>(8);
        core.data_copy(tile, gm(mine, 8), 8);
        static_cast<void>(core.get(tile, 0));
        throw std::runtime_error("the kernel's own failure");
    });
    EXPECT_EQ(status.code(), Code::aborted);
    EXPECT_THAT(status.message(), HasSubstr("the kernel's own failure"));
    EXPECT_THAT(status.message(), HasSubstr("checked mode found:\nH4 in this launch"));
}

// H7 by another process: the poll goes on with what the memory has, and the launch fails.
TEST_F(ExternalPeers, H7APollWithoutDcci) {
    const auto kernel = [this](bool refresh) {
        return [=, this](Core& core) {
            *word = 0;
            for (int polls = 0; core.load(word) != 1; ++polls) {
                if (polls == 3) *word = 1;
                if (refresh) core.dcci(word);
            }
        };
    };
    expect_found("H7", "polls a line that it never reads again from memory", kernel(false));
    expect_clean(kernel(true));
}

// Loops of the kernel's own keep the deadline of waits, and name the line and the word.
TEST_F(ExternalPeers, LoopsEndAtTheDeadlineOfWaits) {
    for (const bool yields : {false, true}) {
        DeviceConfig config = checked(fabric, "lazy");
        config.wait_timeout = std::chrono::milliseconds(5);
        const ArrayPe pe(array, 0, config);
        const Status status = pe.run(1, [&](Core& core) {
            while (core.signal_fetch(word) != 77)
                if (yields) core.yield();
        });
        EXPECT_EQ(status.code(), Code::timeout);
        EXPECT_THAT(status.message(), HasSubstr("timed out after 0.005 s: at "));
        EXPECT_THAT(status.message(), HasSubstr("checked_hooks_test.cpp:"));
        EXPECT_THAT(status.message(), HasSubstr("polling the word at "));
    }
}

TEST_F(ExternalPeers, LaunchesEndAtTheirDeadlineWhateverTheyDo) {
    DeviceConfig config = checked(fabric, "lazy");
    config.launch_timeout = std::chrono::milliseconds(5);
    const ArrayPe pe(array, 0, config);
    for (const bool polls : {false, true}) {
        const Status status = pe.run(1, [&](Core& core) {
            while (polls ? core.signal_fetch(word) != 77 : true) core.signal_add(word + 8, polls ? 0 : 1);
        });
        EXPECT_EQ(status.code(), Code::timeout);
        EXPECT_THAT(status.message(), HasSubstr("not ended within its deadline of 0.005 s: core"));
        EXPECT_THAT(status.message(), HasSubstr("checked_hooks_test.cpp:"));
    }
}

TEST_F(ExternalPeers, H13ACopyOfWhatTheyWriteMeanwhile) {
    const auto kernel = [this](bool complete) {
        return [=, this](Core& core) {
            core.data_copy(core.ub_alloc<std::uint64_t>(8), gm(mine, 8), 8);
            if (complete) core.pipe_barrier<Pipe::all>();
            mine[3] += 1;
        };
    };
    expect_found("H13", "copies bytes that a PE of another process wrote", kernel(false));
    expect_clean(kernel(true));
}

// A block of 32 bytes arrives whole: a copy of it sees a signal or does not.
TEST_F(ExternalPeers, ACopyOfOneBlockMayBeAPoll) {
    expect_clean([this](Core& core) {
        const auto seen = core.ub_alloc<std::uint64_t>(4);
        for (std::uint64_t value = 0; value != 1; value = core.get(seen, 0)) {
            core.data_copy(seen, gm(word, 4), 4);
            *word = 1;
            core.set_flag<Pipe::copy_in, Pipe::scalar>(0);
            core.wait_flag<Pipe::copy_in, Pipe::scalar>(0);
        }
    });
}

// A poll looks for one word; what changes more of the block is what a copy must not meet.
TEST_F(ExternalPeers, H13ACopyOfOneBlockOfWhichMoreThanAWordChanges) {
    const auto kernel = [this](std::size_t changed) {
        return [=, this](Core& core) {
            core.data_copy(core.ub_alloc<std::uint64_t>(4), gm(word, 4), 4);
            for (std::size_t i = 0; i < changed; ++i) word[i] += 1;
        };
    };
    expect_found("H13", "copies bytes that a PE of another process wrote", kernel(2));
    expect_clean(kernel(1));
}

TEST_F(ExternalPeers, H14ACopyOverWhatTheyWriteMeanwhile) {
    const auto kernel = [this](bool complete) {
        return [=, this](Core& core) {
            core.put(mine + 16, mine, 8, 1);
            if (complete) core.pipe_barrier<Pipe::all>();
            array.at<std::uint64_t>(1)[18] += 1;
        };
    };
    expect_found("H14", "writes bytes that a PE of another process wrote", kernel(false));
    expect_clean(kernel(true));
    // Two of its own, in order: what the second finds changed is the first one's.
    mine[0] = 7;
    expect_clean([=, this](Core& core) {
        core.put(mine + 16, mine, 8, 1);
        core.pipe_barrier<Pipe::copy_out>();
        core.put(mine + 20, mine + 64, 4, 1);
        core.pipe_barrier<Pipe::copy_out>();
        core.put(mine + 16, mine + 32, 8, 1);
    });
}

TEST(Schedules, ParsePrintAndRefuse) {
    for (const char* text : {"eager", "lazy", "random:17", "explore", "explore:3", "replay:", "replay:3=1,17=0"}) {
        EXPECT_EQ(Schedule::parse(text).value().text(), text);
    }
    for (const char* text :
         {"", "Eager", "random", "random:", "random:x", "explore:", "explore:9", "eager:1", "replay", "replay:x"}) {
        EXPECT_EQ(Schedule::parse(text).status().code(), Code::config) << text;
    }
}

}  // namespace
}  // namespace npushmem::npu
