// SPDX-License-Identifier: BSD-3-Clause
// Processes access each other's memory.
#include <gtest/gtest.h>

#include "tests/contract/patterns.hpp"
#include "tests/contract/processes.hpp"

namespace npushmem::contract {
namespace {

constexpr std::uint64_t writer_needs = NPUSHMEM_CAP_PUT | NPUSHMEM_CAP_ATOMIC;
constexpr std::size_t written_bytes = 4096;
constexpr std::uint64_t additions = 100;

std::uint64_t place_of(int writer) { return static_cast<std::uint64_t>(writer + 1) * 8192; }

bool writes_to(const Pe& pe, int other) { return pe.is_connected(other) && pe.reach(other).has(writer_needs); }

// Puts the PE's own pattern into each PE that it reaches, and adds to a word there.
void write_to_all(Pe& pe, int npes) {
    const auto mine = pattern(written_bytes, static_cast<std::uint64_t>(pe.number()));
    for (int to = 0; to < npes; ++to) {
        if (!writes_to(pe, to)) continue;
        ASSERT_EQ(pe.put(to, place_of(pe.number()), mine.data(), mine.size()), Code::ok);
        npushmem_atomic op = pe.atomic_op(to, 0, NPUSHMEM_ATOMIC_ADD, 8);
        op.operand = 1;
        for (std::uint64_t i = 0; i < additions; ++i) ASSERT_EQ(pe.atomic(op), Code::ok);
    }
    ASSERT_EQ(pe.quiet(), Code::ok);
}

void check_what_others_wrote(const Pe& pe, int npes) {
    std::uint64_t writers = 0;
    for (int from = 0; from < npes; ++from) {
        if (!writes_to(pe, from)) continue;  // reach is symmetrical
        ++writers;
        const auto expected = pattern(written_bytes, static_cast<std::uint64_t>(from));
        EXPECT_TRUE(same(pe.memory().subspan(place_of(from), written_bytes), expected)) << "written by PE " << from;
    }
    EXPECT_EQ(word_at(pe.memory(), 0), writers * additions);
}

void start_writers(const Subject& subject) {
    PeProcesses processes(subject, 3, 1 << 20);
    if (!processes.connect() || !processes.wait_for("written")) return;
    processes.go_all();
    processes.expect_all_to_end();
}

void write_and_check(PeProcess& process) {
    process.connect();
    write_to_all(process.pe(), process.npes());
    process.reached("written");
    check_what_others_wrote(process.pe(), process.npes());
}

}  // namespace

std::vector<ProcessCase> reach_cases() { return {{"processes_reach_each_other", 0, start_writers, write_and_check}}; }

}  // namespace npushmem::contract
