#include "core/plugin/readable_memory.hpp"

#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>

namespace npushmem {
namespace {

constexpr std::uintptr_t step = 4096;  // no page is smaller
constexpr std::size_t max_text_bytes = 64 * 1024;

// The kernel reads a signal set of 8 bytes from there before it looks at the first argument, which is none of its
// commands: the call changes nothing, and fails with EFAULT where no memory can be read.
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

bool is_readable_text(const char* text) {
    for (std::size_t known = 0; known < max_text_bytes;) {
        const std::size_t piece = step - (reinterpret_cast<std::uintptr_t>(text) + known) % step;
        if (!is_readable(text + known, piece)) return false;
        if (std::memchr(text + known, '\0', piece) != nullptr) return true;
        known += piece;
    }
    return false;
}

}  // namespace npushmem
