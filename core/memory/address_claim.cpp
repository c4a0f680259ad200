// SPDX-License-Identifier: BSD-3-Clause
#include "core/memory/address_claim.hpp"

#include <iterator>
#include <map>
#include <mutex>

namespace npushmem {

namespace {

struct Claims {
    std::mutex lock;
    std::map<std::uintptr_t, std::uintptr_t> ends;  // by begin; no two overlap
};

// Never destroyed: worlds may end while the program exits.
Claims& claims() {
    static Claims* const instance = new Claims;
    return *instance;
}

}  // namespace

std::optional<AddressClaim> AddressClaim::take(const void* address, std::uint64_t bytes) {
    const auto begin = reinterpret_cast<std::uintptr_t>(address);
    Claims& all = claims();
    const std::lock_guard guard(all.lock);
    const auto after = all.ends.lower_bound(begin + bytes);
    if (after != all.ends.begin() && std::prev(after)->second > begin) return std::nullopt;
    all.ends.emplace_hint(after, begin, begin + bytes);
    return AddressClaim(begin);
}

AddressClaim::~AddressClaim() {
    if (begin_ == 0) return;
    Claims& all = claims();
    const std::lock_guard guard(all.lock);
    all.ends.erase(begin_);
}

}  // namespace npushmem
