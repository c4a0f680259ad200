// Tells which of a process' watched memory is no longer what it was: unmapped, moved, or emptied.
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

class MemoryWatch {
public:
    // How far a reader of the changes is.
    using Position = std::uint64_t;
    using ChangeHandler = std::function<void(const AddressRange&)>;
    enum class ChangesResult {
        all,
        in_progress,  // a change is going on, and is told later: nothing that is watched may be taken for unchanged now
        overflow,  // more than are remembered: nothing that is watched since before may be taken for unchanged any more
    };

    MemoryWatch() = default;
    MemoryWatch(const MemoryWatch&) = delete;
    MemoryWatch& operator=(const MemoryWatch&) = delete;
    virtual ~MemoryWatch() = default;

    // Whole pages. From here on what happens to them is told, until they are unmapped. False: of this memory it cannot.
    virtual bool watch(const AddressRange& pages) = 0;
    [[nodiscard]] virtual Position now() = 0;
    // Calls `gone` for every change since `position`, and moves that up.
    virtual ChangesResult changes(Position& position, const ChangeHandler& gone) = 0;
};

// Registrations of the program's own memory that are kept for the next transfer of the same buffer. A buffer is kept
// when it is used for the second time, as long as a watch tells what becomes of its pages: a registration that outlives
// them would send what used to be there. Without a watch nothing is kept.
//
// What is kept is bounded in bytes and in number; what was not used for the longest goes first, and everything that is
// not in use when there is no room to register more (RegistrationCaches).
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

// The caches of all ports of a PE. The limit of locked memory is the process', so whoever has no room to register more
// asks all of them for some.

// One thread at a time, as its ports have one transport.
class RegistrationCaches {
public:
    // Asked from here on, for as long as its port has it.
    void add(const std::shared_ptr<RegistrationCache>& cache) { caches_.push_back(cache); }
    // True: something was given up.
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
