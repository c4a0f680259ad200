#include "core/moe/published_failures.hpp"

#include <gmock/gmock.h>

#include <array>
#include <cstring>
#include <vector>

namespace npushmem::moe {
namespace {

// The blocks of three ranks, of which one is this memory's.
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
        std::memcpy(target, block(pe) + (symmetric - block(pe_)), size.value());
        return {};
    }
    Result<std::uint64_t> compare_swap(std::uint64_t* symmetric, std::uint64_t expected, std::uint64_t desired,
                                       int pe) override {
        if (pe == unreachable) return Status{Code::peer_dead, "gone"};
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
    const Status aborted{Code::aborted, "its own error says why"};
};

TEST_F(PublishedFailuresTest, AllRanksReportTheFailureOfTheFirst) {
    EXPECT_EQ(failures[1].write(no_x, std::nullopt).message(), "x is null");
    const Status second = failures[2].write(too_late, std::nullopt);
    EXPECT_EQ(second.code(), Code::argument);
    EXPECT_EQ(second.message(), "rank 1 has aborted: x is null (rank 2: rank 0 has not come)");
    // Rank 2 has told rank 0, and rank 1 was the first.
    const Status told = failures[0].write(aborted, 2);
    EXPECT_EQ(told.code(), Code::argument);
    EXPECT_EQ(told.message(), "rank 1 has aborted: x is null");
    for (const PublishedFailures& each : failures)
        EXPECT_THAT(each.handle_status().message(), ::testing::HasSubstr("x is null"));
}

TEST_F(PublishedFailuresTest, WhereRank0CannotBeReachedTheRecordOfTheReporterCounts) {
    for (BlockMemory& each : memory) each.unreachable = 0;
    EXPECT_EQ(failures[1].write(no_x, std::nullopt).message(), "x is null");
    EXPECT_EQ(failures[2].write(too_late, std::nullopt).message(), "rank 0 has not come");
    EXPECT_EQ(failures[0].write(aborted, 2).message(), "rank 2 has aborted: rank 0 has not come");
}

TEST_F(PublishedFailuresTest, AfterClearAnotherRankCanBeTheFirst) {
    EXPECT_FALSE(failures[1].write(no_x, std::nullopt).ok());
    for (PublishedFailures& each : failures) each.clear();
    EXPECT_TRUE(failures[1].handle_status().ok());
    EXPECT_EQ(failures[2].write(too_late, std::nullopt).code(), Code::timeout);
    EXPECT_EQ(failures[1].write(no_x, std::nullopt).code(), Code::timeout);
}

}  // namespace
}  // namespace npushmem::moe
