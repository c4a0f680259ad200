// SPDX-License-Identifier: BSD-3-Clause
// Locates the executable's global and static variables: the writable pages it was loaded with. Compares them between
// processes.
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
        std::uint64_t initialised = 0;  // bytes at its beginning that come from the file; the rest starts as zeros
    };

    std::uintptr_t begin = 0;           // differs between PEs that run the same executable
    std::uint64_t bytes = 0;            // from the first segment to the end of the last; 0: no variables
    std::vector<LoadSegment> segments;  // in order; no variable lies between two segments
    std::uint64_t identity = 0;

    // Returns the writable segments, without the part that the loader makes read-only. Linkers end that part at a page
    // boundary.
    static ProgramImage of(std::span<const ElfW(Phdr)> headers, std::uintptr_t load_address, std::uint64_t page);

    // Returns whether [offset, offset + length) is inside one segment.
    [[nodiscard]] bool contains(std::uint64_t offset, std::uint64_t length) const;
};

// Returns the image of the running executable. Equal identities mean the same file, so a variable has the same offset.
// The identity is the hash of the build id, or without a build id, of the file's contents apart from variables.
ProgramImage image_of_this_program();

// Describes a non-symmetric address, as the end of a sentence: "lies on this thread's stack".
std::string describe_address(const void* address);

}  // namespace npushmem
