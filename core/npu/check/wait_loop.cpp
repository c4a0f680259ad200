#include "core/npu/check/wait_loop.hpp"

#include <limits>
#include <utility>

namespace npushmem::npu::check {
namespace {

constexpr std::size_t max_probes = 8;

// Multiplicative hashing: the upper bits depend on all bits of the key.
std::size_t slot_of(std::uintptr_t what) { return static_cast<std::size_t>(what * 0x9e3779b97f4a7c15U >> 32); }

}  // namespace

bool WaitLoop::read(std::uintptr_t what, std::uint64_t value, std::uint64_t version) {
    Entry& entry = entry_of(what);
    const bool known = entry.epoch == epoch_;
    const bool same = known && entry.value == value;
    const bool repeated = same && entry.version == version;
    entry = {what, value, version, epoch_};
    if (!same) repeats_ = 0;
    if (repeated && repeats_ < std::numeric_limits<int>::max()) ++repeats_;
    return repeated && recognised();
}

void WaitLoop::changed() {
    ++epoch_;
    repeats_ = 0;
}

WaitLoop::Entry* WaitLoop::probe(std::uintptr_t what) {
    if (entries_.empty()) return nullptr;
    const std::size_t begin = slot_of(what);
    for (std::size_t i = 0; i < max_probes; ++i) {
        Entry& entry = entries_[(begin + i) % entries_.size()];
        if (entry.epoch != epoch_ || entry.what == what) return &entry;
    }
    return nullptr;
}

WaitLoop::Entry& WaitLoop::entry_of(std::uintptr_t what) {
    Entry* found = probe(what);
    while (found == nullptr) {
        grow();
        found = probe(what);
    }
    return *found;
}

void WaitLoop::grow() {
    if (entries_.size() == max_size) return changed();
    std::vector<Entry> old(entries_.empty() ? first_size : entries_.size() * 4);
    old.swap(entries_);
    for (const Entry& entry : old) {
        if (entry.epoch != epoch_) continue;
        if (Entry* place = probe(entry.what); place != nullptr) *place = entry;
    }
}

}  // namespace npushmem::npu::check
