// SPDX-License-Identifier: BSD-3-Clause
// Helpers of the tests of assign().
#pragma once

#include <gmock/gmock.h>

#include <string>
#include <vector>

#include "topology/machine/place.hpp"
#include "topology/policy/assign.hpp"

namespace npushmem::topology {

inline AssignmentRequest request_for(const Machine& machine, std::size_t pes) {
    AssignmentRequest request;
    request.pes = place_emulated(machine, pes);
    request.rails = rails_of(machine);
    return request;
}

inline Assignment assigned(const Machine& machine, const AssignmentRequest& request) {
    auto out = assign(machine, request);
    EXPECT_TRUE(out.ok()) << out.status().message();
    return out.ok() ? std::move(out).value() : Assignment{};
}

inline std::vector<std::string> first_nics(const Assignment& assignment) {
    std::vector<std::string> out;
    for (const auto& pe : assignment.pes) out.push_back(pe.nics.empty() ? "none" : pe.nics[0].nic);
    return out;
}

}  // namespace npushmem::topology
