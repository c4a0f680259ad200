// SPDX-License-Identifier: BSD-3-Clause
// Small tools that several files of cases share.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/contract/fabric.hpp"

namespace npushmem::contract {

using PePair = std::pair<int, int>;  // from, to

// One pair of different PEs, and one PE with itself, as far as they have the capabilities: for cases that are too long
// for every pair.
inline std::vector<PePair> representative_pairs(const Fabric& fabric, std::uint64_t capabilities) {
    std::vector<PePair> out;
    const auto pairs = fabric.pairs_with(capabilities);
    for (const bool itself : {false, true}) {
        const auto found = std::find_if(pairs.begin(), pairs.end(),
                                        [itself](const PePair& pair) { return (pair.first == pair.second) == itself; });
        if (found != pairs.end()) out.push_back(*found);
    }
    return out;
}

// The pair of different PEs if there is one, else a PE with itself. The case's `needs` ensure that there is a pair.
inline PePair representative_pair(const Fabric& fabric, std::uint64_t capabilities) {
    return representative_pairs(fabric, capabilities).at(0);
}

// The index of the first byte that differs; none when the ranges, of equal size, are equal.
inline std::optional<std::size_t> first_difference(std::span<const std::byte> a, std::span<const std::byte> b) {
    if (a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size()) == 0)) return std::nullopt;
    const auto at = std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first;
    return static_cast<std::size_t>(at - a.begin());
}

// Repeats `call` while it returns Code::again, with progress of every PE in between. Code::timeout when it does so for
// too long. Any thread may call it, because any thread may make progress.
inline Code until_accepted(const Fabric& fabric, const std::function<Code()>& call) {
    Deadline deadline;
    for (;;) {
        const Code code = call();
        if (code != Code::again) return code;
        if (deadline.expired()) return Code::timeout;
        for (int pe = 0; pe < fabric.npes(); ++pe) (void)fabric.pe(pe).transport().progress();
        std::this_thread::yield();
    }
}

// A second region of PE `to`, imported by PE `from`. The destructor releases and deregisters it.
class ImportedRegion {
public:
    // Throws std::runtime_error with the transport's message if a step fails.
    ImportedRegion(Pe& from, Pe& to, const Slice& slice) : from_(from), to_(to) {
        auto registered = to.transport().register_memory(slice.describe());
        if (!registered.ok()) throw std::runtime_error("register_memory: " + registered.status().message());
        region_ = registered.value().region;
        auto imported = from.transport().import_memory(to.number(), registered.value().handle);
        if (!imported.ok()) {
            (void)to.transport().deregister_memory(region_);
            throw std::runtime_error("import_memory: " + imported.status().message());
        }
        remote_ = imported.value();
    }
    ImportedRegion(const ImportedRegion&) = delete;
    ImportedRegion& operator=(const ImportedRegion&) = delete;
    ~ImportedRegion() {
        (void)from_.transport().release_memory(remote_);
        (void)to_.transport().deregister_memory(region_);
    }

    [[nodiscard]] std::uint64_t remote() const { return remote_; }
    [[nodiscard]] npushmem_rma rma(std::uint64_t offset, void* local, std::uint64_t bytes) const {
        return {to_.number(), 0, remote_, offset, local, bytes};
    }

private:
    Pe& from_;
    Pe& to_;
    std::uint64_t region_ = 0;
    std::uint64_t remote_ = 0;
};

}  // namespace npushmem::contract
