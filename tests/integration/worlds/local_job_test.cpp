// SPDX-License-Identifier: BSD-3-Clause
// Jobs whose PEs are threads of this program: over plugins, decorators, fakes and mocks.
#include "npushmem/testing/local_job.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest-spi.h>

#include <atomic>
#include <stdexcept>
#include <string>
#include <vector>

#include "npushmem.h"
#include "npushmem/plugin/collectives_export.hpp"
#include "npushmem/testing/fake_collectives.hpp"
#include "npushmem/testing/fake_transport.hpp"
#include "npushmem/testing/mocks.hpp"

extern "C" const npushmem_collectives_v1* npushmem_collectives_entry_v1(void);

namespace {

using npushmem::Code;
using npushmem::MockTransport;
using npushmem::Status;
using npushmem::fakes::FakeCollectives;
using npushmem::fakes::FakeCollectivesJob;
using npushmem::fakes::FakeFabric;
using npushmem::fakes::FakeTransport;
using npushmem::testing::LocalJob;
using ::testing::_;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::NiceMock;
using ::testing::Return;

// A program of any number of PEs: each counts in turn, and all add.
void count_around(int pe) {
    const int npes = npushmem_n_pes();
    ASSERT_EQ(npushmem_my_pe(), pe);
    auto* const words = static_cast<long*>(npushmem_calloc(600, sizeof(long)));
    for (long lap = 1; lap <= 5; ++lap) {
        if (pe != 0) npushmem_long_wait_until(words, NPUSHMEM_CMP_EQ, lap);
        npushmem_long_p(words, lap, (pe + 1) % npes);
        npushmem_long_atomic_add(words + 1, pe + 1, 0);
        if (pe == 0) npushmem_long_wait_until(words, NPUSHMEM_CMP_EQ, lap);
    }
    const std::vector<long> block(512, pe);
    npushmem_putmem(words + 64, block.data(), block.size() * sizeof(long), (pe + 1) % npes);
    npushmem_barrier_all();
    EXPECT_EQ(npushmem_long_g(words + 1, 0), 5L * npes * (npes + 1) / 2);
    EXPECT_EQ(words[64 + 511], (pe + npes - 1) % npes);
    words[2] = pe;
    EXPECT_EQ(npushmem_long_max_reduce(NPUSHMEM_TEAM_WORLD, words + 3, words + 2, 1), 0);
    EXPECT_EQ(words[3], npes - 1);
    npushmem_free(words);
}

class LocalJobOver : public ::testing::TestWithParam<const char*> {};

TEST_P(LocalJobOver, RunsAProgram) {
    for (const int pes : {1, 2, 4}) LocalJob(pes).set("NPUSHMEM_TRANSPORTS", GetParam()).run(count_around);
}

INSTANTIATE_TEST_SUITE_P(Transports, LocalJobOver,
                         ::testing::Values("self,p2p", "self,nomap(p2p)", "nomap(p2p)", "fault(p2p)", "self,trace(p2p)",
                                           "trace(fault(p2p))", "hccs"));

// PEs that emulate hosts of their own find the transport between hosts by themselves.
TEST(LocalJobs, FakesReachEveryHost) {
    FakeFabric fabric(FakeFabric::Delivery::adversarial, 7);
    LocalJob job(3);
    job.add_transport(
        "fake",
        [&](const npushmem_transport_params& params) { return std::make_unique<FakeTransport>(fabric, params.pe); },
        LocalJob::moves_data | NPUSHMEM_CAP_REMOTE);
    for (int pe = 0; pe < 3; ++pe) job.set("NPUSHMEM_EMULATED_HOST", std::to_string(pe), pe);
    job.set("NPUSHMEM_TRANSPORTS", "self,p2p,trace(fake)").run(count_around);
}

TEST(LocalJobs, FakesServeAlone) {
    for (const std::uint64_t seed : {1, 2, 3}) {
        FakeFabric fabric(FakeFabric::Delivery::adversarial, seed);
        LocalJob(2)
            .add_transport("fake",
                           [&](const npushmem_transport_params& params) {
                               return std::make_unique<FakeTransport>(fabric, params.pe);
                           })
            .set("NPUSHMEM_TRANSPORTS", "fault(fake)")
            .run(count_around);
    }
}

// The mock sees the calls of the runtime, and passes them on.
TEST(LocalJobs, MocksExpectCalls) {
    FakeFabric fabric;
    LocalJob(2)
        .add_transport(
            "mock",
            [&](const npushmem_transport_params& params) {
                auto mock = std::make_unique<NiceMock<MockTransport>>();
                mock->delegate_to(std::make_unique<FakeTransport>(fabric, params.pe));
                EXPECT_CALL(*mock, put(_, Field(&npushmem_rma::bytes, 24U), _)).Times(params.pe == 0 ? 3 : 0);
                return mock;
            })
        .set("NPUSHMEM_TRANSPORTS", "self,mock")
        .run([](int pe) {
            auto* const memory = static_cast<char*>(npushmem_calloc(1, 64));
            const char data[24] = "through the mock";
            for (int i = 0; i < 3 && pe == 0; ++i) npushmem_putmem(memory + i, data, sizeof data, 1);
            npushmem_barrier_all();
            EXPECT_STREQ(memory + 2, pe == 1 ? data : "");
            npushmem_free(memory);
        });
}

// An error of the mock is the result of the call.
TEST(LocalJobs, ReportFailedCalls) {
    FakeFabric fabric;
    const auto ends =
        LocalJob(2)
            .add_transport(
                "mock",
                [&](const npushmem_transport_params& params) {
                    auto mock = std::make_unique<NiceMock<MockTransport>>();
                    mock->delegate_to(std::make_unique<FakeTransport>(fabric, params.pe));
                    ON_CALL(*mock, put(_, Field(&npushmem_rma::bytes, 24U), _)).WillByDefault(Return(Code::system));
                    return mock;
                })
            .set("NPUSHMEM_TRANSPORTS", "self,mock")
            .try_run([](int pe) {
                auto* const memory = static_cast<char*>(npushmem_calloc(1, 64));
                const char data[24] = "";
                if (pe == 0) npushmem_putmem(memory, data, sizeof data, 1);
                npushmem_barrier_all();
                npushmem_free(memory);
            });
    EXPECT_EQ(ends[0].code(), Code::system);
    EXPECT_THAT(ends[0].message(), HasSubstr("npushmem_putmem"));
    EXPECT_EQ(ends[1].code(), Code::ok);
}

// That of the test which runs.
std::shared_ptr<FakeCollectivesJob> collectives_job;

struct LibraryOfTheTest {
    static npushmem::Result<std::unique_ptr<npushmem::Collectives>> open(const npushmem::Host&,
                                                                         const npushmem_collectives_params& params) {
        return std::unique_ptr<npushmem::Collectives>(std::make_unique<FakeCollectives>(collectives_job, params.pe));
    }
};

// NPUSHMEM_COLL_LIBRARY selects the library, and it serves the calls.
TEST(LocalJobs, LibrariesOfCollectivesServeTheirCalls) {
    for (const bool selects : {true, false}) {
        collectives_job = std::make_shared<FakeCollectivesJob>();
        std::atomic<int> reductions{0};
        collectives_job->result = [&](int, std::uint32_t collective) {
            if (collective == NPUSHMEM_COLL_REDUCE) ++reductions;
            return Status{};
        };
        LocalJob job(3);
        job.add_collectives(*npushmem_collectives_entry_v1());
        if (selects) job.set("NPUSHMEM_COLL_LIBRARY", "inside");
        job.run([](int pe) {
            auto* const words = static_cast<long*>(npushmem_calloc(2, sizeof(long)));
            words[0] = pe + 1;
            EXPECT_EQ(npushmem_long_sum_reduce(NPUSHMEM_TEAM_WORLD, words + 1, words, 1), 0);
            EXPECT_EQ(words[1], 6);
            npushmem_free(words);
        });
        EXPECT_EQ(reductions, selects ? 3 : 0);
        EXPECT_EQ(collectives_job->teams, 0);
    }
}

// A team that the library refuses uses npushmem's own, and cannot be given to the library.
TEST(LocalJobs, ATeamThatTheLibraryRefusesCannotSelectIt) {
    collectives_job = std::make_shared<FakeCollectivesJob>();
    collectives_job->create_failures[1] = {Code::unsupported, "no queue is left"};
    LocalJob(2)
        .add_collectives(*npushmem_collectives_entry_v1())
        .set("NPUSHMEM_COLL_LIBRARY", "inside")
        .run([](int pe) {
            auto* const words = static_cast<long*>(npushmem_calloc(2, sizeof(long)));
            words[0] = pe + 1;
            EXPECT_EQ(npushmemx_team_set_collectives(NPUSHMEM_TEAM_WORLD, "inside"), 0) << "nobody knows yet";
            EXPECT_EQ(npushmem_long_sum_reduce(NPUSHMEM_TEAM_WORLD, words + 1, words, 1), 0);
            EXPECT_EQ(words[1], 3);
            EXPECT_EQ(npushmemx_team_set_collectives(NPUSHMEM_TEAM_WORLD, "inside"), NPUSHMEM_E_UNSUPPORTED);
            const char* text = "";
            (void)npushmemx_last_error(&text);
            EXPECT_THAT(text, ::testing::AllOf(HasSubstr("inside does not serve the team"),
                                               HasSubstr("member 1: no queue is left")));
            npushmemx_clear_error();
            EXPECT_EQ(npushmemx_team_set_collectives(NPUSHMEM_TEAM_WORLD, "auto"), 0);
            EXPECT_EQ(npushmemx_team_set_collectives(NPUSHMEM_TEAM_WORLD, "npushmem"), 0);
            npushmem_barrier_all();
            npushmem_free(words);
        });
}

TEST(LocalJobs, AFailedStartEndsAllPes) {
    const auto ends = LocalJob(3).set("NPUSHMEM_TRANSPORTS", "nowhere", 1).try_run([](int) { FAIL() << "it starts"; });
    ASSERT_EQ(ends.size(), 3U);
    for (const Status& end : ends) EXPECT_THAT(end.message(), HasSubstr("nowhere"));
    EXPECT_EQ(ends[1].code(), Code::plugin_missing);
}

TEST(LocalJobs, AStartThatFailsBeforeItJoinsEndsAllPes) {
    const auto ends = LocalJob(3).set("NPUSHMEM_SYMMETRIC_SIZE", "many", 1).try_run([](int) { FAIL() << "it starts"; });
    for (const Status& end : ends) EXPECT_THAT(end.message(), HasSubstr("NPUSHMEM_SYMMETRIC_SIZE"));
}

TEST(LocalJobs, APeThatEndsEarlyEndsTheOthers) {
    const auto ends = LocalJob(2).try_run([](int pe) {
        if (pe == 0) npushmem_barrier_all();
    });
    EXPECT_FALSE(ends[0].ok());
}

// What a program contains is checked as a file is.
TEST(LocalJobs, RefuseUnsoundTransports) {
    const auto end_of = [](std::uint64_t capabilities) {
        return LocalJob(1)
            .add_transport(
                "unsound", [](const npushmem_transport_params&) { return nullptr; }, capabilities)
            .set("NPUSHMEM_TRANSPORTS", "unsound")
            .try_run([](int) { FAIL() << "it starts"; })
            .front();
    };
    EXPECT_THAT(end_of(0).message(), HasSubstr("refused at stage 'capabilities'"));
    EXPECT_THAT(end_of(0).message(), HasSubstr("in this program"));
    EXPECT_THAT(end_of(LocalJob::moves_data).message(), HasSubstr("no instance"));
}

// The others do not wait for a PE that throws.
TEST(LocalJobs, AnExceptionEndsTheWaitsOfTheOthers) {
    for (const char* const transports : {"self,p2p", "self,nomap(p2p)"}) {
        const auto ends = LocalJob(3).set("NPUSHMEM_TRANSPORTS", transports).try_run([](int pe) {
            npushmem_barrier_all();
            if (pe == 1) throw std::runtime_error("the program of PE 1 fails");
            npushmem_barrier_all();
        });
        EXPECT_EQ(ends[1].message(), "the program of PE 1 fails");
        for (const int pe : {0, 2}) {
            EXPECT_EQ(ends[static_cast<std::size_t>(pe)].code(), Code::peer_dead);
            EXPECT_THAT(ends[static_cast<std::size_t>(pe)].message(), HasSubstr("PE 1"));
        }
    }
}

TEST(LocalJobs, AFailureOfAPeIsOneOfTheTest) {
    EXPECT_NONFATAL_FAILURE(LocalJob(1).run([](int) { throw std::runtime_error("a failing PE"); }),
                            "PE 0: a failing PE");
}

// Jobs beside each other, and one after the other: nothing of one is left to the next.
TEST(LocalJobs, RunBesideEachOther) {
    std::vector<std::thread> jobs;
    for (const char* const transports : {"self,p2p", "nomap(p2p)", "self,fault(p2p)"})
        jobs.emplace_back([=] {
            for (int i = 0; i < 2; ++i) LocalJob(2).set("NPUSHMEM_TRANSPORTS", transports).run(count_around);
        });
    for (std::thread& job : jobs) job.join();
}

// NPUSHMEM_CHECK works between threads.
TEST(LocalJobs, CheckedCallsCompareAllPes) {
    const auto ends = LocalJob(2).set("NPUSHMEM_CHECK", "1").try_run([](int pe) {
        if (pe == 0) npushmem_barrier_all();
        if (pe == 1) npushmem_sync_all();
    });
    for (const Status& end : ends) EXPECT_THAT(end.message(), HasSubstr("npushmem_"));
}

}  // namespace

NPUSHMEM_EXPORT_COLLECTIVES(LibraryOfTheTest, "inside", "collectives in the test");
