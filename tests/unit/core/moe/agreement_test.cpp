#include "core/moe/agreement.hpp"

#include <gmock/gmock.h>

#include <functional>
#include <vector>

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

TEST(Agreement, EveryRankNamesTheOneThatDiffers) {
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

TEST(Agreement, ModeAndAuditArePrintedAsTheyWereGiven) {
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

TEST(Agreement, ARefusalReachesEveryRankWithItsCause) {
    const auto refuse = [](int pe, CombineConfig&) { return pe == 2 ? Status{Code::range, "top_k is 99"} : Status{}; };
    const auto all = agreed_results(4, refuse);
    for (const Status& status : all) EXPECT_EQ(status.code(), Code::range);
    EXPECT_EQ(all[2].message(), "top_k is 99");
    EXPECT_EQ(all[0].message(), "rank 2 refused: top_k is 99");
}

TEST(Agreement, OfTwoRefusalsEveryRankTellsTheSame) {
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

TEST(Agreement, ALongReasonIsCutNotOverrun) {
    const auto refuse = [](int, CombineConfig&) { return Status{Code::range, std::string(1000, 'x')}; };
    for (const Status& status : agreed_results(2, refuse)) EXPECT_LE(status.message().size(), 283U + 16U);
}

}  // namespace
}  // namespace npushmem::moe
