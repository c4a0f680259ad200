// SPDX-License-Identifier: BSD-3-Clause
// Registers the cases of the transport contract.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <stdexcept>

#include "npushmem/testing/contract.hpp"
#include "npushmem/testing/printers.hpp"
#include "tests/contract/case_process.hpp"
#include "tests/contract/case_rules.hpp"
#include "tests/contract/case_runner.hpp"
#include "tests/contract/fabric.hpp"
#include "tests/contract/processes.hpp"

namespace npushmem::contract {
namespace {

constexpr int pes_of_a_case = 3;

std::vector<Case> fabric_cases() {
    std::vector<Case> out;
    for (const auto& list : {life_cases(), memory_cases(), rma_cases(), atomic_cases(), ordering_cases(), queue_cases(),
                             error_cases(), load_cases(), alignment_cases(), refusal_cases(), sequence_cases(),
                             strictness_cases(), minor_1_cases(), strided_cases(), arrival_cases()})
        out.insert(out.end(), list.begin(), list.end());
    return out;
}

std::vector<ProcessCase> all_process_cases() {
    std::vector<ProcessCase> out;
    for (const auto& list : {reach_cases(), death_cases(), progress_cases()})
        out.insert(out.end(), list.begin(), list.end());
    return out;
}

// What the transport logged, for a failed case.
void print_log(const Subject& subject) {
    constexpr std::size_t limit = 50;
    const auto lines = subject.host->lines();
    const std::size_t dropped = lines.size() > limit ? lines.size() - limit : 0;
    if (dropped > 0) std::printf("log: %zu earlier lines are left out\n", dropped);
    for (std::size_t i = dropped; i < lines.size(); ++i)
        std::printf("log: %s: %s\n", lines[i].subsystem.c_str(), lines[i].text.c_str());
}

void run_fabric_case(const Subject& subject, const Case& what) {
    auto fabric = Fabric::make(subject, pes_of_a_case);
    ASSERT_TRUE(fabric.ok()) << fabric.status().message();
    if (what.needs != 0 && fabric.value()->pairs_with(what.needs).empty())
        GTEST_SKIP() << "no pair of PEs offers " << ::testing::PrintToString(Capabilities{what.needs});
    what.body(*fabric.value());
}

// Whether some PE offers these capabilities to another PE.
Result<bool> offers_to_others(const Subject& subject, std::uint64_t needs) {
    if (needs == 0) return true;
    auto fabric = Fabric::make(subject, 2);
    if (!fabric.ok()) return fabric.status();
    const auto pairs = fabric.value()->pairs_with(needs);
    return std::any_of(pairs.begin(), pairs.end(), [](const auto& pair) { return pair.first != pair.second; });
}

void run_process_case(const Subject& subject, const ProcessCase& what) {
    if (own_role().is_pe()) {
        PeProcess process(subject, own_role());
        return what.pe(process);
    }
    const auto offered = offers_to_others(subject, what.needs);
    ASSERT_TRUE(offered.ok()) << offered.status().message();
    if (!offered.value()) GTEST_SKIP() << "no PE offers another " << ::testing::PrintToString(Capabilities{what.needs});
    what.parent(subject);
}

template <class AnyCase>
void register_for(const std::shared_ptr<const Subject>& subject, const AnyCase& what,
                  void (*run)(const Subject&, const AnyCase&)) {
    register_case(
        {subject->suite(), what.name, transport_rule_of(what.name), subject->transport.deadline, [subject, what, run] {
             set_wait_timeout(subject->transport.wait_timeout);
             run(*subject, what);
             if (::testing::Test::HasFailure()) print_log(*subject);
         }});
}

}  // namespace

void add_transport_contract(TransportSubject subject) {
    if (subject.name.empty() || !subject.open)
        throw std::invalid_argument("add_transport_contract: the subject '" + subject.name +
                                    "' needs a name and a function `open`");
    for (const Layout layout : {Layout::one_file, Layout::own_files}) {
        const auto shared = std::make_shared<const Subject>(subject, layout);
        for (const auto& each : fabric_cases()) register_for(shared, each, run_fabric_case);
        for (const auto& each : all_process_cases()) register_for(shared, each, run_process_case);
    }
}

}  // namespace npushmem::contract
