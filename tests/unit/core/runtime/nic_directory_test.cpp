#include "core/runtime/nic_directory.hpp"

#include <gmock/gmock.h>

#include <thread>

#include "tests/fakes/fake_bootstrap.hpp"

namespace npushmem {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;

topology::PeAssignment pe_with(const std::vector<std::uint32_t>& rails) {
    topology::PeAssignment pe;
    for (const auto rail : rails) {
        topology::NicChoice nic;
        nic.nic = "n" + std::to_string(rail);
        nic.rail = rail;
        pe.nics.push_back(nic);
    }
    return pe;
}

// What rank 0 learns when rank i brings the i-th assignment.
NicDirectory directory_of(const std::vector<topology::PeAssignment>& pes) {
    const auto job = std::make_shared<fakes::FakeJob>(static_cast<int>(pes.size()));
    NicDirectory first;
    std::vector<std::jthread> ranks;
    for (int rank = 0; rank < job->nranks(); ++rank) {
        ranks.emplace_back([&, rank] {
            fakes::FakeBootstrap bootstrap(job, rank);
            auto made = NicDirectory::gather(bootstrap, rank, pes[static_cast<std::size_t>(rank)]);
            EXPECT_TRUE(made.ok()) << made.status().message();
            if (rank == 0 && made.ok()) first = std::move(made).value();
        });
    }
    ranks.clear();
    return first;
}

TEST(NicDirectory, PairsNicsOfOneRail) {
    const auto directory = directory_of({pe_with({0, 1}), pe_with({1}), pe_with({})});
    const auto pairs = directory.pairs(1);
    ASSERT_TRUE(pairs.ok()) << pairs.status().message();
    ASSERT_THAT(pairs.value(), SizeIs(2));
    EXPECT_EQ(pairs.value()[0].mine.nic, "n1");
    EXPECT_EQ(directory.describe(1), "n1:1 -> n1:1, rail 1 on both ends");
    EXPECT_THAT(directory.pairs(2).value(), IsEmpty());
    EXPECT_EQ(directory.describe(2), "");
}

TEST(NicDirectory, IsEmptyWhereNobodyHasNics) {
    EXPECT_THAT(NicDirectory().pairs(3).value(), IsEmpty());
    EXPECT_EQ(NicDirectory().describe(3), "");
}

}  // namespace
}  // namespace npushmem
