// SPDX-License-Identifier: BSD-3-Clause
// put_strided: sizes, strides, overlap, completion, order, refusals. The cases of every operation (unknown queues and
// memory, forget, random sequences) include it too.
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/contract/case_tools.hpp"
#include "tests/contract/patterns.hpp"

namespace npushmem::contract {
namespace {

constexpr std::uint64_t needs = NPUSHMEM_CAP_PUT_STRIDED;
constexpr std::uint64_t window_at = 4000;  // blocks cross a page border
constexpr std::byte between_blocks{0xee};

struct Blocks {
    std::uint64_t bytes;
    std::uint64_t count;
    std::uint64_t remote_stride;
    std::uint64_t local_stride;

    [[nodiscard]] std::uint64_t span(std::uint64_t stride) const {
        return bytes == 0 || count == 0 ? 0 : (count - 1) * stride + bytes;
    }
};

npushmem_put_strided strided(const Pe& from, int to, std::uint64_t offset, const void* source, const Blocks& blocks) {
    return {from.rma(to, offset, const_cast<void*>(source), blocks.bytes), blocks.count, blocks.remote_stride,
            blocks.local_stride};
}

// Compares the gaps, and 64 bytes before and after the blocks, too.
void put_blocks(Pe& from, Pe& to, const Blocks& blocks, std::uint64_t offset) {
    constexpr std::uint64_t margin = 64;
    const auto source = pattern(blocks.span(blocks.local_stride), blocks.bytes * 31 + blocks.count);
    const auto window = to.memory().subspan(offset - margin, blocks.span(blocks.remote_stride) + 2 * margin);
    std::fill(window.begin(), window.end(), between_blocks);
    std::vector<std::byte> expected(window.begin(), window.end());
    for (std::uint64_t i = 0; i < blocks.count; ++i)
        std::copy_n(source.data() + i * blocks.local_stride, blocks.bytes,
                    expected.data() + margin + i * blocks.remote_stride);
    std::uint64_t token = 0;
    ASSERT_EQ(from.put_strided(strided(from, to.number(), offset, source.data(), blocks), &token), Code::ok);
    ASSERT_EQ(from.wait(token), Code::ok);
    ASSERT_EQ(from.quiet(), Code::ok);
    const auto wrong = first_difference(window, expected);
    EXPECT_FALSE(wrong.has_value()) << blocks.count << " blocks of " << blocks.bytes << " bytes, strides "
                                    << blocks.remote_stride << " and " << blocks.local_stride << " to " << offset
                                    << ": byte " << *wrong << " from " << margin << " before them on";
}

void strided_puts_arrive_whole(Fabric& fabric) {
    constexpr std::uint64_t max = NPUSHMEM_PUT_STRIDED_MAX;
    for (const auto& [from, to] : representative_pairs(fabric, needs)) {
        Pe& pe = fabric.pe(from);
        for (std::uint64_t bytes = 1; bytes <= 16; ++bytes)
            for (const std::uint64_t count : {std::uint64_t{1}, std::uint64_t{37}, max / bytes})
                for (const std::uint64_t gap : {std::uint64_t{0}, 2 * bytes + 1})
                    put_blocks(pe, fabric.pe(to), {bytes, count, bytes + gap, 2 * bytes + 1 - gap % 2},
                               window_at + bytes % 3);
        for (const std::uint64_t bytes : {std::uint64_t{24}, std::uint64_t{63}, std::uint64_t{256}, max / 2, max})
            put_blocks(pe, fabric.pe(to), {bytes, max / bytes, bytes + 4096, bytes}, window_at);
    }
}

// One block as the source of several, and blocks that share bytes.
void strided_sources_may_overlap(Fabric& fabric) {
    for (const auto& [from, to] : representative_pairs(fabric, needs))
        for (const std::uint64_t local_stride : {0, 1, 4})
            put_blocks(fabric.pe(from), fabric.pe(to), {8, 20, 24, local_stride}, window_at);
}

void a_strided_source_can_be_reused_after_its_token(Fabric& fabric) {
    const Blocks blocks{8, 100, 16, 8};
    for (const auto& [from, to] : representative_pairs(fabric, needs)) {
        Pe& pe = fabric.pe(from);
        for (std::uint64_t round = 1; round <= 20; ++round) {
            std::vector<std::uint64_t> source(blocks.count, round);
            std::uint64_t token = 0;
            ASSERT_EQ(pe.put_strided(strided(pe, to, window_at, source.data(), blocks), &token), Code::ok);
            ASSERT_EQ(pe.wait(token), Code::ok);
            std::fill(source.begin(), source.end(), ~std::uint64_t{0});
            ASSERT_EQ(pe.quiet(), Code::ok);
            for (std::uint64_t i = 0; i < blocks.count; ++i)
                ASSERT_EQ(word_at(fabric.pe(to).memory(), window_at + i * 16), round)
                    << "the source was read after the token was complete: block " << i;
        }
    }
}

void many_strided_puts_all_arrive(Fabric& fabric) {
    constexpr std::uint64_t calls = 300;
    const Blocks blocks{8, 4, 16, 8};
    for (const auto& [from, to] : representative_pairs(fabric, needs)) {
        Pe& pe = fabric.pe(from);
        std::vector<std::uint64_t> source(calls * blocks.count);
        for (std::uint64_t i = 0; i < source.size(); ++i) source[i] = i * 3 + 1;
        for (std::uint64_t call = 0; call < calls; ++call)
            ASSERT_EQ(pe.put_strided(strided(pe, to, call * 64, &source[call * blocks.count], blocks)), Code::ok);
        ASSERT_EQ(pe.quiet(), Code::ok);
        for (std::uint64_t i = 0; i < source.size(); ++i)
            ASSERT_EQ(word_at(fabric.pe(to).memory(), i * 16), source[i]) << "strided put " << i / blocks.count;
    }
}

constexpr std::uint64_t ordered_flag_at = 64;
const Blocks ordered_blocks{8, 64, 24, 8};

// A fence lies between the blocks and the flag. Whoever sees the flag sees the blocks.
void expect_blocks_with_flag(Pe& from, Pe& to, std::uint64_t round) {
    ASSERT_EQ(from.until([&] { return word_at(to.memory(), ordered_flag_at) == round; }), Code::ok)
        << "the flag did not come";
    for (std::uint64_t i = 0; i < ordered_blocks.count; ++i)
        ASSERT_EQ(word_at(to.memory(), window_at + i * ordered_blocks.remote_stride), round)
            << "the flag came before block " << i;
    ASSERT_EQ(from.quiet(), Code::ok);
}

void a_fence_orders_strided_puts(Fabric& fabric) {
    constexpr std::uint64_t rounds = 40;
    for (const auto& [from, to] : representative_pairs(fabric, needs | NPUSHMEM_CAP_PUT)) {
        Pe& pe = fabric.pe(from);
        const bool signals = pe.reach(to).has(NPUSHMEM_CAP_PUT_SIGNAL);
        set_word(fabric.pe(to).memory(), ordered_flag_at, 0);
        for (std::uint64_t round = 1; round <= rounds; ++round) {
            std::vector<std::uint64_t> source(ordered_blocks.count, round);
            ASSERT_EQ(pe.put_strided(strided(pe, to, window_at, source.data(), ordered_blocks)), Code::ok);
            ASSERT_EQ(pe.fence(), Code::ok);
            if (signals && round % 2 == 0) {
                npushmem_put_signal op{pe.rma(to, 0, nullptr, 0), pe.remote(to), ordered_flag_at, round, 0, 0};
                ASSERT_EQ(pe.put_signal(op), Code::ok);
            } else {
                ASSERT_EQ(pe.put(to, ordered_flag_at, &round, sizeof round), Code::ok);
            }
            expect_blocks_with_flag(pe, fabric.pe(to), round);
        }
    }
}

// The strided put carries the flag, and follows a put.
void a_fence_orders_puts_before_strided_puts(Fabric& fabric) {
    constexpr std::uint64_t rounds = 40;
    for (const auto& [from, to] : representative_pairs(fabric, needs | NPUSHMEM_CAP_PUT)) {
        Pe& pe = fabric.pe(from);
        const auto memory = fabric.pe(to).memory();
        set_word(memory, ordered_flag_at, 0);
        for (std::uint64_t round = 1; round <= rounds; ++round) {
            std::vector<std::uint64_t> data(100, round);
            const std::uint64_t flags[] = {round, round};
            ASSERT_EQ(pe.put(to, window_at, data.data(), data.size() * 8), Code::ok);
            ASSERT_EQ(pe.fence(), Code::ok);
            ASSERT_EQ(pe.put_strided(strided(pe, to, ordered_flag_at, flags, {8, 2, 16, 8})), Code::ok);
            ASSERT_EQ(pe.until([&] { return word_at(memory, ordered_flag_at) == round; }), Code::ok) << "no flag";
            for (std::uint64_t i = 0; i < data.size(); ++i)
                ASSERT_EQ(word_at(memory, window_at + i * 8), round) << "the flag came before word " << i;
            ASSERT_EQ(pe.quiet(), Code::ok);
            EXPECT_EQ(word_at(memory, ordered_flag_at + 16), round);
        }
    }
}

// The call or its wait fails, the queue remains usable, and nothing was put.
void expect_refused(Pe& from, Pe& to, const char* what, const npushmem_put_strided& op) {
    const auto before = std::vector<std::byte>(to.memory().begin(), to.memory().end());
    std::uint64_t token = 0;
    Code code = from.put_strided(op, &token);
    if (code == Code::ok) code = from.wait(token);
    if (code == Code::ok) code = from.quiet();
    EXPECT_LT(static_cast<int>(code), 0) << what << " was accepted";
    EXPECT_NE(code, Code::timeout) << what;
    (void)from.quiet();  // may report the same failure again
    EXPECT_EQ(from.quiet(), Code::ok) << "after " << what;
    EXPECT_FALSE(first_difference(to.memory(), before).has_value()) << what << " put something";
}

void wrong_strided_puts(Fabric& fabric) {
    constexpr std::uint64_t max = ~std::uint64_t{0};
    const std::vector<std::byte> source(2 * NPUSHMEM_PUT_STRIDED_MAX, std::byte{0x5a});
    for (const auto& [from, to] : fabric.pairs_with(needs)) {
        Pe& pe = fabric.pe(from);
        Pe& target = fabric.pe(to);
        const std::uint64_t size = target.memory().size();
        const auto refuse = [&](const char* what, std::uint64_t offset, const Blocks& blocks) {
            expect_refused(pe, target, what, strided(pe, to, offset, source.data(), blocks));
        };
        refuse("a last block beyond the end", size - 64, {8, 5, 15, 8});
        refuse("a first block beyond the end", size - 4, {8, 2, 0, 8});
        refuse("a stride beyond the end", 0, {8, 2, size - 7, 8});
        refuse("a negative stride", 4096, {8, 3, max - 15, 8});
        refuse("a stride whose multiple overflows", 4096, {8, 5, std::uint64_t{1} << 62, 8});
        refuse("an offset that overflows", max - 7, {8, 2, 16, 8});
        refuse("too many blocks", 0, {8, NPUSHMEM_PUT_STRIDED_MAX / 8 + 1, 8, 8});
        refuse("too many blocks at one place", 0, {1, max, 0, 0});
        refuse("a number of bytes that overflows", 0, {8, (max >> 3) + 2, 0, 0});
        refuse("a block that is too long", 0, {NPUSHMEM_PUT_STRIDED_MAX + 1, 1, 0, 0});
        expect_refused(pe, target, "a null source", strided(pe, to, 0, nullptr, {8, 2, 8, 8}));
        for (const Blocks& nothing : {Blocks{0, 7, 8, 8}, Blocks{8, 0, 8, 8}, Blocks{0, max, max, max}}) {
            EXPECT_EQ(pe.put_strided(strided(pe, to, size, nullptr, nothing)), Code::ok) << "nothing, at the end";
            EXPECT_EQ(pe.quiet(), Code::ok);
        }
    }
}

}  // namespace

std::vector<Case> strided_cases() {
    return {
        {"strided_puts_arrive_whole", needs, strided_puts_arrive_whole},
        {"strided_sources_may_overlap", needs, strided_sources_may_overlap},
        {"a_strided_source_can_be_reused_after_its_token", needs, a_strided_source_can_be_reused_after_its_token},
        {"many_strided_puts_all_arrive", needs, many_strided_puts_all_arrive},
        {"a_fence_orders_strided_puts", needs | NPUSHMEM_CAP_PUT, a_fence_orders_strided_puts},
        {"a_fence_orders_puts_before_strided_puts", needs | NPUSHMEM_CAP_PUT, a_fence_orders_puts_before_strided_puts},
        {"wrong_strided_puts", needs, wrong_strided_puts}};
}

}  // namespace npushmem::contract
