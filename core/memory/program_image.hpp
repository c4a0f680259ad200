// Where the executable's global and static variables are: the writable pages that it was loaded with, and whether two
// processes have the same.
#pragma once

#include <link.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/memory/allocator.hpp"

namespace npushmem {

// Offsets are bytes after `begin`, in whole pages.
struct ProgramImage {
    struct LoadSegment {
        Range pages;
        std::uint64_t initialised = 0;  // bytes at its beginning that come from the file; the rest began as zeros
    };

    std::uintptr_t begin = 0;           // differs between PEs that run the same executable
    std::uint64_t bytes = 0;            // from the first segment to the end of the last; 0: there is nothing
    std::vector<LoadSegment> segments;  // in order; what lies between two of them is no variable's
    std::uint64_t identity = 0;

    // The segments without what the loader has made read-only. Linkers see to it that this ends with a page.
    static ProgramImage of(std::span<const ElfW(Phdr)> headers, std::uintptr_t load_address, std::uint64_t page);

    // Does [offset, offset + length) lie in one segment?
    [[nodiscard]] bool contains(std::uint64_t offset, std::uint64_t length) const;
};

// Of the executable that this process runs. Equal identities: the same file, so that a variable has one offset. It is
// the hash of the build id, or where the linker has left none, of what the file holds apart from variables.
ProgramImage image_of_this_program();

// What lies at an address that is not symmetric, as the end of a sentence: "lies on this thread's stack".
std::string describe_address(const void* address);

}  // namespace npushmem
