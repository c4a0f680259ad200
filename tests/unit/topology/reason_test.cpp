#include "topology/reason.hpp"

#include <gmock/gmock.h>

namespace npushmem::topology {
namespace {

NicChoice choice(const std::string& nic, DistanceClass distance, std::vector<std::uint32_t> shared_with = {}) {
    return {nic, 1, 0, 0, distance, 0, std::move(shared_with)};
}

TEST(ReasonOf, SaysNearestAndNotShared) {
    EXPECT_EQ(reason_of({choice("n0", DistanceClass::pix)}, {}),
              "n0:1 is the nearest, behind the same PCIe switch (PIX), not shared");
}

TEST(ReasonOf, CountsEquallyNearAndNamesSharers) {
    ReasonFacts facts;
    facts.equally_near = 4;
    EXPECT_EQ(reason_of({choice("n0", DistanceClass::phb, {3})}, facts),
              "n0:1 is one of the 4 nearest, through the same host bridge (PHB), shared with PE 3");
}

TEST(ReasonOf, NamesTheUsersEntryAndWhatWouldBeNearer) {
    ReasonFacts facts;
    facts.decided_by = "NPUSHMEM_HCA_LIST gives it, in turn, ";
    facts.nearer = "n1:1 (PIX)";
    EXPECT_EQ(
        reason_of({choice("n0", DistanceClass::sys)}, facts),
        "NPUSHMEM_HCA_LIST gives it, in turn, n0:1, across NUMA nodes (SYS), not shared; n1:1 (PIX) would be nearer");
}

TEST(ReasonOf, ListsFurtherNics) {
    EXPECT_EQ(
        reason_of({choice("n0", DistanceClass::pix), choice("n1", DistanceClass::node)}, {}),
        "n0:1 is the nearest, behind the same PCIe switch (PIX), not shared; besides n1:1 (NODE), because there are "
        "more NICs than PEs");
}

TEST(ReasonOf, AdmitsAnUnknownPlace) {
    ReasonFacts facts;
    facts.place_known = false;
    EXPECT_EQ(reason_of({choice("n0", DistanceClass::sys)}, facts),
              "n0:1 is the nearest, at a place nobody knows, which counts as farthest (SYS), not shared");
}

TEST(PesText, StaysShort) {
    EXPECT_EQ(pes_text({7}), "PE 7");
    EXPECT_EQ(pes_text({1, 2}), "PEs 1 and 2");
    EXPECT_EQ(pes_text({1, 2, 3, 4}), "PEs 1, 2, 3 and 4");
    EXPECT_EQ(pes_text({1, 2, 3, 4, 5, 6}), "PEs 1, 2, 3, 4 and 2 more");
}

}  // namespace
}  // namespace npushmem::topology
