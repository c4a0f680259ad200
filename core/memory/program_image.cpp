// SPDX-License-Identifier: BSD-3-Clause
#include "core/memory/program_image.hpp"

#include <fmt/core.h>
#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <string_view>

#include "core/base/hash.hpp"
#include "core/base/host_facts.hpp"

namespace npushmem {

namespace {

// Without a build id, the first bytes of code and constants up to this size are hashed; later differences go unnoticed.
constexpr std::size_t max_hashed = 8UL << 20;

std::uint64_t rounded_down(std::uint64_t value, std::uint64_t to) { return value / to * to; }

struct Program {
    std::span<const ElfW(Phdr)> headers;
    std::uintptr_t load_address = 0;

    [[nodiscard]] std::string_view bytes_of(const ElfW(Phdr) & header) const {
        return {reinterpret_cast<const char*>(load_address + header.p_vaddr), header.p_filesz};
    }
};

// The loader lists the program first.
Program this_program() {
    Program program;
    dl_iterate_phdr(
        [](dl_phdr_info* info, std::size_t, void* into) {
            *static_cast<Program*>(into) = {{info->dlpi_phdr, info->dlpi_phnum}, info->dlpi_addr};
            return 1;
        },
        &program);
    return program;
}

// A note has: sizes of name and contents, a type, the name, the contents; the last two padded to 4 bytes.
std::string_view build_id_in(std::string_view notes) {
    constexpr std::string_view gnu("GNU\0", 4);
    while (notes.size() >= sizeof(ElfW(Nhdr))) {
        ElfW(Nhdr) note;
        std::memcpy(&note, notes.data(), sizeof note);
        const std::size_t name_at = sizeof note;
        const std::size_t contents_at = name_at + rounded_up(note.n_namesz, 4);
        const std::size_t end = contents_at + rounded_up(note.n_descsz, 4);
        if (end > notes.size()) return {};
        if (note.n_type == NT_GNU_BUILD_ID && notes.substr(name_at, note.n_namesz) == gnu)
            return notes.substr(contents_at, note.n_descsz);
        notes.remove_prefix(end);
    }
    return {};
}

std::string_view build_id(const Program& program) {
    for (const auto& header : program.headers)
        // Notes of other alignments have other kinds and padding.
        if (header.p_type == PT_NOTE && header.p_align == 4)
            if (const auto found = build_id_in(program.bytes_of(header)); !found.empty()) return found;
    return {};
}

// Hashes code and constants, which do not depend on the load address, and the layout.
std::uint64_t hash_of_contents(const Program& program) {
    std::uint64_t hash =
        hash_bytes({reinterpret_cast<const char*>(program.headers.data()), program.headers.size_bytes()});
    std::size_t left = max_hashed;
    for (const auto& header : program.headers) {
        if (header.p_type != PT_LOAD || (header.p_flags & PF_W) != 0 || (header.p_flags & PF_R) == 0) continue;
        const auto bytes = program.bytes_of(header).substr(0, left);
        left -= bytes.size();
        hash = hash * 31 + hash_bytes(bytes);
    }
    return hash;
}

bool on_own_stack(const void* address) {
    pthread_attr_t attributes;
    if (pthread_getattr_np(pthread_self(), &attributes) != 0) return false;
    void* lowest = nullptr;
    std::size_t bytes = 0;
    const bool known = pthread_attr_getstack(&attributes, &lowest, &bytes) == 0;
    pthread_attr_destroy(&attributes);
    return known && static_cast<const std::byte*>(address) - static_cast<std::byte*>(lowest) >= 0 &&
           static_cast<const std::byte*>(address) < static_cast<std::byte*>(lowest) + bytes;
}

struct Search {
    std::uintptr_t address;
    int place = 0;  // the file's position in the loader's list
    std::string found;
};

std::string within(const dl_phdr_info& info, const Search& search) {
    for (const auto& header : std::span(info.dlpi_phdr, info.dlpi_phnum)) {
        if (header.p_type != PT_LOAD || search.address - (info.dlpi_addr + header.p_vaddr) >= header.p_memsz) continue;
        if (search.place == 0)
            return (header.p_flags & PF_W) != 0 ? "belongs to the executable" : "is a constant of the executable";
        return fmt::format("belongs to the library {}", info.dlpi_name);
    }
    return {};
}

}  // namespace

ProgramImage ProgramImage::of(std::span<const ElfW(Phdr)> headers, std::uintptr_t load_address, std::uint64_t page) {
    std::uint64_t read_only_begin = 0;
    std::uint64_t read_only_end = 0;
    for (const auto& header : headers)
        if (header.p_type == PT_GNU_RELRO) {
            read_only_begin = rounded_down(header.p_vaddr, page);
            read_only_end = rounded_down(header.p_vaddr + header.p_memsz, page);
        }
    ProgramImage image;
    for (const auto& header : headers) {
        if (header.p_type != PT_LOAD || (header.p_flags & PF_W) == 0 || header.p_memsz == 0) continue;
        std::uint64_t first = rounded_down(header.p_vaddr, page);
        const std::uint64_t end = rounded_up(header.p_vaddr + header.p_memsz, page);
        if (first >= read_only_begin && first < read_only_end) first = read_only_end;
        if (first >= end) continue;
        const std::uint64_t from_file = rounded_up(header.p_vaddr + header.p_filesz, page);
        image.segments.push_back({{first, end - first}, from_file > first ? from_file - first : 0});
    }
    if (image.segments.empty()) return image;
    std::sort(image.segments.begin(), image.segments.end(),
              [](const LoadSegment& a, const LoadSegment& b) { return a.pages.offset < b.pages.offset; });
    const std::uint64_t base = image.segments.front().pages.offset;
    image.begin = load_address + base;
    image.bytes = image.segments.back().pages.end() - base;
    for (auto& segment : image.segments) segment.pages.offset -= base;
    return image;
}

bool ProgramImage::contains(std::uint64_t offset, std::uint64_t length) const {
    return std::any_of(segments.begin(), segments.end(), [&](const LoadSegment& segment) {
        return segment.pages.contains(offset) && length <= segment.pages.end() - offset;
    });
}

ProgramImage image_of_this_program() {
    const Program program = this_program();
    ProgramImage image = ProgramImage::of(program.headers, program.load_address, page_bytes());
    const std::string_view id = build_id(program);
    image.identity = id.empty() ? hash_of_contents(program) : hash_bytes(id);
    return image;
}

std::string describe_address(const void* address) {
    Search search{reinterpret_cast<std::uintptr_t>(address), 0, {}};
    dl_iterate_phdr(
        [](dl_phdr_info* info, std::size_t, void* into) {
            auto& looking = *static_cast<Search*>(into);
            looking.found = within(*info, looking);
            ++looking.place;
            return looking.found.empty() ? 0 : 1;
        },
        &search);
    if (!search.found.empty()) return search.found;
    return on_own_stack(address) ? "lies on this thread's stack"
                                 : "belongs to no global variable (it may come from malloc, or be thread_local)";
}

}  // namespace npushmem
