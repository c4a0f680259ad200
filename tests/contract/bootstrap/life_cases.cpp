// SPDX-License-Identifier: BSD-3-Clause
// Joining and leaving, and the plugin's description of itself.
#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <filesystem>
#include <ostream>
#include <thread>

#include "tests/contract/bootstrap/bootstrap_case.hpp"

namespace npushmem::contract {

// Resources of a process that a plugin could leak.
struct ProcessFacts {
    long descriptors;
    long threads;

    static ProcessFacts now() { return {entries("/proc/self/fd"), entries("/proc/self/task")}; }
    // Not more of either.
    friend bool operator<=(const ProcessFacts& a, const ProcessFacts& b) {
        return a.descriptors <= b.descriptors && a.threads <= b.threads;
    }
    friend std::ostream& operator<<(std::ostream& out, const ProcessFacts& facts) {
        return out << facts.descriptors << " descriptors, " << facts.threads << " threads";
    }

private:
    static long entries(const char* folder) {
        const std::filesystem::directory_iterator all(folder);
        return std::distance(begin(all), end(all));
    }
};

namespace {

void describes_itself(const BootstrapSubject& subject) {
    const auto& table = subject.plugin->table();
    EXPECT_EQ(table.major, NPUSHMEM_BOOTSTRAP_MAJOR);
    EXPECT_LE(table.minor, NPUSHMEM_BOOTSTRAP_MINOR);
    EXPECT_EQ(subject.plugin->name(), table.name);
    EXPECT_STRNE(table.summary, "");
    for (const auto& row : subject.plugin->config_rows()) EXPECT_STRNE(row.meaning, "") << row.name;
}

void ranks_are_numbered(const BootstrapSubject& subject) {
    auto opened = subject.open();
    ASSERT_TRUE(opened.ok()) << opened.status().message();
    Bootstrap& job = *opened.value();
    EXPECT_EQ(job.nranks(), *subject.expected_ranks);
    ASSERT_GE(job.rank(), 0);
    ASSERT_LT(job.rank(), job.nranks());
    std::vector<int> ranks(static_cast<std::size_t>(job.nranks()), -1);
    const int mine = job.rank();
    ASSERT_TRUE(job.allgather(std::as_bytes(std::span(&mine, 1)), std::as_writable_bytes(std::span(ranks))).ok());
    for (int rank = 0; rank < job.nranks(); ++rank) EXPECT_EQ(ranks[static_cast<std::size_t>(rank)], rank);
}

// A rank that leaves the last barrier exits at once; this must not disturb ranks that are still in it.
void joins_and_leaves_repeatedly(const BootstrapSubject& subject) {
    for (int round = 0; round < 10; ++round) {
        auto opened = subject.open();
        ASSERT_TRUE(opened.ok()) << "round " << round << ": " << opened.status().message();
        const Status status = opened.value()->barrier();
        ASSERT_TRUE(status.ok()) << "round " << round << ": " << status.message();
    }
}

void joins_and_leaves_without_a_call(const BootstrapSubject& subject) {
    for (int round = 0; round < 5; ++round) {
        auto opened = subject.open();
        ASSERT_TRUE(opened.ok()) << "round " << round << ": " << opened.status().message();
    }
}

// Services for other ranks may outlive a session for a moment, until they see that those ranks have left.
void expect_return_to(const ProcessFacts& before) {
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (!(ProcessFacts::now() <= before) && std::chrono::steady_clock::now() < until)
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
    EXPECT_LE(ProcessFacts::now(), before);
}

// Every rank does the same, so leaks of successive starts would add up.
void leaves_nothing_behind(const BootstrapSubject& subject) {
    const auto once = [&](bool fail) {
        auto opened = subject.open();
        ASSERT_TRUE(opened.ok()) << opened.status().message();
        const Status status = opened.value()->barrier();
        if (fail) opened.value()->abort("this start is given up");
        ASSERT_TRUE(status.ok() || fail) << status.message();
    };
    once(false);  // allocates resources that a process makes once and keeps
    const ProcessFacts before = ProcessFacts::now();
    for (const bool fail : {false, true, false, true, false}) once(fail);
    expect_return_to(before);
}

void makes_ids_that_differ(const BootstrapSubject& subject) {
    std::array<std::array<std::byte, NPUSHMEM_UNIQUEID_BYTES>, 2> ids{};
    for (auto& id : ids) {
        const Status made = make_uniqueid(*subject.plugin, subject.host->table(), id);
        if (made.code() == Code::unsupported) return;
        ASSERT_TRUE(made.ok()) << made.message();
    }
    EXPECT_NE(ids[0], ids[1]);
}

}  // namespace

std::vector<BootstrapCase> bootstrap_life_cases() {
    return {{"describes_itself", 1, describes_itself},
            {"ranks_are_numbered", 1, ranks_are_numbered},
            {"joins_and_leaves_repeatedly", 1, joins_and_leaves_repeatedly},
            {"joins_and_leaves_without_a_call", 1, joins_and_leaves_without_a_call},
            {"leaves_nothing_behind", 1, leaves_nothing_behind},
            {"makes_ids_that_differ", 1, makes_ids_that_differ}};
}

}  // namespace npushmem::contract
