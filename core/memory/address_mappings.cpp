// SPDX-License-Identifier: BSD-3-Clause
#include "core/memory/address_mappings.hpp"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <system_error>

#include "core/base/host_facts.hpp"

namespace npushmem {

namespace {

// 7f00-7f80 rw-s 00001000 00:01 1027    /memfd:name (deleted)
std::optional<AddressMapping> mapping_of(const std::string& line) {
    unsigned long begin = 0;
    unsigned long end = 0;
    unsigned long offset = 0;
    unsigned long inode = 0;
    unsigned major_number = 0;
    unsigned minor_number = 0;
    char rights[5] = {};
    int path_at = 0;
    constexpr int fields = 7;
    if (std::sscanf(line.c_str(), "%lx-%lx %4s %lx %x:%x %lu %n", &begin, &end, rights, &offset, &major_number,
                    &minor_number, &inode, &path_at) != fields)
        return std::nullopt;
    const std::string_view held(rights);
    return AddressMapping{begin,
                          end,
                          held.starts_with("rw"),
                          held.ends_with('s'),
                          offset,
                          makedev(major_number, minor_number),
                          inode,
                          line.substr(static_cast<std::size_t>(path_at))};
}

bool continues(const AddressMapping& before, const AddressMapping& next) {
    if (before.shared != next.shared) return false;
    return !next.shared || (before.same_file(next) && next.offset - before.offset == next.begin - before.begin);
}

Status unusable(std::uintptr_t at, const char* why) {
    return {Code::argument, fmt::format("the memory at {:#x} {}", at, why)};
}

// Compares by a mapping, because some file systems list other device numbers than st_dev.
bool is_file_of(int descriptor, const AddressMapping& mapping) {
    struct stat facts {};
    if (fstat(descriptor, &facts) != 0 || !S_ISREG(facts.st_mode) || facts.st_ino != mapping.inode) return false;
    const std::uint64_t bytes = rounded_up(static_cast<std::uint64_t>(facts.st_blksize), page_bytes());
    void* const view = mmap(nullptr, bytes, PROT_READ, MAP_SHARED | MAP_NORESERVE, descriptor, 0);
    if (view == MAP_FAILED) return false;
    const auto listed = mappings_at(view, 1);
    const bool same = listed.ok() && !listed.value().empty() && listed.value().front().same_file(mapping);
    munmap(view, bytes);
    return same;
}

FileDescriptor open_if_file_of(const AddressMapping& mapping, const std::string& path) {
    // Opening other kinds of files can block or have effects.
    struct stat facts {};
    if (stat(path.c_str(), &facts) != 0 || !S_ISREG(facts.st_mode) || facts.st_ino != mapping.inode) return {};
    FileDescriptor file(open(path.c_str(), O_RDWR | O_CLOEXEC));
    return file.valid() && is_file_of(file.get(), mapping) ? std::move(file) : FileDescriptor();
}

}  // namespace

std::vector<AddressMapping> mappings_in(std::string_view maps, std::uintptr_t begin, std::uintptr_t end) {
    std::vector<AddressMapping> found;
    while (!maps.empty()) {
        const std::size_t length = std::min(maps.find('\n'), maps.size());
        auto mapping = mapping_of(std::string(maps.substr(0, length)));
        maps.remove_prefix(std::min(length + 1, maps.size()));
        if (mapping && mapping->begin < end && mapping->end > begin) found.push_back(std::move(*mapping));
    }
    return found;
}

Result<std::vector<AddressMapping>> mappings_at(const void* address, std::uint64_t bytes) {
    std::ifstream file("/proc/self/maps");
    const std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
    if (text.empty()) return Status{Code::system, "cannot read /proc/self/maps; is /proc mounted?"};
    const auto begin = reinterpret_cast<std::uintptr_t>(address);
    return mappings_in(text, begin, begin + bytes);
}

Result<AddressMapping> uniform_mapping(const void* address, std::uint64_t bytes) {
    const auto begin = reinterpret_cast<std::uintptr_t>(address);
    const auto listed = mappings_at(address, bytes);
    if (!listed.ok()) return listed.status();
    std::uintptr_t at = begin;
    const AddressMapping* before = nullptr;
    for (const AddressMapping& each : listed.value()) {
        if (each.begin > at) break;
        if (!each.writable) return unusable(at, "cannot be read and written by this process");
        if (before != nullptr && !continues(*before, each))
            return unusable(at, "is of another kind or file than the memory before it; register it by itself");
        before = &each;
        at = each.end;
    }
    if (before == nullptr || at < begin + bytes) return unusable(at, "is not mapped");
    AddressMapping whole = listed.value().front();
    whole.offset += begin - whole.begin;
    whole.begin = begin;
    whole.end = begin + bytes;
    return whole;
}

Result<FileDescriptor> open_mapped_file(const AddressMapping& mapping) {
    std::error_code error;
    std::filesystem::directory_iterator entry("/proc/self/fd", error);
    for (const std::filesystem::directory_iterator end; !error && entry != end; entry.increment(error))
        if (auto file = open_if_file_of(mapping, entry->path().string()); file.valid()) return file;
    if (auto file = open_if_file_of(mapping, mapping.path); file.valid()) return file;
    return Status{
        Code::argument,
        fmt::format("the memory at {:#x} is shared, of the file '{}' (inode {}), which this process cannot "
                    "open again for writing: keep a descriptor of the file open, or use memory of memfd_create",
                    mapping.begin, mapping.path, mapping.inode)};
}

}  // namespace npushmem
