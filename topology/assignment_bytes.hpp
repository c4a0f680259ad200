// An Assignment as bytes, for the bootstrap: the first PE of a host computes it, the others read it.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "npushmem/plugin/status.hpp"
#include "topology/assignment.hpp"

namespace npushmem::topology {

// Layout, all numbers little-endian: magic "NPTA", version u32, payload bytes u64, FNV-1a of the payload u64, payload.
// In the payload a text or list is its u32 length followed by its elements.
std::vector<std::byte> to_bytes(const Assignment& assignment);

// Fails with Code::protocol when the bytes are cut off, damaged, of another version, or followed by others. Allocates
// no more than a small multiple of the input's size, whatever the bytes say.
Result<Assignment> assignment_from(std::span<const std::byte> bytes);

}  // namespace npushmem::topology
