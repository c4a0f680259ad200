// SPDX-License-Identifier: BSD-3-Clause
#include "core/memory/call_sums.hpp"

#include <utility>

namespace npushmem {

// Relaxed, as the additions: the barrier between orders them.
bool CallSums::show_equal(unsigned parity, std::uint64_t digest) {
    bool equal = true;
    for (std::size_t host = 0; host < pes_.size(); ++host) {
        const auto now = host == own_host_ ? Result<std::uint64_t>(own_[parity].load(std::memory_order_relaxed))
                                           : read_(host, parity);
        if (!now.ok()) return false;
        const std::uint64_t before = std::exchange(known_[host][parity], now.value());
        equal = equal && now.value() - before == digest * static_cast<std::uint64_t>(pes_[host]);
    }
    return equal;
}

}  // namespace npushmem
