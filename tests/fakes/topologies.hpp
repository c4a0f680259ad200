// The machines of tests/data/topologies, read as values.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "topology/discovery.hpp"

namespace npushmem::topology {

inline std::string topology_path(const std::string& name) {
    return std::string(NPUSHMEM_TEST_DATA_DIR) + "/topologies/" + name;
}

// The machine in <name>.xml; an empty one and a failed test when it cannot be read.
inline Machine machine_from(const std::string& name) {
    auto machine = discover_from_xml(topology_path(name + ".xml"));
    EXPECT_TRUE(machine.ok()) << machine.status().message();
    if (!machine.ok()) return {};
    machine.value().source = name + ".xml";  // without the folder, so that texts do not depend on where the tree lies
    return std::move(machine).value();
}

}  // namespace npushmem::topology
