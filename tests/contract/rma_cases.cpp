// SPDX-License-Identifier: BSD-3-Clause
// put and get: sizes, alignments, completion.
#include <gtest/gtest.h>

#include "tests/contract/fabric.hpp"
#include "tests/contract/patterns.hpp"

namespace npushmem::contract {
namespace {

constexpr std::size_t sizes[] = {0, 1, 2, 3, 7, 8, 9, 63, 64, 65, 4096, 65537, 1 << 20};
constexpr std::size_t offsets[] = {0, 1, 8, 4093};

// The bytes around the target must stay as they are.
constexpr std::size_t margin = 16;

void put_one(Pe& from, Pe& to, std::size_t bytes, std::size_t offset) {
    const auto source = pattern(bytes, bytes + offset);
    const auto sent = source;
    const auto target = to.memory().subspan(offset, bytes + 2 * margin);
    std::fill(target.begin(), target.end(), std::byte{0xee});
    std::uint64_t token = 0;
    ASSERT_EQ(from.put(to.number(), offset + margin, bytes == 0 ? nullptr : source.data(), bytes, &token), Code::ok)
        << "a put of " << bytes << " bytes";
    ASSERT_EQ(from.wait(token), Code::ok);
    ASSERT_EQ(from.quiet(), Code::ok);
    EXPECT_TRUE(same(target.subspan(margin, bytes), sent)) << bytes << " bytes at " << offset;
    EXPECT_TRUE(same(source, sent)) << "the put has changed its source";
    for (std::size_t i = 0; i < margin; ++i) {
        EXPECT_EQ(target[i], std::byte{0xee}) << "written before the target";
        EXPECT_EQ(target[margin + bytes + i], std::byte{0xee}) << "written beyond the target";
    }
}

void puts_arrive_whole(Fabric& fabric) {
    for (const auto& [from, to] : fabric.pairs_with(NPUSHMEM_CAP_PUT))
        for (const std::size_t bytes : sizes)
            for (const std::size_t offset : offsets) put_one(fabric.pe(from), fabric.pe(to), bytes, offset);
}

void get_one(Pe& from, Pe& to, std::size_t bytes, std::size_t offset) {
    const auto source = pattern(bytes, bytes * 3 + offset);
    std::copy(source.begin(), source.end(), to.memory().begin() + static_cast<std::ptrdiff_t>(offset));
    std::vector<std::byte> target(bytes + 2 * margin, std::byte{0xee});
    std::uint64_t token = 0;
    ASSERT_EQ(from.get(to.number(), offset, bytes == 0 ? nullptr : target.data() + margin, bytes, &token), Code::ok);
    ASSERT_EQ(from.wait(token), Code::ok) << "the wait for the token of a get";
    EXPECT_TRUE(same(std::span(target).subspan(margin, bytes), source)) << bytes << " bytes at " << offset;
    EXPECT_EQ(target[margin - 1], std::byte{0xee}) << "written before the destination";
    EXPECT_EQ(target[margin + bytes], std::byte{0xee}) << "written beyond the destination";
    ASSERT_EQ(from.quiet(), Code::ok);
}

void gets_arrive_whole(Fabric& fabric) {
    for (const auto& [from, to] : fabric.pairs_with(NPUSHMEM_CAP_GET))
        for (const std::size_t bytes : sizes)
            for (const std::size_t offset : offsets) get_one(fabric.pe(from), fabric.pe(to), bytes, offset);
}

void the_last_byte_can_be_reached(Fabric& fabric) {
    for (const auto& [from, to] : fabric.pairs_with(NPUSHMEM_CAP_PUT)) {
        const std::byte mark{0x77};
        const auto last = fabric.pe(to).memory().size() - 1;
        ASSERT_EQ(fabric.pe(from).put(to, last, &mark, 1), Code::ok) << "a put of the last byte";
        ASSERT_EQ(fabric.pe(from).quiet(), Code::ok);
        EXPECT_EQ(fabric.pe(to).memory()[last], mark);
        EXPECT_EQ(fabric.pe(from).put(to, last + 1, nullptr, 0), Code::ok) << "nothing, at the end";
        EXPECT_EQ(fabric.pe(from).quiet(), Code::ok);
    }
}

// After a put's token is complete, the caller may reuse its source.
void a_source_can_be_reused_after_its_token(Fabric& fabric) {
    for (const auto& [from, to] : fabric.pairs_with(NPUSHMEM_CAP_PUT)) {
        constexpr std::size_t bytes = 512;
        auto source = pattern(bytes, 5);
        const auto sent = source;
        std::uint64_t token = 0;
        ASSERT_EQ(fabric.pe(from).put(to, 128, source.data(), bytes, &token), Code::ok);
        ASSERT_EQ(fabric.pe(from).wait(token), Code::ok);
        std::fill(source.begin(), source.end(), std::byte{0});
        ASSERT_EQ(fabric.pe(from).quiet(), Code::ok);
        EXPECT_TRUE(same(fabric.pe(to).memory().subspan(128, bytes), sent))
            << "the source was read after the token was complete";
    }
}

// More operations than any queue has room for, each with a token or none.
void many_puts_all_arrive(Fabric& fabric) {
    constexpr std::uint64_t count = 5000;
    for (const auto& [from, to] : fabric.pairs_with(NPUSHMEM_CAP_PUT)) {
        std::vector<std::uint64_t> source(count);
        for (std::uint64_t i = 0; i < count; ++i) source[i] = i * 3 + 1;
        for (std::uint64_t i = 0; i < count; ++i)
            ASSERT_EQ(fabric.pe(from).put(to, i * 8, &source[i], 8), Code::ok) << "put " << i;
        ASSERT_EQ(fabric.pe(from).quiet(), Code::ok);
        for (std::uint64_t i = 0; i < count; ++i)
            ASSERT_EQ(word_at(fabric.pe(to).memory(), i * 8), i * 3 + 1) << "the word of put " << i;
    }
}

void many_gets_all_arrive(Fabric& fabric) {
    constexpr std::uint64_t count = 2000;
    for (const auto& [from, to] : fabric.pairs_with(NPUSHMEM_CAP_GET)) {
        std::vector<std::uint64_t> target(count);
        for (std::uint64_t i = 0; i < count; ++i) set_word(fabric.pe(to).memory(), i * 8, i + 100);
        for (std::uint64_t i = 0; i < count; ++i)
            ASSERT_EQ(fabric.pe(from).get(to, i * 8, &target[i], 8), Code::ok) << "get " << i;
        ASSERT_EQ(fabric.pe(from).quiet(), Code::ok);
        for (std::uint64_t i = 0; i < count; ++i) ASSERT_EQ(target[i], i + 100) << "the word of get " << i;
    }
}

}  // namespace

std::vector<Case> rma_cases() {
    return {{"puts_arrive_whole", NPUSHMEM_CAP_PUT, puts_arrive_whole},
            {"gets_arrive_whole", NPUSHMEM_CAP_GET, gets_arrive_whole},
            {"the_last_byte_can_be_reached", NPUSHMEM_CAP_PUT, the_last_byte_can_be_reached},
            {"a_source_can_be_reused_after_its_token", NPUSHMEM_CAP_PUT, a_source_can_be_reused_after_its_token},
            {"many_puts_all_arrive", NPUSHMEM_CAP_PUT, many_puts_all_arrive},
            {"many_gets_all_arrive", NPUSHMEM_CAP_GET, many_gets_all_arrive}};
}

}  // namespace npushmem::contract
