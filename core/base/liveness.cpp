// SPDX-License-Identifier: BSD-3-Clause
#include "core/base/liveness.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <memory>
#include <string>
#include <utility>

namespace npushmem {

namespace {

// Returns `text` without its first `count` fields; one blank separates fields.
std::string_view after_fields(std::string_view text, int count) {
    for (int i = 0; i < count; ++i) {
        const auto blank = text.find(' ');
        if (blank == std::string_view::npos) return {};
        text.remove_prefix(blank + 1);
    }
    return text;
}

// Reads the file in one call, so that the kernel's answer is consistent; "" if there is none.
std::string read_stat(pid_t pid) {
    std::array<char, 1024> buffer{};
    // A /proc of another PID namespace shows this process under another number. Not /proc/self/stat: qemu-user makes
    // that up, with a start time that other processes do not read.
    const std::string path = pid == ::getpid() ? "/proc/thread-self/../../stat" : fmt::format("/proc/{}/stat", pid);
    const FileDescriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (!file.valid()) return {};
    const ssize_t length = ::read(file.get(), buffer.data(), buffer.size());
    return length > 0 ? std::string(buffer.data(), static_cast<std::size_t>(length)) : std::string();
}

bool has_ended(char state) { return state == 'Z' || state == 'X' || state == 'x'; }

}  // namespace

std::optional<ProcessStat> parse_process_stat(std::string_view text) {
    const auto command_end = text.rfind(") ");
    if (command_end == std::string_view::npos || command_end + 2 >= text.size()) return std::nullopt;
    const std::string_view from_state = text.substr(command_end + 2);
    const std::string_view from_start = after_fields(from_state, 22 - 3);
    ProcessStat stat{from_state.front(), 0};
    const auto [end, error] = std::from_chars(from_start.data(), from_start.data() + from_start.size(), stat.start);
    if (error != std::errc{}) return std::nullopt;
    return stat;
}

std::optional<ProcessId> identify_process(pid_t pid) {
    const auto stat = parse_process_stat(read_stat(pid));
    if (!stat) return std::nullopt;
    return ProcessId{pid, stat->start};
}

ProcessId this_process() { return identify_process(::getpid()).value_or(ProcessId{::getpid(), 0}); }

bool kernel_knows(pid_t pid) { return ::kill(pid, 0) == 0 || errno != ESRCH; }

bool is_alive(const ProcessId& process) {
    const auto stat = parse_process_stat(read_stat(process.pid));
    if (!stat) return kernel_knows(process.pid);
    // Start 0: /proc was unreadable when the process was identified, so only the state counts.
    return !has_ended(stat->state) && (process.start == 0 || stat->start == process.start);
}

std::vector<pid_t> list_processes() {
    std::vector<pid_t> out;
    const std::unique_ptr<DIR, decltype([](DIR* directory) { ::closedir(directory); })> directory(::opendir("/proc"));
    if (directory == nullptr) return out;
    while (const dirent* entry = ::readdir(directory.get())) {
        const std::string_view name = entry->d_name;
        pid_t pid = 0;
        const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), pid);
        if (error == std::errc{} && end == name.data() + name.size() && pid > 0) out.push_back(pid);
    }
    return out;
}

FileDescriptor open_pidfd(pid_t pid) { return FileDescriptor(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0))); }

bool SharedTurn::take(std::chrono::steady_clock::time_point now, std::chrono::nanoseconds interval) {
    const std::int64_t moment = std::chrono::nanoseconds(now.time_since_epoch()).count();
    std::int64_t last = last_.load(std::memory_order_relaxed);
    const bool is_due = last == 0 || std::abs(moment - last) >= interval.count();
    // Relaxed: it orders no other memory.
    return is_due && last_.compare_exchange_strong(last, moment, std::memory_order_relaxed);
}

ProcessLiveness::ProcessLiveness(int npes, ProcessLookup process_of, std::size_t max_watched)
    : npes_(npes), process_of_(std::move(process_of)), max_watched_(max_watched) {}

std::size_t ProcessLiveness::affordable_pidfds() {
    constexpr rlim_t limit = 256;
    rlimit files{};
    if (::getrlimit(RLIMIT_NOFILE, &files) != 0) return 0;
    return std::min(files.rlim_cur / 4, limit);
}

ProcessLiveness::Watched* ProcessLiveness::find(int pe) {
    const auto found = std::ranges::lower_bound(watched_, pe, {}, &Watched::pe);
    return found != watched_.end() && found->pe == pe ? &*found : nullptr;
}

void ProcessLiveness::read_ends() {
    if (watched_count_ == 0) return;
    for (const Poller::Event& event : pidfds_.wait(0)) {
        Watched& ended = *find(static_cast<int>(event.key));
        if (!ended.pidfd.valid()) continue;
        // A child of fork may have it open too.
        pidfds_.remove(ended.pidfd.get());
        ended.pidfd.reset();
        --watched_count_;
    }
}

// A pidfd refers to the process that has the number when it is opened. is_alive() then says whether that is the PE.
bool ProcessLiveness::check(int pe, const ProcessId& process) {
    if (pidfds_.fd() < 0 && max_watched_ > 0)
        if (auto opened = Poller::open(); opened.ok()) pidfds_ = std::move(opened).value();
    FileDescriptor pidfd =
        watched_count_ < max_watched_ && pidfds_.fd() >= 0 ? open_pidfd(process.pid) : FileDescriptor();
    if (!is_alive(process)) return false;
    if (pidfd.valid() && pidfds_.watch(pidfd.get(), static_cast<std::uint64_t>(pe)).ok()) {
        watched_.insert(std::ranges::lower_bound(watched_, pe, {}, &Watched::pe), Watched{pe, std::move(pidfd)});
        ++watched_count_;
    }
    return true;
}

std::optional<int> ProcessLiveness::find_dead(const PeRange& pes) {
    const std::lock_guard guard(lock_);
    read_ends();
    bool all_watched = true;
    for (const int pe : pes) {
        const ProcessId process = process_of(pe);
        if (process.pid == 0) continue;
        const Watched* const watched = find(pe);
        if (watched != nullptr ? !watched->pidfd.valid() : !kernel_knows(process.pid)) return pe;
        all_watched = all_watched && watched != nullptr;
    }
    if (all_watched) return std::nullopt;
    const auto count = static_cast<unsigned>(pes.count);
    for (unsigned step = 0, checks = 0; step < count && checks < checks_per_call; ++step) {
        const int pe = pes.at(static_cast<int>(next_++ % count));
        const ProcessId process = process_of(pe);
        if (process.pid == 0 || find(pe) != nullptr) continue;
        if (!check(pe, process)) return pe;
        ++checks;
    }
    return std::nullopt;
}

std::vector<int> ProcessLiveness::ended(Depth depth) const {
    std::vector<int> out;
    for (int pe = 0; pe < npes_; ++pe) {
        const ProcessId process = process_of(pe);
        if (process.pid == 0) continue;
        if (depth == Depth::kernel ? !kernel_knows(process.pid) : !is_alive(process)) out.push_back(pe);
    }
    return out;
}

}  // namespace npushmem
