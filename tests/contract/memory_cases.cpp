// SPDX-License-Identifier: BSD-3-Clause
// Registration of memory, and import and mapping of a peer's memory.
#include <gtest/gtest.h>

#include "tests/contract/fabric.hpp"
#include "tests/contract/patterns.hpp"

namespace npushmem::contract {
namespace {

void a_mapping_shows_the_peers_memory(Fabric& fabric) {
    for (const auto& [from, to] : fabric.pairs_with(NPUSHMEM_CAP_MAP)) {
        auto mapped = fabric.pe(from).transport().map(fabric.pe(from).remote(to));
        ASSERT_TRUE(mapped.ok()) << mapped.status().message();
        const std::span<std::byte> view(static_cast<std::byte*>(mapped.value()), Fabric::pe_bytes);
        const std::span<std::byte> memory = fabric.pe(to).memory();
        for (const std::size_t offset : {std::size_t{0}, std::size_t{4096}, memory.size() - 8}) {
            set_word(memory, offset, offset + 1);
            EXPECT_EQ(word_at(view, offset), offset + 1) << "what the peer has stored";
            set_word(view, offset, offset + 2);
            EXPECT_EQ(word_at(memory, offset), offset + 2) << "what was stored through the mapping";
        }
    }
}

void without_the_capability_nothing_is_mapped(Fabric& fabric) {
    for (int from = 0; from < fabric.npes(); ++from) {
        for (int to = 0; to < fabric.npes(); ++to) {
            if (!fabric.pe(from).is_connected(to) || fabric.pe(from).reach(to).has(NPUSHMEM_CAP_MAP)) continue;
            const auto mapped = fabric.pe(from).transport().map(fabric.pe(from).remote(to));
            EXPECT_FALSE(mapped.ok()) << "mapped without the capability";
            EXPECT_FALSE(mapped.status().message().empty());
        }
    }
}

void several_regions_do_not_mix(Fabric& fabric) {
    for (const auto& [from, to] : fabric.pairs_with(NPUSHMEM_CAP_PUT)) {
        const auto slices = make_slices(Layout::own_files, 1, 8192);
        auto second = fabric.pe(to).transport().register_memory(slices[0]->describe());
        ASSERT_TRUE(second.ok()) << second.status().message();
        Pe& origin = fabric.pe(from);
        auto remote = origin.transport().import_memory(to, second.value().handle);
        ASSERT_TRUE(remote.ok()) << remote.status().message();
        const auto bytes = pattern(64, 7);
        const npushmem_rma op{to, 0, remote.value(), 4096, const_cast<std::byte*>(bytes.data()), bytes.size()};
        Code posted = Code::again;
        ASSERT_EQ(
            origin.until([&] { return (posted = origin.transport().put(origin.queue(), op, nullptr)) != Code::again; }),
            Code::ok);
        EXPECT_EQ(posted, Code::ok);
        EXPECT_EQ(origin.quiet(), Code::ok);
        EXPECT_TRUE(same(slices[0]->bytes().subspan(4096, 64), bytes)) << "the second region";
        EXPECT_EQ(origin.transport().release_memory(remote.value()), Code::ok);
        EXPECT_EQ(fabric.pe(to).transport().deregister_memory(second.value().region), Code::ok);
    }
}

void importing_can_be_repeated(Fabric& fabric) {
    for (const auto& [from, to] : fabric.pairs_with(0)) {
        if (!fabric.pe(from).is_connected(to)) continue;
        Transport& transport = fabric.pe(from).transport();
        for (int i = 0; i < 50; ++i) {
            auto again = transport.import_memory(to, fabric.pe(to).handle());
            ASSERT_TRUE(again.ok()) << again.status().message();
            EXPECT_NE(again.value(), fabric.pe(from).remote(to))
                << "the first import would be released with the second";
            EXPECT_EQ(transport.release_memory(again.value()), Code::ok);
        }
    }
}

void handles_that_nobody_made_are_refused(Fabric& fabric) {
    Transport& transport = fabric.pe(0).transport();
    for (const std::size_t bytes : {0, 1, 24, 88, NPUSHMEM_HANDLE_MAX}) {
        const auto garbage = pattern(bytes, bytes);
        const auto imported = transport.import_memory(0, garbage);
        ASSERT_FALSE(imported.ok()) << bytes << " bytes of garbage were taken for a handle";
        EXPECT_FALSE(imported.status().message().empty()) << "refused without a message";
    }
}

void truncated_and_damaged_handles_are_refused(Fabric& fabric) {
    Transport& transport = fabric.pe(0).transport();
    const Bytes handle = fabric.pe(0).handle();
    EXPECT_LE(handle.size(), std::size_t{NPUSHMEM_HANDLE_MAX});
    if (!fabric.pe(0).reach(0).reachable() || handle.empty()) return;
    EXPECT_FALSE(transport.import_memory(0, std::span(handle).first(handle.size() - 1)).ok())
        << "without its last byte";
    Bytes damaged = handle;
    damaged[0] ^= std::byte{0x5a};
    EXPECT_FALSE(transport.import_memory(0, damaged).ok()) << "with another first byte";
}

void numbers_that_stand_for_nothing_are_refused(Fabric& fabric) {
    Transport& transport = fabric.pe(0).transport();
    for (const std::uint64_t number : {std::uint64_t{0}, std::uint64_t{0xdeadbeef}, ~std::uint64_t{0}}) {
        EXPECT_LT(static_cast<int>(transport.deregister_memory(number)), 0) << "deregistered region " << number;
        EXPECT_LT(static_cast<int>(transport.release_memory(number)), 0) << "released import " << number;
    }
}

}  // namespace

std::vector<Case> memory_cases() {
    return {{"a_mapping_shows_the_peers_memory", NPUSHMEM_CAP_MAP, a_mapping_shows_the_peers_memory},
            {"without_the_capability_nothing_is_mapped", 0, without_the_capability_nothing_is_mapped},
            {"several_regions_do_not_mix", NPUSHMEM_CAP_PUT, several_regions_do_not_mix},
            {"importing_can_be_repeated", 0, importing_can_be_repeated},
            {"handles_that_nobody_made_are_refused", 0, handles_that_nobody_made_are_refused},
            {"truncated_and_damaged_handles_are_refused", 0, truncated_and_damaged_handles_are_refused},
            {"numbers_that_stand_for_nothing_are_refused", 0, numbers_that_stand_for_nothing_are_refused}};
}

}  // namespace npushmem::contract
