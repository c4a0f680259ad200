// SPDX-License-Identifier: BSD-3-Clause
#include "core/npu/check/report/event_log.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "core/npu/check/processes/peer_checks.hpp"
#include "core/npu/check/report/event_selection.hpp"

namespace npushmem::npu::check {
namespace {

using Kind = KernelEvent::Kind;

// Operations that a wait loop repeats.
bool is_poll(Kind kind) { return kind == Kind::load || kind == Kind::wait || kind == Kind::dcci; }

bool same_place(const SourceLocation& a, const SourceLocation& b) {
    return a.line() == b.line() && std::strcmp(a.file_name(), b.file_name()) == 0;
}

EventMemory memory_of(const Operand& operand) {
    if (operand.address == nullptr) return {};
    const std::size_t bytes = operand.blocks < 2 ? operand.bytes : (operand.blocks - 1) * operand.step + operand.bytes;
    return {number_of(operand.address), bytes};
}

}  // namespace

RecordedEvent* CoreEvents::repeated(const KernelEvent& event) {
    constexpr std::size_t longest_loop = 4;
    if (!is_poll(event.kind)) return nullptr;
    for (std::size_t age = 0; age < std::min(longest_loop, size()); ++age) {
        RecordedEvent& known = events_[place_by_age(age)];
        const KernelEvent& other = known.event;
        if (!is_poll(other.kind)) return nullptr;
        if (other.kind == event.kind && other.read.address == event.read.address && other.value == event.value &&
            other.where.line() == event.where.line() && other.where.file_name() == event.where.file_name())
            return &known;
    }
    return nullptr;
}

std::uint64_t CoreEvents::next_number() { return peers_ != nullptr ? peers_->next_event() : ++numbers_; }

void CoreEvents::share(std::size_t place) const {
    if (peers_ != nullptr) peers_->keep_event(number_, place, events_[place].event, events_[place].issued);
}

void CoreEvents::append(const KernelEvent& event, std::uint32_t issued) {
    if (events_.empty()) events_.resize(capacity);
    const std::size_t place = count_++ % capacity;
    RecordedEvent& recorded = events_[place];
    recorded = {event, issued};
    recorded.event.pe = pe_;
    recorded.event.core = core_;
    recorded.event.number = next_number();
    if (event.kind == Kind::atomic) recorded.event.landed = recorded.event.number;
    share(place);
}

void CoreEvents::record(const KernelEvent& event, std::uint32_t issued) {
    RecordedEvent* known = repeated(event);
    if (known == nullptr) return append(event, issued);
    ++known->event.times;
    known->event.number = next_number();
    known->issued = issued;
    share(static_cast<std::size_t>(known - events_.data()));
}

std::size_t CoreEvents::record_command(const Command& command, std::uint32_t issued) {
    KernelEvent event{.kind = Kind::command, .pipe = command.pipe, .what = command.name, .where = command.where};
    event.written = memory_of(command.target);
    event.read = memory_of(command.source[0]);
    append(event, issued);
    return count_ - 1;
}

void CoreEvents::land(std::size_t place) {
    events_[place].event.landed = next_number();
    share(place);
}

void CoreEvents::landed(std::uint32_t issued, const char* name) {
    if (const auto at = place_of(issued, name)) land(*at);
}

// From the youngest to the oldest event, because the wanted one is usually young. Numbers of issues ascend, except that
// a repeated poll has the number of the last repetition.
std::optional<std::size_t> CoreEvents::place_of(std::uint32_t issued, const char* name) const {
    for (std::size_t age = 0; age < size() && issued != 0; ++age) {
        const std::size_t at = place_by_age(age);
        const RecordedEvent& known = events_[at];
        if (known.issued == issued && std::strcmp(known.event.what, name) == 0) return at;
        if (known.issued != 0 && known.issued < issued && !is_poll(known.event.kind)) return {};
    }
    return {};
}

const KernelEvent* CoreEvents::find_last(const SourceLocation& where) const {
    const KernelEvent* last = nullptr;
    for (const RecordedEvent& known : all()) {
        if (!same_place(known.event.where, where)) continue;
        if (last == nullptr || known.event.number > last->number) last = &known.event;
    }
    return last;
}

EventLog::EventLog(PeerChecks* peers) : peers_(peers != nullptr && peers->shares_events() ? peers : nullptr) {}

CoreEvents& EventLog::add(std::uint32_t core, int pe, int index) {
    return cores_.try_emplace(core, pe, index, core, numbers_, peers_).first->second;
}

void EventLog::landed(const Access& write) {
    if (const auto found = cores_.find(write.core()); found != cores_.end())
        found->second.landed(write.issued, write.name);
}

void EventLog::record_waiting(int pe, int index, const SourceLocation& where, const void* word, std::uint64_t value) {
    for (auto& [number, core] : cores_) {
        if (core.pe() != pe || core.core() != index) continue;
        KernelEvent event{.kind = Kind::waiting, .what = "waits", .where = where, .value = value};
        if (word != nullptr) event.read = {number_of(word), sizeof(std::uint64_t)};
        core.record(event);
    }
}

std::uint64_t EventLog::event_number(const Access& access) const {
    const auto found = cores_.find(access.core());
    if (!access.exists()) return 0;
    if (found == cores_.end()) return peers_ != nullptr ? peers_->event_number(access) : 0;
    const KernelEvent* event = found->second.find(access.issued, access.name);
    return event != nullptr ? event->number : 0;
}

void EventLog::attach_to(Finding& finding, const std::function<int(std::uintptr_t)>& pe_of) const {
    std::vector<KernelEvent> all;
    if (peers_ != nullptr) all = peers_->peer_events();
    for (const auto& [number, core] : cores_) {
        for (FindingSide* side : {&finding.here, &finding.other}) {
            if (side->event != 0 || side->what == nullptr || side->pe != core.pe() || side->core != core.core())
                continue;
            const KernelEvent* event = core.find_last(side->where);
            if (event != nullptr) side->event = event->number;
        }
        for (const RecordedEvent& known : core.all()) all.push_back(known.event);
    }
    for (KernelEvent& event : all)
        for (EventMemory* memory : {&event.read, &event.written})
            if (memory->bytes > 0) memory->pe = pe_of(memory->address);
    select_events(std::move(all), finding);
}

}  // namespace npushmem::npu::check
