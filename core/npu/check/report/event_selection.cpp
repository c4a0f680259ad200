// SPDX-License-Identifier: BSD-3-Clause
#include "core/npu/check/report/event_selection.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

namespace npushmem::npu::check {
namespace {

using Kind = KernelEvent::Kind;

constexpr std::uint64_t events_before = 2;   // per core, before the first of the two accesses
constexpr std::uint64_t events_of_one = 6;   // before an access whose other side is not recorded
constexpr std::uint64_t events_of_wait = 4;  // per core, before a wait that never ends

bool creates_order(Kind kind) { return kind >= Kind::atomic && kind != Kind::dcci; }

bool same_core(const KernelEvent& a, const KernelEvent& b) { return a.pe == b.pe && a.core == b.core; }

bool is_flag(Kind kind) { return kind == Kind::set_flag || kind == Kind::wait_flag; }

class Selection {
public:
    Selection(std::vector<KernelEvent> all, Finding& finding) : all_(std::move(all)), finding_(finding) {
        std::ranges::sort(all_, {}, &KernelEvent::number);
        for (std::size_t i = 0; i < all_.size(); ++i) places_[all_[i].number] = i;
        for (KernelEvent& event : all_) event.cause = cause_of(event);
        here_ = find(finding.here.event);
        other_ = find(finding.other.event);
    }

    void run() {
        set_memory();
        if (finding_.hazard == Hazard::deadlock)
            select_waits();
        else
            select_accesses();
        shorten();
        for (const std::uint64_t number : selected_) finding_.events.push_back(*find(number));
    }

private:
    [[nodiscard]] const KernelEvent* find(std::uint64_t number) const {
        const auto found = places_.find(number);
        return found != places_.end() ? &all_[found->second] : nullptr;
    }

    // The last event that set the flag, or changed the word, before the wait ended.
    [[nodiscard]] std::uint64_t cause_of(const KernelEvent& wait) const {
        if (wait.kind != Kind::wait && wait.kind != Kind::wait_flag) return 0;
        std::uint64_t cause = 0;
        std::uint64_t when = 0;
        for (const KernelEvent& event : all_) {
            const std::uint64_t at = wait.kind == Kind::wait ? event.landed : event.number;
            const bool ends = wait.kind == Kind::wait ? ends_wait(event, wait) : sets_flag(event, wait);
            if (!ends || at == 0 || at > wait.number || at < when) continue;
            cause = event.number;
            when = at;
        }
        return cause;
    }

    [[nodiscard]] static bool ends_wait(const KernelEvent& event, const KernelEvent& wait) {
        return event.written.overlaps(wait.read);
    }

    [[nodiscard]] static bool sets_flag(const KernelEvent& event, const KernelEvent& wait) {
        return event.kind == Kind::set_flag && same_core(event, wait) && event.pipe == wait.pipe &&
               event.to == wait.to && event.value == wait.value;
    }

    // The written memory of one side and the read or written memory of the other one that overlap.
    void set_memory() {
        const auto set = [](FindingSide& side, const KernelEvent* event, const KernelEvent* against) {
            if (event == nullptr) return;
            const auto conflicts = [&](const EventMemory& memory) {
                return against != nullptr && (memory.overlaps(against->read) || memory.overlaps(against->written));
            };
            const bool reads = event->written.bytes == 0 || (!conflicts(event->written) && conflicts(event->read));
            const EventMemory& memory = reads ? event->read : event->written;
            side.address = memory.address;
            side.bytes = memory.bytes;
        };
        set(finding_.here, here_, other_);
        set(finding_.other, other_, here_);
    }

    [[nodiscard]] bool touches_conflict(const KernelEvent& event) const {
        const auto overlaps = [&](const FindingSide& side) {
            const EventMemory memory{side.address, side.bytes};
            return event.read.overlaps(memory) || event.written.overlaps(memory);
        };
        return overlaps(finding_.here) || overlaps(finding_.other);
    }

    // Selects what matters of the core of `of` from `floor` up to `end`, and the events that ended its waits.
    void walk(const KernelEvent& of, std::uint64_t floor, std::uint64_t end) {
        std::uint64_t& walked = walked_[{of.pe, of.core}];
        if (end <= walked) return;
        walked = end;
        std::vector<const KernelEvent*> causes;
        for (const KernelEvent& event : all_) {
            if (!same_core(event, of) || event.number < floor || event.number > end) continue;
            if (!creates_order(event.kind) && !touches_conflict(event)) continue;
            selected_.insert(event.number);
            if (const KernelEvent* cause = find(event.cause); cause != nullptr) causes.push_back(cause);
        }
        for (const KernelEvent* cause : causes) {
            selected_.insert(cause->number);
            if (!same_core(*cause, of)) walk(*cause, floor, cause->number);
        }
    }

    // The last `count` events of the core of `of` before `end`.
    void select_before(const KernelEvent& of, std::uint64_t end, std::uint64_t count) {
        for (auto event = all_.rbegin(); event != all_.rend() && count > 0; ++event) {
            if (!same_core(*event, of) || event->number >= end) continue;
            selected_.insert(event->number);
            --count;
        }
    }

    void select_accesses() {
        if (here_ == nullptr) return;
        const KernelEvent& other = other_ != nullptr ? *other_ : *here_;
        const std::uint64_t floor = std::min(here_->number, other.number);
        const std::uint64_t end = std::max(here_->number, other.number);
        for (const KernelEvent* event : {here_, &other}) {
            selected_.insert(event->number);
            pinned_.insert(event->number);
            walk(*event, floor, end);
            select_before(*event, floor, other_ != nullptr ? events_before : events_of_one);
        }
    }

    void select_waits() {
        if (other_ != nullptr) {
            selected_.insert(other_->number);
            pinned_.insert(other_->number);
        }
        for (const KernelEvent& event : all_) {
            if (event.kind != Kind::waiting && &event != here_) continue;
            selected_.insert(event.number);
            pinned_.insert(event.number);
            select_before(event, event.number, events_of_wait);
        }
    }

    // Drops flags, barriers and dcci first, the oldest first; then the oldest other events.
    void shorten() {
        const auto drop = [&](auto&& droppable) {
            for (auto at = selected_.begin(); at != selected_.end() && selected_.size() > max_selected_events;)
                at = !pinned_.contains(*at) && droppable(*find(*at)) ? selected_.erase(at) : std::next(at);
        };
        drop([&](const KernelEvent& event) {
            return !touches_conflict(event) && (is_flag(event.kind) || event.kind >= Kind::pipe_barrier);
        });
        drop([](const KernelEvent&) { return true; });
        while (selected_.size() > max_selected_events) selected_.erase(std::prev(selected_.end()));
    }

    std::vector<KernelEvent> all_;  // by number
    Finding& finding_;
    std::map<std::uint64_t, std::size_t> places_;
    const KernelEvent* here_ = nullptr;
    const KernelEvent* other_ = nullptr;
    std::map<std::pair<int, int>, std::uint64_t> walked_;  // by core
    std::set<std::uint64_t> selected_;
    std::set<std::uint64_t> pinned_;
};

}  // namespace

void select_events(std::vector<KernelEvent> all, Finding& finding) { Selection(std::move(all), finding).run(); }

}  // namespace npushmem::npu::check
