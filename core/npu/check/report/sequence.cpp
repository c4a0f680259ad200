// SPDX-License-Identifier: BSD-3-Clause
#include "core/npu/check/report/sequence.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "core/base/svg.hpp"
#include "core/npu/source_line.hpp"

namespace npushmem::npu {
namespace {

using EventKind = KernelEvent::Kind;

std::string with_bytes(const KernelEvent& event) {
    const std::size_t bytes = std::max(event.written.bytes, event.read.bytes);
    std::string text = bytes > 0 ? fmt::format("{} {} B", event.what, bytes) : std::string(event.what);
    if (event.written.pe >= 0 && event.written.pe != event.pe) return text + fmt::format(" to PE {}", event.written.pe);
    if (event.read.pe >= 0 && event.read.pe != event.pe) return text + fmt::format(" of PE {}", event.read.pe);
    return text;
}

std::string operation_of(const KernelEvent& event) {
    const std::string target = event.written.pe >= 0 && event.written.pe != event.pe
                                   ? fmt::format(" to PE {}", event.written.pe)
                                   : std::string{};
    switch (event.kind) {
        case EventKind::signal: return fmt::format("{} {}{}", event.what, event.value, target);
        case EventKind::wait: return fmt::format("sees {} {}", event.what, event.value);
        case EventKind::waiting: return "still waits";
        case EventKind::set_flag:
        case EventKind::wait_flag:
            return fmt::format("{} {} {}-{}", event.what, event.value, name_of(event.pipe), name_of(event.to));
        case EventKind::pipe_barrier: return fmt::format("{} {}", event.what, name_of(event.pipe));
        case EventKind::team_barrier: return fmt::format("{} barrier {}", event.what, event.value);
        case EventKind::fence:
        case EventKind::quiet:
        case EventKind::core_barrier: return event.what;
        case EventKind::command:
        case EventKind::load:
        case EventKind::store:
        case EventKind::atomic:
        case EventKind::dcci: break;
    }
    return with_bytes(event);
}

}  // namespace

std::string KernelEvent::text() const {
    if (what == nullptr) return {};
    return times > 1 ? fmt::format("{} ({} times)", operation_of(*this), times) : operation_of(*this);
}

}  // namespace npushmem::npu

namespace npushmem::npu::check {
namespace {

// Stands for an access that is not recorded: it is too old, failed before it began, or belongs to another process.
KernelEvent event_of(const FindingSide& side, std::uint64_t number) {
    KernelEvent event{.pipe = side.pipe, .pe = side.pe, .core = side.core, .what = side.what, .where = side.where};
    if (!side.elsewhere.empty()) event.elsewhere = side.elsewhere.c_str();
    event.number = number;
    return event;
}

std::string place_of(const KernelEvent& event) {
    return event.elsewhere == nullptr ? text_of(event.where) : event.elsewhere;
}

std::string label_of(const Sequence::Column& column) {
    if (column.pipe) return fmt::format("PE {} core {} {}", column.pe, column.core, name_of(*column.pipe));
    return column.core < 0 ? fmt::format("PE {}", column.pe) : fmt::format("PE {} core {}", column.pe, column.core);
}

}  // namespace

const char* missing_edge(Hazard hazard) {
    if (hazard == Hazard::deadlock) return "last write";
    if (hazard == Hazard::core_barrier || hazard == Hazard::team_mismatch || hazard == Hazard::asymmetric_heap)
        return "no match";
    return hazard == Hazard::flag_set_twice ? "no wait" : "no order";
}

std::string without_folders(const std::string& place) { return place.substr(place.rfind('/') + 1); }

std::vector<std::string> wrapped(const std::string& text, std::size_t columns) {
    std::vector<std::string> lines;
    std::size_t begin = 0;
    while (begin < text.size()) {
        const std::size_t newline = std::min(text.find('\n', begin), text.size());
        std::size_t end = newline;
        if (end - begin > columns) {
            const std::size_t blank = text.rfind(' ', begin + columns);
            end = blank == std::string::npos || blank <= begin ? begin + columns : blank;
            while (end > begin + 1 && svg::continues_letter(text[end])) --end;
        }
        lines.push_back(text.substr(begin, end - begin));
        begin = end < text.size() && (text[end] == ' ' || text[end] == '\n') ? end + 1 : end;
    }
    return lines;
}

std::string headline(const Finding& finding) {
    return fmt::format("{} in {}: {}", id_of(finding.hazard), finding.kernel, finding.detail);
}

std::vector<std::string> remarks(const Finding& finding) {
    std::vector<std::string> all;
    if (!finding.place.empty()) all.push_back("memory: " + finding.place);
    all.push_back(std::string("advice: ") + advice_for(finding.hazard));
    return all;
}

Sequence::Sequence(const Finding& finding, std::size_t max_columns) {
    const std::vector<KernelEvent> events = events_of(finding);
    make_columns(events, max_columns);
    make_rows(events);
    make_arrows();
}

std::vector<KernelEvent> Sequence::events_of(const Finding& finding) {
    std::vector<KernelEvent> events = finding.events;
    const auto is_there = [&](std::uint64_t number) {
        return number != 0 && std::ranges::find(events, number, &KernelEvent::number) != events.end();
    };
    const FindingSide& other = finding.other;
    const bool has_other = other.what != nullptr;
    if (has_other) other_ = is_there(other.event) ? other.event : 0;
    if (has_other && *other_ == 0) events.insert(events.begin(), event_of(other, 0));
    here_ = is_there(finding.here.event) ? finding.here.event : events.empty() ? 1 : events.back().number + 1;
    if (!is_there(here_)) events.push_back(event_of(finding.here, here_));
    return events;
}

void Sequence::make_columns(const std::vector<KernelEvent>& events, std::size_t max_columns) {
    std::map<std::pair<int, int>, std::size_t> cores;  // number of events; those of the accesses count as many
    for (const KernelEvent& event : events)
        cores[{event.pe, event.core}] += event.number == here_ || event.number == other_ ? events.size() + 1 : 1;
    if (cores.size() == 1) {
        std::set<Pipe> pipes;
        for (const KernelEvent& event : events) pipes.insert(event.pipe);
        for (const Pipe pipe : pipes) columns_.push_back({events.front().pe, events.front().core, pipe, {}});
    } else {
        std::vector<std::pair<std::size_t, std::pair<int, int>>> ranked;
        for (const auto& [core, count] : cores) ranked.push_back({count, core});
        std::ranges::stable_sort(ranked, std::ranges::greater{}, [](const auto& entry) { return entry.first; });
        hidden_ = ranked.size() - std::min(ranked.size(), max_columns);
        ranked.resize(ranked.size() - hidden_);
        std::ranges::sort(ranked, {}, [](const auto& entry) { return entry.second; });
        for (const auto& [count, core] : ranked) columns_.push_back({core.first, core.second, {}, {}});
    }
    for (Column& column : columns_) column.label = label_of(column);
}

std::optional<std::size_t> Sequence::column_of(const KernelEvent& event) const {
    for (std::size_t i = 0; i < columns_.size(); ++i) {
        const Column& column = columns_[i];
        if (column.pe == event.pe && column.core == event.core && column.pipe.value_or(event.pipe) == event.pipe)
            return i;
    }
    return {};
}

bool Sequence::lands_later(const KernelEvent& event, const std::vector<KernelEvent>& events) const {
    if (event.kind != EventKind::command || event.written.pe < 0 || event.written.pe == event.pe) return false;
    return std::ranges::any_of(
        events, [&](const KernelEvent& each) { return each.number > event.number && each.number < event.landed; });
}

void Sequence::make_rows(const std::vector<KernelEvent>& events) {
    std::vector<std::pair<std::uint64_t, Row>> rows;
    for (const KernelEvent& event : events) {
        const auto column = column_of(event);
        if (!column) continue;
        rows.push_back(
            {event.number, {event, *column, place_of(event), event.number == here_ || event.number == other_, false}});
        if (!lands_later(event, events)) continue;
        const auto target = std::ranges::find(columns_, event.written.pe, &Column::pe);
        const auto at = target != columns_.end() ? static_cast<std::size_t>(target - columns_.begin()) : *column;
        rows.push_back({event.landed, {event, at, {}, false, true}});
    }
    std::ranges::stable_sort(rows, {}, [](const auto& row) { return row.first; });
    for (auto& [number, row] : rows) rows_.push_back(std::move(row));
}

std::optional<std::size_t> Sequence::row_of(std::uint64_t number) const {
    for (std::size_t i = 0; i < rows_.size(); ++i)
        if (!rows_[i].landing && rows_[i].event.number == number) return i;
    return {};
}

bool Sequence::is_shown(std::size_t row) const {
    const auto same = [&](const Row& earlier) {
        return !earlier.landing && earlier.column == rows_[row].column && earlier.event.cause == rows_[row].event.cause;
    };
    return std::any_of(rows_.begin(), rows_.begin() + static_cast<std::ptrdiff_t>(row), same);
}

void Sequence::make_arrows() {
    for (std::size_t i = 0; i < rows_.size(); ++i) {
        const KernelEvent& event = rows_[i].event;
        if (!rows_[i].landing && event.cause == 0) continue;
        const auto from = row_of(rows_[i].landing ? event.number : event.cause);
        if (!from || (!rows_[i].landing && is_shown(i))) continue;
        arrows_.push_back({rows_[i].landing ? Arrow::Kind::landing : Arrow::Kind::cause, *from, i});
    }
    const auto here = row_of(here_);
    const auto other = other_ ? row_of(*other_) : std::nullopt;
    if (here && other && *here != *other)
        arrows_.push_back({Arrow::Kind::missing, std::min(*here, *other), std::max(*here, *other)});
}

}  // namespace npushmem::npu::check
