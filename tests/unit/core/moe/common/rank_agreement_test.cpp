// SPDX-License-Identifier: BSD-3-Clause
#include <gmock/gmock.h>

#include <array>
#include <cstring>
#include <functional>
#include <vector>

#include "core/moe/common/rank_agreement.hpp"
#include "tests/fakes/thread_world.hpp"

namespace npushmem::moe {

namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

CombineConfig config() {
    CombineConfig result;
    result.experts = 8;
    result.top_k = 2;
    result.hidden = 16;
    result.max_tokens = 4;
    return result;
}

using LocalCheck = std::function<Status(int pe, CombineConfig& config)>;

std::vector<Status> agreed_results(int pes, const LocalCheck& local_check) {
    fakes::ThreadWorld world(pes, 4096);
    std::vector<Status> result(static_cast<std::size_t>(pes));
    world.run([&](int pe) {
        fakes::ThreadMemory memory(world, pe);
        const SymmetricBlock block(memory, memory.allocate(Bytes{sizeof(AgreementRecord)}).value());
        CombineConfig mine = config();
        const Status own = local_check(pe, mine);
        result[static_cast<std::size_t>(pe)] = agree(memory, block.data(), mine, own);
    });
    return result;
}

TEST(Agreement, EqualConfigurationsAgree) {
    for (const Status& status : agreed_results(5, [](int, CombineConfig&) { return Status{}; }))
        EXPECT_TRUE(status.ok());
}

TEST(Agreement, ReportsADifferingRankOnEveryRank) {
    const auto differ = [](int pe, CombineConfig& mine) {
        if (pe == 3) mine.hidden = 17;
        return Status{};
    };
    for (const Status& status : agreed_results(5, differ)) {
        EXPECT_EQ(status.code(), Code::mismatch);
        EXPECT_THAT(status.message(),
                    AllOf(HasSubstr("hidden"), HasSubstr("rank 0 has 16"), HasSubstr("rank 3 has 17")));
    }
}

TEST(Agreement, PrintsDifferingModeAndAudit) {
    const auto other_mode = [](int pe, CombineConfig& mine) {
        mine.audit = true;
        if (pe == 1) mine.mode = CombineMode::stream;
        return Status{};
    };
    for (const Status& status : agreed_results(2, other_mode))
        EXPECT_THAT(status.message(), HasSubstr("disagree on mode: rank 0 has 0, rank 1 has 2;"));
    const auto other_audit = [](int pe, CombineConfig& mine) {
        mine.mode = CombineMode::stream;
        mine.audit = pe == 1;
        return Status{};
    };
    for (const Status& status : agreed_results(2, other_audit))
        EXPECT_THAT(status.message(), HasSubstr("disagree on audit: rank 0 has 0, rank 1 has 1;"));
}

TEST(Agreement, ComparesRoutings) {
    const auto results = [](const std::vector<RoutingId>& ids, const Status& of_last) {
        fakes::ThreadWorld world(static_cast<int>(ids.size()), 4096);
        std::vector<Status> result(ids.size());
        world.run([&](int pe) {
            fakes::ThreadMemory memory(world, pe);
            const SymmetricBlock block(memory, memory.allocate(Bytes{sizeof(AgreementRecord)}).value());
            const auto at = static_cast<std::size_t>(pe);
            const Status own = at + 1 == ids.size() ? of_last : Status{};
            result[at] = agree_on_routing(memory, block.data(), ids[at], true, own);
        });
        return result;
    };
    for (const Status& status : results({{9, 4}, {9, 4}, {9, 4}}, {})) EXPECT_TRUE(status.ok());
    for (const Status& status : results({{9, 4}, {9, 4}, {9, 5}}, {}))
        EXPECT_THAT(status.message(), HasSubstr("the routing of the layout: rank 0 has 4, rank 2 has 5"));
    for (const Status& status : results({{9, 4}, {8, 4}}, {}))
        EXPECT_THAT(status.message(), HasSubstr("the handle that the layout is from"));
    for (const Status& status : results({{9, 4}, {9, 4}}, {Code::argument, "none"}))
        EXPECT_EQ(status.code(), Code::argument);
}

TEST(Agreement, ReportsTheRefusalOfOneRankToAll) {
    const auto refuse = [](int pe, CombineConfig&) { return pe == 2 ? Status{Code::range, "top_k is 99"} : Status{}; };
    const auto all = agreed_results(4, refuse);
    for (const Status& status : all) EXPECT_EQ(status.code(), Code::range);
    EXPECT_EQ(all[2].message(), "top_k is 99");
    EXPECT_EQ(all[0].message(), "rank 2 refused: top_k is 99");
}

TEST(Agreement, ReportsTheRefusalOfTheLowestRankOnEveryRank) {
    const auto refuse = [](int pe, CombineConfig&) {
        if (pe == 1) return Status{Code::argument, "x is null"};
        return pe == 3 ? Status{Code::range, "top_k is 99"} : Status{};
    };
    const auto all = agreed_results(4, refuse);
    for (const Status& status : all) EXPECT_EQ(status.code(), Code::argument);
    EXPECT_EQ(all[1].message(), "x is null");
    for (const int pe : {0, 2, 3}) {
        EXPECT_EQ(all[static_cast<std::size_t>(pe)].message(), "rank 1 refused: x is null");
    }
}

TEST(Agreement, TruncatesALongReason) {
    const auto refuse = [](int, CombineConfig&) { return Status{Code::range, std::string(1000, 'x')}; };
    for (const Status& status : agreed_results(2, refuse)) EXPECT_LE(status.message().size(), 283U + 16U);
}

}  // namespace

namespace {

// The blocks of three ranks, one of which is this memory's own.
using Blocks = std::array<std::array<std::uint64_t, PublishedFailures::size.value() / sizeof(std::uint64_t)>, 3>;

class BlockMemory final : public SymmetricMemory {
public:
    BlockMemory(Blocks& blocks, int pe) : blocks_(blocks), pe_(pe) {}

    [[nodiscard]] int my_pe() const override { return pe_; }
    [[nodiscard]] int n_pes() const override { return static_cast<int>(blocks_.size()); }
    [[nodiscard]] std::byte* block(int pe) const {
        return reinterpret_cast<std::byte*>(blocks_[static_cast<std::size_t>(pe)].data());
    }
    Status fetch(void* target, const std::byte* symmetric, Bytes size, int pe) override {
        if (pe == unreachable) return gone;
        std::memcpy(target, block(pe) + (symmetric - block(pe_)), size.value());
        return {};
    }
    Result<std::uint64_t> compare_swap(std::uint64_t* symmetric, std::uint64_t expected, std::uint64_t desired,
                                       int pe) override {
        if (pe == unreachable) return gone;
        std::byte* const there = block(pe) + (reinterpret_cast<std::byte*>(symmetric) - block(pe_));
        std::uint64_t& word = *reinterpret_cast<std::uint64_t*>(there);
        const std::uint64_t before = word;
        if (before == expected) word = desired;
        return before;
    }

    Result<std::byte*> allocate(Bytes) override { return nullptr; }
    void release(std::byte*) override {}
    Status barrier() override { return {}; }
    void put(std::byte*, const std::byte*, Bytes, int) override {}
    void add(std::uint64_t*, std::uint64_t, int) override {}
    void fence() override {}
    void signal(std::uint64_t*, std::uint64_t, int) override {}
    Status quiet() override { return {}; }
    Status wait(const std::function<bool()>&, std::chrono::nanoseconds) override { return {}; }

    int unreachable = -1;

private:
    const Status gone{Code::peer_dead, "gone"};
    Blocks& blocks_;
    int pe_;
};

struct PublishedFailuresTest : ::testing::Test {
    PublishedFailuresTest() {
        for (BlockMemory& each : memory) failures.emplace_back(each, each.block(each.my_pe()));
    }

    Blocks blocks{};
    BlockMemory memory[3]{{blocks, 0}, {blocks, 1}, {blocks, 2}};
    std::vector<PublishedFailures> failures;
    const Status no_x{Code::argument, "x is null"};
    const Status too_late{Code::timeout, "rank 0 has not come"};
    const Status aborted{Code::aborted, "its own error names the cause"};
};

TEST_F(PublishedFailuresTest, AllRanksReportTheFailureOfTheFirst) {
    EXPECT_EQ(failures[1].write(no_x, std::nullopt).message(), "x is null");
    const Status second = failures[2].write(too_late, std::nullopt);
    EXPECT_EQ(second.code(), Code::argument);
    EXPECT_EQ(second.message(), "rank 1 has aborted: x is null (rank 2: rank 0 has not come)");
    // Rank 2 has signalled its abort to rank 0, and rank 1 failed first.
    const Status reported = failures[0].write(aborted, 2);
    EXPECT_EQ(reported.code(), Code::argument);
    EXPECT_EQ(reported.message(), "rank 1 has aborted: x is null");
    for (const PublishedFailures& each : failures)
        EXPECT_THAT(each.handle_status().message(), ::testing::HasSubstr("x is null"));
}

TEST_F(PublishedFailuresTest, UsesTheRecordOfTheReporterIfRank0IsUnreachable) {
    for (BlockMemory& each : memory) each.unreachable = 0;
    EXPECT_EQ(failures[1].write(no_x, std::nullopt).message(), "x is null");
    EXPECT_EQ(failures[2].write(too_late, std::nullopt).message(), "rank 0 has not come");
    EXPECT_EQ(failures[0].write(aborted, 2).message(), "rank 2 has aborted: rank 0 has not come");
}

TEST_F(PublishedFailuresTest, ReportsTheDeathOfTheReporterWhoseRecordIsLost) {
    EXPECT_EQ(failures[1].write(no_x, std::nullopt).message(), "x is null");
    for (BlockMemory& each : memory) each.unreachable = 1;
    const Status reported = failures[2].write(aborted, 1);
    EXPECT_EQ(reported.code(), Code::peer_dead);
    EXPECT_EQ(reported.message(), "rank 1 has aborted and its reason cannot be read: gone");
    // A rank that has a reason of its own keeps it.
    EXPECT_EQ(failures[0].write(too_late, std::nullopt).message(), "rank 0 has not come");
}

TEST_F(PublishedFailuresTest, TheReasonOfTheFirstCountsMoreThanALostReporter) {
    EXPECT_FALSE(failures[0].write(no_x, std::nullopt).ok());
    for (BlockMemory& each : memory) each.unreachable = 1;
    const Status reported = failures[2].write(aborted, 1);
    EXPECT_EQ(reported.code(), Code::argument);
    EXPECT_EQ(reported.message(), "rank 0 has aborted: x is null");
}

TEST_F(PublishedFailuresTest, ReportsTheAbortIfTheReporterHasNoRecord) {
    EXPECT_EQ(failures[2].write(aborted, 1).message(), aborted.message());
}

TEST_F(PublishedFailuresTest, RecordsAnotherFirstFailureAfterClear) {
    EXPECT_FALSE(failures[1].write(no_x, std::nullopt).ok());
    for (PublishedFailures& each : failures) each.clear();
    EXPECT_TRUE(failures[1].handle_status().ok());
    EXPECT_EQ(failures[2].write(too_late, std::nullopt).code(), Code::timeout);
    EXPECT_EQ(failures[1].write(no_x, std::nullopt).code(), Code::timeout);
}

}  // namespace

}  // namespace npushmem::moe
