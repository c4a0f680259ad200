// SPDX-License-Identifier: BSD-3-Clause
// Access of a device to the memory of other PEs. The runtime implements it over its transport map; tests implement it
// over an array.
#pragma once

#include <cstddef>
#include <cstdint>

#include "npushmem/npu/remote_operations.hpp"

namespace npushmem::npu {

// Symmetric memory in which the PEs' parts lie at a fixed distance, so that remote addresses are computed without a
// lookup. Covers PEs [first_pe, first_pe + pe_count); empty when pe_count is 0.
struct Window {
    std::uintptr_t base = 0;    // address of this PE's part
    std::size_t bytes = 0;      // size of each part
    std::ptrdiff_t stride = 0;  // bytes from one PE's part to the next PE's part
    int my_pe = 0;
    int first_pe = 0;
    int pe_count = 0;

    // `pe`'s copy of `address`; 0 when the address or the PE is outside the window.
    [[nodiscard]] std::uintptr_t remote(std::uintptr_t address, int pe) const {
        const bool inside =
            address - base < bytes && static_cast<unsigned>(pe - first_pe) < static_cast<unsigned>(pe_count);
        return inside ? address + static_cast<std::uintptr_t>((pe - my_pe) * stride) : 0;
    }
    // Address of the part of a PE in the window.
    [[nodiscard]] std::uintptr_t base_of(int pe) const {
        return base + static_cast<std::uintptr_t>((pe - my_pe) * stride);
    }
    // The PE whose part contains the address; -1: none.
    [[nodiscard]] int pe_of(std::uintptr_t address) const {
        for (int pe = first_pe; pe < first_pe + pe_count; ++pe)
            if (address - base_of(pe) < bytes) return pe;
        return -1;
    }
};

// Selects the thread that executes operations on PEs that are not mapped. `proxy`: a separate thread, to which the
// cores pass requests. `direct`: the thread that runs the core, through connections of that core. `configured`: as
// configured in the fabric.
enum class RemoteMode : unsigned char { configured, proxy, direct };

// Kernels call it from several threads of the device concurrently: implementations are immutable or synchronise
// themselves.
class Fabric {
public:
    Fabric() = default;
    Fabric(const Fabric&) = delete;
    Fabric& operator=(const Fabric&) = delete;
    virtual ~Fabric() = default;

    [[nodiscard]] virtual int my_pe() const = 0;
    [[nodiscard]] virtual int n_pes() const = 0;
    // The address at which this PE can load and store `pe`'s copy of a symmetric address; null when the address is not
    // symmetric or the memory of another PE cannot be mapped. Valid for the lifetime of the allocation.
    [[nodiscard]] virtual void* remote(const void* symmetric, int pe) const = 0;
    // A shortcut for most calls of remote(); read once per launch.
    [[nodiscard]] virtual Window window() const { return {}; }
    // The operations that reach PEs whose memory is not mapped; null when there are no such PEs or no transport reaches
    // them. A fabric with one implementation returns it for every mode. Repeated calls with the same `mode` return the
    // same object.
    [[nodiscard]] virtual RemoteOperations* remote_operations(RemoteMode /*mode*/) const { return nullptr; }
    // The PE whose symmetric memory contains the address; -1: none. Accepts addresses from remote() and synthetic
    // addresses.
    [[nodiscard]] virtual int pe_of(const void* address) const {
        const auto number = reinterpret_cast<std::uintptr_t>(address);
        return synthetic_address::is(number) ? synthetic_address::pe_of(number) : window().pe_of(number);
    }
};

}  // namespace npushmem::npu
