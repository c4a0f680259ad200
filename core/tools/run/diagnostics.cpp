#include "core/tools/run/diagnostics.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/tools/run/line_prefixer.hpp"

namespace npushmem::run {

std::string ranges_of(const std::set<int>& numbers) {
    std::string out;
    for (auto first = numbers.begin(); first != numbers.end();) {
        auto last = first;
        auto next = std::next(first);
        for (; next != numbers.end() && *next == *last + 1; ++next) last = next;
        out += out.empty() ? "" : ",";
        out += first == last ? fmt::format("{}", *first) : fmt::format("{}-{}", *first, *last);
        first = next;
    }
    return out;
}

std::string text_of(const LauncherRecord& record) {
    if (record.kind == LauncherRecord::Kind::message) return fmt::format("npushmem-run: {}\n", record.text);
    return fmt::format("npushmem{}{} {}\n", record.prefix.empty() ? "" : " ", record.prefix, record.text);
}

void Diagnostics::add(const LauncherRecord& record, Time now) {
    if (record.kind == LauncherRecord::Kind::line) add_line(record, now);
    if (record.kind == LauncherRecord::Kind::message) messages_ += text_of(record);
}

// A PE that reports a line again begins another line, which the others may join.
void Diagnostics::add_line(const LauncherRecord& line, Time now) {
    if (lines_.empty()) first_ = now;
    latest_ = now;
    auto& places = places_[line.text];
    const auto open = std::find_if(places.begin(), places.end(), [&](std::size_t place) {
        return !lines_[place].pes.empty() && lines_[place].pes.count(line.pe) == 0;
    });
    if (line.pe >= 0 && open != places.end()) {
        lines_[*open].pes.insert(line.pe);
        if (lines_[*open].pes.size() == static_cast<std::size_t>(npes_)) --incomplete_;
        return;
    }
    places.push_back(lines_.size());
    lines_.push_back({line.text, line.prefix, {}});
    if (line.pe >= 0) lines_.back().pes.insert(line.pe);
    if (line.pe < 0 || npes_ > 1) ++incomplete_;
}

bool Diagnostics::all_have_reported() const { return incomplete_ == 0; }

std::optional<Diagnostics::Time> Diagnostics::deadline() const {
    if (empty()) return std::nullopt;
    if (lines_.empty() || all_have_reported()) return first_;
    return std::min(latest_ + merge_window, first_ + limit);
}

std::string Diagnostics::take(Time now) {
    const auto due = deadline();
    return due && now >= *due ? take_all() : std::string();
}

std::string Diagnostics::take_all() {
    std::string out;
    for (const Line& line : lines_) out += shown(line);
    out += std::exchange(messages_, {});
    lines_.clear();
    places_.clear();
    incomplete_ = 0;
    return out;
}

std::string Diagnostics::shown(const Line& line) const {
    if (line.pes.size() > 1) return fmt::format("npushmem PEs {}: {}\n", ranges_of(line.pes), line.text);
    std::string plain = text_of({LauncherRecord::Kind::line, -1, line.prefix, line.text});
    if (!tagged_ || line.pes.empty()) return plain;
    std::string out;
    LinePrefixer(fmt::format("[pe {}] ", *line.pes.begin())).feed(plain, out);
    return out;
}

std::string describe_failed_calls(const std::map<int, std::int64_t>& calls) {
    std::map<std::int64_t, std::set<int>> pes_by_calls;
    std::int64_t all = 0;
    for (const auto& [pe, count] : calls) {
        pes_by_calls[count].insert(pe);
        all += count;
    }
    std::string list;
    for (const auto& [count, pes] : pes_by_calls)
        list += fmt::format("{}{} on {} {}", list.empty() ? "" : ", ", count, pes.size() > 1 ? "each of PEs" : "PE",
                            ranges_of(pes));
    return fmt::format("{} call{} failed ({})", all, all == 1 ? "" : "s", list);
}

}  // namespace npushmem::run
