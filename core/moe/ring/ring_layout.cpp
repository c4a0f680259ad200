// SPDX-License-Identifier: BSD-3-Clause
#include "core/moe/ring/ring_layout.hpp"

#include <fmt/format.h>

namespace npushmem::moe {

namespace {

Status refuse(const char* what, Bytes bytes, std::uint64_t most, const char* limit) {
    return {Code::argument, fmt::format("moe: {} is {} bytes, must be a multiple of {} from {} to {} ({})", what,
                                        bytes.value(), RingShape::unit, RingShape::unit, most, limit)};
}

bool fits(Bytes bytes, std::uint64_t most) {
    return bytes.value() != 0 && bytes.value() % RingShape::unit == 0 && bytes.value() <= most;
}

}  // namespace

Status RingShape::check() const {
    constexpr std::uint64_t most = std::uint64_t{1} << 40;
    if (!fits(size, most)) return refuse("a ring", size, most, "what an address space holds");
    if (!fits(batch, size.value())) return refuse("a ring's batch", batch, size.value(), "the ring");
    if (!fits(release, size.value())) return refuse("a ring's release step", release, size.value(), "the ring");
    return {};
}

}  // namespace npushmem::moe
