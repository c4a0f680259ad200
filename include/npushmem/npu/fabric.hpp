// How a device reaches the memory of other PEs. The runtime implements it over its transport map; a test implements it
// over an array.
#pragma once

#include <cstddef>
#include <cstdint>

#include "npushmem/npu/remote_operations.hpp"

namespace npushmem::npu {

// Symmetric memory whose peers lie at a fixed distance, so that a remote address is computed and not looked up. Covers
// PEs [first_pe, first_pe + pe_count); empty when pe_count is 0.
struct Window {
    std::uintptr_t base = 0;    // of this PE's part
    std::size_t bytes = 0;      // of each part
    std::ptrdiff_t stride = 0;  // bytes from a PE's part to the next PE's
    int my_pe = 0;
    int first_pe = 0;
    int pe_count = 0;

    // 0 when the address or the PE is outside.
    [[nodiscard]] std::uintptr_t remote(std::uintptr_t address, int pe) const {
        const bool inside =
            address - base < bytes && static_cast<unsigned>(pe - first_pe) < static_cast<unsigned>(pe_count);
        return inside ? address + static_cast<std::uintptr_t>((pe - my_pe) * stride) : 0;
    }
    // Where the part of a PE of the window begins.
    [[nodiscard]] std::uintptr_t base_of(int pe) const {
        return base + static_cast<std::uintptr_t>((pe - my_pe) * stride);
    }
    // The PE in whose part the address is; -1: in none.
    [[nodiscard]] int pe_of(std::uintptr_t address) const {
        for (int pe = first_pe; pe < first_pe + pe_count; ++pe)
            if (address - base_of(pe) < bytes) return pe;
        return -1;
    }
};

// Who carries out what a core does to PEs that are not mapped: `proxy`, a thread beside the device, to which the cores
// hand requests; `direct`, the thread that runs the core, through connections of the core's own. `configured`: as the
// fabric is configured.
enum class RemoteMode : unsigned char { configured, proxy, direct };

// Called from kernels on any thread of the device at once: implementations are immutable or synchronise themselves.
class Fabric {
public:
    Fabric() = default;
    Fabric(const Fabric&) = delete;
    Fabric& operator=(const Fabric&) = delete;
    virtual ~Fabric() = default;

    [[nodiscard]] virtual int my_pe() const = 0;
    [[nodiscard]] virtual int n_pes() const = 0;
    // Where `pe`'s copy of a symmetric address can be loaded and stored by this PE; null when the address is not
    // symmetric or another PE's memory cannot be mapped. Valid for as long as the allocation lives.
    [[nodiscard]] virtual void* remote(const void* symmetric, int pe) const = 0;
    // A shortcut for most of remote(); read once per launch.
    [[nodiscard]] virtual Window window() const { return {}; }
    // How PEs are reached whose memory remote() does not give; null when there are none, or no way. A fabric that has
    // one way only gives that. The same for the same `mode`.
    [[nodiscard]] virtual RemoteOperations* remote_operations(RemoteMode /*mode*/) const { return nullptr; }
    // In whose symmetric memory an address, also one that remote() gave, or a synthetic_address is; -1: in nobody's.
    [[nodiscard]] virtual int pe_of(const void* address) const {
        const auto number = reinterpret_cast<std::uintptr_t>(address);
        return synthetic_address::is(number) ? synthetic_address::pe_of(number) : window().pe_of(number);
    }
};

}  // namespace npushmem::npu
