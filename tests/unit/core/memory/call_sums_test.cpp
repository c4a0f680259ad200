// SPDX-License-Identifier: BSD-3-Clause
// PEs of several hosts, called one after the other.
#include "core/memory/call_sums.hpp"

#include <gtest/gtest.h>

#include <optional>
#include <vector>

namespace npushmem {
namespace {

class Job {
public:
    explicit Job(const std::vector<int>& pes) : hosts_(pes.size()) {
        for (std::size_t host = 0; host < pes.size(); ++host)
            for (int pe = 0; pe < pes[host]; ++pe)
                pes_.emplace_back(hosts_[host], host, pes,
                                  [this](std::size_t other, unsigned parity) { return read(other, parity); });
    }

    // All PEs make the next call, with these digests; nothing: the PE enters the barrier without it. Returns what the
    // sums show to each.
    std::vector<std::optional<bool>> call(const std::vector<std::optional<std::uint64_t>>& digests) {
        const unsigned parity = ++calls_ % 2;
        for (std::size_t pe = 0; pe < pes_.size(); ++pe)
            if (digests[pe]) pes_[pe].add(parity, *digests[pe]);
        std::vector<std::optional<bool>> shown(pes_.size());
        for (std::size_t pe = 0; pe < pes_.size(); ++pe)
            if (digests[pe]) shown[pe] = pes_[pe].show_equal(parity, *digests[pe]);
        return shown;
    }

    // The sum of this host cannot be read.
    std::optional<std::size_t> lost;
    CallSums& pe(int number) { return pes_[static_cast<std::size_t>(number)]; }

private:
    Result<std::uint64_t> read(std::size_t host, unsigned parity) {
        if (lost == host) return Status{Code::peer_dead, "the host is lost"};
        return hosts_[host][parity].load();
    }

    std::vector<CallSums::Words> hosts_;
    std::vector<CallSums> pes_;
    unsigned calls_ = 0;
};

constexpr std::uint64_t a = 0x9e3779b97f4a7c15U;
constexpr std::uint64_t b = 0xd1b54a32d192ed03U;
using Shown = std::vector<std::optional<bool>>;

TEST(CallSums, ShowEqualCallsOfAllHosts) {
    Job job({2, 1});
    for (const std::uint64_t digest : {a, b, b, std::uint64_t{0}, a})
        EXPECT_EQ(job.call({digest, digest, digest}), Shown(3, true));
}

TEST(CallSums, ShowADifferenceToAllAndRecover) {
    Job job({2, 2});
    EXPECT_EQ(job.call({a, a, a, a}), Shown(4, true));
    EXPECT_EQ(job.call({a, a, b, a}), Shown(4, false));
    EXPECT_EQ(job.call({a, b, b, b}), Shown(4, false));
    for (int calls = 0; calls < 4; ++calls) EXPECT_EQ(job.call({b, b, b, b}), Shown(4, true));
}

TEST(CallSums, ShowADifferenceWhereAPeMakesNoCall) {
    Job job({2, 1});
    EXPECT_EQ(job.call({a, std::nullopt, a}), Shown({false, std::nullopt, false}));
    EXPECT_EQ(job.call({a, a, a}), Shown(3, true)) << "the other parity";
    EXPECT_EQ(job.call({a, a, a}), Shown({true, false, true})) << "PE 1 has not seen the call that it missed";
    for (int calls = 0; calls < 4; ++calls) EXPECT_EQ(job.call({a, a, a}), Shown(3, true));
}

// PE 0 begins its next call before PE 1 reads the sum of the last.
TEST(CallSums, KeepTheSumOfACallUntilAllHaveReadIt) {
    Job job({2});
    for (int calls = 0; calls < 3; ++calls) {
        for (const int pe : {0, 1}) job.pe(pe).add(1, a);
        EXPECT_TRUE(job.pe(0).show_equal(1, a));
        job.pe(0).add(0, b);
        EXPECT_TRUE(job.pe(1).show_equal(1, a));
        job.pe(1).add(0, b);
        for (const int pe : {0, 1}) EXPECT_TRUE(job.pe(pe).show_equal(0, b));
    }
}

TEST(CallSums, DoNotShowEqualCallsWhereAHostCannotBeRead) {
    Job job({1, 1});
    job.lost = 1;
    EXPECT_EQ(job.call({a, a}), Shown({false, true}));
    job.lost.reset();
    EXPECT_EQ(job.call({a, a}), Shown(2, true)) << "the other parity";
    EXPECT_EQ(job.call({a, a}), Shown({false, true})) << "PE 0 does not know what the sum was";
    for (int calls = 0; calls < 4; ++calls) EXPECT_EQ(job.call({a, a}), Shown(2, true));
}

}  // namespace
}  // namespace npushmem
