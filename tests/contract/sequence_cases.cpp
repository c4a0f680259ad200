// SPDX-License-Identifier: BSD-3-Clause
// Random sequences of all operations, by all PEs, against a reference model. A sequence that fails is reduced to a
// minimal one before it is reported.
//
// NPUSHMEM_CONTRACT_SEQUENCE_SEED=N runs the sequence of this seed only; NPUSHMEM_CONTRACT_SEQUENCE_LENGTH=N sets the
// number of operations of each sequence.
#include <gtest/gtest.h>

#include <charconv>
#include <cstdlib>
#include <cstring>

#include "tests/contract/fabric.hpp"
#include "tests/contract/sequence/execution.hpp"
#include "tests/contract/sequence/fabric_machine.hpp"
#include "tests/contract/sequence/generator.hpp"

namespace npushmem::contract {
namespace {

using sequence::Failure;
using sequence::Sequence;

constexpr const char* seed_variable = "NPUSHMEM_CONTRACT_SEQUENCE_SEED";
constexpr const char* length_variable = "NPUSHMEM_CONTRACT_SEQUENCE_LENGTH";

// The value of an environment variable; `otherwise` if it is not set. A failed expectation if it is no number.
std::uint64_t number_from(const char* variable, std::uint64_t otherwise, std::uint64_t low) {
    const char* const text = std::getenv(variable);
    if (text == nullptr) return otherwise;
    const char* const end = text + std::strlen(text);
    std::uint64_t value = 0;
    const auto parsed = std::from_chars(text, end, value);
    const bool good = parsed.ec == std::errc() && parsed.ptr == end && value >= low;
    EXPECT_TRUE(good) << variable << "='" << text << "' is not a whole number of at least " << low;
    return good ? value : otherwise;
}

std::vector<std::uint64_t> sequence_seeds() {
    constexpr std::uint64_t count = 20;
    if (std::getenv(seed_variable) != nullptr) return {number_from(seed_variable, 1, 0)};
    std::vector<std::uint64_t> out;
    for (std::uint64_t seed = 1; seed <= count; ++seed) out.push_back(seed);
    return out;
}

// Runs the sequence on PEs of its own, so that an earlier failure does not disturb it.
std::optional<Failure> replay(const Subject& subject, const sequence::World& world, const Sequence& operations) {
    const auto fabric = Fabric::make(subject, world.npes);
    if (!fabric.ok()) return Failure{"the PEs of a replay do not connect: " + fabric.status().message()};
    sequence::FabricMachine machine(*fabric.value());
    return sequence::execute(world, operations, machine);
}

void report_failure(const Fabric& fabric, const sequence::World& world, std::uint64_t seed, const Sequence& operations,
                    const Failure& failure) {
    constexpr int max_replays = 200;
    const std::string again = std::string("replay: ") + seed_variable + "=" + std::to_string(seed) + " " +
                              length_variable + "=" + std::to_string(operations.size());
    const auto fails = [&](const Sequence& candidate) { return replay(fabric.subject(), world, candidate); };
    const auto first = fails(operations);
    if (!first.has_value()) {
        ADD_FAILURE() << failure.what << "\n"
                      << again << "\nThe failure did not occur again with the same operations on new PEs:\n"
                      << text_of(operations);
        return;
    }
    const auto reduced = sequence::reduce(world, operations, *first, fails, max_replays);
    ADD_FAILURE() << failure.what << "\n"
                  << again << "\nreduced to " << reduced.operations.size() << " of " << operations.size()
                  << " operations in " << reduced.replays
                  << " replays, then a quiet of every queue: " << reduced.failure.what << "\n"
                  << text_of(reduced.operations);
}

void random_sequences_match_the_model(Fabric& fabric) {
    constexpr std::uint64_t default_length = 200;
    const std::uint64_t length = number_from(length_variable, default_length, 1);
    const sequence::World world = sequence::world_of(fabric);
    for (const std::uint64_t seed : sequence_seeds()) {
        const Sequence operations = sequence::generate(world, seed, length);
        std::optional<Failure> failure;
        {
            sequence::FabricMachine machine(fabric);
            failure = sequence::execute(world, operations, machine);
        }
        if (!failure.has_value()) continue;
        report_failure(fabric, world, seed, operations, *failure);
        return;  // the PEs of this fabric may be in any state
    }
}

}  // namespace

std::vector<Case> sequence_cases() {
    return {{"random_sequences_match_the_model", 0, random_sequences_match_the_model}};
}

}  // namespace npushmem::contract
