// SPDX-License-Identifier: BSD-3-Clause
#include "transports/verbs/registration_cache.hpp"

#include <unistd.h>

#include <algorithm>

namespace npushmem::verbs {
namespace {

AddressRange pages_of(const void* begin, std::uint64_t bytes) {
    static const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
    const auto at = reinterpret_cast<std::uintptr_t>(begin);
    return {at / page * page, (at + bytes + page - 1) / page * page};
}

}  // namespace

RegistrationCache::Registration RegistrationCache::find(const void* begin, std::uint64_t bytes) {
    if (!watch_ || bytes > max_bytes_ || !drop_changed()) return nullptr;
    const AddressRange pages = pages_of(begin, bytes);
    const auto after = entries_.upper_bound(pages.begin);
    if (after != entries_.begin()) {
        CachedRegistration& found = std::prev(after)->second;
        if (found.pages.has(pages)) {
            found.used = ++uses_;
            return found.registration;
        }
    }
    CacheCandidate* const candidate = find_candidate(pages);
    return candidate != nullptr && !candidate->refused ? insert(*candidate) : nullptr;
}

bool RegistrationCache::drop_changed() {
    const auto result = watch_->changes(position_, [this](const AddressRange& range) {
        drop(range);
        clear_refused(range);
    });
    if (result == MemoryWatch::ChangesResult::overflow) {
        entries_.clear();
        bytes_ = 0;
        candidates_ = {};
    }
    return result == MemoryWatch::ChangesResult::all;
}

RegistrationCache::CacheCandidate* RegistrationCache::find_candidate(const AddressRange& pages) {
    const auto found = std::find_if(candidates_.begin(), candidates_.end(),
                                    [&](const CacheCandidate& each) { return each.pages == pages; });
    if (found != candidates_.end()) return &*found;
    candidates_[next_candidate_++ % candidates_.size()] = {pages};
    return nullptr;
}

void RegistrationCache::clear_refused(const AddressRange& pages) {
    for (CacheCandidate& each : candidates_)
        if (each.pages.overlaps(pages)) each.refused = false;
}

// The next check reports changes of the pages from here on. Evicts others only for memory that can be registered.
RegistrationCache::Registration RegistrationCache::insert(CacheCandidate& candidate) {
    const AddressRange pages = candidate.pages;
    const std::uint64_t bytes = pages.end - pages.begin;
    if (bytes > max_bytes_) return nullptr;
    candidate.refused = !watch_->watch(pages);
    if (candidate.refused) return nullptr;
    auto made = domain_.register_memory(reinterpret_cast<void*>(pages.begin), bytes, IBV_ACCESS_LOCAL_WRITE);
    candidate.refused = !made.ok() && made.status().code() != Code::memory;
    if (!made.ok()) return nullptr;
    drop(pages);
    evict_for(bytes);
    CachedRegistration entry{pages, std::move(made).value(), ++uses_};
    bytes_ += bytes;
    return entries_.emplace(pages.begin, std::move(entry)).first->second.registration;
}

RegistrationCache::Entries::iterator RegistrationCache::erase(Entries::iterator entry) {
    bytes_ -= entry->second.pages.end - entry->second.pages.begin;
    return entries_.erase(entry);
}

void RegistrationCache::drop(const AddressRange& pages) {
    auto at = entries_.upper_bound(pages.begin);
    if (at != entries_.begin() && std::prev(at)->second.pages.overlaps(pages)) --at;
    while (at != entries_.end() && at->second.pages.overlaps(pages)) at = erase(at);
}

void RegistrationCache::evict_for(std::uint64_t bytes) {
    while (!entries_.empty() && (bytes_ + bytes > max_bytes_ || entries_.size() >= max_entries))
        (void)erase(std::min_element(entries_.begin(), entries_.end(),
                                     [](const auto& a, const auto& b) { return a.second.used < b.second.used; }));
}

bool RegistrationCache::drop_unused() {
    const std::size_t before = entries_.size();
    for (auto at = entries_.begin(); at != entries_.end();)
        at = at->second.registration.use_count() == 1 ? erase(at) : std::next(at);
    return entries_.size() < before;
}

}  // namespace npushmem::verbs
