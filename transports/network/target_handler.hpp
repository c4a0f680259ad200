// Memory of this PE that peers may name in messages.
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

class RegionTable {
public:
    struct Region {
        std::byte* base = nullptr;
        std::uint64_t bytes = 0;
        std::uint64_t wire_number = 0;
    };

    // Numbers are not used again.
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

    // Null unless `bytes` bytes at `offset` lie in the region.
    [[nodiscard]] std::byte* place(std::uint64_t number, std::uint64_t offset, std::uint64_t bytes) const {
        const Region* region = find(number);
        if (region == nullptr || offset > region->bytes || bytes > region->bytes - offset) return nullptr;
        return region->base + offset;
    }

private:
    std::unordered_map<std::uint64_t, Region> regions_;
    std::uint64_t last_ = 0;
};

// Does at the target what networks lack: every atomic operation on 32 and 64 bits, atomic with those that the CPUs of
// the target's host do, and data with a signal behind it. Knows no network: messages in, answers out.
//
// Whoever drives a transport calls it, in the program's thread or in the transport's own while the program computes.
class TargetHandler {
public:
    TargetHandler(int my_pe, const RegionTable& regions) : my_pe_(my_pe), regions_(regions) {}

    // Is the request there whole, as far as it says who asks? Nobody could be told of the failure of one that is not.
    [[nodiscard]] static bool is_complete(const MessageHeader& head, std::span<const std::byte> message);

    // Carries out an atomic, put, put_signal or flush request that is `message`, whose head has been looked at; one
    // that is not whole does nothing. An answer is for the PE in the head. A request that nobody waits for and that
    // fails is told with the next flush of the queue that it came from.
    std::optional<Answer> handle(const MessageHeader& head, std::span<const std::byte> message);

    // The origin is gone: what was kept for it can go too.
    void forget(int origin);

private:
    using Requester = std::pair<int, std::uint32_t>;  // origin, its queue

    Answer handle_atomic(const AtomicRequest& request) const;
    Code handle_put(const PutRequest& request, std::span<const std::byte> data) const;
    Code handle_put_signal(const PutSignalRequest& request, std::span<const std::byte> data) const;
    [[nodiscard]] Answer answer(std::uint64_t ticket, Code code, std::uint64_t value = 0) const;
    Code take_failure(const Requester& requester);
    void keep_failure(const Requester& requester, Code code);

    int my_pe_;
    const RegionTable& regions_;
    std::map<Requester, Code> failed_;  // first failure since the requester's last flush
};

}  // namespace npushmem::network
