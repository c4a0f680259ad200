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
    return was_seen(pages) ? keep(pages) : nullptr;
}

bool RegistrationCache::forget_what_changed() {
    if (watch_->changes(position_, [this](const AddressRange& gone) { forget(gone); })) return true;
    kept_.clear();
    bytes_ = 0;
    return false;
}

bool RegistrationCache::was_seen(const AddressRange& pages) {
    if (std::find(seen_.begin(), seen_.end(), pages) != seen_.end()) return true;
    seen_[next_seen_++ % seen_.size()] = pages;
    return false;
}

// What happens to the pages from here on is told by the next look at the changes.
RegistrationCache::Registration RegistrationCache::keep(const AddressRange& pages) {
    const std::uint64_t bytes = pages.end - pages.begin;
    if (bytes > most_bytes_ || !watch_->watch(pages)) return nullptr;
    forget(pages);
    make_room(bytes);
    auto made = port_.register_memory(reinterpret_cast<void*>(pages.begin), bytes, IBV_ACCESS_LOCAL_WRITE);
    if (!made.ok()) return nullptr;
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
