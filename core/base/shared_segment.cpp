// SPDX-License-Identifier: BSD-3-Clause
#include "core/base/shared_segment.hpp"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <new>
#include <thread>
#include <utility>

#include "core/base/host_facts.hpp"
#include "core/base/parse.hpp"

namespace npushmem {

namespace {

// Large ranges are committed in pieces, so that a range that will not fit fails before it has taken all memory.
constexpr std::uint64_t piece_bytes = 64ULL << 20;

#ifndef MADV_COLLAPSE  // not in the headers of every supported C library
constexpr int MADV_COLLAPSE = 25;
#endif

// Memory left to the rest of the machine; below it the kernel starts to kill processes.
std::uint64_t reserve_of(const AvailableMemory& room) { return std::min<std::uint64_t>(256ULL << 20, room.total / 50); }

// Returns the allowance for further commits if `bytes` more can be committed, as part of `wanted`.
Result<std::uint64_t> check_room(std::uint64_t bytes, std::uint64_t wanted) try {
    const AvailableMemory room = available_memory();
    const std::uint64_t reserve = reserve_of(room);
    if (bytes <= room.available && reserve <= room.available - bytes)
        return commit_allowance(room.available - bytes, reserve);
    return Status{Code::memory,
                  fmt::format("out of memory: {} requested, {} of {} available{}, {} of it reserved for the system",
                              format_size(wanted), format_size(room.available), format_size(room.total),
                              room.limited_by_group ? " in this control group" : "", format_size(reserve))};
} catch (const std::bad_alloc&) {  // reading the system's files allocates memory
    return Status{Code::memory,
                  fmt::format("out of memory: {} requested, but this process cannot allocate private memory (is "
                              "its address space limited? ulimit -v)",
                              format_size(wanted))};
}

// Held while a range is committed, so that PEs do not all count the same free bytes. The kernel releases it if the
// holder dies.
class CommitLock {
public:
    explicit CommitLock(int descriptor) : descriptor_(descriptor) {}
    CommitLock(const CommitLock&) = delete;
    CommitLock& operator=(const CommitLock&) = delete;
    ~CommitLock() {
        if (held_) flock(descriptor_, LOCK_UN);
    }

    [[nodiscard]] bool is_held() const { return held_; }
    // Returns without the lock as soon as `unneeded` is true. Fails when the file has not grown for this long: the
    // holder of the lock does not proceed. A commit may take many seconds, and many PEs may wait for theirs.
    template <class Unneeded>
    Status take(std::chrono::milliseconds lock_timeout, Unneeded&& unneeded) {
        using Clock = std::chrono::steady_clock;
        using Pause = std::chrono::microseconds;
        constexpr Pause shortest_pause{20};
        constexpr Pause longest_pause{500000};
        const auto start = Clock::now();
        auto last_progress = start;
        for (std::uint64_t committed = committed_blocks();;) {
            held_ = flock(descriptor_, LOCK_EX | LOCK_NB) == 0;
            if (held_) return {};
            const int failure = errno;
            if (unneeded()) return {};
            if (failure != EWOULDBLOCK && failure != EINTR)
                return {Code::system,
                        fmt::format("cannot lock the host's symmetric memory: {}", std::strerror(failure))};
            if (const std::uint64_t now = committed_blocks(); now != committed) {
                committed = now;
                last_progress = Clock::now();
            }
            const auto waited = Clock::now() - start;
            if (Clock::now() - last_progress >= lock_timeout)
                return {Code::timeout,
                        fmt::format(
                            "another PE of this host holds the lock for committing symmetric memory and has committed "
                            "nothing for {} ms; is it stopped?",
                            lock_timeout.count())};
            // Sleeps for a fraction of the time waited so far: a thousand waiters that poll every few milliseconds
            // would take the processors from the holder.
            std::this_thread::sleep_for(
                std::clamp(std::chrono::duration_cast<Pause>(waited) / 8, shortest_pause, longest_pause));
        }
    }

private:
    [[nodiscard]] std::uint64_t committed_blocks() const {
        struct stat facts {};
        return fstat(descriptor_, &facts) == 0 ? static_cast<std::uint64_t>(facts.st_blocks) : 0;
    }

    int descriptor_;
    bool held_ = false;
};

Status failed(const std::string& attempt, int error) {
    return {error == ENOMEM || error == ENOSPC ? Code::memory : Code::system,
            fmt::format("{}: {}", attempt, std::strerror(error))};
}

// At the file size limit the system raises a signal instead of returning an error.
Status check_file_limit(std::uint64_t bytes) {
    rlimit limit{};
    if (getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY || limit.rlim_cur >= bytes) return {};
    return {Code::memory,
            fmt::format("a shared segment of {} exceeds the file size limit of {}; raise it with ulimit -f",
                        format_size(bytes), format_size(limit.rlim_cur))};
}

// Maps memory at a multiple of the alignment: reserves more, maps over its aligned part, returns the rest.
void* map_aligned(int descriptor, std::uint64_t bytes) {
    const std::uint64_t reserved = bytes + SharedSegment::alignment;
    void* space = mmap(nullptr, reserved, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (space == MAP_FAILED) return space;
    const auto first = reinterpret_cast<std::uintptr_t>(space);
    const std::uint64_t lead = (SharedSegment::alignment - first % SharedSegment::alignment) % SharedSegment::alignment;
    std::byte* base = static_cast<std::byte*>(space) + lead;
    void* mapped = mmap(base, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE | MAP_FIXED, descriptor, 0);
    if (mapped == MAP_FAILED) {
        const int error = errno;
        munmap(space, reserved);
        errno = error;
        return mapped;
    }
    if (lead > 0) munmap(space, lead);
    munmap(base + bytes, SharedSegment::alignment - lead);
    return mapped;
}

int open_backing(const std::string& folder) {
    if (folder.empty()) return memfd_create("npushmem", MFD_CLOEXEC);
    return open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
}

}  // namespace

Result<SharedSegment> SharedSegment::create(std::uint64_t bytes, const std::string& folder) {
    if (Status fits = check_file_limit(bytes); !fits.ok()) return fits;
    const std::string where = folder.empty() ? "anonymous memory" : fmt::format("an unnamed file in '{}'", folder);
    FileDescriptor file(open_backing(folder));
    if (!file.valid()) return failed(fmt::format("cannot create a shared segment as {}", where), errno);
    SharedSegment segment(std::move(file), bytes, where);
    if (ftruncate(segment.descriptor(), static_cast<off_t>(bytes)) != 0)
        return failed(fmt::format("cannot size a shared segment of {} as {}", format_size(bytes), where), errno);
    if (Status mapped = segment.map(); !mapped.ok()) return mapped;
    return segment;
}

namespace {

// Returns the error number of the failure, or 0.
int allocate_pages(int descriptor, std::uint64_t offset, std::uint64_t bytes) {
    while (fallocate(descriptor, 0, static_cast<off_t>(offset), static_cast<off_t>(bytes)) != 0)
        if (errno != EINTR) return errno;
    return 0;
}

Result<FileDescriptor> open_expected(const SegmentHandle& handle, const std::string& path) {
    // Another file, such as a terminal of a process that now has this number, is not opened at all.
    struct stat before {};
    const bool is_other = stat(path.c_str(), &before) == 0 && !S_ISREG(before.st_mode);
    FileDescriptor file(is_other ? -1 : open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOCTTY));
    if (is_other) errno = ENXIO;
    if (!file.valid())
        return failed(
            fmt::format("cannot open the memory of process {} through {} (it must run, be of the same user and be "
                        "dumpable)",
                        handle.process, path),
            errno);
    struct stat facts {};
    if (fstat(file.get(), &facts) != 0 || facts.st_dev != handle.device || facts.st_ino != handle.inode ||
        static_cast<std::uint64_t>(facts.st_size) < handle.bytes)
        return Status{Code::protocol,
                      fmt::format("{} is not the expected memory (inode {} of {}, expected {} of {})", path,
                                  facts.st_ino, format_size(static_cast<std::uint64_t>(facts.st_size)), handle.inode,
                                  format_size(handle.bytes))};
    return file;
}

std::string path_of(const SegmentHandle& handle) {
    return fmt::format("/proc/{}/fd/{}", handle.process, handle.descriptor);
}

}  // namespace

Result<FileDescriptor> open_shared_file(const SegmentHandle& handle) { return open_expected(handle, path_of(handle)); }

Status map_over(void* at, std::uint64_t bytes, int descriptor, std::uint64_t offset) {
    void* const mapped = mmap(at, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE | MAP_FIXED, descriptor,
                              static_cast<off_t>(offset));
    if (mapped != MAP_FAILED) return {};
    return failed(fmt::format("cannot map {} of a file, from byte {} on, at {}", format_size(bytes), offset, at),
                  errno);
}

Result<SharedSegment> SharedSegment::attach(const SegmentHandle& handle) {
    return attach_file(handle, path_of(handle));
}

// Opens the file again: locks of the received descriptor would be those of its sender.
Result<SharedSegment> SharedSegment::attach(const SegmentHandle& handle, const FileDescriptor& received) {
    return attach_file(handle, fmt::format("/proc/self/fd/{}", received.get()));
}

Result<SharedSegment> SharedSegment::attach_file(const SegmentHandle& handle, const std::string& path) {
    if (Status fits = check_file_limit(handle.bytes); !fits.ok()) return fits;
    auto file = open_expected(handle, path);
    if (!file.ok()) return file.status();
    SharedSegment segment(std::move(file).value(), handle.bytes, fmt::format("memory of process {}", handle.process));
    if (Status mapped = segment.map(); !mapped.ok()) return mapped;
    return segment;
}

SharedSegment::SharedSegment(SharedSegment&& other) noexcept { *this = std::move(other); }

SharedSegment& SharedSegment::operator=(SharedSegment&& other) noexcept {
    std::swap(descriptor_, other.descriptor_);
    std::swap(holder_, other.holder_);
    std::swap(bytes_, other.bytes_);
    std::swap(base_, other.base_);
    std::swap(where_, other.where_);
    std::swap(retains_pages_, other.retains_pages_);
    std::swap(uses_huge_pages_, other.uses_huge_pages_);
    std::swap(huge_bytes_, other.huge_bytes_);
    std::swap(allowance_, other.allowance_);
    return *this;
}

SharedSegment::~SharedSegment() {
    if (base_ != nullptr) munmap(base_, bytes_);
}

SegmentHandle SharedSegment::handle() const {
    struct stat facts {};
    fstat(descriptor_.get(), &facts);
    return {getpid(), descriptor_.get(), facts.st_dev, facts.st_ino, bytes_};
}

Status SharedSegment::map() {
    void* address = map_aligned(descriptor_.get(), bytes_);
    if (address == MAP_FAILED) {
        rlimit limit{};
        getrlimit(RLIMIT_AS, &limit);
        const std::string bound = limit.rlim_cur == RLIM_INFINITY
                                      ? ""
                                      : fmt::format(" (address space limit: {})", format_size(limit.rlim_cur));
        return failed(fmt::format("cannot map a shared segment of {}{}", format_size(bytes_), bound), errno);
    }
    base_ = static_cast<std::byte*>(address);
    return {};
}

namespace {

// A lock of an open file: the kernel releases it when the file is closed for the last time, by the end of its process
// at the latest. A child of fork has the file open too, until it ends, executes another program or calls
// release_in_child. A mapping would keep the file open, so the one with the locks is not that of the mapping.
struct flock lock_of(int slot) {
    struct flock lock {};
    lock.l_type = F_WRLCK;
    lock.l_whence = SEEK_SET;
    lock.l_start = slot;
    lock.l_len = 1;
    return lock;
}

}  // namespace

Status SharedSegment::hold(int slot) {
    if (!holder_.valid()) {
        const std::string path = fmt::format("/proc/self/fd/{}", descriptor_.get());
        holder_ = FileDescriptor(open(path.c_str(), O_RDWR | O_CLOEXEC));
        if (!holder_.valid()) return failed(fmt::format("cannot open {} again through {}", where_, path), errno);
    }
    struct flock lock = lock_of(slot);
    if (::fcntl(holder_.get(), F_OFD_SETLK, &lock) == 0) return {};
    return failed(fmt::format("cannot lock byte {} of {}", slot, where_), errno);
}

bool SharedSegment::is_held(int slot) const {
    struct flock lock = lock_of(slot);
    // If the system does not answer, the process counts as alive.
    return ::fcntl(descriptor_.get(), F_OFD_GETLK, &lock) != 0 || lock.l_type != F_UNLCK;
}

// Relaxed: the word orders nothing.
bool SharedSegment::take_allowance(std::uint64_t bytes) {
    if (allowance_ == nullptr || bytes > max_unchecked_commit) return false;
    const std::atomic_ref<std::uint64_t> allowance(*allowance_);
    std::uint64_t left = allowance.load(std::memory_order_relaxed);
    while (left >= bytes)
        if (allowance.compare_exchange_weak(left, left - bytes, std::memory_order_relaxed)) return true;
    return false;
}

Status SharedSegment::commit(std::uint64_t offset, std::uint64_t bytes, std::chrono::milliseconds lock_timeout) {
    bool huge = uses_huge_pages_;
    const auto is_allowed = [&] { return take_allowance(bytes); };
    if (is_allowed()) return commit_piece(offset, bytes, bytes, huge);
    CommitLock lock(descriptor_.get());
    if (Status ended = lock.take(lock_timeout, is_allowed); !ended.ok()) return ended;
    // The lock's last holder may have left an allowance just before this took the lock.
    if (!lock.is_held() || is_allowed()) return commit_piece(offset, bytes, bytes, huge);
    const std::uint64_t huge_before = huge_bytes_;
    std::uint64_t allowance = 0;
    std::uint64_t checked = bytes;
    for (std::uint64_t done = 0; done < bytes; checked = std::min(piece_bytes, bytes - done)) {
        // Checked for the whole, then for every piece: other programs allocate memory meanwhile.
        const auto room = check_room(checked, bytes);
        // Pieces end at multiples of their size, so that no huge page is in two.
        const std::uint64_t piece = std::min(piece_bytes - (offset + done) % piece_bytes, bytes - done);
        const Status committed = room.ok() ? commit_piece(offset + done, piece, bytes, huge) : room.status();
        if (!committed.ok()) {
            if (allowance_ != nullptr) std::atomic_ref(*allowance_).store(0, std::memory_order_relaxed);
            if (!retains_pages_) {
                if (done > 0) decommit(offset, done);
                huge_bytes_ = huge_before;
            }
            return committed;
        }
        allowance = room.value();
        done += piece;
    }
    if (allowance_ != nullptr) std::atomic_ref(*allowance_).store(allowance, std::memory_order_relaxed);
    return {};
}

// Linux makes a huge page of one small page and a hole without copying. Returns whether the range has huge pages
// throughout; where it does not, some may exist.
bool SharedSegment::commit_huge_pages(std::uint64_t offset, std::uint64_t bytes) {
    const std::uint64_t begin = rounded_up(offset, huge_page_bytes);
    const std::uint64_t end = (offset + bytes) / huge_page_bytes * huge_page_bytes;
    if (begin >= end) return true;
    for (std::uint64_t at = begin; at < end; at += huge_page_bytes)
        if (allocate_pages(descriptor_.get(), at, page_bytes()) != 0) return false;
    if (::madvise(base_ + begin, end - begin, MADV_COLLAPSE) != 0) return false;
    huge_bytes_ += end - begin;
    return true;
}

// `huge`: try huge pages; false from then on where they failed.
Status SharedSegment::commit_piece(std::uint64_t offset, std::uint64_t bytes, std::uint64_t wanted, bool& huge) {
    const bool tried_huge = huge;
    const std::uint64_t huge_before = huge_bytes_;
    huge = huge && commit_huge_pages(offset, bytes);
    const int error = allocate_pages(descriptor_.get(), offset, bytes);
    if (error == 0) return {};
    // fallocate has taken back only what it added itself.
    if (tried_huge && bytes >= huge_page_bytes && !retains_pages_) {
        decommit(offset, bytes);
        huge_bytes_ = huge_before;
    }
    struct statvfs space {};
    const std::string left = fstatvfs(descriptor_.get(), &space) == 0 && space.f_blocks > 0
                                 ? fmt::format(" ({} of {} free)", format_size(space.f_bavail * space.f_frsize),
                                               format_size(space.f_blocks * space.f_frsize))
                                 : "";
    return failed(fmt::format("cannot commit {} of symmetric memory backed by {}{}", format_size(wanted), where_, left),
                  error);
}

void SharedSegment::decommit(std::uint64_t offset, std::uint64_t bytes) {
    // If this fails, the memory stays committed as before.
    (void)fallocate(descriptor_.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(offset),
                    static_cast<off_t>(bytes));
}

}  // namespace npushmem
