// SPDX-License-Identifier: BSD-3-Clause
// Random sequences that the model admits.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tests/contract/sequence/operation.hpp"

namespace npushmem::contract::sequence {

// The same arguments give the same sequence, with every standard library.
Sequence generate(const World& world, std::uint64_t seed, std::size_t length);

// The operations that the model admits one after another: what remains of a sequence from which some were removed.
Sequence admitted(const World& world, const Sequence& operations);

}  // namespace npushmem::contract::sequence
