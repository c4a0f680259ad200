// Which addresses are device memory, and what a person calls them.
#pragma once

#include <cstdint>
#include <string>

namespace npushmem::npu::check {

class MemoryNames {
public:
    using Address = std::uintptr_t;

    MemoryNames() = default;
    MemoryNames(const MemoryNames&) = delete;
    MemoryNames& operator=(const MemoryNames&) = delete;
    virtual ~MemoryNames() = default;

    // Whether scalar accesses to it go through the modelled cache: whole lines of it must be accessible.
    [[nodiscard]] virtual bool cached(Address address) const = 0;
    // Empty when the bytes may be accessed, otherwise why not.
    [[nodiscard]] virtual std::string refusal(Address address, std::size_t bytes) const = 0;
    // "symmetric allocation 2 (64 bytes) + 8 of PE 1".
    [[nodiscard]] virtual std::string name_of(Address address) const = 0;
    // Whether PEs that nobody checks here write to symmetric memory, too: other processes.
    [[nodiscard]] virtual bool shared() const { return false; }
    // Whose symmetric memory it is; -1: nobody's.
    [[nodiscard]] virtual int pe_of(Address address) const = 0;
};

}  // namespace npushmem::npu::check
