// SPDX-License-Identifier: BSD-3-Clause
#include "core/runtime/job_membership.hpp"

#include <gmock/gmock.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>

#include "npushmem/testing/mocks.hpp"
#include "tests/fakes/fake_os.hpp"

namespace npushmem {
namespace {

using ::testing::_;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::NiceMock;
using ::testing::Return;

std::unique_ptr<NiceMock<MockBootstrap>> bootstrap_of(int rank, int nranks) {
    auto bootstrap = std::make_unique<NiceMock<MockBootstrap>>();
    ON_CALL(*bootstrap, rank()).WillByDefault(Return(rank));
    ON_CALL(*bootstrap, nranks()).WillByDefault(Return(nranks));
    return bootstrap;
}

TEST(JobMembership, RejectsRanksOutsideTheJob) {
    EXPECT_TRUE(JobMembership(bootstrap_of(0, 1)).check_rank().ok());
    EXPECT_TRUE(JobMembership(bootstrap_of(2, 3)).check_rank().ok());
    EXPECT_THAT(JobMembership(bootstrap_of(3, 3)).check_rank().message(), HasSubstr("gave rank 3 of 3"));
    EXPECT_EQ(JobMembership(bootstrap_of(-1, 3)).check_rank().code(), Code::protocol);
    EXPECT_EQ(JobMembership(bootstrap_of(0, 0)).check_rank().code(), Code::protocol);
}

TEST(JobMembership, KnowsThePesOfItsHostAfterTheExchange) {
    auto bootstrap = bootstrap_of(1, 3);
    // All PEs send this PE's record; PE 2 runs on another host.
    ON_CALL(*bootstrap, allgather(_, _))
        .WillByDefault([](std::span<const std::byte> send, std::span<std::byte> receive) {
            for (std::size_t pe = 0; pe < 3; ++pe)
                std::copy(send.begin(), send.end(), receive.begin() + static_cast<std::ptrdiff_t>(pe * send.size()));
            // Its first record has another hash, so the common records follow.
            const std::size_t changed = send.size() == sizeof(PeRecord)
                                            ? offsetof(PeRecord, common_hash)
                                            : offsetof(CommonRecord, host) + offsetof(npushmem_host_id, machine);
            receive[2 * send.size() + changed] ^= std::byte{1};
            return Status{};
        });
    JobMembership job(std::move(bootstrap));
    const Config config = Config::read(FakeEnvironment{}).value();
    const Status exchanged = job.exchange_records(config.settings(), {});
    ASSERT_TRUE(exchanged.ok()) << exchanged.message();
    EXPECT_EQ(job.layout().hosts(), 2);
    const PeRange local = job.local_pes();
    EXPECT_THAT(std::vector<int>(local.begin(), local.end()), ElementsAre(0, 1));
    EXPECT_EQ(job.local_index(), 1);
    EXPECT_TRUE(job.is_local(0));
    EXPECT_FALSE(job.is_local(2));
    EXPECT_EQ(job.pes().process(0).pid, getpid());
}

TEST(JobMembership, RejectsAPeWithOtherSettings) {
    auto bootstrap = bootstrap_of(0, 2);
    // PE 1 sends this PE's records, with another hash, and then its common record with another size.
    ON_CALL(*bootstrap, allgather(_, _))
        .WillByDefault([calls = 0](std::span<const std::byte> send, std::span<std::byte> receive) mutable {
            std::copy(send.begin(), send.end(), receive.begin());
            std::copy(send.begin(), send.end(), receive.begin() + static_cast<std::ptrdiff_t>(send.size()));
            const std::size_t changed =
                ++calls == 1 ? offsetof(PeRecord, common_hash)
                             : offsetof(CommonRecord, settings) + offsetof(CommonSettings, symmetric_bytes);
            receive[send.size() + changed] ^= std::byte{1};
            return Status{};
        });
    JobMembership job(std::move(bootstrap));
    const Config config = Config::read(FakeEnvironment{}).value();
    const Status exchanged = job.exchange_records(config.settings(), {});
    EXPECT_EQ(exchanged.code(), Code::mismatch);
    EXPECT_THAT(exchanged.message(), HasSubstr("PE 1 (process"));
    EXPECT_THAT(exchanged.message(), HasSubstr("NPUSHMEM_SYMMETRIC_SIZE=1073741825, PE 0 has 1073741824"));
}

}  // namespace
}  // namespace npushmem
