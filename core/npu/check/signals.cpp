// SPDX-License-Identifier: BSD-3-Clause
#include "core/npu/check/signals.hpp"

#include <algorithm>
#include <limits>
#include <utility>

namespace npushmem::npu::check {

void WordReleases::release(Address word, SharedClock clock, bool add, const Access& write, std::uint64_t before,
                           std::uint64_t after) {
    if (peers_ != nullptr) peers_->release(word, *clock, add, before, after);
    Word& released = words_[word];
    if (add && released.clock != nullptr) {
        Clock both = *released.clock;
        both.join(*clock);
        clock = std::make_shared<const Clock>(std::move(both));
    }
    released.clock = std::move(clock);
    released.write = write;
    released.before = before;
    ++released.releases;
}

WordReleases::Earlier WordReleases::earlier(Address word, std::uint32_t core, const Clock& clock) const {
    const auto found = words_.find(word);
    if (found == words_.end()) return {};
    const Access& write = found->second.write;
    if (write.core() == core || write.complete(clock)) return {};
    return {found->second.releases, found->second.before};
}

void WordReleases::acquire(Address word, Clock& clock, std::optional<std::uint64_t> seen, bool waited) const {
    if (peers_ != nullptr) peers_->acquire(word, seen, waited, clock);
    const auto found = words_.find(word);
    if (found != words_.end()) clock.join(*found->second.clock);
}

void PendingSignals::send(PendingSignal signal) { in_flight_.push_back(std::move(signal)); }

void PendingSignals::deliver(explore::ThreadId thread) {
    const auto found = std::ranges::find(in_flight_, thread, &PendingSignal::thread);
    const PendingSignal pending = std::move(*found);
    in_flight_.erase(found);
    steps_.after(pending.sent);
    arrive(pending);
    arrivals_.push_back({pending.core, steps_.id()});
}

bool PendingSignals::any_from(std::uint32_t core) const {
    return std::ranges::find(in_flight_, core, &PendingSignal::core) != in_flight_.end();
}

bool PendingSignals::any_arrived(std::uint32_t core) const {
    return std::ranges::find(arrivals_, core, &Arrival::core) != arrivals_.end();
}

void PendingSignals::join_arrivals(std::uint32_t core) {
    std::erase_if(arrivals_, [&](const Arrival& arrival) {
        if (arrival.core == core) steps_.after(arrival.step);
        return arrival.core == core;
    });
}

void PendingSignals::arrive(const PendingSignal& pending) {
    const Signal& signal = pending.signal;
    const auto at = number_of(signal.word);
    steps_.write(at, at + sizeof *signal.word);
    const auto records = lock_records(peers_);
    const std::uint64_t before = word_in_memory(at);
    // Release: pairs with the acquire of the waits, also of PEs in other processes.
    if (signal.send)
        signal.send();
    else if (signal.add)
        __atomic_fetch_add(signal.word, signal.value, __ATOMIC_RELEASE);
    else
        __atomic_store_n(signal.word, signal.value, __ATOMIC_RELEASE);
    const bool visibly = signal.send || word_in_memory(at) != before;
    memory_.landed(at, at + sizeof *signal.word, pending.access, version_.changed(visibly));
    events_.landed(pending.access);
    words_.release(at, pending.clock, signal.add, pending.access, before);
}

void PendingSignals::deliver_from(std::uint32_t core) {
    const auto sent_by_it = [core](const PendingSignal& pending) { return pending.core == core; };
    for (;;) {
        const auto youngest = std::find_if(in_flight_.rbegin(), in_flight_.rend(), sent_by_it);
        if (youngest == in_flight_.rend()) return;
        const PendingSignal pending = std::move(*youngest);
        in_flight_.erase(std::next(youngest).base());
        arrive(pending);
    }
}

bool PendingSignals::deliver_oldest() {
    if (in_flight_.empty()) return false;
    deliver_from(in_flight_.front().core);
    return true;
}

void OvertakenCopies::published(int pe, const Clock& clock) {
    std::erase_if(copies_,
                  [&](const Copy& copy) { return (pe == any_pe || copy.pe == pe) && copy.access.complete(clock); });
}

void OvertakenCopies::signalled(int pe, const Access& signal, const Clock& clock) {
    published(pe, clock);
    for (Copy& copy : copies_)
        if (copy.pe == pe && copy.access.core() == signal.core() && !copy.overtaken_by.exists())
            copy.overtaken_by = signal;
}

void OvertakenCopies::add_unflushed(int pe, Address line, const Access& store, const Access& signal) {
    for (const Copy& copy : copies_)
        if (copy.begin == line && copy.access.agent == store.agent) return;
    Access never_complete = store;
    never_complete.sequence = std::numeric_limits<std::uint32_t>::max();
    copies_.push_back({pe, line, never_complete, signal});
}

void OvertakenCopies::line_written_back(Address line, const Access& flush) {
    for (Copy& copy : copies_)
        if (copy.begin == line && copy.access.agent == flush.agent) copy.access.sequence = flush.sequence;
}

void OvertakenCopies::report_all(const std::function<void(const Access&, const Access&, Address)>& report) {
    for (const Copy& copy : copies_)
        if (copy.overtaken_by.exists()) report(copy.overtaken_by, copy.access, copy.begin);
    copies_.clear();
}

}  // namespace npushmem::npu::check
