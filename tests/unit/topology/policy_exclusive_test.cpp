#include "topology/policy_exclusive.hpp"

#include <gmock/gmock.h>

#include "tests/fakes/cost_tables.hpp"

namespace npushmem::topology {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr std::size_t any_number = 1000;

Choice choose(const CostTable& costs, const std::vector<std::uint32_t>& devices, std::size_t max_per_pe = 1) {
    return choose_exclusive(costs, devices, max_per_pe, Bins::of(costs.front().size()));
}

TEST(ChooseExclusive, GivesADeviceAFartherNicRatherThanASharedOne) {
    EXPECT_THAT(choose(table_of_classes({{0, 4}, {0, 4}}), {0, 1}), ElementsAre(ElementsAre(0), ElementsAre(1)));
}

TEST(ChooseExclusive, LetsPesOfOneDeviceShare) {
    EXPECT_THAT(choose(table_of_classes({{0, 4}, {0, 4}, {4, 0}}), {0, 0, 1}),
                ElementsAre(ElementsAre(0), ElementsAre(0), ElementsAre(1)));
}

TEST(ChooseExclusive, SharesOutWhatIsLeft) {
    EXPECT_THAT(choose(table_of_classes({{0, 0, 4, 4}, {4, 4, 0, 0}}), {0, 1}, any_number),
                ElementsAre(ElementsAre(0, 1), ElementsAre(2, 3)));
}

TEST(ChooseExclusive, LeavesNicsOfOthersAlone) {
    const auto costs = table_of_classes({{0, 1, 1}});
    const std::vector<std::uint32_t> devices{7};
    EXPECT_THAT(choose_exclusive(costs, devices, any_number, {{1, 0, 0}, {}, {}}), ElementsAre(ElementsAre(1, 2)));
}

TEST(ChooseExclusive, IsEmptyWhenThereAreTooFew) {
    EXPECT_THAT(choose(table_of_classes({{0}, {0}}), {0, 1}), IsEmpty());
}

}  // namespace
}  // namespace npushmem::topology
