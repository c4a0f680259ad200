// SPDX-License-Identifier: BSD-3-Clause
// The sound transports into which defects are seeded.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "npushmem/testing/contract.hpp"
#include "tests/contract/mutants/defective.hpp"

namespace npushmem::contract {

struct SoundTransport {
    std::string name;  // of the transport's subject
    std::uint64_t capabilities;
    OpenTransport open;
    std::vector<Defect> defects;
};

std::span<const SoundTransport> sound_transports();

// The subject of "<transport>/<defect>": "none" is no defect, and "none_with_short_waits" is none with the limits of
// the defects whose cases time out. Throws std::invalid_argument if there is none of that name.
TransportSubject mutant(std::string_view name);

}  // namespace npushmem::contract
