// SPDX-License-Identifier: BSD-3-Clause
// The fields and functions that minor version 1 of the transport table has added: costs, rails, forget.
#include <gtest/gtest.h>

#include <array>
#include <vector>

#include "tests/contract/fabric.hpp"
#include "tests/contract/patterns.hpp"

namespace npushmem::contract {
namespace {

// Far beyond any network: a value outside was computed in the wrong unit, or is no number at all.
constexpr std::uint64_t max_latency_ns = 1'000'000'000;
constexpr std::uint64_t min_bytes_per_second = 10'000;
constexpr std::uint64_t max_bytes_per_second = 100'000'000'000'000;
constexpr std::uint32_t max_rail_plus_one = 256;

void costs_are_plausible(Fabric& fabric) {
    for (int from = 0; from < fabric.npes(); ++from) {
        for (int to = 0; to < fabric.npes(); ++to) {
            const Reach& reach = fabric.pe(from).reach(to);
            EXPECT_LE(reach.latency_ns, max_latency_ns) << "latency, PE " << from << " to " << to;
            EXPECT_LE(reach.bytes_per_second, max_bytes_per_second) << "bandwidth, PE " << from << " to " << to;
            if (reach.bytes_per_second != 0) {
                EXPECT_GE(reach.bytes_per_second, min_bytes_per_second)
                    << "too low a bandwidth, PE " << from << " to " << to;
            }
            if (!reach.reachable()) {
                EXPECT_EQ(reach.latency_ns | reach.bytes_per_second, 0U) << "there is no path";
            }
        }
    }
}

void rails_are_plausible(Fabric& fabric) {
    const auto devices = fabric.pe(0).transport().devices();
    ASSERT_TRUE(devices.ok()) << devices.status().message();
    for (const auto& device : devices.value()) {
        EXPECT_LE(device.rail, max_rail_plus_one) << "rail of " << text_of(device.name);
        EXPECT_EQ(device.reserved_1, 0U) << "reserved field of " << text_of(device.name);
    }
}

// The pairs of different PEs, in both directions.
std::vector<std::pair<int, int>> peers_with(const Fabric& fabric, std::uint64_t capabilities) {
    auto out = fabric.pairs_with(capabilities);
    std::erase_if(out, [](const auto& pair) { return pair.first == pair.second; });
    return out;
}

// Each pair in one direction: a PE that has been forgotten may have lost its own connection too.
std::vector<std::pair<int, int>> forgettable(const Fabric& fabric, std::uint64_t capabilities) {
    auto out = peers_with(fabric, capabilities);
    std::erase_if(out, [](const auto& pair) { return pair.first > pair.second; });
    return out;
}

::testing::AssertionResult ends(Code code) {
    if (code == Code::ok || code == Code::peer_dead) return ::testing::AssertionSuccess();
    return ::testing::AssertionFailure() << "'" << name_of(code) << "' (a timeout: it did not end)";
}

// Failed operations may access their memory until the queue is destroyed, at the end of the case.
std::array<std::uint64_t, 64> sources;
std::array<std::uint64_t, 64> results;

void forget_ends_outstanding_operations(Fabric& fabric) {
    sources.fill(7);
    for (const auto& [from, to] : forgettable(fabric, NPUSHMEM_CAP_PUT | NPUSHMEM_CAP_GET)) {
        Pe& pe = fabric.pe(from);
        std::array<std::uint64_t, sources.size()> tokens{};
        for (std::size_t i = 0; i < sources.size(); ++i) {
            if (i % 2 == 0) {
                EXPECT_EQ(pe.put(to, i * 8, &sources[i], 8, &tokens[i]), Code::ok);
            } else {
                EXPECT_EQ(pe.get(to, i * 8, &results[i], 8, &tokens[i]), Code::ok);
            }
        }
        pe.set_wait_hook([] {});  // the peer makes no call from here on
        EXPECT_EQ(pe.transport().forget(to), Code::ok);
        for (const std::uint64_t token : tokens) EXPECT_TRUE(ends(pe.wait(token))) << "a token";
        EXPECT_TRUE(ends(pe.quiet())) << "a quiet";
        EXPECT_EQ(pe.quiet(), Code::ok) << "a failure is reported once";
        pe.set_wait_hook([&fabric] {
            for (int each = 0; each < fabric.npes(); ++each) (void)fabric.pe(each).transport().progress();
        });
    }
}

void operations_after_forget_end(Fabric& fabric) {
    for (const auto& [from, to] : forgettable(fabric, NPUSHMEM_CAP_PUT)) {
        Pe& pe = fabric.pe(from);
        for (int i = 0; i < 3; ++i) EXPECT_EQ(pe.transport().forget(to), Code::ok) << "repeatedly";
        std::uint64_t token = 0;
        const Code posted = pe.put(to, 0, sources.data(), 8, &token);
        EXPECT_TRUE(ends(posted)) << "a put";
        if (posted == Code::ok) {
            EXPECT_TRUE(ends(pe.wait(token))) << "its token";
        }
        EXPECT_TRUE(ends(pe.fence())) << "fence";
        EXPECT_TRUE(ends(pe.quiet())) << "quiet";
        EXPECT_EQ(pe.quiet(), Code::ok) << "a failure is reported once";
    }
}

void forget_leaves_other_peers_alone(Fabric& fabric) {
    constexpr int forgotten = 1;
    int tested = 0;
    EXPECT_EQ(fabric.pe(0).transport().forget(forgotten), Code::ok);
    for (const auto& [from, to] : peers_with(fabric, NPUSHMEM_CAP_PUT)) {
        if ((from == 0 && to == forgotten) || (from == forgotten && to == 0)) continue;
        ++tested;
        std::uint64_t value = 1000 + static_cast<std::uint64_t>(from * fabric.npes() + to);
        set_word(fabric.pe(to).memory(), 128, 0);
        EXPECT_EQ(fabric.pe(from).put(to, 128, &value, sizeof value), Code::ok) << "PE " << from << " to " << to;
        EXPECT_EQ(fabric.pe(from).quiet(), Code::ok) << "PE " << from << " to " << to;
        EXPECT_EQ(word_at(fabric.pe(to).memory(), 128), value) << "PE " << from << " to " << to;
    }
    if (fabric.npes() > 2 && fabric.pe(0).reach(2).has(NPUSHMEM_CAP_PUT)) {
        EXPECT_GT(tested, 0);
    }
}

void forget_without_a_peer_has_no_effect(Fabric& fabric) {
    Pe& pe = fabric.pe(0);
    for (const int number : {-1, fabric.npes(), 1'000'000, -2'147'483'647}) {
        const Code code = pe.transport().forget(number);
        EXPECT_TRUE(code == Code::ok || code == Code::argument) << "forget of PE " << number << ": " << name_of(code);
    }
    EXPECT_EQ(pe.quiet(), Code::ok);
    npushmem_event event{};
    EXPECT_EQ(pe.transport().poll_event(event), Code::again) << text_of(event.message);
    for (const auto& [from, to] : peers_with(fabric, NPUSHMEM_CAP_PUT)) {
        if (from != 0) continue;
        std::uint64_t value = 5;
        EXPECT_EQ(pe.put(to, 64, &value, sizeof value), Code::ok);
        EXPECT_EQ(pe.quiet(), Code::ok);
        EXPECT_EQ(word_at(fabric.pe(to).memory(), 64), 5U) << "a put to another PE";
    }
}

// Of PE 0 only: others may have noticed that it has closed their connections.
void forget_is_no_event_when_nothing_is_outstanding(Fabric& fabric) {
    Pe& pe = fabric.pe(0);
    for (const auto& [from, to] : forgettable(fabric, NPUSHMEM_CAP_PUT)) {
        if (from != 0) continue;
        EXPECT_EQ(pe.put(to, 0, sources.data(), 8), Code::ok);
        EXPECT_EQ(pe.quiet(), Code::ok);
        EXPECT_EQ(pe.transport().forget(to), Code::ok);
        npushmem_event event{};
        EXPECT_EQ(pe.transport().poll_event(event), Code::again) << text_of(event.message);
    }
}

void forget_keeps_mapped_memory(Fabric& fabric) {
    for (const auto& [from, to] : peers_with(fabric, NPUSHMEM_CAP_MAP)) {
        Pe& pe = fabric.pe(from);
        const auto mapped = pe.transport().map(pe.remote(to));
        ASSERT_TRUE(mapped.ok()) << mapped.status().message();
        set_word(fabric.pe(to).memory(), 32, 11);
        EXPECT_EQ(pe.transport().forget(to), Code::ok);
        const std::span<std::byte> window(static_cast<std::byte*>(mapped.value()), 64);
        EXPECT_EQ(word_at(window, 32), 11U);
        set_word(window, 40, 12);
        EXPECT_EQ(word_at(fabric.pe(to).memory(), 40), 12U);
    }
}

}  // namespace

std::vector<Case> minor_1_cases() {
    return {
        {"costs_are_plausible", 0, costs_are_plausible},
        {"rails_are_plausible", 0, rails_are_plausible},
        {"forget_ends_outstanding_operations", NPUSHMEM_CAP_PUT | NPUSHMEM_CAP_GET, forget_ends_outstanding_operations},
        {"operations_after_forget_end", NPUSHMEM_CAP_PUT, operations_after_forget_end},
        {"forget_leaves_other_peers_alone", NPUSHMEM_CAP_PUT, forget_leaves_other_peers_alone},
        {"forget_without_a_peer_has_no_effect", 0, forget_without_a_peer_has_no_effect},
        {"forget_is_no_event_when_nothing_is_outstanding", NPUSHMEM_CAP_PUT,
         forget_is_no_event_when_nothing_is_outstanding},
        {"forget_keeps_mapped_memory", NPUSHMEM_CAP_MAP, forget_keeps_mapped_memory}};
}

}  // namespace npushmem::contract
