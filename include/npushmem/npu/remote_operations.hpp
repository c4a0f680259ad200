// Operations on the memory of PEs that cannot be mapped: by a transport, on behalf of a core, while other cores run.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>

#include "npushmem/plugin/status.hpp"

namespace npushmem::npu {

// What an implementation of RemoteOperations keeps for one core: made by it at the core's first operation, kept by the
// core from launch to launch, gone with the core's device; that may be after the implementation.
class RemoteCoreState {
public:
    RemoteCoreState() = default;
    RemoteCoreState(const RemoteCoreState&) = delete;
    RemoteCoreState& operator=(const RemoteCoreState&) = delete;
    virtual ~RemoteCoreState() = default;

    // A launch begins: failures of what its predecessors began on this core, and did not wait for, are not its own.
    virtual void begin_launch() {}
};

// How a core waits inside such an operation.
class RemoteWait {
public:
    RemoteWait() = default;
    RemoteWait(const RemoteWait&) = delete;
    RemoteWait& operator=(const RemoteWait&) = delete;
    virtual ~RemoteWait() = default;

    // Runs other cores, and sleeps when there is none, until `ready()`. Otherwise Code::timeout (the device's
    // wait_timeout), Code::peer_dead (`pe`; -1: any), Code::aborted when the launch is being given up. `ready` may be
    // called from contexts of other cores of the same thread, and not again once it was true.
    virtual Status until(const std::function<bool()>& ready, const char* what, int pe) = 0;
    // Of the core that waits; null until the implementation has put something there.
    [[nodiscard]] virtual std::unique_ptr<RemoteCoreState>& core_state() = 0;
};

// An atomic operation on `width` bytes, 4 or 8, aligned.
struct RemoteAtomic {
    enum class Kind : unsigned char { set, add, fetch, fetch_add, swap, compare_swap };

    Kind kind;
    void* object;  // this PE's copy
    std::size_t width;
    std::uint64_t operand = 0;
    std::uint64_t expected = 0;  // of compare_swap
};

// Called from kernels on any thread of the device at once. Objects of other PEs are named by this PE's copy. Each
// returns Code::not_symmetric or Code::range for memory that is not whole in symmetric memory, what the transport says,
// and what `wait` says; after a failure memory that was handed over may still be read, or written, until the device is
// gone. What fails after its call has returned is told by a later call of the same core, at the latest by its next
// quiet.
//
// "Before" is what this core has called before, and what any core has that this one has heard from since.
class RemoteOperations {
public:
    RemoteOperations() = default;
    RemoteOperations(const RemoteOperations&) = delete;
    RemoteOperations& operator=(const RemoteOperations&) = delete;
    virtual ~RemoteOperations() = default;

    // Where a symmetric address is in symmetric memory; no_offset: it is not.
    static constexpr std::uint64_t no_offset = ~std::uint64_t{0};
    [[nodiscard]] virtual std::uint64_t offset_of(const void* address) const = 0;

    // Returns when `source` may be changed.
    virtual Status put(void* target, const void* source, std::size_t bytes, int pe, RemoteWait& wait) = 0;
    // Returns when the bytes are there.
    virtual Status get(void* target, const void* source, std::size_t bytes, int pe, RemoteWait& wait) = 0;
    // As put; `signal` becomes `value` when the data is there, and not before.
    virtual Status put_signal(void* target, const void* source, std::size_t bytes, std::uint64_t* signal,
                              std::uint64_t value, int pe, RemoteWait& wait) = 0;
    // All but fetch come after everything that was put to that PE before. Those that fetch return when `before`, which
    // must not be null then, has what was there.
    virtual Status atomic(const RemoteAtomic& operation, std::uint64_t* before, int pe, RemoteWait& wait) = 0;
    // To each PE, what was started before comes before what is started later.
    virtual Status fence(RemoteWait& wait) = 0;
    // What was started before is complete and visible.
    virtual Status quiet(RemoteWait& wait) = 0;
};

// Names for bytes that have no address here, for modes that watch what kernels do. No address of a process looks like
// one: bit 63, then 23 bits of the PE, then 40 of the offset.
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
