// SPDX-License-Identifier: BSD-3-Clause
// Runs a sequence on a machine and compares it with the model; reduces a sequence that fails.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>

#include "tests/contract/sequence/operation.hpp"

namespace npushmem::contract::sequence {

// Carries out operations: the transport under test, or a fake.
class Machine {
public:
    // The result of one operation.
    struct Outcome {
        std::string error;  // empty: as expected
        bool timed_out = false;
        bool is_complete = false;  // of a post or a poll: its token, if it has one, is complete
    };

    Machine() = default;
    Machine(const Machine&) = delete;
    Machine& operator=(const Machine&) = delete;
    virtual ~Machine() = default;

    // Posts a data operation, or carries out another. Waits as the contract allows.
    virtual Outcome perform(const Operation& op) = 0;
    // The value that an operation has fetched. Valid after its completion.
    [[nodiscard]] virtual std::span<const std::byte> fetched(int id) const = 0;
    // The bytes of a region that exists.
    [[nodiscard]] virtual std::span<const std::byte> region(int pe, int region) const = 0;
};

struct Failure {
    std::string what;  // with the operation that showed it
    bool timed_out = false;
};

// Runs the operations and then a quiet of every queue. Checks each fetched value when it is complete, and all memory
// after each quiet. Returns the first difference from the model. Operations that the model does not admit are an error
// of the caller: use `admitted`.
std::optional<Failure> execute(const World& world, const Sequence& operations, Machine& machine);

struct Reduced {
    Sequence operations;
    Failure failure;
    int replays = 0;
};

// Removes operations as long as the rest still fails: halves, then smaller chunks, then single operations. Then makes
// single operations simpler: no token, fewer bytes, the first queue and region. Repeats both until nothing helps any
// more or `max_replays` is used up. A replay that times out counts as many. `fails` runs a sequence from the beginning.
Reduced reduce(const World& world, Sequence failing, Failure failure,
               const std::function<std::optional<Failure>(const Sequence&)>& fails, int max_replays);

}  // namespace npushmem::contract::sequence
