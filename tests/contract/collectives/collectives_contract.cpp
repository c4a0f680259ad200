// SPDX-License-Identifier: BSD-3-Clause
// Registers the cases of the contract of collectives, and runs them.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <exception>
#include <functional>
#include <numeric>
#include <stdexcept>
#include <thread>

#include "npushmem/testing/fake_bootstrap.hpp"
#include "tests/contract/case_runner.hpp"
#include "tests/contract/collectives/collectives_case.hpp"

namespace npushmem::contract {

namespace {

using SharedSubject = std::shared_ptr<const CollectivesSubject>;

void run_body(const CollectivesSubject& subject, const CollectivesCase& which, Bootstrap& others) {
    const ::testing::ScopedTrace trace(which.name, 0, "PE " + std::to_string(others.rank()));
    try {
        CollectivesPe pe(subject, others);
        if (pe.open()) which.body(pe);
        pe.close();
    } catch (const std::exception& thrown) {
        ADD_FAILURE() << "the case ended by an exception: " << thrown.what();
        others.abort(thrown.what());  // the other PEs need not wait
    }
}

void for_each_case(const std::function<void(const CollectivesCase&)>& use) {
    for (const auto cases : {collectives_transfer_cases(), collectives_reduction_cases(), collectives_team_cases()})
        for (const CollectivesCase& one : cases) use(one);
}

class LaunchedCollectivesTest : public ::testing::Test {
public:
    LaunchedCollectivesTest(SharedSubject subject, const CollectivesCase& which, Bootstrap& others)
        : subject_(std::move(subject)), which_(which), others_(others) {}

    void TestBody() override {
        if (is_listing()) {
            (void)std::printf("      %s\n", which_.rule);
            return;
        }
        constexpr int without_line = -1;
        const ::testing::ScopedTrace trace("rule", without_line, which_.rule);
        run_body(*subject_, which_, others_);
    }

private:
    SharedSubject subject_;
    const CollectivesCase& which_;
    Bootstrap& others_;
};

// A member's state while teams are created: PEs gather these until all have ended.
struct CreationRecord {
    bool ended;
    std::byte payload[NPUSHMEM_COLL_EXCHANGE_BYTES];
};

class Creation {
public:
    Creation(Bootstrap& others, const std::vector<int>& pes, bool fails)
        : others_(others), pes_(pes), fails_(fails), all_(static_cast<std::size_t>(others.nranks())) {}

    static std::int32_t allgather(void* context, const void* send, std::uint64_t bytes, void* receive,
                                  npushmem_error* error) {
        return report(static_cast<Creation*>(context)->gather(send, bytes, receive), error);
    }
    void take_part_until_all_have_ended() {
        do {
            mine_ = {true, {}};
            step();
        } while (!std::ranges::all_of(all_, [](const CreationRecord& record) { return record.ended; }));
    }

private:
    Status gather(const void* send, std::uint64_t bytes, void* receive) {
        mine_.ended = false;
        std::memcpy(mine_.payload, send, bytes);
        step();
        auto* to = static_cast<std::byte*>(receive);
        for (const int pe : pes_) {
            const CreationRecord& record = all_[static_cast<std::size_t>(pe)];
            if (fails_ || record.ended) return {Code::aborted, "member 1: it fails on purpose"};
            std::memcpy(to, record.payload, bytes);
            to += bytes;
        }
        return {};
    }
    void step() {
        const Status done =
            others_.allgather(std::as_bytes(std::span(&mine_, 1)), std::as_writable_bytes(std::span(all_)));
        if (!done.ok()) throw std::runtime_error("the PEs lost each other: " + done.message());
    }

    Bootstrap& others_;
    const std::vector<int>& pes_;
    bool fails_;
    CreationRecord mine_{};
    std::vector<CreationRecord> all_;
};

}  // namespace

void run_collectives_case(const CollectivesSubject& subject, const CollectivesCase& which, int pes) {
    const auto job = std::make_shared<fakes::FakeJob>(pes, subject.deadline);
    std::vector<std::jthread> threads;
    for (int pe = 0; pe < pes; ++pe)
        threads.emplace_back([&, pe] {
            fakes::FakeBootstrap others(job, pe);
            run_body(subject, which, others);
        });
}

bool CollectivesPe::open() {
    for (const auto& [name, value] : subject_.config) host_.set(name, value);
    npushmem_collectives_params params{};
    params.struct_size = sizeof params;
    params.pe = index();
    params.npes = count();
    auto opened = subject_.open(host_.table(), params);
    EXPECT_TRUE(opened.ok()) << opened.status().message();
    if (opened.ok()) library_ = std::move(opened).value();
    return all_agree(opened.ok() ? 1 : 0) && opened.ok();
}

bool CollectivesPe::all_agree(std::uint64_t value) {
    std::vector<std::uint64_t> all(static_cast<std::size_t>(count()));
    const Status done = others_.allgather(std::as_bytes(std::span(&value, 1)), std::as_writable_bytes(std::span(all)));
    EXPECT_TRUE(done.ok()) << done.message();
    return std::ranges::all_of(all, [&](std::uint64_t theirs) { return theirs == value; });
}

void CollectivesPe::barrier() {
    const Status done = others_.barrier();
    if (!done.ok()) throw std::runtime_error("the PEs lost each other: " + done.message());
}

std::vector<int> CollectivesPe::all_pes() const {
    std::vector<int> pes(static_cast<std::size_t>(count()));
    std::iota(pes.begin(), pes.end(), 0);
    return pes;
}

Result<std::uint64_t> CollectivesPe::try_team(const std::vector<int>& pes, std::uint32_t number, bool wrong_exchange) {
    Creation creation(others_, pes, wrong_exchange);
    Result<std::uint64_t> made = std::uint64_t{0};
    if (const auto own = std::ranges::find(pes, index()); own != pes.end()) {
        npushmem_coll_team team{};
        team.struct_size = sizeof team;
        team.size = static_cast<int>(pes.size());
        team.index = static_cast<int>(own - pes.begin());
        team.number = number;
        team.pes = pes.data();
        team.context = &creation;
        team.allgather = Creation::allgather;
        made = library_->create_team(team);
    }
    creation.take_part_until_all_have_ended();
    return made;
}

std::uint64_t CollectivesPe::make_team(const std::vector<int>& pes, std::uint32_t number) {
    const auto made = try_team(pes, number);
    if (!made.ok()) throw std::runtime_error("create_team failed: " + made.status().message());
    return made.value();
}

void CollectivesPe::finish(std::uint64_t request, Status status) {
    constexpr int tests_per_check = 1000;
    for (int tests = 1; status.code() == Code::again; ++tests) {
        std::this_thread::yield();
        if (tests % tests_per_check == 0)
            if (const Status others = others_.check(); !others.ok())
                throw std::runtime_error("another PE failed: " + others.message());
        status = library_->test(request);
    }
    if (!status.ok()) throw std::runtime_error("a call failed: " + status.message());
}

void CollectivesPe::run(std::uint64_t team, const npushmem_coll_call& call) {
    std::uint64_t request = 0;
    Status started = library_->start(team, call, request);
    finish(request, std::move(started));
}

npushmem_coll_call coll_call(std::uint32_t collective, const void* source, void* dest, std::uint64_t count) {
    npushmem_coll_call call{};
    call.struct_size = sizeof call;
    call.collective = collective;
    call.source = source;
    call.dest = dest;
    call.count = count;
    return call;
}

void add_collectives_contract(CollectivesSubject subject) {
    const auto shared = std::make_shared<const CollectivesSubject>(std::move(subject));
    for (const int pes : shared->pes)
        for_each_case([&](const CollectivesCase& one) {
            register_case({shared->name + "/" + std::to_string(pes) + "_pes", one.name, one.rule, shared->deadline,
                           [shared, &one, pes] { run_collectives_case(*shared, one, pes); }});
        });
}

void add_collectives_contract_of_launched_pe(const CollectivesSubject& subject, Bootstrap& others) {
    const auto shared = std::make_shared<const CollectivesSubject>(subject);
    const std::string suite = subject.name + "/" + std::to_string(others.nranks()) + "_pes";
    for_each_case([&](const CollectivesCase& one) {
        ::testing::RegisterTest(
            suite.c_str(), one.name, nullptr, nullptr, __FILE__, __LINE__,
            [shared, &one, &others]() -> ::testing::Test* { return new LaunchedCollectivesTest(shared, one, others); });
    });
}

}  // namespace npushmem::contract
