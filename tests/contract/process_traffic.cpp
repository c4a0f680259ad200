// SPDX-License-Identifier: BSD-3-Clause
#include "tests/contract/process_traffic.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "tests/contract/patterns.hpp"

namespace npushmem::contract {
namespace {

// The layout of a PE's memory: its own data, which the others read, then one slot per writer.
constexpr std::uint64_t slot_bytes = 16 << 10;
constexpr std::uint64_t traffic_bytes = 4096;
constexpr std::uint64_t signalled_offset = 4096;  // within a slot
constexpr std::uint64_t signalled_bytes = 1024;
constexpr std::uint64_t signal_offset = 8192;   // within a slot
constexpr std::uint64_t counter_offset = 8192;  // within the own data
constexpr int traffic_additions = 5;

std::uint64_t slot_of(int writer) { return static_cast<std::uint64_t>(writer + 1) * slot_bytes; }

// Identifies the data of a writer for a target in a round.
std::uint64_t salt_of(int writer, int target, std::uint64_t round) {
    return (round * 64 + static_cast<std::uint64_t>(writer)) * 64 + static_cast<std::uint64_t>(target);
}

bool has_family(const Pe& pe, int other, std::uint64_t capability) {
    return pe.is_connected(other) && pe.reach(other).has(capability);
}

bool adds(const Pe& pe, int other) {
    return has_family(pe, other, NPUSHMEM_CAP_ATOMIC) && (pe.reach(other).atomic_64 >> NPUSHMEM_ATOMIC_ADD & 1U) != 0;
}

void write_to(Pe& pe, int to, std::uint64_t round) {
    const std::uint64_t slot = slot_of(pe.number());
    const auto data = pattern(traffic_bytes, salt_of(pe.number(), to, round));
    auto signalled = pattern(signalled_bytes, salt_of(pe.number(), to, round) + 1);
    std::vector<std::byte> read(traffic_bytes);
    if (has_family(pe, to, NPUSHMEM_CAP_PUT)) {
        EXPECT_EQ(pe.put(to, slot, data.data(), data.size()), Code::ok) << "to PE " << to << ", round " << round;
    }
    if (has_family(pe, to, NPUSHMEM_CAP_PUT_SIGNAL)) {
        npushmem_put_signal op{};
        op.data = pe.rma(to, slot + signalled_offset, signalled.data(), signalled.size());
        op.signal_remote = op.data.remote;
        op.signal_offset = slot + signal_offset;
        op.signal = round + 1;
        op.operation = NPUSHMEM_SIGNAL_SET;
        EXPECT_EQ(pe.put_signal(op), Code::ok) << "to PE " << to << ", round " << round;
    }
    if (adds(pe, to)) {
        npushmem_atomic op = pe.atomic_op(to, counter_offset, NPUSHMEM_ATOMIC_ADD, 8);
        op.operand = 1;
        for (int i = 0; i < traffic_additions; ++i)
            EXPECT_EQ(pe.atomic(op), Code::ok) << "to PE " << to << ", round " << round;
    }
    if (has_family(pe, to, NPUSHMEM_CAP_GET)) {
        EXPECT_EQ(pe.get(to, 0, read.data(), read.size()), Code::ok) << "from PE " << to << ", round " << round;
    }
    EXPECT_EQ(pe.quiet(), Code::ok) << "to PE " << to << ", round " << round;
    if (has_family(pe, to, NPUSHMEM_CAP_GET)) {
        EXPECT_TRUE(same(read, pattern(traffic_bytes, salt_of(to, to, round))))
            << "from PE " << to << ", round " << round;
    }
}

// This PE has the same capabilities with a writer as the writer has with it.
void verify_own(const Pe& pe, const Members& members, std::uint64_t round) {
    std::uint64_t adding = 0;
    for (const int from : members) {
        const std::uint64_t slot = slot_of(from);
        const std::uint64_t salt = salt_of(from, pe.number(), round);
        adding += adds(pe, from) ? 1 : 0;
        if (has_family(pe, from, NPUSHMEM_CAP_PUT)) {
            EXPECT_TRUE(same(pe.memory().subspan(slot, traffic_bytes), pattern(traffic_bytes, salt)))
                << "from PE " << from << ", round " << round;
        }
        if (has_family(pe, from, NPUSHMEM_CAP_PUT_SIGNAL)) {
            EXPECT_EQ(word_at(pe.memory(), slot + signal_offset), round + 1) << "from PE " << from;
            EXPECT_TRUE(
                same(pe.memory().subspan(slot + signalled_offset, signalled_bytes), pattern(signalled_bytes, salt + 1)))
                << "with the signal of PE " << from << ", round " << round;
        }
    }
    EXPECT_EQ(word_at(pe.memory(), counter_offset), adding * traffic_additions) << "round " << round;
}

std::string stage_of(const char* what, std::uint64_t round) { return what + (' ' + std::to_string(round)); }

}  // namespace

Members all_of(int npes) {
    Members out(static_cast<std::size_t>(npes));
    std::iota(out.begin(), out.end(), 0);
    return out;
}

bool release_from(PeProcesses& processes, const Members& members, const std::string& stage) {
    for (const int pe : members)
        if (!processes.wait_for(pe, stage)) return false;
    for (const int pe : members) processes.go(pe);
    return true;
}

void exchange(PeProcess& process, const Members& members, std::uint64_t round) {
    Pe& pe = process.pe();
    const auto own = pattern(traffic_bytes, salt_of(pe.number(), pe.number(), round));
    std::copy(own.begin(), own.end(), pe.memory().begin());
    set_word(pe.memory(), counter_offset, 0);
    process.reached(stage_of("ready", round));
    for (const int to : members) write_to(pe, to, round);
    process.reached(stage_of("written", round));
    verify_own(pe, members, round);
    process.reached(stage_of("verified", round));
}

bool serve_exchange(PeProcesses& processes, const Members& members, std::uint64_t round) {
    return release_from(processes, members, stage_of("ready", round)) &&
           release_from(processes, members, stage_of("written", round)) &&
           release_from(processes, members, stage_of("verified", round));
}

std::unique_ptr<Pe> open_pe(const Subject& subject, int number, int npes) {
    constexpr std::uint64_t bytes = 64 << 10;
    auto opened = subject.open_with_devices(params_of(number, npes));
    EXPECT_TRUE(opened.ok()) << opened.status().message();
    if (!opened.ok()) return nullptr;
    auto slice = std::move(make_slices(Layout::own_files, 1, bytes).front());
    auto pe = std::make_unique<Pe>(number, std::move(opened).value(), std::move(slice));
    const auto published = pe->publish();
    EXPECT_TRUE(published.ok()) << published.status().message();
    return published.ok() ? std::move(pe) : nullptr;
}

}  // namespace npushmem::contract
