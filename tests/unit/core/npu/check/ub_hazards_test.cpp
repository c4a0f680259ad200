// SPDX-License-Identifier: BSD-3-Clause
// Hazards of one core: its buffers, its pipes, its flags.
#include "tests/unit/core/npu/check/hazards.hpp"

namespace npushmem::npu {
namespace {

using test::expect_caught;
using test::expect_clean;

constexpr std::size_t words = 16;  // of one tile

// Copies a tile in, and lets S know.
ub_view<std::uint64_t> fetch(Core& core, std::uint64_t* from, ub_view<std::uint64_t> tile) {
    core.data_copy(tile, gm(from, words), words);
    core.set_flag<Pipe::copy_in, Pipe::scalar>(0);
    core.wait_flag<Pipe::copy_in, Pipe::scalar>(0);
    return tile;
}

TEST(H1Alignment, OfUbInACopy) {
    expect_caught(Hazard::alignment, "H1 OfUbInACopy", {}, [](Core& core, std::uint64_t* data) {
        const auto tile = core.ub_alloc<std::uint64_t>(64);
        core.data_copy(tile.from(1), gm(data, words), words);  // blame: H1 OfUbInACopy
    });
    expect_clean({}, [](Core& core, std::uint64_t* data) {
        const auto tile = core.ub_alloc<std::uint64_t>(64);
        core.data_copy(tile.from(4), gm(data, words), words);
    });
}

TEST(H2UbOverflow, PaddedLengthIncluded) {
    expect_caught(Hazard::ub_overflow, "H2 PaddedLengthIncluded", {}, [](Core& core, std::uint64_t* data) {
        const auto tile = core.ub_alloc<std::uint64_t>(9);
        core.data_copy_pad(tile, gm(data, words), PadShape{.block_bytes = 72});  // blame: H2 PaddedLengthIncluded
    });
    expect_clean({}, [](Core& core, std::uint64_t* data) {
        const auto tile = core.ub_alloc<std::uint64_t>(12);
        core.data_copy_pad(tile, gm(data, words), PadShape{.block_bytes = 72});
    });
}

TEST(H2UbOverflow, MoreThanThereIs) {
    expect_caught(Hazard::ub_overflow, "H2 MoreThanThereIs", {}, [](Core& core, std::uint64_t*) {
        static_cast<void>(core.ub_alloc<std::byte>(188 * 1024 + 1));  // blame: H2 MoreThanThereIs
    });
    expect_clean({}, [](Core& core, std::uint64_t*) { static_cast<void>(core.ub_alloc<std::byte>(188 * 1024)); });
}

TEST(H3UbOverlap, OfTwoBuffers) {
    expect_caught(Hazard::ub_overlap, "H3 OfTwoBuffers", {}, [](Core& core, std::uint64_t*) {
        static_cast<void>(core.ub_alloc<std::byte>(128));
        static_cast<void>(core.ub_at<std::byte>(96, 64));  // blame: H3 OfTwoBuffers
    });
    expect_clean({}, [](Core& core, std::uint64_t*) {
        static_cast<void>(core.ub_alloc<std::byte>(128));
        const std::size_t mark = core.ub_used();
        static_cast<void>(core.ub_alloc<std::byte>(128));
        core.ub_release(mark);
        static_cast<void>(core.ub_at<std::byte>(128, 64));
        static_cast<void>(core.ub_at<float>(128, 16));
    });
}

TEST(H3UbOverlap, WithTheLibrarysPart) {
    expect_caught(Hazard::ub_overlap, "H3 WithTheLibrarysPart", {}, [](Core& core, std::uint64_t*) {
        static_cast<void>(core.ub_at<std::byte>(188 * 1024, 32));  // blame: H3 WithTheLibrarysPart
    });
    expect_clean({}, [](Core& core, std::uint64_t*) { static_cast<void>(core.ub_at<std::byte>(188 * 1024 - 32, 32)); });
}

TEST(H4MissingFlag, BetweenCopyInAndVector) {
    expect_caught(Hazard::missing_flag, "H4 BetweenCopyInAndVector", {}, [](Core& core, std::uint64_t* data) {
        const auto tile = core.ub_alloc<std::uint64_t>(words).as<float>();
        core.data_copy(tile, gm(reinterpret_cast<float*>(data), 32), 32);
        core.add(tile, tile, tile, 32);  // blame: H4 BetweenCopyInAndVector
    });
    expect_clean({}, [](Core& core, std::uint64_t* data) {
        const auto tile = core.ub_alloc<std::uint64_t>(words).as<float>();
        core.data_copy(tile, gm(reinterpret_cast<float*>(data), 32), 32);
        core.set_flag<Pipe::copy_in, Pipe::vector>(0);
        core.wait_flag<Pipe::copy_in, Pipe::vector>(0);
        core.add(tile, tile, tile, 32);
    });
}

TEST(H4MissingFlag, BetweenScalarAndCopyOut) {
    expect_caught(Hazard::missing_flag, "H4 BetweenScalarAndCopyOut", {}, [](Core& core, std::uint64_t* data) {
        const auto tile = core.ub_alloc<std::uint64_t>(4);
        for (std::size_t i = 0; i < 4; ++i) core.set(tile, i, i);
        core.data_copy(gm(data, 4), tile, 4);  // blame: H4 BetweenScalarAndCopyOut
    });
    expect_clean({}, [](Core& core, std::uint64_t* data) {
        const auto tile = core.ub_alloc<std::uint64_t>(4);
        for (std::size_t i = 0; i < 4; ++i) core.set(tile, i, i);
        core.set_flag<Pipe::scalar, Pipe::copy_out>(0);
        core.wait_flag<Pipe::scalar, Pipe::copy_out>(0);
        core.data_copy(gm(data, 4), tile, 4);
    });
}

TEST(H5UnwrittenUb, IsRead) {
    expect_caught(Hazard::unwritten_ub, "H5 IsRead", {}, [](Core& core, std::uint64_t* data) {
        const auto tile = core.ub_alloc<std::uint64_t>(words);
        core.data_copy(gm(data, words), tile, words);  // blame: H5 IsRead
    });
    expect_clean({}, [](Core& core, std::uint64_t* data) {
        const auto tile = core.ub_alloc<std::uint64_t>(words);
        core.fill(tile, 7, words);
        core.set_flag<Pipe::vector, Pipe::copy_out>(0);
        core.wait_flag<Pipe::vector, Pipe::copy_out>(0);
        core.data_copy(gm(data, words), tile, words);
    });
}

// The buffer of the second round is new, although it has the place of the first one.
TEST(H5UnwrittenUb, IsWhatAnEarlierBufferHad) {
    const auto kernel = [](bool fill_again) {
        return [fill_again](Core& core, std::uint64_t* data) {
            for (int round = 0; round < 2; ++round) {
                const std::size_t mark = core.ub_used();
                const auto tile = core.ub_alloc<std::uint64_t>(words);
                if (round == 0 || fill_again) core.fill(tile, 7, words);
                core.set_flag<Pipe::vector, Pipe::copy_out>(0);
                core.wait_flag<Pipe::vector, Pipe::copy_out>(0);
                core.data_copy(gm(data, words), tile, words);  // blame: H5 IsWhatAnEarlierBufferHad
                core.pipe_barrier<Pipe::all>();
                core.ub_release(mark);
            }
        };
    };
    expect_caught(Hazard::unwritten_ub, "H5 IsWhatAnEarlierBufferHad", {}, kernel(false));
    expect_clean({}, kernel(true));
}

// Five words are fetched, and all eight are added to what goes out.
void add_padded(Core& core, std::uint64_t* data, std::size_t words_out) {
    const auto tile = core.ub_alloc<std::uint64_t>(8).as<float>();
    core.data_copy_pad(tile, gm(reinterpret_cast<float*>(data), 16), PadShape{.block_bytes = 40});
    core.set_flag<Pipe::copy_in, Pipe::vector>(0);
    core.wait_flag<Pipe::copy_in, Pipe::vector>(0);
    core.add(tile, tile, tile, 16);
    core.set_flag<Pipe::vector, Pipe::copy_out>(0);
    core.wait_flag<Pipe::vector, Pipe::copy_out>(0);
    const auto out = gm(reinterpret_cast<float*>(data), 16);
    core.data_copy_pad(out, tile, PadShape{.block_bytes = words_out * 8});  // blame: H5 PaddingConsumedAsData
}

TEST(H5UnwrittenUb, PaddingConsumedAsData) {
    expect_caught(Hazard::unwritten_ub, "H5 PaddingConsumedAsData", {},
                  [](Core& core, std::uint64_t* data) { add_padded(core, data, 8); });
    expect_clean({}, [](Core& core, std::uint64_t* data) { add_padded(core, data, 5); });
}

TEST(H6CopyShape, LengthsThatHardwareTruncates) {
    expect_caught(Hazard::copy_shape, "H6 LengthsThatHardwareTruncates", {}, [](Core& core, std::uint64_t* data) {
        const auto tile = core.ub_alloc<std::uint64_t>(words);
        core.data_copy(tile, gm(data, words), 5);  // blame: H6 LengthsThatHardwareTruncates
    });
    expect_clean({}, [](Core& core, std::uint64_t* data) {
        const auto tile = core.ub_alloc<std::uint64_t>(words);
        core.data_copy_pad(tile, gm(data, words), PadShape{.block_bytes = 40});
    });
}

TEST(H6CopyShape, ZeroAndBeyondTheLimits) {
    expect_caught(Hazard::copy_shape, "H6 zero", {}, [](Core& core, std::uint64_t* data) {
        const auto tile = core.ub_alloc<std::uint64_t>(words);
        core.data_copy(tile, gm(data, words), 0);  // blame: H6 zero
    });
    expect_caught(Hazard::copy_shape, "H6 blocks", {}, [](Core& core, std::uint64_t* data) {
        const auto tile = core.ub_alloc<std::uint64_t>(words);
        core.data_copy(tile, gm(data, words), StridedShape{.blocks = 4096, .block_units = 1});  // blame: H6 blocks
    });
}

TEST(H15SamePipe, OverlappingCommandsWithoutABarrier) {
    expect_caught(Hazard::same_pipe, "H15 OverlappingCommandsWithoutABarrier", {}, [](Core& core, std::uint64_t*) {
        const auto a = core.ub_alloc<float>(32);
        core.fill(a, 1, 32);
        core.add(a, a, a, 32);  // blame: H15 OverlappingCommandsWithoutABarrier
    });
    expect_clean({}, [](Core& core, std::uint64_t*) {
        const auto a = core.ub_alloc<float>(32);
        const auto b = core.ub_alloc<float>(32);
        core.fill(a, 1, 32);
        core.fill(b, 1, 32);
        core.pipe_barrier<Pipe::vector>();
        core.add(a, a, b, 32);
    });
}

TEST(H16FlagSetTwice, WithoutAWait) {
    expect_caught(Hazard::flag_set_twice, "H16 WithoutAWait", {}, [](Core& core, std::uint64_t*) {
        core.set_flag<Pipe::vector, Pipe::copy_out>(3);
        core.set_flag<Pipe::vector, Pipe::copy_out>(3);  // blame: H16 WithoutAWait
        core.wait_flag<Pipe::vector, Pipe::copy_out>(3);
        core.wait_flag<Pipe::vector, Pipe::copy_out>(3);
    });
    expect_clean({}, [](Core& core, std::uint64_t*) {
        for (int i = 0; i < 2; ++i) {
            core.set_flag<Pipe::vector, Pipe::copy_out>(3);
            core.set_flag<Pipe::copy_out, Pipe::vector>(3);
            core.wait_flag<Pipe::vector, Pipe::copy_out>(3);
            core.wait_flag<Pipe::copy_out, Pipe::vector>(3);
        }
    });
}

TEST(H17Deadlock, OfAFlagThatNobodySets) {
    expect_caught(Hazard::deadlock, "H17 OfAFlagThatNobodySets", {}, [](Core& core, std::uint64_t*) {
        core.wait_flag<Pipe::copy_in, Pipe::scalar>(1);  // blame: H17 OfAFlagThatNobodySets
    });
    expect_caught(Hazard::deadlock, "H17 other", {}, [](Core& core, std::uint64_t*) {
        core.wait_flag<Pipe::copy_in, Pipe::vector>(1);  // blame: H17 other
    });
}

// A pipe may wait for a flag that is set later, unless the pipe that sets it waits for the first one.
TEST(H17Deadlock, OfPipesThatWaitForEachOther) {
    expect_caught(Hazard::deadlock, "H17 pipes", {}, [](Core& core, std::uint64_t*) {
        core.wait_flag<Pipe::vector, Pipe::copy_in>(0);
        core.wait_flag<Pipe::copy_in, Pipe::vector>(0);  // blame: H17 pipes
        core.set_flag<Pipe::vector, Pipe::copy_in>(0);
        core.set_flag<Pipe::copy_in, Pipe::vector>(0);
    });
    expect_caught(Hazard::deadlock, "H17 through a third", {}, [](Core& core, std::uint64_t*) {
        core.wait_flag<Pipe::vector, Pipe::copy_in>(0);
        core.wait_flag<Pipe::copy_in, Pipe::copy_out>(0);
        core.set_flag<Pipe::copy_out, Pipe::vector>(0);
        core.wait_flag<Pipe::copy_out, Pipe::vector>(0);  // blame: H17 through a third
        core.set_flag<Pipe::vector, Pipe::copy_in>(0);
        core.set_flag<Pipe::copy_in, Pipe::copy_out>(0);
    });
    expect_clean({}, [](Core& core, std::uint64_t*) {
        core.set_flag<Pipe::copy_in, Pipe::vector>(0);
        core.wait_flag<Pipe::vector, Pipe::copy_in>(0);
        core.wait_flag<Pipe::copy_in, Pipe::vector>(0);
        core.set_flag<Pipe::vector, Pipe::copy_in>(0);
    });
}

TEST(H18FlagId, OutOfRangeOrReserved) {
    for (int id : {-1, 6, 7, 8}) {
        expect_caught(Hazard::flag_id, "H18 OutOfRangeOrReserved", {}, [id](Core& core, std::uint64_t*) {
            core.set_flag<Pipe::vector, Pipe::copy_out>(id);  // blame: H18 OutOfRangeOrReserved
        });
    }
    expect_clean({}, [](Core& core, std::uint64_t*) {
        core.set_flag<Pipe::vector, Pipe::copy_out>(5);
        core.wait_flag<Pipe::vector, Pipe::copy_out>(5);
    });
}

TEST(H19LeftOver, AFlagThatNobodyWaitedFor) {
    expect_caught(Hazard::left_over, "H19 AFlagThatNobodyWaitedFor", {}, [](Core& core, std::uint64_t*) {
        core.set_flag<Pipe::vector, Pipe::copy_out>(0);  // blame: H19 AFlagThatNobodyWaitedFor
    });
    expect_clean({}, [](Core& core, std::uint64_t*) {
        core.set_flag<Pipe::vector, Pipe::copy_out>(0);
        core.wait_flag<Pipe::vector, Pipe::copy_out>(0);
    });
}

TEST(H21BarrierOnScalar, IsRefused) {
    expect_caught(Hazard::barrier_on_scalar, "H21 IsRefused", {},
                  [](Core& core, std::uint64_t*) { core.pipe_barrier<Pipe::scalar>(); });  // blame: H21 IsRefused
    expect_clean({}, [](Core& core, std::uint64_t*) { core.pipe_barrier<Pipe::all>(); });
}

void add_out(Core& core, std::uint64_t* data, bool clear) {
    const auto tile = core.ub_alloc<float>(8);
    core.fill(tile, 1, 8);
    core.set_flag<Pipe::vector, Pipe::copy_out>(0);
    core.wait_flag<Pipe::vector, Pipe::copy_out>(0);
    core.set_atomic_add<float>();  // blame: H22 LeftOn
    core.data_copy(gm(reinterpret_cast<float*>(data), 8), tile, 8);
    if (clear) core.clear_atomic();
}

TEST(H22AtomicMode, LeftOn) {
    expect_caught(Hazard::atomic_mode, "H22 LeftOn", {},
                  [](Core& core, std::uint64_t* data) { add_out(core, data, false); });
    expect_clean({}, [](Core& core, std::uint64_t* data) { add_out(core, data, true); });
}

// Two tiles through one buffer; the second may come when the first has left.
void stage_twice(Core& core, std::uint64_t* data, bool wait) {
    const auto tile = core.ub_alloc<std::uint64_t>(words);
    static_cast<void>(fetch(core, data, tile));
    core.data_copy(gm(data + words, words), tile, words);
    core.set_flag<Pipe::copy_out, Pipe::copy_in>(0);
    if (wait) core.wait_flag<Pipe::copy_out, Pipe::copy_in>(0);
    core.data_copy(tile, gm(data + 2 * words, words), words);  // blame: H26 BeforeTheCopyOutIsComplete
    if (!wait) core.wait_flag<Pipe::copy_out, Pipe::copy_in>(0);
}

TEST(H26StagingReuse, BeforeTheCopyOutIsComplete) {
    expect_caught(Hazard::staging_reuse, "H26 BeforeTheCopyOutIsComplete", {},
                  [](Core& core, std::uint64_t* data) { stage_twice(core, data, false); });
    expect_clean({}, [](Core& core, std::uint64_t* data) { stage_twice(core, data, true); });
}

}  // namespace
}  // namespace npushmem::npu
