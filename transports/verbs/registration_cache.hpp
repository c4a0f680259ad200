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

    // `watch` may be null. `max_bytes` 0: nothing is kept. `port` outlives the cache and what it gave.
    RegistrationCache(OpenedPort& port, std::shared_ptr<MemoryWatch> watch, std::uint64_t max_bytes)
        : port_(port), watch_(std::move(watch)), max_bytes_(max_bytes) {
        if (watch_) position_ = watch_->now();
    }

    // For both directions of transfers. Null: this buffer is not kept, and to be registered for this once.
    Registration find(const void* begin, std::uint64_t bytes);
    // True: something was given up.
    bool drop_unused();
    [[nodiscard]] std::uint64_t bytes() const { return bytes_; }
    [[nodiscard]] std::size_t size() const { return entries_.size(); }

    static constexpr std::size_t max_entries = 1024;

private:
    struct CachedRegistration {
        AddressRange pages;
        Registration registration;
        std::uint64_t used = 0;  // when, in uses
    };
    struct CacheCandidate {
        AddressRange pages;
        bool refused = false;  // they cannot be watched or registered, as long as they are what they are
    };
    using Entries = std::map<std::uintptr_t, CachedRegistration>;  // by their begin; they do not overlap

    bool drop_changed();
    // Null, and remembered, when they are seen for the first time.
    CacheCandidate* find_candidate(const AddressRange& pages);
    Registration insert(CacheCandidate& candidate);
    void clear_refused(const AddressRange& pages);
    void drop(const AddressRange& pages);
    Entries::iterator erase(Entries::iterator entry);
    void evict_for(std::uint64_t bytes);

    OpenedPort& port_;
    std::shared_ptr<MemoryWatch> watch_;
    std::uint64_t max_bytes_;
    MemoryWatch::Position position_ = 0;
    Entries entries_;
    std::uint64_t bytes_ = 0;
    std::uint64_t uses_ = 0;
    std::array<CacheCandidate, 64> candidates_{};  // buffers that were not kept, the latest
    std::size_t next_candidate_ = 0;
};

}  // namespace npushmem::verbs
