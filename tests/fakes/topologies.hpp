// SPDX-License-Identifier: BSD-3-Clause
// The machines of tests/data/topologies, read as values.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "topology/machine/discovery.hpp"

namespace npushmem::topology {

inline std::string topology_path(const std::string& name) {
    return std::string(NPUSHMEM_TEST_DATA_DIR) + "/topologies/" + name;
}

// Reads the machine in <name>.xml. If it cannot be read, fails the test and returns an empty machine.
inline Machine machine_from(const std::string& name) {
    auto machine = discover_from_xml(topology_path(name + ".xml"));
    EXPECT_TRUE(machine.ok()) << machine.status().message();
    if (!machine.ok()) return {};
    machine.value().source = name + ".xml";  // without the folder, so that texts do not depend on the tree's location
    return std::move(machine).value();
}

}  // namespace npushmem::topology
