// SPDX-License-Identifier: BSD-3-Clause
#include "tests/stress/storm/hang.hpp"

#include <fmt/format.h>
#include <sys/syscall.h>

#include <cstdint>
#include <fstream>
#include <sstream>
#include <string>

namespace npushmem::storm {
namespace {

// The word of the futex on which the process' first thread sleeps; 0: it does not.
std::uintptr_t awaited_word(int pid) {
    // The number of the system call, then its arguments: "202 0x7f0012345678 0x80 0x2 ...".
    std::ifstream file(fmt::format("/proc/{}/syscall", pid));
    std::string number;
    std::string word;
    file >> number >> word;
    return file && number == std::to_string(SYS_futex) ? std::stoull(word, nullptr, 16) : 0;
}

bool is_of_libc(const std::string& path) {
    return path.find("/libc.so") != std::string::npos || path.find("/ld-linux") != std::string::npos;
}

}  // namespace

bool waits_for_libc_lock(int pid) {
    constexpr std::uintptr_t arena_alignment = 64U << 20;  // glibc's HEAP_MAX_SIZE
    constexpr std::uintptr_t arena_header = 4096;          // contains the lock of the arena
    const std::uintptr_t word = awaited_word(pid);
    if (word == 0) return false;
    std::ifstream file(fmt::format("/proc/{}/maps", pid));
    std::uintptr_t end_of_libc = 0;
    for (std::string line; std::getline(file, line);) {
        std::istringstream fields(line);
        std::string range, access, offset, device, inode, path;
        fields >> range >> access >> offset >> device >> inode >> path;
        const std::uintptr_t begin = std::stoull(range, nullptr, 16);
        const std::uintptr_t end = std::stoull(range.substr(range.find('-') + 1), nullptr, 16);
        const bool is_bss = path.empty() && begin == end_of_libc;  // follows the library's file
        if (is_of_libc(path) || is_bss) end_of_libc = end;
        if (word < begin || word >= end) continue;
        const bool is_arena = path.empty() && begin % arena_alignment == 0 && word - begin < arena_header;
        return is_of_libc(path) || is_bss || is_arena;
    }
    return false;
}

}  // namespace npushmem::storm
