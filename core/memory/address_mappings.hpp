// SPDX-License-Identifier: BSD-3-Clause
// What the memory of this process is made of, as the system lists it in /proc/self/maps.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/poller.hpp"
#include "npushmem/plugin/status.hpp"

namespace npushmem {

// One mapping: pages of a file, or of no file, at consecutive addresses.
struct AddressMapping {
    std::uintptr_t begin = 0;
    std::uintptr_t end = 0;
    bool writable = false;     // and readable
    bool shared = false;       // false: what this process writes, no other process sees
    std::uint64_t offset = 0;  // of `begin` in the file
    std::uint64_t device = 0;  // of the file, as st_dev on most file systems
    std::uint64_t inode = 0;   // of the file; 0: none
    std::string path;          // of the file, or a name such as "[stack]"; may be empty

    [[nodiscard]] bool same_file(const AddressMapping& other) const {
        return device == other.device && inode == other.inode;
    }
};

// Returns the mappings in `maps`, the text of /proc/<pid>/maps, that overlap [begin, end), in order.
std::vector<AddressMapping> mappings_in(std::string_view maps, std::uintptr_t begin, std::uintptr_t end);

// Returns the mappings of this process that overlap the range. Fails with Code::system where the system does not list
// them.
Result<std::vector<AddressMapping>> mappings_at(const void* address, std::uint64_t bytes);

// Returns the range as one mapping, if it is private memory, or consecutive pages of one shared file, that this process
// may write. Fails with Code::argument otherwise; the message has the address where the range differs. For private
// memory the file is that of the first page.
Result<AddressMapping> uniform_mapping(const void* address, std::uint64_t bytes);

// Opens the file of a shared mapping for reading and writing: through a descriptor that this process has open, or by
// its path. Fails with Code::argument when there is neither, or the memory is not of a regular file.
Result<FileDescriptor> open_mapped_file(const AddressMapping& mapping);

}  // namespace npushmem
