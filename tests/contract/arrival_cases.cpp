// SPDX-License-Identifier: BSD-3-Clause
// report_arrivals: the host's function is called after every operation of a peer, without a call of the target.
#include <gtest/gtest.h>

#include <condition_variable>
#include <memory>
#include <mutex>
#include <vector>

#include "tests/contract/fabric.hpp"
#include "tests/contract/patterns.hpp"

namespace npushmem::contract {
namespace {

constexpr std::uint64_t word_offset = 2 << 20;

// The reports of one PE.
class Reports {
public:
    static void arrived(void* context) { static_cast<Reports*>(context)->add(); }

    [[nodiscard]] std::uint64_t count() {
        const std::lock_guard guard(lock_);
        return count_;
    }
    // Waits until there are more than `before`. Returns their number, or `before` if none comes in time.
    std::uint64_t wait_for_more(std::uint64_t before) {
        std::unique_lock guard(lock_);
        changed_.wait_for(guard, wait_timeout(), [&] { return count_ != before; });
        return count_;
    }

private:
    void add() {
        {
            const std::lock_guard guard(lock_);
            ++count_;
        }
        changed_.notify_all();
    }

    std::mutex lock_;
    std::condition_variable changed_;
    std::uint64_t count_ = 0;  // under lock_
};

// Reads the word only after reports, as a host that sleeps until then.
::testing::AssertionResult finds(Reports& reports, std::uint64_t before, const Pe& target, std::uint64_t value) {
    for (;;) {
        const std::uint64_t now = reports.wait_for_more(before);
        if (now == before)
            return ::testing::AssertionFailure()
                   << "timeout: the last word seen is " << word_at(target.memory(), word_offset);
        if (word_at(target.memory(), word_offset) == value) return ::testing::AssertionSuccess();
        before = now;
    }
}

// Instances report to it until they are closed, which happens after the case.
std::vector<std::unique_ptr<Reports>>& reports_of_pes() {
    static std::vector<std::unique_ptr<Reports>> out;
    return out;
}

// Large enough for a transport that sends long data in parts, or without a message of its own.
constexpr std::uint64_t long_bytes = 1 << 20;

Code delivered(Pe& from, Code posted) { return posted == Code::ok ? from.quiet() : posted; }

// An operation from a PE to another that changes the word to `value`, until it is delivered. Code::unsupported: the
// pair does not have it.
struct Change {
    const char* name;
    Code (*make)(Pe& from, int to, std::uint64_t value);
};

const Change changes[] = {
    {"put", [](Pe& from, int to,
               std::uint64_t value) { return delivered(from, from.put(to, word_offset, &value, sizeof value)); }},
    {"put of 1 MiB",
     [](Pe& from, int to, std::uint64_t value) {
         std::vector<std::uint64_t> data(long_bytes / sizeof value);
         data.back() = value;  // at the word
         return delivered(from, from.put(to, word_offset + sizeof value - long_bytes, data.data(), long_bytes));
     }},
    {"put_strided",
     [](Pe& from, int to, std::uint64_t value) {
         if (!from.reach(to).has(NPUSHMEM_CAP_PUT_STRIDED)) return Code::unsupported;
         constexpr std::uint64_t stride = 64;
         std::uint64_t blocks[2] = {0, value};
         const npushmem_put_strided op{from.rma(to, word_offset - stride, blocks, sizeof value), 2, stride,
                                       sizeof value};
         return delivered(from, from.put_strided(op));
     }},
    {"put_signal",
     [](Pe& from, int to, std::uint64_t value) {
         if (!from.reach(to).has(NPUSHMEM_CAP_PUT_SIGNAL)) return Code::unsupported;
         npushmem_put_signal op{};
         op.data = from.rma(to, 0, &value, sizeof value);
         op.signal_remote = op.data.remote;
         op.signal_offset = word_offset;
         op.signal = value;
         op.operation = NPUSHMEM_SIGNAL_SET;
         return delivered(from, from.put_signal(op));
     }},
    {"atomic",
     [](Pe& from, int to, std::uint64_t value) {
         if ((from.reach(to).atomic_64 >> NPUSHMEM_ATOMIC_SET & 1U) == 0) return Code::unsupported;
         npushmem_atomic op = from.atomic_op(to, word_offset, NPUSHMEM_ATOMIC_SET, sizeof value);
         op.operand = value;
         return delivered(from, from.atomic(op));
     }},
};

void arrivals_are_reported(Fabric& fabric) {
    constexpr std::uint64_t rounds = 10;
    auto& reports = reports_of_pes();
    const std::size_t first = reports.size();
    for (int pe = 0; pe < fabric.npes(); ++pe) {
        reports.push_back(std::make_unique<Reports>());
        const Code code = fabric.pe(pe).transport().report_arrivals(Reports::arrived, reports.back().get());
        if (code == Code::unsupported) GTEST_SKIP() << "the transport does not report arrivals";
        ASSERT_EQ(code, Code::ok) << "report_arrivals of PE " << pe;
    }
    for (const auto& [from, to] : fabric.pairs_with(NPUSHMEM_CAP_PUT)) {
        if (from == to) continue;
        Pe& pe = fabric.pe(from);
        Reports& own = *reports.at(first + static_cast<std::size_t>(to));
        pe.set_wait_hook([] {});  // the target makes no call
        std::uint64_t value = 1000 * static_cast<std::uint64_t>(from + 1);
        for (std::uint64_t round = 0; round < rounds; ++round) {
            for (const Change& change : changes) {
                const std::uint64_t before = own.count();
                const Code code = change.make(pe, to, ++value);
                if (code == Code::unsupported) continue;
                ASSERT_EQ(code, Code::ok) << change.name;
                ASSERT_TRUE(finds(own, before, fabric.pe(to), value))
                    << "no report of " << change.name << " " << round << ", PE " << from << " to " << to;
            }
        }
    }
}

}  // namespace

std::vector<Case> arrival_cases() { return {{"arrivals_are_reported", NPUSHMEM_CAP_PUT, arrivals_are_reported}}; }

}  // namespace npushmem::contract
