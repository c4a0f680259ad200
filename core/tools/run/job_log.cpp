// SPDX-License-Identifier: BSD-3-Clause
#include "core/tools/run/job_log.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <utility>

#include "core/tools/run/job_streams.hpp"

namespace npushmem::run {

namespace {

constexpr std::int64_t counter_bytes = sizeof(std::int64_t);
constexpr std::int64_t beyond_all_records = std::int64_t{1} << 62;

// Whole pages, because PEs map them.
std::int64_t bytes_of_counters(int pes) {
    const std::int64_t page = ::sysconf(_SC_PAGESIZE);
    return (pes * counter_bytes + page - 1) / page * page;
}

// Beyond this limit the system would send a signal instead of returning an error.
bool is_above_file_limit(std::int64_t bytes) {
    rlimit limit{};
    return ::getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY &&
           limit.rlim_cur < static_cast<rlim_t>(bytes);
}

std::string identity(int descriptor) {
    struct stat found {};
    if (::fstat(descriptor, &found) != 0) return "-1:-1";
    return fmt::format("{}:{}", found.st_dev, found.st_ino);
}

}  // namespace

JobLog JobLog::create(int pes) {
    JobLog log;
    if (is_above_file_limit(bytes_of_counters(pes))) return log;
    FileDescriptor file(::memfd_create("npushmem-log", 0));
    const std::string path = fmt::format("/proc/self/fd/{}", file.get());
    if (!file.valid() || ::ftruncate(file.get(), bytes_of_counters(pes)) != 0) return log;
    if (::fcntl(file.get(), F_SETFL, O_APPEND) != 0) return log;
    log.position_ = FileDescriptor(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    log.file_ = std::move(file);
    log.pes_ = pes;
    log.read_to_ = bytes_of_counters(pes);
    log.freed_to_ = log.read_to_;
    log.mark_shown();
    return log;
}

std::string JobLog::description(int index, int errors) const {
    if (!open()) return {};
    return fmt::format(",{}:{},{},{}", file_.get(), identity(file_.get()), index * counter_bytes, identity(errors));
}

std::vector<LauncherRecord> JobLog::read() {
    std::vector<LauncherRecord> records;
    std::array<char, 65536> bytes;
    while (open()) {
        const ssize_t count = ::pread(file_.get(), bytes.data(), bytes.size(), read_to_);
        if (count <= 0) break;
        read_to_ += count;
        rest_.append(bytes.data(), static_cast<std::size_t>(count));
        std::size_t begin = 0;
        for (auto end = rest_.find(LauncherRecord::end); end != std::string::npos;
             begin = end + 1, end = rest_.find(LauncherRecord::end, begin))
            if (auto record = LauncherRecord::decode(std::string_view(rest_).substr(begin, end - begin)))
                records.push_back(std::move(*record));
        rest_.erase(0, begin);
    }
    return records;
}

void JobLog::mark_shown() {
    const auto shown_to = read_to_ - static_cast<std::int64_t>(rest_.size());
    if (position_.valid() && !claimed_) (void)::lseek(position_.get(), shown_to, SEEK_SET);
    free_up_to(shown_to);
}

// Frees whole pages. Positions in the file do not change.
void JobLog::free_up_to(std::int64_t position) {
    const std::int64_t page = ::sysconf(_SC_PAGESIZE);
    const std::int64_t end = position / page * page;
    if (!open() || end <= freed_to_) return;
    if (::fallocate(file_.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, freed_to_, end - freed_to_) == 0)
        freed_to_ = end;
}

void JobLog::claim_for_launcher() {
    claimed_ = true;
    if (position_.valid()) (void)::lseek(position_.get(), beyond_all_records, SEEK_SET);
}

void JobLog::continue_after_launcher() {
    read_to_ = position_.valid() ? ::lseek(position_.get(), 0, SEEK_CUR) : beyond_all_records;
}

std::map<int, std::int64_t> JobLog::failed_calls() const {
    std::map<int, std::int64_t> found;
    std::array<std::int64_t, 512> counters;
    for (int first = 0; open() && first < pes_; first += static_cast<int>(counters.size())) {
        counters.fill(0);
        if (::pread(file_.get(), counters.data(), sizeof counters, first * counter_bytes) <= 0) break;
        for (int i = 0; i < static_cast<int>(counters.size()) && first + i < pes_; ++i)
            if (const std::int64_t calls = counters[static_cast<std::size_t>(i)]; calls > 0)
                found.emplace(first + i, calls);
    }
    return found;
}

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

// A PE that reports a line again begins a new line, which other PEs may join.
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

void Diagnostics::merge_consequences() {
    constexpr std::string_view marker = " aborted the job: ";
    for (Line& line : lines_) {
        const auto at = line.text.find(marker);
        if (at == std::string::npos || line.pes.empty() || line.text.find("; because ") < at) continue;
        const std::string_view cause = std::string_view(line.text).substr(at + marker.size());
        const auto origin = std::ranges::find_if(lines_, [&](const Line& other) {
            return !other.pes.empty() && other.text.find(marker) == std::string::npos &&
                   other.text.find(cause) != std::string::npos;
        });
        if (origin == lines_.end()) continue;
        origin->pes.merge(line.pes);
        line.text.clear();
    }
    std::erase_if(lines_, [](const Line& line) { return line.text.empty(); });
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
    merge_consequences();
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
