// What is refused before a byte moves.
#include "core/moe/pack/pack.hpp"

#include <gmock/gmock.h>

#include "tests/unit/core/moe/pack/pack_case.hpp"

namespace npushmem::moe {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class PackCheck : public ::testing::Test {
protected:
    Status check(const PackArguments& arguments, PackPlan plan = PackPlan::gather) {
        return check_pack(arguments, Rows{pack_.rows}, plan);
    }
    void expect_refused(const PackArguments& arguments, const char* words, PackPlan plan = PackPlan::gather) {
        EXPECT_THAT(check(arguments, plan).message(), HasSubstr(words));
    }

    PackCase pack_{{.ranks = 2, .experts = 3, .row = 20, .empty = 0}};
    PackArguments good_ = pack_.arguments();
};

TEST_F(PackCheck, TakesWhatIsRight) {
    EXPECT_TRUE(check(good_).ok());
    EXPECT_TRUE(check(good_, PackPlan::reorder).ok());
    good_.ordered = nullptr;
    EXPECT_TRUE(check(good_).ok()) << "plan 2 reorders nothing";
}

TEST_F(PackCheck, RefusesSizesNamingThem) {
    PackArguments bad = good_;
    bad.tables.num_ranks = -3;
    expect_refused(bad, "num_ranks is -3, must be from 1");
    bad = good_;
    bad.tables.num_local_experts = 0;
    expect_refused(bad, "num_local_experts is 0");
    bad = good_;
    bad.row = Bytes{0};
    expect_refused(bad, "a row's bytes is 0");
    bad = good_;
    bad.max_send_len = Rows{0};
    expect_refused(bad, "max_send_len is 0");
    bad = good_;
    bad.tables.lengths = nullptr;
    expect_refused(bad, "length_table is null");
}

TEST_F(PackCheck, RefusesTablesNamingExpertRankAndValue) {
    const auto before = pack_.offsets;
    pack_.offsets[pack_.entry(2, 1)] = 5000;
    EXPECT_THAT(check(good_).message(), AllOf(HasSubstr("(local 2), rank 1"), HasSubstr("rows 5000..")));
    pack_.offsets = before;
    pack_.offsets[pack_.entry(1, 0)] = pack_.offsets[pack_.entry(0, 0)];
    EXPECT_THAT(check(good_).message(), AllOf(HasSubstr("belongs both to"), HasSubstr("(local 1), rank 0")));
    pack_.offsets = before;
    pack_.lengths[pack_.entry(0, 1)] = -2;
    EXPECT_THAT(check(good_).message(), AllOf(HasSubstr("(local 0), rank 1"), HasSubstr("-2 rows")));
}

TEST_F(PackCheck, RefusesMoreThanTheCapacityNamingExpertRankAndValue) {
    PackArguments bad = good_;
    bad.max_send_len = Rows{pack_.capacity - 1};
    const Status status = check(bad);
    EXPECT_EQ(status.code(), Code::range);
    EXPECT_THAT(status.message(), AllOf(HasSubstr("(local 2), rank "),
                                        HasSubstr(std::to_string(pack_.capacity) + " rows would go to rank"),
                                        HasSubstr("capacity of " + std::to_string(pack_.capacity - 1))));
}

TEST_F(PackCheck, RefusesMemoryThatIsMissingOrOverlaps) {
    PackArguments bad = good_;
    bad.x = nullptr;
    expect_refused(bad, "x is null");
    bad = good_;
    bad.tx_buffer = nullptr;
    expect_refused(bad, "tx_buffer is null");
    bad = good_;
    bad.x = bad.tx_buffer + 8;
    expect_refused(bad, "overlaps tx_buffer");
    bad = good_;
    bad.ordered = nullptr;
    expect_refused(bad, "the memory for reordering is null", PackPlan::reorder);
    bad.ordered = bad.tx_buffer;
    expect_refused(bad, "overlaps the memory for reordering", PackPlan::reorder);
}

}  // namespace
}  // namespace npushmem::moe
