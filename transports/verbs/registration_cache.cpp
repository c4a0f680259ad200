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
    if (!watch_ || bytes > most_bytes_ || !forget_what_changed()) return nullptr;
    const AddressRange pages = pages_of(begin, bytes);
    const auto after = kept_.upper_bound(pages.begin);
    if (after != kept_.begin()) {
        Kept& found = std::prev(after)->second;
        if (found.pages.has(pages)) {
            found.used = ++uses_;
            return found.registration;
        }
    }
    Seen* const seen = seen_before(pages);
    return seen != nullptr && !seen->refused ? keep(*seen) : nullptr;
}

bool RegistrationCache::forget_what_changed() {
    const auto told = watch_->changes(position_, [this](const AddressRange& gone) {
        forget(gone);
        try_again(gone);
    });
    if (told == MemoryWatch::Told::too_many) {
        kept_.clear();
        bytes_ = 0;
        seen_ = {};
    }
    return told == MemoryWatch::Told::all;
}

RegistrationCache::Seen* RegistrationCache::seen_before(const AddressRange& pages) {
    const auto found = std::find_if(seen_.begin(), seen_.end(), [&](const Seen& each) { return each.pages == pages; });
    if (found != seen_.end()) return &*found;
    seen_[next_seen_++ % seen_.size()] = {pages};
    return nullptr;
}

void RegistrationCache::try_again(const AddressRange& pages) {
    for (Seen& each : seen_)
        if (each.pages.overlaps(pages)) each.refused = false;
}

// What happens to the pages from here on is told by the next look at the changes. Others make room only for what can
// be registered.
RegistrationCache::Registration RegistrationCache::keep(Seen& seen) {
    const AddressRange pages = seen.pages;
    const std::uint64_t bytes = pages.end - pages.begin;
    if (bytes > most_bytes_) return nullptr;
    seen.refused = !watch_->watch(pages);
    if (seen.refused) return nullptr;
    auto made = port_.register_memory(reinterpret_cast<void*>(pages.begin), bytes, IBV_ACCESS_LOCAL_WRITE);
    seen.refused = !made.ok() && made.status().code() != Code::memory;
    if (!made.ok()) return nullptr;
    forget(pages);
    make_room(bytes);
    Kept entry{pages, std::move(made).value(), ++uses_};
    bytes_ += bytes;
    return kept_.emplace(pages.begin, std::move(entry)).first->second.registration;
}

RegistrationCache::Entries::iterator RegistrationCache::erase(Entries::iterator entry) {
    bytes_ -= entry->second.pages.end - entry->second.pages.begin;
    return kept_.erase(entry);
}

void RegistrationCache::forget(const AddressRange& pages) {
    auto at = kept_.upper_bound(pages.begin);
    if (at != kept_.begin() && std::prev(at)->second.pages.overlaps(pages)) --at;
    while (at != kept_.end() && at->second.pages.overlaps(pages)) at = erase(at);
}

void RegistrationCache::make_room(std::uint64_t bytes) {
    while (!kept_.empty() && (bytes_ + bytes > most_bytes_ || kept_.size() >= most_entries))
        (void)erase(std::min_element(kept_.begin(), kept_.end(),
                                     [](const auto& a, const auto& b) { return a.second.used < b.second.used; }));
}

bool RegistrationCache::drop_unused() {
    const std::size_t before = kept_.size();
    for (auto at = kept_.begin(); at != kept_.end();)
        at = at->second.registration.use_count() == 1 ? erase(at) : std::next(at);
    return kept_.size() < before;
}

}  // namespace npushmem::verbs
