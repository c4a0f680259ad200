// SPDX-License-Identifier: BSD-3-Clause
// A cache of registrations of the program's memory, and the watch that invalidates them.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "transports/verbs/opened_port.hpp"

namespace npushmem::verbs {

struct AddressRange {
    std::uintptr_t begin = 0;
    std::uintptr_t end = 0;

    [[nodiscard]] bool overlaps(const AddressRange& other) const { return begin < other.end && other.begin < end; }
    [[nodiscard]] bool has(const AddressRange& other) const { return begin <= other.begin && other.end <= end; }
    friend bool operator==(const AddressRange&, const AddressRange&) = default;
};

// Reports which watched memory of the process was unmapped, moved or emptied.
class MemoryWatch {
public:
    // The position of a reader in the sequence of changes.
    using Position = std::uint64_t;
    using ChangeHandler = std::function<void(const AddressRange&)>;
    enum class ChangesResult {
        all,
        in_progress,  // a change is in progress and is reported later: no watched memory counts as unchanged now
        overflow,     // changes were lost: no memory watched so far counts as unchanged any more
    };

    MemoryWatch() = default;
    MemoryWatch(const MemoryWatch&) = delete;
    MemoryWatch& operator=(const MemoryWatch&) = delete;
    virtual ~MemoryWatch() = default;

    // Watches whole pages and reports their changes until they are unmapped. False: this memory cannot be watched.
    virtual bool watch(const AddressRange& pages) = 0;
    [[nodiscard]] virtual Position now() = 0;
    // Calls `handler` for each change since `position`, and advances `position`.
    virtual ChangesResult changes(Position& position, const ChangeHandler& handler) = 0;
};

// Caches registrations of the program's own memory for later transfers of the same buffer. The cache keeps a buffer
// from its second use on, for as long as the watch reports changes of its pages: a stale registration would transfer
// the old pages. Without a watch it keeps nothing.
//
// The cache is limited in bytes and in number. It evicts the least recently used registration, and all unused ones when
// no more memory can be registered (RegistrationCaches).
class RegistrationCache {
public:
    using Registration = std::shared_ptr<ibv_mr>;

    // `watch` may be null. `max_bytes` 0: keep nothing. `domain` outlives the cache and its registrations.
    RegistrationCache(ProtectionDomain& domain, std::shared_ptr<MemoryWatch> watch, std::uint64_t max_bytes)
        : domain_(domain), watch_(std::move(watch)), max_bytes_(max_bytes) {
        if (watch_) position_ = watch_->now();
    }

    // A registration for both directions. Null: the buffer is not cached; register it for this transfer.
    Registration find(const void* begin, std::uint64_t bytes);
    // Drops the unused registrations. True when it dropped some.
    bool drop_unused();
    [[nodiscard]] std::uint64_t bytes() const { return bytes_; }
    [[nodiscard]] std::size_t size() const { return entries_.size(); }

    static constexpr std::size_t max_entries = 1024;

private:
    struct CachedRegistration {
        AddressRange pages;
        Registration registration;
        std::uint64_t used = 0;  // time of the last use, in uses
    };
    struct CacheCandidate {
        AddressRange pages;
        bool refused = false;  // these pages cannot be watched or registered, until they change
    };
    using Entries = std::map<std::uintptr_t, CachedRegistration>;  // by begin; disjoint

    bool drop_changed();
    // Null when the pages are seen for the first time; then records them.
    CacheCandidate* find_candidate(const AddressRange& pages);
    Registration insert(CacheCandidate& candidate);
    void clear_refused(const AddressRange& pages);
    void drop(const AddressRange& pages);
    Entries::iterator erase(Entries::iterator entry);
    void evict_for(std::uint64_t bytes);

    ProtectionDomain& domain_;
    std::shared_ptr<MemoryWatch> watch_;
    std::uint64_t max_bytes_;
    MemoryWatch::Position position_ = 0;
    Entries entries_;
    std::uint64_t bytes_ = 0;
    std::uint64_t uses_ = 0;
    std::array<CacheCandidate, 64> candidates_{};  // the latest buffers that were not kept
    std::size_t next_candidate_ = 0;
};

// The caches of all ports of a PE. The limit of locked memory applies to the process, so a port that cannot register
// more frees unused registrations of all ports. One thread at a time calls, because the ports belong to one transport.
class RegistrationCaches {
public:
    // Adds a cache, for as long as its port owns it.
    void add(const std::shared_ptr<RegistrationCache>& cache) { caches_.push_back(cache); }
    // Drops the unused registrations of all caches. True when it dropped some.
    bool drop_unused() {
        bool dropped = false;
        std::erase_if(caches_, [&](const auto& each) {
            const auto cache = each.lock();
            if (cache) dropped = cache->drop_unused() || dropped;
            return !cache;
        });
        return dropped;
    }

private:
    std::vector<std::weak_ptr<RegistrationCache>> caches_;
};

}  // namespace npushmem::verbs
