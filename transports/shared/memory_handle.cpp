// SPDX-License-Identifier: BSD-3-Clause
#include "transports/shared/memory_handle.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <limits>
#include <string>

#include "core/base/liveness.hpp"
#include "core/base/poller.hpp"

namespace npushmem::shared_memory {
namespace {

constexpr std::uint64_t handle_magic = 0x314d454d'4853504eU;  // "NPSHMEM1"
constexpr std::uint32_t handle_version = 1;

}  // namespace

Bytes encode(MemoryHandle handle) {
    handle.magic = handle_magic;
    handle.version = handle_version;
    handle.struct_size = sizeof handle;
    Bytes out(sizeof handle);
    std::memcpy(out.data(), &handle, sizeof handle);
    return out;
}

Result<MemoryHandle> decode(std::span<const std::byte> bytes) {
    MemoryHandle handle{};
    if (bytes.size() != sizeof handle)
        return Status{Code::protocol,
                      fmt::format("a memory handle of {} bytes is not a shared-memory handle, which has {} bytes",
                                  bytes.size(), sizeof handle)};
    std::memcpy(&handle, bytes.data(), sizeof handle);
    if (handle.magic != handle_magic)
        return Status{Code::protocol, "the memory handle was not made by a shared-memory transport"};
    if (handle.version != handle_version || handle.struct_size != sizeof handle)
        return Status{Code::protocol, fmt::format("the peer's memory handle has version {}, this PE's has version {}: "
                                                  "all PEs must run the same npushmem",
                                                  handle.version, handle_version)};
    if (handle.bytes > std::numeric_limits<std::uint64_t>::max() - handle.offset)
        return Status{Code::protocol, "the memory handle's range exceeds the largest possible file"};
    return handle;
}

namespace {

std::string emulated_name(int host) { return host < 0 ? "no emulated host" : fmt::format("emulated host {}", host); }

}  // namespace

std::string why_not_shareable(const npushmem_host_id& own, const npushmem_host_id& peer) {
    if (own.machine != peer.machine) return "another machine";
    if (own.emulated != peer.emulated)
        return fmt::format("on {}, this PE is on {}: memory of different emulated hosts cannot be mapped",
                           emulated_name(peer.emulated), emulated_name(own.emulated));
    if (own.space != peer.space)
        return "same machine, another PID namespace (container): PEs share memory if NPUSHMEM_SHARE_BETWEEN_CONTAINERS "
               "is 1 "
               "and they have the network namespace, /dev/shm, /tmp or NPUSHMEM_HEAP_DIR in common";
    if (own.user != peer.user)
        return fmt::format("another user (uid {}, this PE has uid {}): no permission to map its memory", peer.user,
                           own.user);
    return {};
}

Result<std::uint64_t> start_time_of(int process) {
    if (const auto found = identify_process(process)) return found->start;
    if (process > 0 && kernel_knows(process))
        return Status{Code::system, fmt::format("cannot read the start time of process {} in /proc/{}/stat: is /proc "
                                                "mounted, and of this process namespace?",
                                                process, process)};
    return Status{
        Code::peer_dead,
        fmt::format("process {} does not exist (any more), or it belongs to another process namespace", process)};
}

namespace {

Status check_process(const MemoryHandle& handle) {
    const auto started = start_time_of(handle.process);
    if (!started.ok()) return started.status();
    if (started.value() == handle.start_time) return {};
    return {Code::peer_dead,
            fmt::format("process {} is not the peer: it started at tick {}, the peer at {}; the peer has ended and its "
                        "process ID was reused, or it belongs to another process namespace",
                        handle.process, started.value(), handle.start_time)};
}

Status cannot_open(const std::string& path, int reason) {
    if (reason == ENOENT)
        return {Code::peer_dead, fmt::format("{} does not exist: the peer has ended or closed the file", path)};
    if (reason == EACCES || reason == EPERM)
        return {Code::unreachable,
                fmt::format("no permission to open {}: the peer must run as the same user and must allow "
                            "inspection (no set-user-id program, no prctl PR_SET_DUMPABLE 0)",
                            path)};
    return {Code::system, fmt::format("cannot open {}: {}", path, std::strerror(reason))};
}

Result<FileDescriptor> open_file(const MemoryHandle& handle) {
    const std::string path = fmt::format("/proc/{}/fd/{}", handle.process, handle.descriptor);
    FileDescriptor file(::open(path.c_str(), O_RDWR | O_CLOEXEC));
    if (!file.valid()) return cannot_open(path, errno);
    return file;
}

Status check_file(const MemoryHandle& handle, const FileDescriptor& file) {
    struct stat facts {};
    if (::fstat(file.get(), &facts) != 0) return {Code::system, fmt::format("fstat failed: {}", std::strerror(errno))};
    if (facts.st_dev != handle.device || facts.st_ino != handle.inode)
        return {
            Code::peer_dead,
            fmt::format("descriptor {} of process {} now names another file ({}:{} instead of {}:{}): "
                        "the peer has released the memory",
                        handle.descriptor, handle.process, facts.st_dev, facts.st_ino, handle.device, handle.inode)};
    if (static_cast<std::uint64_t>(facts.st_size) < handle.offset + handle.bytes)
        return {Code::range, fmt::format("the peer's memory spans bytes {} to {} of its file, which has only {}",
                                         handle.offset, handle.offset + handle.bytes, facts.st_size)};
    return {};
}

Result<std::shared_ptr<const PeerMapping>> map_range(const MemoryHandle& handle, const FileDescriptor& file) {
    const auto page = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
    const std::uint64_t lead = handle.offset % page;
    const std::uint64_t length = lead + handle.bytes;
    // MAP_NORESERVE: the owner has reserved the memory; this is a second view of it.
    void* start = ::mmap(nullptr, length, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, file.get(),
                         static_cast<off_t>(handle.offset - lead));
    if (start == MAP_FAILED)
        return Status{
            errno == ENOMEM ? Code::memory : Code::system,
            fmt::format("cannot map {} bytes of process {}: {}", length, handle.process, std::strerror(errno))};
    return std::make_shared<const PeerMapping>(start, length, lead);
}

}  // namespace

Result<std::shared_ptr<const PeerMapping>> PeerMapping::make(const MemoryHandle& handle) {
    if (handle.bytes == 0) return Status{Code::argument, "the peer's memory has no bytes"};
    if (Status s = check_process(handle); !s.ok()) return s;
    auto file = open_file(handle);
    if (!file.ok()) return file.status();
    if (Status s = check_file(handle, file.value()); !s.ok()) return s;
    return map_range(handle, file.value());
}

PeerMapping::~PeerMapping() { ::munmap(start_, length_); }

}  // namespace npushmem::shared_memory
