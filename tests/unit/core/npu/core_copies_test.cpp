// SPDX-License-Identifier: BSD-3-Clause
// Copies between GM and UB: the bytes that they move and the arguments that they reject.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>
#include <vector>

#include "npushmem/testing/array_fabric.hpp"

namespace npushmem::npu {
namespace {

using fakes::ArrayPe;
using fakes::SymmetricArray;
using testing::HasSubstr;

struct CopyTest : testing::Test {
    SymmetricArray array{1, 64};
    ArrayPe pe{array, 0, {.blocks = 1, .vector_cores = 1}};
    std::vector<std::uint16_t> source = std::vector<std::uint16_t>(4096);
    std::vector<std::uint16_t> target = std::vector<std::uint16_t>(4096, 0xEEEE);
    gm_view<const std::uint16_t> in() { return gm(static_cast<const std::uint16_t*>(source.data()), source.size()); }
    gm_view<std::uint16_t> out() { return gm(target.data(), target.size()); }

    CopyTest() { std::iota(source.begin(), source.end(), std::uint16_t{1}); }

    // Returns the message of the KernelError that `body` throws; "" if it throws none.
    template <class Body>
    std::string refusal(Body&& body) {
        std::string message;
        const Status status = pe.run(1, [&](Core& core) {
            try {
                body(core);
            } catch (const KernelError& error) {
                message = error.what();
                EXPECT_THAT(message, HasSubstr("core_copies_test.cpp"));
            }
        });
        EXPECT_TRUE(status.ok()) << status.message();
        return message;
    }
};

TEST_F(CopyTest, PlainMovesExactlyTheRequestedElements) {
    for (std::size_t count : {16U, 32U, 176U, 4096U}) {
        target.assign(4096, 0xEEEE);
        ASSERT_EQ(refusal([&](Core& core) {
                      const auto ub = core.ub_alloc<std::uint16_t>(4096);
                      core.data_copy(ub, in(), count);
                      core.data_copy(out(), ub, count);
                  }),
                  "");
        EXPECT_TRUE(std::equal(source.begin(), source.begin() + static_cast<long>(count), target.begin()));
        EXPECT_EQ(std::count(target.begin(), target.end(), 0xEEEE), static_cast<long>(4096 - count));
    }
}

TEST_F(CopyTest, PlainRejectsArgumentsThatHardwareWouldTruncateOrFault) {
    const auto with = [&](auto body) {
        return refusal([&](Core& core) { body(core, core.ub_alloc<std::uint16_t>(64)); });
    };
    EXPECT_THAT(with([&](Core& c, auto ub) { c.data_copy(ub, in(), 15); }),
                HasSubstr("30 bytes; a plain copy moves multiples"));
    EXPECT_THAT(with([&](Core& c, auto ub) { c.data_copy(ub, in(), 0); }), HasSubstr("count 0 must be 1 to 64"));
    EXPECT_THAT(with([&](Core& c, auto ub) { c.data_copy(ub, in(), 80); }), HasSubstr("count 80 must be 1 to 64"));
    EXPECT_THAT(with([&](Core& c, auto ub) { c.data_copy(ub, in().sub(0, 16), 32); }), HasSubstr("must be 1 to 16"));
    EXPECT_THAT(with([&](Core& c, auto ub) { c.data_copy(ub.from(1), in(), 16); }), HasSubstr("32-byte aligned"));
    EXPECT_THAT(with([&](Core& c, auto ub) { c.data_copy(out(), ub.from(8), 16); }), HasSubstr("UB to GM"));
    auto* odd = reinterpret_cast<const std::uint16_t*>(reinterpret_cast<const char*>(source.data()) + 1);
    EXPECT_THAT(with([&](Core& c, auto ub) { c.data_copy(ub, gm(odd, 64), 16); }),
                HasSubstr("aligned to its 2-byte elements"));
    EXPECT_THAT(with([&](Core& c, auto ub) { c.data_copy(ub, in(), SIZE_MAX / 2 + 1); }), HasSubstr("must be 1 to 64"));
}

TEST_F(CopyTest, StridedGathersAndScatters) {
    const StridedShape gather{.blocks = 5, .block_units = 2, .source_gap_units = 3, .target_gap_units = 0};
    const StridedShape scatter{.blocks = 5, .block_units = 2, .source_gap_units = 0, .target_gap_units = 1};
    ASSERT_EQ(refusal([&](Core& core) {
                  const auto ub = core.ub_alloc<std::uint16_t>(160);
                  core.data_copy(ub, in(), gather);
                  core.data_copy(out(), ub, scatter);
              }),
              "");
    for (std::size_t i = 0; i < 5; ++i) {
        for (std::size_t j = 0; j < 32; ++j) ASSERT_EQ(target[i * 48 + j], source[i * 80 + j]);
        for (std::size_t j = 32; j < 48; ++j) ASSERT_EQ(target[i * 48 + j], 0xEEEE);
    }
}

TEST_F(CopyTest, StridedRejectsShapesOutsideTheLimitsOrTheViews) {
    const auto with = [&](const StridedShape& shape) {
        return refusal([&](Core& core) { core.data_copy(core.ub_alloc<std::uint16_t>(160), in(), shape); });
    };
    EXPECT_EQ(with({.blocks = 10, .block_units = 1}), "");
    EXPECT_THAT(with({.blocks = 11, .block_units = 1}), HasSubstr("inside the target"));
    EXPECT_THAT(with({.blocks = 0}), HasSubstr("blocks must be 1 to 4095"));
    EXPECT_THAT(with({.blocks = 4096}), HasSubstr("blocks must be 1 to 4095"));
    EXPECT_THAT(with({.block_units = 0}), HasSubstr("block_units must be 1 to 65535"));
    EXPECT_THAT(with({.block_units = 65536}), HasSubstr("block_units must be 1 to 65535"));
    EXPECT_THAT(with({.blocks = 2, .source_gap_units = SIZE_MAX / 32}), HasSubstr("inside the source"));
    EXPECT_THAT(with({.blocks = 2, .target_gap_units = SIZE_MAX / 16}), HasSubstr("inside the target"));
}

TEST_F(CopyTest, PadCopiesAreByteExactInGmAndFillInUb) {
    for (std::size_t elements : {1U, 7U, 15U, 16U, 17U, 33U}) {
        target.assign(4096, 0xEEEE);
        const PadShape shape{.blocks = 3, .block_bytes = elements * 2, .gm_gap_bytes = 6, .ub_gap_units = 1};
        const std::size_t step = shape.ub_step() / 2;
        std::vector<std::uint16_t> buffer;
        ASSERT_EQ(refusal([&](Core& core) {
                      const auto ub = core.ub_alloc<std::uint16_t>(512);
                      core.fill(ub, 0x5555, 512);
                      core.data_copy_pad(ub, in(), shape, 0xABCD);
                      core.data_copy_pad(out(), ub, shape);
                      for (std::size_t i = 0; i < 512; ++i) buffer.push_back(core.get(ub, i));
                  }),
                  "");
        for (std::size_t i = 0; i < 3; ++i) {
            for (std::size_t j = 0; j < step; ++j) {
                const bool payload = j < elements;
                const bool padding = !payload && j < shape.ub_block_bytes() / 2;
                const int expected = payload ? source[i * (elements + 3) + j] : padding ? 0xABCD : 0x5555;
                ASSERT_EQ(buffer[i * step + j], expected) << elements << " " << i << " " << j;
            }
            for (std::size_t j = 0; j < elements + 3; ++j) {
                const std::size_t at = i * (elements + 3) + j;
                ASSERT_EQ(target[at], j < elements ? source[at] : 0xEEEE) << elements;
            }
        }
    }
}

TEST_F(CopyTest, PadRejectsShapesOutsideTheLimitsOrTheViews) {
    const auto with = [&](const PadShape& shape) {
        return refusal([&](Core& core) { core.data_copy_pad(core.ub_alloc<std::uint16_t>(40), in(), shape); });
    };
    EXPECT_EQ(with({.block_bytes = 64}), "");
    // 70 bytes are available, but the padded block needs 96.
    EXPECT_THAT(with({.block_bytes = 70}), HasSubstr("padded blocks and gaps must lie inside the UB view"));
    EXPECT_THAT(with({.block_bytes = 0}), HasSubstr("block_bytes must be 1 to 2097151"));
    EXPECT_THAT(with({.block_bytes = 3}), HasSubstr("whole elements"));
    EXPECT_THAT(with({.block_bytes = 2097152}), HasSubstr("2097151"));
    EXPECT_THAT(with({.blocks = 0, .block_bytes = 2}), HasSubstr("blocks must be"));
    EXPECT_THAT(with({.blocks = 2, .block_bytes = 2, .gm_gap_bytes = 9000}), HasSubstr("inside the GM view"));
}

TEST_F(CopyTest, AtomicAddAccumulatesUntilSwitchedOff) {
    std::vector<float> sums(16, 1.0F);
    std::vector<std::int32_t> counts(16, 5);
    ASSERT_EQ(refusal([&](Core& core) {
                  const auto values = core.ub_alloc<float>(16);
                  const auto ints = core.ub_alloc<std::int32_t>(16);
                  core.fill(values, 0.5F, 16);
                  core.fill(ints, 3, 16);
                  core.set_atomic_add<float>();
                  core.data_copy(gm(sums.data(), 16), values, 16);
                  core.data_copy_pad(gm(sums.data(), 16), values, PadShape{.block_bytes = 20});
                  core.set_atomic_add<std::int32_t>();
                  core.data_copy(gm(counts.data(), 16), ints, StridedShape{.blocks = 2});
                  core.clear_atomic();
                  core.data_copy(gm(counts.data(), 16), ints, 8);
              }),
              "");
    for (std::size_t i = 0; i < 16; ++i) {
        EXPECT_EQ(sums[i], i < 5 ? 2.0F : 1.5F);
        EXPECT_EQ(counts[i], i < 8 ? 3 : 8);
    }
}

TEST_F(CopyTest, ViewsCannotGrow) {
    EXPECT_THROW(static_cast<void>(in().sub(4090, 7)), KernelError);
    EXPECT_THROW(static_cast<void>(in().from(4097)), KernelError);
    EXPECT_THROW(static_cast<void>(in().sub(1, SIZE_MAX)), KernelError);
    EXPECT_EQ(in().from(4096).size(), 0U);
    EXPECT_EQ(in().as<const std::uint64_t>().size(), 1024U);
}

}  // namespace
}  // namespace npushmem::npu
