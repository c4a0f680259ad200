// SPDX-License-Identifier: BSD-3-Clause
// Data that PEs in processes exchange and verify, and steps that they take together.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tests/contract/processes.hpp"

namespace npushmem::contract {

using Members = std::vector<int>;
Members all_of(int npes);

// The parent's side of a barrier: waits until all members have reached `stage`, then lets them go. False: a process has
// ended or is stuck, which is a failed expectation.
bool release_from(PeProcesses& processes, const Members& members, const std::string& stage);

// Each member writes to each member that it reaches, with all families of operations that it has, waits until this is
// delivered, and reads. Then each verifies its own memory. Uses the first 256 KiB of the memory of at most 8 PEs.
// Collective over the members, with the same round, and their parent.
void exchange(PeProcess& process, const Members& members, std::uint64_t round);
bool serve_exchange(PeProcesses& processes, const Members& members, std::uint64_t round);

// Opens an instance in this process, for the PE of this number of a job of this size, and publishes its memory. Null,
// with a failed expectation, if this fails.
std::unique_ptr<Pe> open_pe(const Subject& subject, int number, int npes);

}  // namespace npushmem::contract
