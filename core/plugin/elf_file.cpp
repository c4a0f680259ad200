#include "core/plugin/elf_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <link.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <vector>

namespace npushmem {
namespace {

constexpr unsigned char own_class = sizeof(void*) == 8 ? ELFCLASS64 : ELFCLASS32;

Status no_library(std::string reason) { return {Code::plugin_refused, std::move(reason)}; }

class OpenFile {
public:
    // Without waiting for the writer of a FIFO.
    explicit OpenFile(const std::string& path) : fd_(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC)) {}
    OpenFile(const OpenFile&) = delete;
    OpenFile& operator=(const OpenFile&) = delete;
    ~OpenFile() {
        if (fd_ >= 0) ::close(fd_);
    }

    [[nodiscard]] int fd() const { return fd_; }
    [[nodiscard]] bool read(void* into, std::size_t bytes, std::uint64_t at) const {
        return ::pread(fd_, into, bytes, static_cast<off_t>(at)) == static_cast<ssize_t>(bytes);
    }

private:
    int fd_;
};

Status check_header(const ElfW(Ehdr) & header) {
    if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0) return no_library("it is no ELF file");
    if (header.e_ident[EI_CLASS] != own_class) return no_library("it is for machines of another word size");
    if (header.e_type != ET_DYN) return no_library("it is no shared library");
    if (header.e_phnum == 0 || header.e_phentsize != sizeof(ElfW(Phdr)))
        return no_library("its ELF header has no valid list of segments");
    return {};
}

Status check_segment(const ElfW(Phdr) & segment, std::uint64_t size) {
    const std::uint64_t begin = segment.p_offset;
    if (segment.p_type != PT_LOAD || (begin <= size && segment.p_filesz <= size - begin)) return {};
    return no_library(
        fmt::format("it is cut off: the file has {} bytes, and a segment needs {} bytes from {} on; copy "
                    "the file again",
                    size, segment.p_filesz, begin));
}

Status check_segments(const OpenFile& file, const ElfW(Ehdr) & header, std::uint64_t size) {
    std::vector<ElfW(Phdr)> segments(header.e_phnum);
    if (!file.read(segments.data(), segments.size() * sizeof segments[0], header.e_phoff))
        return no_library(
            fmt::format("it is cut off: the file has {} bytes, and its list of segments is beyond", size));
    for (const auto& segment : segments)
        if (Status s = check_segment(segment, size); !s.ok()) return s;
    return {};
}

}  // namespace

Status check_elf_file(const std::string& path) {
    struct stat facts {};
    if (::stat(path.c_str(), &facts) == 0 && !S_ISREG(facts.st_mode)) return no_library("it is not a regular file");
    const OpenFile file(path);
    if (file.fd() < 0 || ::fstat(file.fd(), &facts) != 0)
        return no_library(fmt::format("cannot open the file: {}", std::strerror(errno)));
    const auto size = static_cast<std::uint64_t>(facts.st_size);
    ElfW(Ehdr) header{};
    if (!file.read(&header, sizeof header, 0))
        return no_library(fmt::format("it is no ELF file: it has only {} bytes", size));
    if (Status s = check_header(header); !s.ok()) return s;
    return check_segments(file, header, size);
}

}  // namespace npushmem
