// SPDX-License-Identifier: BSD-3-Clause
// Cases as tests of GoogleTest, each in a process of its own with a deadline.
#pragma once

#include <chrono>
#include <functional>
#include <string>

namespace npushmem::contract {

struct ResultPart;

struct RegisteredCase {
    std::string suite;
    std::string name;
    std::string rule;  // what the case tests, as one sentence
    std::chrono::seconds deadline;
    // Runs in the process of the case, and in the processes of its PEs (own_role() states which). May use all
    // assertions of GoogleTest, and throw.
    std::function<void()> body;
};

// Adds the case to GoogleTest. Throws std::invalid_argument if there is one with the same suite and name.
//
// In the calling program the test starts the process of the case, and reports what becomes of it: its failures, its
// skip, a signal that ended it, an unexpected exit status, or that it did not finish within its deadline; then what it
// wrote to its standard output and error. Each failure has the rule, and the process and PE in which it occurred. With
// NPUSHMEM_CONTRACT_IN_PROCESS=1 the test runs the body itself.
void register_case(RegisteredCase added);

// Adds a failure of a process that this one has started; it names that process itself.
void forward_failure(const ResultPart& part);

// Prints the cases that the filter selects, each with its rule, instead of running them. Returns the exit status.
int list_cases();
// For tests that are no cases: whether list_cases runs.
bool is_listing();

// For a process that the case's process has forked: failures no longer go to the process that started the case, but to
// the standard output, with the place of each. Does nothing if the case runs in the calling program, where GoogleTest
// prints them.
void print_results();

// Does NPUSHMEM_CONTRACT_VERBOSE ask for the output of all processes as they write it?
bool prints_all_output();

// "suite.case" of the test that is running.
std::string running_case();

}  // namespace npushmem::contract
