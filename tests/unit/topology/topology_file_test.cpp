#include "topology/topology_file.hpp"

#include <gmock/gmock.h>

#include "tests/fakes/topologies.hpp"

namespace npushmem::topology {
namespace {

using ::testing::HasSubstr;

TEST(TopologyFile, MustBeAReadableFile) {
    EXPECT_TRUE(check_topology_file(topology_path("flat-vm.xml")).ok());
    EXPECT_THAT(check_topology_file(topology_path("none.xml")).message(), HasSubstr("No such file"));
    EXPECT_THAT(check_topology_file(NPUSHMEM_TEST_DATA_DIR).message(), HasSubstr("is a directory"));
}

TEST(TopologyFile, HashTellsContentsApart) {
    const auto hash = hash_of_topology_file(topology_path("flat-vm.xml"));
    EXPECT_EQ(hash, hash_of_topology_file(topology_path("../topologies/flat-vm.xml")));
    EXPECT_NE(hash, hash_of_topology_file(topology_path("no-nic.xml")));
}

}  // namespace
}  // namespace npushmem::topology
