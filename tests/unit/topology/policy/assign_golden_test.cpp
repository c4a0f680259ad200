// SPDX-License-Identifier: BSD-3-Clause
// Assignments on saved machines: the whole text, and its independence of the order of PEs and NICs.
#include <gmock/gmock.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <random>
#include <sstream>
#include <tuple>

#include "tests/fakes/topologies.hpp"
#include "tests/unit/topology/policy/assign_fixture.hpp"
#include "topology/report/describe.hpp"

namespace npushmem::topology {
namespace {

// One machine, one number of PEs, one policy; the test compares the whole text with a file.
struct GoldenCase {
    const char* machine;
    std::size_t pes;
    Policy policy;
};

class Golden : public ::testing::TestWithParam<GoldenCase> {};

std::string golden_name(const GoldenCase& c) {
    return std::string(c.machine) + "." + std::to_string(c.pes) + "-pes." + std::string(name_of(c.policy)) + ".txt";
}

std::string expected_text(const std::string& name) {
    std::ifstream file(topology_path("expected/" + name));
    std::stringstream text;
    text << file.rdbuf();
    return text.str();
}

// Saves a text that differs, so that a person can check it and replace the expected file.
std::string keep(const std::string& name, const std::string& text) {
    const std::string path = ::testing::TempDir() + "npushmem." + name;
    std::ofstream(path) << text;
    return path;
}

TEST_P(Golden, TextIsAsExpected) {
    const auto machine = machine_from(GetParam().machine);
    auto request = request_for(machine, GetParam().pes);
    request.policy = GetParam().policy;
    const auto text = describe(assigned(machine, request));
    const auto name = golden_name(GetParam());
    EXPECT_EQ(text, expected_text(name)) << "expected/" << name << " differs from " << keep(name, text);
}

INSTANTIATE_TEST_SUITE_P(
    Machines, Golden,
    ::testing::Values(
        GoldenCase{"switch-pairs", 8, Policy::balanced}, GoldenCase{"switch-pairs", 8, Policy::nearest},
        GoldenCase{"switch-pairs", 3, Policy::balanced}, GoldenCase{"switch-pairs", 16, Policy::balanced},
        GoldenCase{"nics-on-one-socket", 4, Policy::balanced}, GoldenCase{"nics-on-one-socket", 4, Policy::nearest},
        GoldenCase{"cascaded-switches", 2, Policy::balanced}, GoldenCase{"flat-vm", 4, Policy::balanced},
        GoldenCase{"port-down", 4, Policy::balanced}, GoldenCase{"network-only", 4, Policy::balanced},
        GoldenCase{"no-nic", 3, Policy::balanced}, GoldenCase{"one-nic", 4, Policy::balanced},
        GoldenCase{"dgx-a100", 8, Policy::balanced}, GoldenCase{"dgx-a100", 8, Policy::nearest},
        GoldenCase{"dgx-a100", 8, Policy::exclusive}, GoldenCase{"dgx-a100", 4, Policy::round_robin},
        GoldenCase{"dgx-h100", 8, Policy::balanced}, GoldenCase{"dgx-h100-port-failed", 8, Policy::balanced},
        GoldenCase{"dgx-h100-port-failed", 8, Policy::nearest}, GoldenCase{"hgx-4-nics", 8, Policy::balanced},
        GoldenCase{"hgx-4-nics", 8, Policy::nearest}, GoldenCase{"atlas-800-a2", 8, Policy::balanced},
        GoldenCase{"sixteen-accelerators", 16, Policy::balanced},
        GoldenCase{"sixteen-accelerators", 16, Policy::nearest}, GoldenCase{"mixed-speeds", 6, Policy::balanced},
        GoldenCase{"mixed-speeds", 6, Policy::nearest}));

// Device address → names of its NICs. The result must not depend on the order of PEs and NICs.
std::map<std::string, std::vector<std::string>> nics_by_device(const Assignment& assignment) {
    std::map<std::string, std::vector<std::string>> out;
    for (const auto& pe : assignment.pes) {
        for (const auto& nic : pe.nics) out[pe.device].push_back(nic.nic + ":" + std::to_string(nic.port));
    }
    return out;
}

class Permutation : public ::testing::TestWithParam<std::tuple<const char*, Policy>> {};

TEST_P(Permutation, OfPesAndNicsDoesNotChangeTheAssignment) {
    const auto machine = machine_from(std::get<0>(GetParam()));
    const auto rails = rails_of(machine);
    const auto usable = static_cast<std::size_t>(
        std::count_if(rails.begin(), rails.end(), [](const Rail& rail) { return rail.state != PortState::down; }));
    auto request = request_for(machine, std::min(machine.accelerators.size(), usable));  // exclusive needs one each
    request.policy = std::get<1>(GetParam());
    const auto expected = nics_by_device(assigned(machine, request));
    std::mt19937 random(17);
    for (int round = 0; round < 50; ++round) {
        // NVSHMEM's algorithm depends on the order of the PEs.
        if (request.policy != Policy::nearest) std::shuffle(request.pes.begin(), request.pes.end(), random);
        std::shuffle(request.rails.begin(), request.rails.end(), random);
        ASSERT_EQ(nics_by_device(assigned(machine, request)), expected) << "round " << round;
    }
}

INSTANTIATE_TEST_SUITE_P(
    Machines, Permutation,
    ::testing::Combine(::testing::Values("switch-pairs", "nics-on-one-socket", "cascaded-switches", "flat-vm",
                                         "dgx-a100", "dgx-h100-port-failed", "hgx-4-nics", "atlas-800-a2",
                                         "sixteen-accelerators", "mixed-speeds"),
                       ::testing::Values(Policy::balanced, Policy::nearest, Policy::exclusive, Policy::round_robin)));

}  // namespace
}  // namespace npushmem::topology
