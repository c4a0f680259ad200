// SPDX-License-Identifier: BSD-3-Clause
// Hazards between cores and between PEs: caches, copies, signals, races.
#include "tests/unit/core/npu/check/hazards.hpp"

namespace npushmem::npu {
namespace {

using test::expect_caught;
using test::expect_clean;
using test::Setup;
using test::two_cores;
using test::two_pes;

constexpr std::size_t signal_at = 512;  // words
constexpr std::size_t n = 16;

// PE 0 signals PE 1 that its data has arrived.
void announce(Core& core, std::uint64_t* data) { core.signal_set_on(data + signal_at, 1, 1); }
void await(Core& core, std::uint64_t* data) { core.signal_wait_until(data + signal_at, Compare::equal, 1, 0); }

// A tile of known numbers in UB, ready to be copied out.
ub_view<std::uint64_t> tile_of(Core& core) {
    const auto tile = core.ub_alloc<std::uint64_t>(n);
    core.fill(tile, 7, n);
    core.set_flag<Pipe::vector, Pipe::copy_out>(0);
    core.wait_flag<Pipe::vector, Pipe::copy_out>(0);
    return tile;
}

void wait_for_copy_out(Core& core) {
    core.set_flag<Pipe::copy_out, Pipe::scalar>(1);
    core.wait_flag<Pipe::copy_out, Pipe::scalar>(1);
}

void stale(Core& core, std::uint64_t* data, bool invalidate) {
    if (core.my_pe() == 0) {
        core.signal_wait_until(data + signal_at + 8, Compare::equal, 1, 1);
        core.data_copy(core.remote(gm(data, n), 1), tile_of(core), n);
        wait_for_copy_out(core);
        announce(core, data);
    } else {
        static_cast<void>(core.load(data));
        core.signal_set_on(data + signal_at + 8, 1, 0);
        await(core, data);
        if (invalidate) core.dcci(data);
        const std::uint64_t seen = core.load(data);  // blame: H7 OfALineCachedBeforeTheWrite
        if (seen != 7 && invalidate) throw std::runtime_error("stale in spite of dcci");
    }
}

TEST(H7StaleRead, OfALineCachedBeforeTheWrite) {
    expect_caught(Hazard::stale_read, "H7 OfALineCachedBeforeTheWrite", two_pes,
                  [](Core& core, std::uint64_t* data) { stale(core, data, false); });
    expect_clean(two_pes, [](Core& core, std::uint64_t* data) { stale(core, data, true); });
}

void publish_stores(Core& core, std::uint64_t* data, bool flush) {
    if (core.my_pe() == 0) {
        core.store(core.remote(data, 1), 5);  // blame: H8 StoresStillInTheCache
        if (flush) core.dcci(core.remote(data, 1));
        announce(core, data);
    } else {
        await(core, data);
        if (core.load(data) != 5 && flush) throw std::runtime_error("not there");
    }
}

TEST(H8Unpublished, StoresStillInTheCache) {
    expect_caught(Hazard::unpublished, "H8 StoresStillInTheCache", two_pes,
                  [](Core& core, std::uint64_t* data) { publish_stores(core, data, false); });
    expect_clean(two_pes, [](Core& core, std::uint64_t* data) { publish_stores(core, data, true); });
}

void publish_copy(Core& core, std::uint64_t* data, bool drain) {
    if (core.my_pe() == 0) {
        const auto tile = tile_of(core);
        core.data_copy(core.remote(gm(data, n), 1), tile, n);  // blame: H8 CopyOutStillQueued
        if (drain) wait_for_copy_out(core);
        announce(core, data);
    } else {
        await(core, data);
        if (core.load(data) != 7 && drain) throw std::runtime_error("not there");
    }
}

TEST(H8Unpublished, CopyOutStillQueued) {
    expect_caught(Hazard::unpublished, "H8 CopyOutStillQueued", two_pes,
                  [](Core& core, std::uint64_t* data) { publish_copy(core, data, false); });
    expect_clean(two_pes, [](Core& core, std::uint64_t* data) { publish_copy(core, data, true); });
}

TEST(H8Unpublished, PutAndSignalWithoutAFence) {
    const auto kernel = [](bool together) {
        return [together](Core& core, std::uint64_t* data) {
            if (core.my_pe() == 0 && together) core.put_signal(data, data + n, n, data + signal_at, 1, 1);
            if (core.my_pe() == 0 && !together) core.put(data, data + n, n, 1);  // blame: H8 PutAndSignalWithoutAFence
            if (core.my_pe() == 0 && !together) announce(core, data);
            if (core.my_pe() == 1) await(core, data);
            if (core.my_pe() == 1) static_cast<void>(core.load(data));
        };
    };
    expect_caught(Hazard::unpublished, "H8 PutAndSignalWithoutAFence", two_pes, kernel(false));
    expect_clean(two_pes, kernel(true));
}

// PE 1 puts a row of `words` to PE 0, which polls the last word, and may load the first one.
void poll_a_row(Core& core, std::uint64_t* data, std::size_t words, bool loads_first) {
    std::uint64_t* const row = data + 64;
    if (core.my_pe() == 1) {
        for (std::size_t i = 0; i < words; ++i) core.store(data + i, 7);
        core.dcci(data, words * 8);
        return core.put(row, data, words, 0);  // blame: H8 OfTheOtherLinesOfAPolledPut
    }
    while (core.load(row + words - 1) != 7) core.dcci(row + words - 1);
    if (loads_first) static_cast<void>(core.load(row));
}

TEST(H8Unpublished, OfTheOtherLinesOfAPolledPut) {
    const auto kernel = [](std::size_t words, bool loads_first) {
        return [=](Core& core, std::uint64_t* data) { poll_a_row(core, data, words, loads_first); };
    };
    for (const std::size_t words : {16, 64})
        expect_caught(Hazard::unpublished, "H8 OfTheOtherLinesOfAPolledPut", two_pes, kernel(words, true));
    expect_clean(two_pes, kernel(16, false));
    expect_clean(two_pes, kernel(8, true));
}

// Each line has a flag of its own: a loop polls them one after the other.
TEST(H8Unpublished, NotOfLinesThatArePolledEach) {
    expect_clean(two_pes, [](Core& core, std::uint64_t* data) {
        constexpr std::size_t words = 32;
        std::uint64_t* const row = data + 64;
        if (core.my_pe() == 1) {
            for (std::size_t i = 0; i < words; ++i) core.store(data + i, 7);
            core.dcci(data, words * 8);
            return core.put(row, data, words, 0);
        }
        for (std::size_t line = 0; line < words; line += 8) {
            while (core.load(row + line) != 7) core.dcci(row + line);
            static_cast<void>(core.load(row + line + 1));
        }
    });
}

void two_in_a_line(Core& core, std::uint64_t* data, std::size_t apart) {
    std::uint64_t* mine = data + static_cast<std::size_t>(core.index()) * apart;
    core.store(mine, 1);
    core.core_barrier();  // both have the line before one writes it back
    core.dcci(mine);      // blame: H9 OfANeighbourInTheLine
    core.core_barrier();
    const std::uint64_t first = core.load(data);
    if (apart >= 8 && first != 1) throw std::runtime_error("lost");
}

TEST(H9LostUpdate, OfANeighbourInTheLine) {
    expect_caught(Hazard::lost_update, "H9 OfANeighbourInTheLine", two_cores,
                  [](Core& core, std::uint64_t* data) { two_in_a_line(core, data, 1); });
    expect_clean(two_cores, [](Core& core, std::uint64_t* data) { two_in_a_line(core, data, 8); });
}

TEST(H9LostUpdate, SignalsOfTwoWritersInOneLine) {
    expect_caught(Hazard::lost_update, "H9 SignalsOfTwoWritersInOneLine", two_cores,
                  [](Core& core, std::uint64_t* data) {
                      core.signal_set(data + core.index(), 1);  // blame: H9 SignalsOfTwoWritersInOneLine
                  });
    expect_clean(two_cores, [](Core& core, std::uint64_t* data) { core.signal_set(data + 8 * core.index(), 1); });
}

TEST(H10BadAddress, OutOfBounds) {
    expect_caught(Hazard::bad_address, "H10 OutOfBounds", {}, [](Core& core, std::uint64_t* data) {
        static_cast<void>(core.load(data + 1024));  // blame: H10 OutOfBounds
    });
    expect_caught(Hazard::bad_address, "H10 copied", {}, [](Core& core, std::uint64_t* data) {
        core.data_copy(core.ub_alloc<std::uint64_t>(n), gm(data + 1020, n), n);  // blame: H10 copied
    });
    expect_clean({}, [](Core& core, std::uint64_t* data) { static_cast<void>(core.load(data + 1023)); });
}

TEST(H10BadAddress, NotSymmetric) {
    expect_caught(Hazard::bad_address, "H10 NotSymmetric", two_pes, [](Core& core, std::uint64_t*) {
        std::uint64_t local = 0;
        static_cast<void>(core.remote(&local, 1 - core.my_pe()));  // blame: H10 NotSymmetric
    });
}

TEST(H10BadAddress, Freed) {
    for (const bool freed : {true, false}) {
        const auto job = CheckedJob::create({}).value();
        auto* data = job->allocate<int>(8);
        if (freed) job->release(data);
        const CheckReport report =
            job->run(1, [&](Core& core) { static_cast<void>(core.load(data)); });  // blame: H10 Freed
        EXPECT_EQ(report.clean(), !freed) << report.text();
        if (!freed) continue;
        ASSERT_EQ(report.findings.size(), 1U) << report.text();
        EXPECT_TRUE(test::blames(report.findings[0], Hazard::bad_address, test::line_of("H10 Freed"))) << report.text();
        EXPECT_THAT(report.text(), testing::HasSubstr("the allocation was freed"));
    }
}

TEST(H11MisalignedScalar, IsRefused) {
    expect_caught(Hazard::misaligned_scalar, "H11 IsRefused", {}, [](Core& core, std::uint64_t* data) {
        auto* bytes = reinterpret_cast<std::byte*>(data);
        static_cast<void>(core.load(reinterpret_cast<std::uint32_t*>(bytes + 2)));  // blame: H11 IsRefused
    });
    expect_clean({}, [](Core& core, std::uint64_t* data) {
        static_cast<void>(core.load(reinterpret_cast<std::uint32_t*>(data) + 1));
    });
}

TEST(H12Redundant, DcciAndQuietWithNothingToDo) {
    expect_caught(Hazard::redundant, "H12 DcciAndQuietWithNothingToDo", {}, [](Core& core, std::uint64_t* data) {
        core.store(data, 1);
        core.dcci(data);
        core.dcci(data);  // blame: H12 DcciAndQuietWithNothingToDo
    });
    expect_caught(Hazard::redundant, "H12 quiet", {}, [](Core& core, std::uint64_t* data) {
        core.store(data, 1);
        core.quiet();
        core.quiet();  // blame: H12 quiet
    });
    expect_clean({}, [](Core& core, std::uint64_t* data) {
        core.dcci(data);
        static_cast<void>(core.load(data));
        core.dcci(data);
        core.store(data, 1);
        core.quiet();
    });
}

// PE 1 copies what PE 0 puts there.
void copy_while_written(Core& core, std::uint64_t* data, bool ordered) {
    if (core.my_pe() == 0) {
        const auto tile = tile_of(core);
        core.data_copy(core.remote(gm(data, n), 1), tile, n);
        wait_for_copy_out(core);
        announce(core, data);
    } else {
        if (ordered) await(core, data);
        core.data_copy(core.ub_alloc<std::uint64_t>(n), gm(data, n), n);  // blame: H13 CopyOfWhatARemotePeWrites
    }
}

TEST(H13DmaRace, CopyOfWhatARemotePeWrites) {
    expect_caught(Hazard::dma_race, "H13 CopyOfWhatARemotePeWrites", two_pes,
                  [](Core& core, std::uint64_t* data) { copy_while_written(core, data, false); });
    expect_clean(two_pes, [](Core& core, std::uint64_t* data) { copy_while_written(core, data, true); });
}

// A copy of one block polls as a load does: it may meet the signal, and what it finds announced is there.
void poll_by_copies(Core& core, std::uint64_t* data, bool fenced) {
    std::uint64_t* word = data + 512;
    if (core.my_pe() == 0) {
        core.put(data, data + 256, n, 1);  // blame: H8 AnnouncedToAPollByCopies
        if (fenced) core.fence();
        return core.signal_set_on(word, 1, 1);
    }
    const auto seen = core.ub_alloc<std::uint64_t>(4);
    for (std::uint64_t value = 0; value != 1; value = core.get(seen, 0)) {
        core.data_copy(seen, gm(word, 4), 4);
        core.set_flag<Pipe::copy_in, Pipe::scalar>(0);
        core.wait_flag<Pipe::copy_in, Pipe::scalar>(0);
        core.yield();
    }
    core.data_copy(core.ub_alloc<std::uint64_t>(n), gm(data, n), n);
}

TEST(H8Unpublished, AnnouncedToAPollByCopies) {
    expect_caught(Hazard::unpublished, "H8 AnnouncedToAPollByCopies", two_pes,
                  [](Core& core, std::uint64_t* data) { poll_by_copies(core, data, false); });
    expect_clean(two_pes, [](Core& core, std::uint64_t* data) { poll_by_copies(core, data, true); });
}

// A copy of one block is no poll of a word that is relied on.
TEST(H8Unpublished, ASignalThatAnotherOvertakes) {
    const auto kernel = [](bool fenced) {
        return [fenced](Core& core, std::uint64_t* data) {
            if (core.my_pe() == 0) {
                core.signal_set_on(data, 1, 1);  // blame: H8 ASignalThatAnotherOvertakes
                if (fenced) core.fence();
                return announce(core, data);
            }
            await(core, data);
            core.data_copy(core.ub_alloc<std::uint64_t>(4), gm(data, 4), 4);
        };
    };
    const unsigned line = test::line_of("H8 ASignalThatAnotherOvertakes");
    const CheckReport report = test::check(two_pes, Schedule::parse("explore").value(), kernel(false));
    EXPECT_TRUE(std::ranges::any_of(report.findings, [line](const Finding& f) {
        return test::blames(f, Hazard::unpublished, line);
    })) << report.text();
    expect_clean(two_pes, kernel(true));
}

TEST(H14WriteRace, TwoCoresWriteTheSameBytes) {
    expect_caught(Hazard::write_race, "H14 TwoCoresWriteTheSameBytes", two_cores, [](Core& core, std::uint64_t* data) {
        core.data_copy(gm(data, n), tile_of(core), n);  // blame: H14 TwoCoresWriteTheSameBytes
    });
    expect_clean(two_cores, [](Core& core, std::uint64_t* data) {
        core.data_copy(gm(data + n * static_cast<std::size_t>(core.index()), n), tile_of(core), n);
    });
}

// A flag from MTE3 to MTE2 orders copies, not the signal that S sends.
void protect(Core& core, std::uint64_t* data, bool right) {
    if (core.my_pe() == 0) {
        core.data_copy(core.remote(gm(data, n), 1), tile_of(core), n);  // blame: H20 OfAFlagThatShouldProtectASignal
        core.set_flag<Pipe::copy_out, Pipe::copy_in>(2);
        core.wait_flag<Pipe::copy_out, Pipe::copy_in>(2);
        if (right) wait_for_copy_out(core);
        announce(core, data);
    } else {
        await(core, data);
        static_cast<void>(core.load(data));
    }
}

TEST(H20WrongDirection, OfAFlagThatShouldProtectASignal) {
    expect_caught(Hazard::wrong_direction, "H20 OfAFlagThatShouldProtectASignal", two_pes,
                  [](Core& core, std::uint64_t* data) { protect(core, data, false); });
    expect_clean(two_pes, [](Core& core, std::uint64_t* data) { protect(core, data, true); });
}

}  // namespace
}  // namespace npushmem::npu
