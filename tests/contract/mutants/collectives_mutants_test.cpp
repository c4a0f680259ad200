// SPDX-License-Identifier: BSD-3-Clause
// Tests of the contract of collectives itself: the fake passes every case, and each seeded defect fails the case that
// is named for it, for the reason that is named.
#include <gtest/gtest-spi.h>
#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <memory>
#include <ostream>
#include <string>

#include "npushmem/testing/fake_collectives.hpp"
#include "tests/contract/collectives/collectives_case.hpp"

namespace npushmem::contract {
namespace {

using fakes::FakeCollectives;
using fakes::FakeCollectivesJob;

// One job for all PEs of the process of a case.
std::shared_ptr<FakeCollectivesJob> shared_job() {
    static const auto job = std::make_shared<FakeCollectivesJob>();
    return job;
}

struct SoundFake {
    static Result<std::unique_ptr<Collectives>> open(const Host&, const npushmem_collectives_params& params) {
        return std::unique_ptr<Collectives>(std::make_unique<FakeCollectives>(shared_job(), params.pe));
    }
};
NPUSHMEM_COLLECTIVES_CONTRACT(SoundFake);

enum class Defect {
    early_barrier,
    root_written,
    wrong_order,
    wrong_block,
    member_left_out,
    first_root_only,
    rest_written,
    other_types_on_pe_1,
    code_replaced,
    unknown_accepted,
    nan_ignored,
    own_source_first,
};

class DefectiveFake final : public FakeCollectives {
public:
    DefectiveFake(const std::shared_ptr<FakeCollectivesJob>& job, int pe, Defect defect)
        : FakeCollectives(job, pe), pe_(pe), defect_(defect) {}

    [[nodiscard]] std::uint64_t supports(std::uint32_t collective, std::uint32_t operation) const override {
        const std::uint64_t set = FakeCollectives::supports(collective, operation);
        const bool differs = defect_ == Defect::other_types_on_pe_1 && pe_ == 1 && collective == NPUSHMEM_COLL_REDUCE;
        return differs ? set & ~std::uint64_t{1U << NPUSHMEM_COLL_I32} : set;
    }
    Result<std::uint64_t> create_team(const npushmem_coll_team& team) override {
        auto made = FakeCollectives::create_team(team);
        if (made.ok() || defect_ != Defect::code_replaced) return made;
        return Status{Code::system, "it failed"};
    }
    Status start(std::uint64_t team, const npushmem_coll_call& call, std::uint64_t& request) override {
        Status done = FakeCollectives::start(team, call, request);
        return defect_ == Defect::unknown_accepted && done.code() == Code::unsupported ? Status{} : done;
    }

protected:
    [[nodiscard]] bool is_complete(const npushmem_coll_call& call, int arrived, int size) const override {
        const bool early = defect_ == Defect::early_barrier && call.collective == NPUSHMEM_COLL_BARRIER;
        return early || FakeCollectives::is_complete(call, arrived, size);
    }
    void write_result(const npushmem_coll_call& given, const Sources& sources, int index,
                      std::byte* dest) const override {
        npushmem_coll_call call = given;
        Sources used = sources;
        if (defect_ == Defect::first_root_only && call.collective == NPUSHMEM_COLL_BROADCAST) call.root = 0;
        if (defect_ == Defect::wrong_order) std::swap(used.front(), used.back());
        if (defect_ == Defect::member_left_out && used.size() > 2) used.pop_back();
        if (defect_ == Defect::wrong_block) index = 0;
        if (defect_ == Defect::own_source_first && call.collective == NPUSHMEM_COLL_REDUCE)
            std::swap(used.front(), used[static_cast<std::size_t>(index)]);
        if (defect_ == Defect::nan_ignored && call.collective == NPUSHMEM_COLL_REDUCE) replace_nan(call, used);
        FakeCollectives::write_result(call, used, index, dest);
        if (defect_ == Defect::root_written && call.collective == NPUSHMEM_COLL_BROADCAST) dest[0] = std::byte{1};
        const bool in_place = call.collective == NPUSHMEM_COLL_REDUCESCATTER && call.dest == call.source;
        if (defect_ == Defect::rest_written && in_place) dest[call.count * 8] = std::byte{0x55};
    }

private:
    static void replace_nan(const npushmem_coll_call& call, Sources& sources) {
        if (call.type != NPUSHMEM_COLL_F64 || call.operation != NPUSHMEM_COLL_MAX) return;
        for (auto& source : sources)
            for (std::size_t at = 0; at < source.size(); at += sizeof(double)) {
                double value = 0;
                std::memcpy(&value, source.data() + at, sizeof value);
                value = value == value ? value : -1e300;
                std::memcpy(source.data() + at, &value, sizeof value);
            }
    }

    int pe_;
    Defect defect_;
};

struct SeededDefect {
    const char* name;
    Defect defect;
    const char* failing_case;
    const char* reason;  // part of the failure's text
};

void PrintTo(const SeededDefect& seeded, std::ostream* out) { *out << seeded.name; }

const SeededDefect seeded_defects[] = {
    {"early_barrier", Defect::early_barrier, "nobody_leaves_a_barrier_early", "complete before PE"},
    {"root_written", Defect::root_written, "broadcasts_from_every_root", "root's dest was written"},
    {"first_root_only", Defect::first_root_only, "broadcasts_from_every_root", "is not byte"},
    {"wrong_order_collect", Defect::wrong_order, "collects_different_sizes", "is not byte"},
    {"wrong_order_fcollect", Defect::wrong_order, "fcollects_every_size", "is not byte"},
    {"wrong_order_of_members", Defect::wrong_order, "teams_of_every_shape", "all"},
    {"wrong_order_overlapping", Defect::wrong_order, "calls_of_two_teams_overlap", "member * 1000"},
    {"wrong_order_successive", Defect::wrong_order, "successive_calls_do_not_mix", "is not byte"},
    {"wrong_block", Defect::wrong_block, "exchanges_blocks_of_every_size", "is not byte"},
    {"wrong_block_reduced", Defect::wrong_block, "reduces_and_scatters_every_type", "is wrong"},
    {"member_left_out", Defect::member_left_out, "reduces_every_type", "is wrong"},
    {"rest_written", Defect::rest_written, "reduces_and_scatters_every_type", "of the source changed"},
    {"other_types_on_pe_1", Defect::other_types_on_pe_1, "supports_what_exists", "all_agree"},
    {"code_replaced", Defect::code_replaced, "a_failed_exchange_fails_create_team", "not the code of the exchange"},
    {"unknown_accepted", Defect::unknown_accepted, "unknown_calls_are_refused", "unsupported"},
    {"nan_ignored", Defect::nan_ignored, "propagates_nan", "has a NaN"},
    {"own_source_first", Defect::own_source_first, "rounds_alike_on_every_member", "different bits"},
    {"member_left_out_of_floats", Defect::member_left_out, "rounds_alike_on_every_member", "not near the exact result"},
};

const CollectivesCase& case_of(const std::string& name) {
    for (const auto cases : {collectives_transfer_cases(), collectives_reduction_cases(), collectives_team_cases()})
        for (const CollectivesCase& one : cases)
            if (one.name == name) return one;
    throw std::logic_error("there is no case " + name);
}

class CollectivesContractCatches : public ::testing::TestWithParam<SeededDefect> {};

TEST_P(CollectivesContractCatches, TheDefect) {
    const auto& [name, defect, failing_case, reason] = GetParam();
    const auto job = std::make_shared<FakeCollectivesJob>();
    CollectivesSubject subject;
    subject.open = [&, defect = defect](const npushmem_host&, const npushmem_collectives_params& params) {
        return Result<std::unique_ptr<Collectives>>(std::make_unique<DefectiveFake>(job, params.pe, defect));
    };
    ::testing::TestPartResultArray results;
    {
        const ::testing::ScopedFakeTestPartResultReporter reporter(
            ::testing::ScopedFakeTestPartResultReporter::INTERCEPT_ALL_THREADS, &results);
        run_collectives_case(subject, case_of(failing_case), 3);
    }
    std::string failures;
    for (int i = 0; i < results.size(); ++i)
        if (results.GetTestPartResult(i).failed()) failures += results.GetTestPartResult(i).message();
    EXPECT_NE(failures.find(reason), std::string::npos) << "the case reported: " << failures;
}

INSTANTIATE_TEST_SUITE_P(Seeded, CollectivesContractCatches, ::testing::ValuesIn(seeded_defects),
                         [](const auto& tested) { return std::string(tested.param.name); });

}  // namespace
}  // namespace npushmem::contract
