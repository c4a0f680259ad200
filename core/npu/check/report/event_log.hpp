// SPDX-License-Identifier: BSD-3-Clause
// The last operations of each core, for pictures of failures.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "core/npu/check/access.hpp"
#include "npushmem/npu/hazard.hpp"
#include "npushmem/npu/hooks.hpp"
#include "npushmem/npu/kernel_event.hpp"

namespace npushmem::npu::check {

class PeerChecks;

struct RecordedEvent {
    KernelEvent event;
    std::uint32_t issued = 0;  // Access::issued of its access; 0: it has none
};

// The events of one core. Keeps the last ones; repetitions of a poll count as one event.
class CoreEvents {
public:
    static constexpr std::size_t capacity = 64;

    // `number`: of the core among the checked cores. `peers`: null unless other PEs draw its events.
    CoreEvents(int pe, int core, std::uint32_t number, std::uint64_t& numbers, PeerChecks* peers)
        : pe_(pe), core_(core), number_(number), numbers_(numbers), peers_(peers) {}

    // Records `event` with its core and its number. `issued`: of its access; 0: it has none.
    void record(const KernelEvent& event, std::uint32_t issued = 0);
    // Returns the number of events recorded before.
    std::size_t record_command(const Command& command, std::uint32_t issued);
    // The event of an access has changed memory.
    void landed(std::uint32_t issued, const char* name);
    // The command for which record_command() returned `before` has changed memory.
    void landed(std::size_t before) {
        if (count_ - before <= capacity) land(before % capacity);
    }
    // Null: it is not recorded, or no longer.
    [[nodiscard]] const KernelEvent* find(std::uint32_t issued, const char* name) const {
        const auto at = place_of(issued, name);
        return at ? &events_[*at].event : nullptr;
    }
    [[nodiscard]] const KernelEvent* find_last(const SourceLocation& where) const;
    // In no particular order.
    [[nodiscard]] std::span<const RecordedEvent> all() const { return {events_.data(), size()}; }
    [[nodiscard]] int pe() const { return pe_; }
    [[nodiscard]] int core() const { return core_; }

private:
    [[nodiscard]] std::optional<std::size_t> place_of(std::uint32_t issued, const char* name) const;
    // An event of the last ones that `event` repeats.
    [[nodiscard]] RecordedEvent* repeated(const KernelEvent& event);
    void append(const KernelEvent& event, std::uint32_t issued);
    void land(std::size_t place);
    [[nodiscard]] std::uint64_t next_number();
    // Shares the event with other PEs.
    void share(std::size_t place) const;
    [[nodiscard]] std::size_t size() const { return count_ < capacity ? count_ : capacity; }
    // The event that was recorded `age` events before the last one.
    [[nodiscard]] std::size_t place_by_age(std::size_t age) const { return (count_ - 1 - age) % capacity; }

    int pe_;
    int core_;
    std::uint32_t number_;
    std::uint64_t& numbers_;
    PeerChecks* peers_;
    std::vector<RecordedEvent> events_;  // a ring
    std::size_t count_ = 0;              // events ever recorded
};

// The events of all cores that one process checks together. Used by one thread.
class EventLog {
public:
    // `peers`: null where other PEs are not checked.
    explicit EventLog(PeerChecks* peers);
    EventLog(const EventLog&) = delete;
    EventLog& operator=(const EventLog&) = delete;

    // `core`: its number among the checked cores. The result stays valid.
    CoreEvents& add(std::uint32_t core, int pe, int index);
    void landed(const Access& write);
    // A core waits and will never go on.
    void record_waiting(int pe, int index, const SourceLocation& where, const void* word, std::uint64_t value);
    // The number of the event of this access; 0: it is not recorded.
    [[nodiscard]] std::uint64_t event_number(const Access& access) const;
    // `pe_of`: the PE whose symmetric memory an address is; -1: none. Adds the events that explain the finding, and the
    // memory of its two sides.
    void attach_to(Finding& finding, const std::function<int(std::uintptr_t)>& pe_of) const;

private:
    std::map<std::uint32_t, CoreEvents> cores_;
    std::uint64_t numbers_ = 0;
    PeerChecks* peers_;  // null: they do not draw each other's events
};

}  // namespace npushmem::npu::check
