// SPDX-License-Identifier: BSD-3-Clause
#include "core/memory/symmetric_globals.hpp"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <system_error>

#include "core/base/deferred_signals.hpp"
#include "core/base/host_facts.hpp"
#include "core/base/parse.hpp"
#include "core/base/poller.hpp"

namespace npushmem {

namespace {

// Static, because a signal handler uses it. One guard at a time: start and end of the library hold its lock.
struct GuardedRange {
    // Release when set. Partner: the acquire in the handler, so that `before` is complete when the handler sees the
    // range.
    std::atomic<std::uintptr_t> begin{0};
    std::atomic<std::uint64_t> bytes{0};
    struct sigaction before {};
};

GuardedRange& guarded_range() {
    static constinit GuardedRange instance;
    return instance;
}

void on_fault(int signal, siginfo_t* info, void*) {
    GuardedRange& range = guarded_range();
    const std::uint64_t bytes = range.bytes.load(std::memory_order_acquire);
    const std::uintptr_t begin = range.begin.load(std::memory_order_relaxed);
    const auto address = reinterpret_cast<std::uintptr_t>(info->si_addr);
    const int error = errno;
    if (info->si_code == SEGV_ACCERR && address - begin < bytes) {
        syscall(SYS_sched_yield);  // the instruction is retried on return
    } else {
        // Returns to the instruction, which faults again, now with the previous handler.
        sigaction(signal, &range.before, nullptr);
        if (info->si_code <= 0) syscall(SYS_tgkill, getpid(), gettid(), signal);
    }
    errno = error;
}

// Returns whether a thread has faulted on a read-only page and has not reached the handler yet.
bool has_pending_fault() {
    std::error_code error;
    for (std::filesystem::directory_iterator task("/proc/self/task", error), end; !error && task != end;
         task.increment(error)) {
        std::ifstream status(task->path() / "status");
        constexpr std::string_view field = "SigPnd:";
        for (std::string line; std::getline(status, line);)
            if (line.rfind(field, 0) == 0 &&
                (std::strtoull(line.c_str() + field.size(), nullptr, 16) >> (SIGSEGV - 1) & 1U) != 0)
                return true;
    }
    return false;
}

}  // namespace

WriteFaultGuard::WriteFaultGuard(std::uintptr_t begin, std::uint64_t bytes) {
    GuardedRange& range = guarded_range();
    // Binds these functions now: the first call of a function writes its address into a page of the executable, if this
    // code belongs to it.
    const int error = errno;
    syscall(SYS_sched_yield);
    errno = error;
    range.begin.store(begin, std::memory_order_relaxed);
    range.bytes.store(bytes, std::memory_order_release);
    struct sigaction ours {};
    ours.sa_sigaction = on_fault;
    ours.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART;
    sigemptyset(&ours.sa_mask);
    sigaction(SIGSEGV, &ours, &range.before);
}

// A handler that the program set meanwhile stays.
WriteFaultGuard::~WriteFaultGuard() {
    constexpr int max_polls = 10'000;  // a thread that a debugger stopped never arrives
    for (int i = 0; i < max_polls && has_pending_fault(); ++i) syscall(SYS_sched_yield);
    struct sigaction now {};
    sigaction(SIGSEGV, nullptr, &now);
    if (now.sa_sigaction == on_fault) sigaction(SIGSEGV, &guarded_range().before, nullptr);
    guarded_range().bytes.store(0, std::memory_order_release);
}

bool WriteFaultGuard::needed() {
    struct stat tasks {};
    constexpr nlink_t links_of_one_thread = 3;  // the folder has two links, and one more for each thread
    return stat("/proc/self/task", &tasks) != 0 || tasks.st_nlink != links_of_one_thread;
}

namespace {

// Size of a piece: bounds how long another thread's write waits and how much memory exists twice.
constexpr std::uint64_t piece_bytes = 4ULL << 20;
// Above this size the kernel reports which pages and which parts of the file exist; below, reading all of them is
// faster.
constexpr std::uint64_t scan_threshold = 256ULL << 10;
// Runs of pages with smaller gaps are committed as one.
constexpr std::uint64_t small_gap = 64ULL << 10;

// Raw system calls. Sanitizers would treat the wrappers' copies as accesses between variables and lose their state of
// replaced pages. And the first call of a wrapper while writes are held would write its address into the executable's
// pages.
void* map_at(void* address, std::uint64_t bytes, int protection, int flags, int descriptor, std::uint64_t offset) {
    return reinterpret_cast<void*>(
        syscall(SYS_mmap, address, bytes, protection, flags, descriptor, static_cast<off_t>(offset)));
}

[[gnu::no_sanitize_address, gnu::no_sanitize_thread]] bool is_zero(const std::byte* page, std::uint64_t bytes) {
    std::uint64_t any = 0;
    for (std::uint64_t i = 0; i < bytes; i += sizeof any)
        any |= *reinterpret_cast<const std::uint64_t*>(page + i);  // NOLINT: of any type
    return any == 0;
}

#ifndef MADV_POPULATE_WRITE  // not in the headers of every supported C library
constexpr int MADV_POPULATE_WRITE = 23;
#endif

// One word per page. Bit 63: in memory; bit 62: swapped out. False when the kernel does not report it.
bool read_page_states(const std::byte* begin, std::uint64_t pages, std::vector<std::uint64_t>& states) {
    const FileDescriptor map(open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC));
    if (!map.valid()) return false;
    const auto wanted = static_cast<ssize_t>(pages * sizeof states[0]);
    const auto from = reinterpret_cast<std::uintptr_t>(begin) / page_bytes() * sizeof states[0];
    const ssize_t got = pread(map.get(), states.data(), static_cast<std::size_t>(wanted), static_cast<off_t>(from));
    return got == wanted;
}

struct FileRun {
    off_t begin;
    off_t end;
};

// Returns the next data of a file in [from, end), empty at `end` if there are only holes. Async-signal-safe.
FileRun next_data(int descriptor, off_t from, off_t end) {
    const off_t data = syscall(SYS_lseek, descriptor, from, SEEK_DATA);
    if (data < 0 && errno != ENXIO) return {from, end};  // a file system without this support: everything is data
    if (data < 0 || data >= end) return {end, end};
    return {data, std::min<off_t>(end, syscall(SYS_lseek, descriptor, data, SEEK_HOLE))};
}

void append(std::vector<Range>& runs, const Range& range) {
    if (!runs.empty() && runs.back().end() == range.offset)
        runs.back().size += range.size;
    else
        runs.push_back(range);
}

}  // namespace

Result<std::unique_ptr<SymmetricGlobals>> SymmetricGlobals::share(const ProgramImage& image, Backing backing) {
    std::unique_ptr<SymmetricGlobals> data(new SymmetricGlobals(image, std::move(backing)));
    if (WriteFaultGuard::needed()) data->write_guard_.emplace(image.begin, image.bytes);
    PageScan scan;
    const std::uint64_t max_pages = std::min(piece_bytes, rounded_up(image.bytes, page_bytes())) / page_bytes();
    scan.states.resize(max_pages);
    scan.runs.reserve(max_pages);
    data->shared_.reserve(image.bytes / piece_bytes + image.segments.size());
    for (const auto& segment : image.segments)
        if (Status shared = data->share_segment(segment, scan); !shared.ok())
            return shared.within(
                fmt::format("cannot make {} of the executable's variables symmetric "
                            "(NPUSHMEM_STATIC_DATA=0 disables this)",
                            format_size(image.bytes)));
    return data;
}

SymmetricGlobals::~SymmetricGlobals() { (void)restore_private(); }

Status SymmetricGlobals::share_segment(const ProgramImage::LoadSegment& segment, PageScan& scan) {
    for (std::uint64_t done = 0; done < segment.pages.size; done += piece_bytes) {
        const Range piece{segment.pages.offset + done, std::min(piece_bytes, segment.pages.size - done)};
        const std::uint64_t initialised = segment.initialised > done ? segment.initialised - done : 0;
        if (Status shared = share_piece(piece, initialised, scan); !shared.ok()) return shared;
    }
    return {};
}

void SymmetricGlobals::find_runs(const Range& piece, std::uint64_t initialised, PageScan& scan) const {
    scan.runs.clear();
    const std::uint64_t first = std::min(initialised, piece.size);
    if (first > 0) scan.runs.push_back({piece.offset, first});
    const std::uint64_t rest = piece.size - first;
    const bool known =
        rest > scan_threshold && read_page_states(at(piece.offset + first), rest / page_bytes(), scan.states);
    for (std::uint64_t done = 0; done < rest; done += page_bytes()) {
        const std::uint64_t offset = piece.offset + first + done;
        const bool exists = !known || scan.states[done / page_bytes()] >> 62 != 0;
        if (exists && !is_zero(at(offset), page_bytes())) append(scan.runs, {offset, page_bytes()});
    }
}

Status SymmetricGlobals::commit(const std::vector<Range>& runs) const {
    for (std::size_t i = 0; i < runs.size();) {
        Range wanted = runs[i++];
        for (; i < runs.size() && runs[i].offset - wanted.end() < small_gap; ++i)
            wanted.size = runs[i].end() - wanted.offset;
        if (Status room = backing_.commit(wanted.offset, wanted.size); !room.ok()) return room;
    }
    return {};
}

Status SymmetricGlobals::share_piece(const Range& piece, std::uint64_t initialised, PageScan& scan) {
    find_runs(piece, initialised, scan);
    if (Status room = commit(scan.runs); !room.ok()) return room;
    const DeferredSignals deferred;  // as in restore_piece
    block_writes(piece, true);
    find_runs(piece, initialised, scan);  // again: pages touched since
    if (replace(piece, scan)) {
        shared_.push_back(piece);
        return {};
    }
    const int error = errno;
    block_writes(piece, false);
    return {error == ENOSPC || error == ENOMEM ? Code::memory : Code::system,
            fmt::format("{} at {}: {}", format_size(piece.size), static_cast<void*>(at(piece.offset)),
                        std::strerror(error))};
}

bool SymmetricGlobals::replace(const Range& piece, const PageScan& scan) const {
    return std::all_of(scan.runs.begin(), scan.runs.end(), [this](const Range& run) { return copy_out(run); }) &&
           map_at(at(piece.offset), piece.size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, backing_.descriptor,
                  backing_.offset + piece.offset) != MAP_FAILED;
}

void SymmetricGlobals::block_writes(const Range& piece, bool hold) const {
    if (write_guard_) syscall(SYS_mprotect, at(piece.offset), piece.size, hold ? PROT_READ : PROT_READ | PROT_WRITE);
}

bool SymmetricGlobals::copy_out(const Range& run) const {
    for (std::uint64_t done = 0; done < run.size;) {
        const long written = syscall(SYS_pwrite64, backing_.descriptor, at(run.offset + done), run.size - done,
                                     static_cast<off_t>(backing_.offset + run.offset + done));
        if (written > 0)
            done += static_cast<std::uint64_t>(written);
        else if (errno != EINTR)
            return false;
    }
    return true;
}

// No allocation between the copy and the replacement, see PageScan.
bool SymmetricGlobals::restore_piece(const Range& piece) {
    void* const copy = map_at(nullptr, piece.size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (copy == MAP_FAILED) return false;
    // A handler in this thread that wrote to the piece would wait for the thread that it interrupted, or, where writes
    // are not held, write to a page that has been copied already.
    const DeferredSignals deferred;
    block_writes(piece, true);
    const auto first = static_cast<off_t>(backing_.offset + piece.offset);
    const off_t end = first + static_cast<off_t>(piece.size);
    bool whole = true;
    // A search for holes locks the file, and all PEs of a host restore their variables at once. Small pieces are read
    // whole.
    const bool skips_holes = piece.size > scan_threshold;
    for (off_t from = first; whole && from < end;) {
        const FileRun data = skips_holes ? next_data(backing_.descriptor, from, end) : FileRun{from, end};
        from = data.begin;
        // This call makes all pages at once. Linux before 5.14 refuses it; then pread makes them one by one.
        syscall(SYS_madvise, static_cast<std::byte*>(copy) + (from - first), static_cast<std::size_t>(data.end - from),
                MADV_POPULATE_WRITE);
        while (whole && from < data.end) {
            const long got = syscall(SYS_pread64, backing_.descriptor, static_cast<std::byte*>(copy) + (from - first),
                                     static_cast<std::size_t>(data.end - from), from);
            if (got > 0) from += got;
            whole = got > 0 || (got < 0 && errno == EINTR);
        }
    }
    if (whole &&
        syscall(SYS_mremap, copy, piece.size, piece.size, MREMAP_MAYMOVE | MREMAP_FIXED, at(piece.offset)) != -1)
        return true;
    block_writes(piece, false);
    syscall(SYS_munmap, copy, piece.size);
    return false;
}

Status SymmetricGlobals::restore_private() {
    if (shared_.empty()) return {};
    if (!write_guard_ && WriteFaultGuard::needed())
        write_guard_.emplace(reinterpret_cast<std::uintptr_t>(at(shared_.front().offset)),
                             shared_.back().end() - shared_.front().offset);
    while (!shared_.empty()) {
        if (!restore_piece(shared_.back()))
            return {Code::memory, fmt::format("cannot restore {} of the executable's variables: {}",
                                              format_size(shared_.back().end()), std::strerror(errno))};
        shared_.pop_back();
    }
    return {};
}

void SymmetricGlobals::before_fork() {
    fork_lock_.lock();
    if (pipe2(fork_pipe_, O_CLOEXEC) != 0) fork_pipe_[0] = fork_pipe_[1] = -1;
}

// Reads end-of-file when the child has its copy or has exited.
void SymmetricGlobals::after_fork_in_parent() {
    if (fork_pipe_[1] >= 0) {
        const int error = errno;
        close(fork_pipe_[1]);
        char nothing = 0;
        while (read(fork_pipe_[0], &nothing, 1) < 0 && errno == EINTR) {
        }
        close(fork_pipe_[0]);
        errno = error;
    }
    fork_lock_.unlock();
}

void SymmetricGlobals::after_fork_in_child() {
    write_guard_.reset();  // guards the parent's threads, which do not exist here
    while (!shared_.empty() && restore_piece(shared_.back())) shared_.pop_back();
    if (!shared_.empty()) {
        static constexpr char complaint[] = "npushmem: no memory for the static data of a child of fork\n";
        (void)!write(STDERR_FILENO, complaint, sizeof complaint - 1);
        shared_.clear();
    }
    if (fork_pipe_[0] >= 0) close(fork_pipe_[0]);
    if (fork_pipe_[1] >= 0) close(fork_pipe_[1]);
    fork_lock_.unlock();
}

}  // namespace npushmem
