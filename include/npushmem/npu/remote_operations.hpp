// SPDX-License-Identifier: BSD-3-Clause
// Operations on the memory of PEs that cannot be mapped. A transport executes them for a core while other cores run.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>

#include "npushmem/plugin/status.hpp"

namespace npushmem::npu {

// State of a RemoteOperations implementation for one core. The implementation creates it at the core's first operation.
// The core keeps it from launch to launch; it is destroyed with the core's device, possibly after the implementation.
class RemoteCoreState {
public:
    RemoteCoreState() = default;
    RemoteCoreState(const RemoteCoreState&) = delete;
    RemoteCoreState& operator=(const RemoteCoreState&) = delete;
    virtual ~RemoteCoreState() = default;

    // Called when a launch begins. Failures of operations that earlier launches started on this core, and did not wait
    // for, do not affect this launch.
    virtual void begin_launch() {}
};

// Wait function of a core inside such an operation.
class RemoteWait {
public:
    RemoteWait() = default;
    RemoteWait(const RemoteWait&) = delete;
    RemoteWait& operator=(const RemoteWait&) = delete;
    virtual ~RemoteWait() = default;

    // Runs other cores, or sleeps if there are none, until `ready()` returns true. Otherwise returns Code::timeout (the
    // device's wait_timeout), Code::peer_dead (`pe`; -1: any PE) or Code::aborted (the launch is being aborted).
    // Contexts of other cores on the same thread may call `ready`; nobody calls it again after it returned true.
    virtual Status until(const std::function<bool()>& ready, const char* what, int pe) = 0;
    // The state of the waiting core; null until the implementation sets it.
    [[nodiscard]] virtual std::unique_ptr<RemoteCoreState>& core_state() = 0;
};

// An atomic operation on `width` bytes, 4 or 8, aligned.
struct RemoteAtomic {
    enum class Kind : unsigned char { set, add, fetch, fetch_add, swap, compare_swap };

    Kind kind;
    void* object;  // address of this PE's copy
    std::size_t width;
    std::uint64_t operand = 0;
    std::uint64_t expected = 0;  // of compare_swap
};

// Kernels call it from several threads of the device concurrently. Objects of other PEs are identified by the address
// of this PE's copy. Each operation returns Code::not_symmetric or Code::range for memory that is not entirely
// symmetric, the errors of the transport, and the errors of `wait`. After a failure the transport may still read or
// write the memory passed to it until the device is destroyed. A failure after the return of its operation is reported
// by a later call of the same core, at the latest by its next quiet.
//
// "Earlier operations" are those that this core has called before, and those of other cores that this core has
// synchronised with since.
class RemoteOperations {
public:
    RemoteOperations() = default;
    RemoteOperations(const RemoteOperations&) = delete;
    RemoteOperations& operator=(const RemoteOperations&) = delete;
    virtual ~RemoteOperations() = default;

    // Offset of an address in symmetric memory; no_offset: the address is not symmetric.
    static constexpr std::uint64_t no_offset = ~std::uint64_t{0};
    [[nodiscard]] virtual std::uint64_t offset_of(const void* address) const = 0;

    // Returns when `source` may be reused.
    virtual Status put(void* target, const void* source, std::size_t bytes, int pe, RemoteWait& wait) = 0;
    // Returns when the bytes have arrived.
    virtual Status get(void* target, const void* source, std::size_t bytes, int pe, RemoteWait& wait) = 0;
    // Like put. `signal` becomes `value` only after the data has arrived.
    virtual Status put_signal(void* target, const void* source, std::size_t bytes, std::uint64_t* signal,
                              std::uint64_t value, int pe, RemoteWait& wait) = 0;
    // All kinds except fetch are ordered after all earlier puts to that PE. Fetching kinds return after `before`, which
    // must not be null for them, has received the old value.
    virtual Status atomic(const RemoteAtomic& operation, std::uint64_t* before, int pe, RemoteWait& wait) = 0;
    // Orders earlier operations to each PE before later ones to the same PE.
    virtual Status fence(RemoteWait& wait) = 0;
    // Returns when all earlier operations are complete and visible.
    virtual Status quiet(RemoteWait& wait) = 0;
};

// Synthetic addresses identify bytes that are not mapped here, for modes that observe kernels. No real address of a
// process has this form: bit 63, then 23 bits of the PE, then 40 bits of the offset.
namespace synthetic_address {

inline constexpr std::uintptr_t mark = std::uintptr_t{1} << 63;
inline constexpr int offset_bits = 40;

constexpr bool is(std::uintptr_t name) { return (name & mark) != 0; }
constexpr std::uintptr_t of(int pe, std::uint64_t offset) {
    return mark | static_cast<std::uintptr_t>(pe) << offset_bits | offset;
}
constexpr int pe_of(std::uintptr_t name) { return static_cast<int>((name & ~mark) >> offset_bits); }
constexpr std::uint64_t offset_of(std::uintptr_t name) { return name & ((std::uint64_t{1} << offset_bits) - 1); }

}  // namespace synthetic_address

}  // namespace npushmem::npu
