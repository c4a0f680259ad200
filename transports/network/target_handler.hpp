// SPDX-License-Identifier: BSD-3-Clause
// The target's side of operations that networks lack.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>

#include "transports/network/message.hpp"

namespace npushmem::network {

// The memory of this PE that peers may name in messages.
class RegionTable {
public:
    struct Region {
        std::byte* base = nullptr;
        std::uint64_t bytes = 0;
        std::uint64_t wire_number = 0;
    };

    // Numbers are not reused.
    std::uint64_t insert(Region region) {
        regions_.emplace(++last_, region);
        return last_;
    }
    [[nodiscard]] const Region* find(std::uint64_t number) const {
        const auto found = regions_.find(number);
        return found == regions_.end() ? nullptr : &found->second;
    }
    void erase(std::uint64_t number) { regions_.erase(number); }
    [[nodiscard]] const std::unordered_map<std::uint64_t, Region>& all() const { return regions_; }

    // Null unless the region contains `bytes` bytes at `offset`.
    [[nodiscard]] std::byte* place(std::uint64_t number, std::uint64_t offset, std::uint64_t bytes) const {
        const Region* region = find(number);
        if (region == nullptr || offset > region->bytes || bytes > region->bytes - offset) return nullptr;
        return region->base + offset;
    }

private:
    std::unordered_map<std::uint64_t, Region> regions_;
    std::uint64_t last_ = 0;
};

// Carries out, at the target, operations that networks lack: atomics on 32 and 64 bits, which are atomic with those of
// the CPUs of the target's host, and data followed by a signal. It knows no network: it takes messages and returns
// answers.
//
// The thread that drives the transport calls it: the program's, or the progress thread while the program computes.
class TargetHandler {
public:
    // The maximum number of queues of one origin whose failures are kept. With this many, which no program reaches,
    // every flush of the origin fails from then on, and further messages use no more memory.
    static constexpr std::size_t max_failures = 4096;

    TargetHandler(int my_pe, const RegionTable& regions) : my_pe_(my_pe), regions_(regions) {}

    // True when the request is complete enough to name its queue. The failure of any other request cannot be reported.
    [[nodiscard]] static bool is_complete(const MessageHeader& head, std::span<const std::byte> message);

    // Carries out the atomic, put, put_strided, put_signal or flush request in `message`, whose header is `head`.
    // Ignores incomplete requests. The answer, if any, is for the PE in the header. The failure of a request without an
    // answer is reported by the next flush of its queue.
    std::optional<Answer> handle(const MessageHeader& head, std::span<const std::byte> message);

    // Drops the recorded failures of a lost origin.
    void forget(int origin);

private:
    using Failures = std::map<std::uint32_t, Code>;  // by queue: the first failure since its last flush

    Answer handle_atomic(const AtomicRequest& request) const;
    Code handle_put(const PutRequest& request, std::span<const std::byte> data) const;
    Code handle_put_strided(const PutStridedRequest& request, std::span<const std::byte> data) const;
    Code handle_put_signal(const PutSignalRequest& request, std::span<const std::byte> data) const;
    [[nodiscard]] Answer answer(std::uint64_t ticket, Code code, std::uint64_t value = 0) const;
    Code take_failure(int origin, std::uint32_t queue);
    void keep_failure(int origin, std::uint32_t queue, Code code);

    int my_pe_;
    const RegionTable& regions_;
    std::map<int, Failures> failed_;  // by origin
};

}  // namespace npushmem::network
