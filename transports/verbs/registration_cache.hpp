// Registrations of the program's own memory that are kept for the next transfer of the same buffer. A buffer is kept
// when it is used for the second time, as long as a watch tells what becomes of its pages: a registration that outlives
// them would send what used to be there. Without a watch nothing is kept.
//
// What is kept is bounded in bytes and in number; what was not used for the longest goes first, and everything that is
// not in use when there is no room to register more (RegistrationCaches).
#pragma once

#include <array>
#include <map>
#include <memory>

#include "transports/verbs/memory_watch.hpp"
#include "transports/verbs/opened_port.hpp"

namespace npushmem::verbs {

class RegistrationCache {
public:
    using Registration = std::shared_ptr<ibv_mr>;

    // `watch` may be null. `most_bytes` 0: nothing is kept. `port` outlives the cache and what it gave.
    RegistrationCache(OpenedPort& port, std::shared_ptr<MemoryWatch> watch, std::uint64_t most_bytes)
        : port_(port), watch_(std::move(watch)), most_bytes_(most_bytes) {
        if (watch_) position_ = watch_->now();
    }

    // For both directions of transfers. Null: this buffer is not kept, and to be registered for this once.
    Registration find(const void* begin, std::uint64_t bytes);
    // True: something was given up.
    bool drop_unused();
    [[nodiscard]] std::uint64_t bytes() const { return bytes_; }
    [[nodiscard]] std::size_t size() const { return kept_.size(); }

    static constexpr std::size_t most_entries = 1024;

private:
    struct Kept {
        AddressRange pages;
        Registration registration;
        std::uint64_t used = 0;  // when, in uses
    };
    struct Seen {
        AddressRange pages;
        bool refused = false;  // they cannot be watched or registered, as long as they are what they are
    };
    using Entries = std::map<std::uintptr_t, Kept>;  // by their begin; they do not overlap

    bool forget_what_changed();
    // Null, and remembered, when they are seen for the first time.
    Seen* seen_before(const AddressRange& pages);
    Registration keep(Seen& seen);
    void try_again(const AddressRange& pages);
    void forget(const AddressRange& pages);
    Entries::iterator erase(Entries::iterator entry);
    void make_room(std::uint64_t bytes);

    OpenedPort& port_;
    std::shared_ptr<MemoryWatch> watch_;
    std::uint64_t most_bytes_;
    MemoryWatch::Position position_ = 0;
    Entries kept_;
    std::uint64_t bytes_ = 0;
    std::uint64_t uses_ = 0;
    std::array<Seen, 64> seen_{};  // buffers that were not kept, the latest
    std::size_t next_seen_ = 0;
};

}  // namespace npushmem::verbs
