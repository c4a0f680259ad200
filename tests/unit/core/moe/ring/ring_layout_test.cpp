// SPDX-License-Identifier: BSD-3-Clause
#include <gmock/gmock.h>

#include <vector>

#include "core/moe/ring/ring_layout.hpp"

namespace npushmem::moe {

namespace {

using ::testing::HasSubstr;

RingShape shape_of(std::uint64_t size, std::uint64_t batch, std::uint64_t release) {
    return {Bytes{size}, Bytes{batch}, Bytes{release}};
}

TEST(RingShape, AcceptsValidSizes) {
    EXPECT_TRUE(shape_of(32, 32, 32).check().ok());
    EXPECT_TRUE(shape_of(96, 64, 32).check().ok()) << "no power of two";
    EXPECT_TRUE(shape_of(std::uint64_t{1} << 40, 65536, 65536).check().ok());
}

TEST(RingShape, RejectsInvalidSizesAndReportsTheValue) {
    EXPECT_THAT(shape_of(0, 32, 32).check().message(), HasSubstr("a ring is 0 bytes"));
    EXPECT_THAT(shape_of(100, 32, 32).check().message(), HasSubstr("a ring is 100 bytes, must be a multiple of 32"));
    EXPECT_FALSE(shape_of((std::uint64_t{1} << 40) + 32, 32, 32).check().ok());
    EXPECT_THAT(shape_of(64, 96, 32).check().message(),
                HasSubstr("batch is 96 bytes, must be a multiple of 32 from 32 to 64"));
    EXPECT_FALSE(shape_of(64, 0, 32).check().ok());
    EXPECT_FALSE(shape_of(64, 33, 32).check().ok());
    EXPECT_THAT(shape_of(64, 32, 96).check().message(), HasSubstr("release step is 96 bytes"));
    EXPECT_EQ(shape_of(64, 32, 0).check().code(), Code::argument);
}

TEST(RingPieces, CoverEveryStretchOnceAndInOrder) {
    for (std::uint64_t size = 1; size <= 9; ++size) {
        for (std::uint64_t position = 0; position < 3 * size; ++position) {
            for (std::uint64_t bytes = 0; bytes <= size; ++bytes) {
                std::vector<std::uint64_t> at;
                const int pieces = for_each_piece(Bytes{size}, position, Bytes{bytes}, [&](const RingPiece& piece) {
                    EXPECT_EQ(piece.from, at.size());
                    EXPECT_LE(piece.at + piece.bytes, size);
                    for (std::uint64_t i = 0; i < piece.bytes; ++i) at.push_back(piece.at + i);
                });
                ASSERT_EQ(at.size(), bytes);
                for (std::uint64_t i = 0; i < bytes; ++i) ASSERT_EQ(at[i], (position + i) % size);
                EXPECT_EQ(pieces, bytes == 0 ? 0 : position % size + bytes > size ? 2 : 1);
            }
        }
    }
}

TEST(RingLayout, EveryWriterHasItsOwnLineAndNothingOverlaps) {
    for (const int ranks : {1, 2, 3, 64}) {
        for (const std::uint64_t size : {32, 96, 512, 65536}) {
            const RingLayout layout(ranks, shape_of(size, 32, 32));
            std::vector<std::pair<std::uint64_t, std::uint64_t>> used;
            for (int peer = 0; peer < ranks; ++peer) {
                for (const Bytes line :
                     {layout.tail(peer), layout.head(peer), layout.sender_state(peer), layout.receiver_state(peer)}) {
                    EXPECT_EQ(line.value() % RingLayout::line, 0U);
                    used.emplace_back(line.value(), RingLayout::line);
                }
                EXPECT_EQ(layout.ring(peer).value() % RingLayout::ring_alignment, 0U);
                EXPECT_EQ(layout.canary(peer), layout.ring(peer) + Bytes{size});
                used.emplace_back(layout.ring(peer).value(), size + RingLayout::line);
            }
            std::ranges::sort(used);
            for (std::size_t i = 1; i < used.size(); ++i) {
                EXPECT_LE(used[i - 1].first + used[i - 1].second, used[i].first);
            }
            EXPECT_LE(used.back().first + used.back().second, layout.total().value());
        }
    }
}

}  // namespace

}  // namespace npushmem::moe
