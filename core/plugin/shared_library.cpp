// SPDX-License-Identifier: BSD-3-Clause
#include "core/plugin/shared_library.hpp"

#include <dlfcn.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <link.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <vector>

#include "core/base/deferred_signals.hpp"
#include "core/base/poller.hpp"

namespace npushmem {

namespace {

constexpr unsigned char own_class = sizeof(void*) == 8 ? ELFCLASS64 : ELFCLASS32;

Status no_library(std::string reason) { return {Code::plugin_refused, std::move(reason)}; }

class OpenFile {
public:
    // Does not wait for the writer of a FIFO.
    explicit OpenFile(const std::string& path) : file_(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC)) {}

    [[nodiscard]] int fd() const { return file_.get(); }
    [[nodiscard]] bool read(void* into, std::size_t bytes, std::uint64_t at) const {
        return ::pread(fd(), into, bytes, static_cast<off_t>(at)) == static_cast<ssize_t>(bytes);
    }

private:
    FileDescriptor file_;
};

Status check_header(const ElfW(Ehdr) & header) {
    if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0) return no_library("it is not an ELF file");
    if (header.e_ident[EI_CLASS] != own_class) return no_library("it is for machines of another word size");
    if (header.e_type != ET_DYN) return no_library("it is not a shared library");
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
    // Opening another file may have effects: of a terminal, or on the writer of a FIFO.
    if (::stat(path.c_str(), &facts) == 0 && !S_ISREG(facts.st_mode)) return no_library("it is not a regular file");
    const OpenFile file(path);
    if (file.fd() < 0 || ::fstat(file.fd(), &facts) != 0)
        return no_library(fmt::format("cannot open the file: {}", std::strerror(errno)));
    const auto size = static_cast<std::uint64_t>(facts.st_size);
    ElfW(Ehdr) header{};
    if (!file.read(&header, sizeof header, 0))
        return no_library(fmt::format("it is not an ELF file: it has only {} bytes", size));
    if (Status s = check_header(header); !s.ok()) return s;
    return check_segments(file, header, size);
}

namespace {

constexpr std::uintptr_t step = 4096;  // no page is smaller
constexpr std::size_t max_text_bytes = 64 * 1024;

// The kernel reads a signal set of 8 bytes from the address before it checks the first argument, which is no valid
// command: the call changes nothing, and fails with EFAULT if the memory cannot be read.
bool is_readable_at(std::uintptr_t address) {
    constexpr std::uintptr_t set_bytes = 8;
    constexpr long no_command = -1;
    const long done = ::syscall(SYS_rt_sigprocmask, no_command, address & ~(set_bytes - 1), nullptr, set_bytes);
    return done != 0 && errno != EFAULT;
}

}  // namespace

bool is_readable(const void* address, std::size_t bytes) {
    const auto first = reinterpret_cast<std::uintptr_t>(address);
    if (bytes == 0) return true;
    if (first == 0 || first > UINTPTR_MAX - bytes) return false;
    for (std::uintptr_t at = first; at < first + bytes; at = (at & ~(step - 1)) + step)
        if (!is_readable_at(at)) return false;
    return true;
}

bool ReadableTexts::contain(const char* text) {
    for (std::size_t known = 0; known < max_text_bytes;) {
        const auto at = reinterpret_cast<std::uintptr_t>(text) + known;
        const std::uintptr_t page = at - at % step;
        const std::size_t piece = page + step - at;
        if (page != known_page_ && !is_readable(text + known, piece)) return false;
        known_page_ = page;
        if (std::memchr(text + known, '\0', piece) != nullptr) return true;
        known += piece;
    }
    return false;
}

namespace {

std::string last_error() {
    const char* text = dlerror();
    return text != nullptr ? text : "the dynamic linker gave no reason";
}

std::string linker_failure() {
    const std::string error = last_error();
    const std::string remedy = remedy_for_missing_library(error);
    return remedy.empty() ? error : error + "; " + remedy;
}

// Debian names most packages by the library and its version: libfabric.so.1 is in libfabric1.
std::string package_of(std::string_view library, std::string_view version) {
    if (library == "libmpi") return "libopenmpi3";
    if (library.starts_with("libuc")) library = "libucx";
    return fmt::format("{}{}", library, version);
}

// Restores the signal handlers when it is destroyed. Network libraries replace the handlers of crashes, and some those
// of interrupts, while they are loaded; the handlers belong to the program, its debugger or its language. A handler
// that another thread sets meanwhile is lost. Loading takes up to 200 ms, and the handlers of libinfinipath turn every
// signal into an exit with status 1, so signals wait meanwhile for the program's handler. A thread that the library
// starts keeps the mask; process-directed signals then go to the program's threads.
class SignalHandlerGuard {
public:
    SignalHandlerGuard() {
        for (int signal = 1; signal < signals; ++signal)
            known_[signal] = ::sigaction(signal, nullptr, &before_[signal]) == 0;
    }
    ~SignalHandlerGuard() {
        for (int signal = 1; signal < signals; ++signal) {
            struct sigaction now {};
            if (!known_[signal] || ::sigaction(signal, nullptr, &now) != 0) continue;
            const bool same =
                now.sa_sigaction == before_[signal].sa_sigaction && now.sa_flags == before_[signal].sa_flags;
            if (!same) (void)::sigaction(signal, &before_[signal], nullptr);
        }
    }
    SignalHandlerGuard(const SignalHandlerGuard&) = delete;
    SignalHandlerGuard& operator=(const SignalHandlerGuard&) = delete;

private:
    static constexpr int signals = 32;  // not the real-time signals, for which no library has a handler

    const DeferredSignals deferred_;  // first: until the handlers are restored
    std::array<struct sigaction, signals> before_{};
    std::array<bool, signals> known_{};
};

}  // namespace

void SharedLibrary::Closer::operator()(void* handle) const { dlclose(handle); }

std::string remedy_for_missing_library(std::string_view error) {
    const auto end = error.find(": cannot open shared object file");
    if (end == std::string_view::npos) return {};
    const std::string_view before = error.substr(0, end);
    const std::string_view file = before.substr(before.rfind(' ') + 1);  // 0 without a blank
    constexpr std::string_view separator = ".so.";
    const auto version = file.find(separator);
    if (version == std::string_view::npos || file.find('/') != std::string_view::npos) return {};
    return fmt::format("install {} (on Debian: package {})", file,
                       package_of(file.substr(0, version), file.substr(version + separator.size())));
}

Result<SharedLibrary> SharedLibrary::open(const std::string& path) {
    if (Status whole = check_elf_file(path); !whole.ok()) return whole;
    // Code of the library runs only when it is loaded. A file of several plugins is loaded once.
    if (void* const loaded = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD); loaded != nullptr)
        return SharedLibrary(loaded);
    const SignalHandlerGuard guard;
    void* const handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle == nullptr) return Status{Code::plugin_refused, linker_failure()};
    return SharedLibrary(handle);
}

std::optional<SharedLibrary::Symbol> SharedLibrary::find(const char* name) const {
    // dlsym also searches the library's dependencies, so the owner of the symbol is checked.
    void* address = dlsym(handle_.get(), name);
    if (address == nullptr) return std::nullopt;
    link_map* self = nullptr;
    link_map* owner = nullptr;
    Dl_info info{};
    dlinfo(handle_.get(), RTLD_DI_LINKMAP, &self);
    if (dladdr1(address, &info, reinterpret_cast<void**>(&owner), RTLD_DL_LINKMAP) == 0) owner = nullptr;
    return Symbol{address, owner != nullptr && owner == self, info.dli_fname != nullptr ? info.dli_fname : "?"};
}

}  // namespace npushmem
