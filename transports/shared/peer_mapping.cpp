#include "transports/shared/peer_mapping.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>

#include "transports/shared/process_start_time.hpp"

namespace npushmem::shared_memory {
namespace {

// A descriptor that is closed when the value goes.
class OpenFile {
public:
    explicit OpenFile(int descriptor) : descriptor_(descriptor) {}
    OpenFile(OpenFile&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
    OpenFile(const OpenFile&) = delete;
    OpenFile& operator=(const OpenFile&) = delete;
    ~OpenFile() {
        if (descriptor_ >= 0) ::close(descriptor_);
    }
    [[nodiscard]] int get() const { return descriptor_; }

private:
    int descriptor_;
};

Status check_process(const MemoryHandle& handle) {
    const auto started = start_time_of(handle.process);
    if (!started.ok()) return started.status();
    if (started.value() == handle.start_time) return {};
    return {Code::peer_dead,
            fmt::format("process {} is not the peer: it started at tick {}, the peer at {}; the peer has ended and its "
                        "number was used again, or it lives in another process namespace",
                        handle.process, started.value(), handle.start_time)};
}

Status cannot_open(const std::string& path, int reason) {
    if (reason == ENOENT)
        return {Code::peer_dead, fmt::format("{} does not exist: the peer has ended or closed the file", path)};
    if (reason == EACCES || reason == EPERM)
        return {Code::unreachable,
                fmt::format("no permission to open {}: the peer must run as the same user and must not forbid being "
                            "inspected (a set-user-id program, prctl PR_SET_DUMPABLE)",
                            path)};
    return {Code::system, fmt::format("cannot open {}: {}", path, std::strerror(reason))};
}

Result<OpenFile> open_file(const MemoryHandle& handle) {
    const std::string path = fmt::format("/proc/{}/fd/{}", handle.process, handle.descriptor);
    OpenFile file(::open(path.c_str(), O_RDWR | O_CLOEXEC));
    if (file.get() < 0) return cannot_open(path, errno);
    return file;
}

Status check_file(const MemoryHandle& handle, const OpenFile& file) {
    struct stat facts {};
    if (::fstat(file.get(), &facts) != 0) return {Code::system, fmt::format("fstat failed: {}", std::strerror(errno))};
    if (facts.st_dev != handle.device || facts.st_ino != handle.inode)
        return {
            Code::peer_dead,
            fmt::format("descriptor {} of process {} is another file by now ({}:{} instead of {}:{}): "
                        "the peer has released the memory",
                        handle.descriptor, handle.process, facts.st_dev, facts.st_ino, handle.device, handle.inode)};
    if (static_cast<std::uint64_t>(facts.st_size) < handle.offset + handle.bytes)
        return {Code::range, fmt::format("the peer's memory should span bytes {} to {} of its file, which has only {}",
                                         handle.offset, handle.offset + handle.bytes, facts.st_size)};
    return {};
}

Result<std::shared_ptr<const PeerMapping>> map_range(const MemoryHandle& handle, const OpenFile& file) {
    const auto page = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
    const std::uint64_t lead = handle.offset % page;
    const std::uint64_t length = lead + handle.bytes;
    // MAP_NORESERVE: the owner answers for the memory, this is a second view of it.
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
