// SPDX-License-Identifier: BSD-3-Clause
// The interface between the kernel language and modes that do more than execute: checking, tracing, virtual time. In
// fast mode a core has no hooks and every operation runs at its call. With hooks, each operation is described to them
// and they decide when it runs. Kernels never see this interface.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>

#include "npushmem/npu/compare.hpp"
#include "npushmem/npu/core_state.hpp"
#include "npushmem/npu/pipe.hpp"
#include "npushmem/npu/source_location.hpp"
#include "npushmem/plugin/status.hpp"

namespace npushmem::npu {

class Core;
class KernelError;

// The memory that one command reads or writes: `blocks` blocks of `bytes`, whose starts are `step` bytes apart.
struct Operand {
    const void* address = nullptr;
    std::size_t bytes = 0;
    std::size_t blocks = 1;
    std::size_t step = 0;
    bool global = false;      // true: GM; false: UB
    std::size_t padding = 0;  // bytes at the end of each block that hold no data
};

// One command of a pipe. Unused operands have a null address.
struct Command {
    const char* name;
    Pipe pipe;
    Operand target;
    bool reads_target;  // true for accumulating operations
    Operand source[2];
    SourceLocation where;
};

// One call of a barrier: the parameters that all members of the team must agree on.
struct BarrierDescriptor {
    const char* variant;
    int start;
    int stride;
    int size;
    int radix;
    const void* state;         // this PE's
    std::uint64_t generation;  // the generation that this barrier completes
};

// Sets a word of this or another PE to `value`, or adds `value` to it.
struct Signal {
    std::uint64_t* word;  // for memory that is not mapped: a synthetic address, see synthetic_address
    std::uint64_t value;
    bool add;
    std::function<void()> send = {};  // performs the signal if the memory is not mapped; otherwise empty
};

// The result of a completed atomic operation on a word.
struct AtomicResult {
    const void* address;
    std::size_t bytes;
    std::uint64_t before;  // the value before the operation
    bool add;              // true: an addition
    bool changed;          // true: the operation changed the value
};

// One object per core and launch. Only that core's context calls it.
class CoreHooks {
public:
    using Where = const SourceLocation&;

    CoreHooks() = default;
    CoreHooks(const CoreHooks&) = delete;
    CoreHooks& operator=(const CoreHooks&) = delete;
    virtual ~CoreHooks() = default;

    // `run` performs the command and owns copies of its arguments. Call it exactly once, now or before the kernel's
    // end.
    virtual void issue(const Command& command, std::function<void()> run) = 0;
    virtual void set_flag(Pipe from, Pipe to, int id, Where) = 0;
    virtual void wait_flag(Pipe from, Pipe to, int id, Where) = 0;
    virtual void pipe_barrier(Pipe pipe, Where) = 0;
    virtual void load(const void* address, void* value, std::size_t bytes, Where) = 0;
    virtual void store(void* address, const void* value, std::size_t bytes, Where) = 0;
    virtual void dcci(const void* address, std::size_t bytes, Where) = 0;
    virtual void quiet(Where) = 0;
    virtual void fence(Where) = 0;
    // Performs the signal: now, or at the latest at the next fence or quiet or before this core waits.
    virtual void signal(const Signal& signal, Where) = 0;
    virtual void before_atomic(const void* address, std::size_t bytes, Where) = 0;
    virtual void after_atomic(const AtomicResult& result, Where) = 0;
    // Called before this core waits for a word.
    virtual void before_wait() = 0;
    // Called before this core reads a word in a fetch or a wait with a time limit.
    virtual void before_fetch(const void* /*word*/, Where) {}
    // Called before this core reads a word in a wait without a time limit. The hooks may let other cores run until the
    // condition holds.
    virtual void before_wait_until(const detail::Condition& /*condition*/, Where) {}
    // Called after this core saw a value in a wait or fetched a signal.
    virtual void after_wait(const void* address, std::uint64_t seen, Where) = 0;
    // Called when the kernel lets other cores run between two polls. `round`: number of consecutive dcci calls for one
    // line; 0: a yield. Returns true if the hooks decided whether other cores run, and false to let them run now.
    virtual bool poll(std::uint64_t /*round*/, Where) { return false; }
    // Called before this core counts as arrived, and after all cores have arrived.
    virtual void enter_core_barrier(Where) = 0;
    virtual void leave_core_barrier() = 0;
    // `placed`: true for ub_at, at an offset chosen by the kernel.
    virtual void ub_allocated(std::size_t offset, std::size_t bytes, bool placed, Where) = 0;
    virtual void ub_released(std::size_t mark) = 0;
    virtual void atomic_mode(bool on, Where) = 0;
    // Called when a barrier among PEs begins on this core, and when the barrier has seen a peer's word.
    virtual void barrier_begin(const BarrierDescriptor& call, Where) = 0;
    virtual void barrier_observed(std::uint64_t seen, const BarrierDescriptor& call, int peer, Where) = 0;
    virtual void kernel_begin() = 0;
    // Called when the kernel returns (kernel_end) or throws (failed).
    virtual void kernel_end() = 0;
    virtual void failed(const KernelError& error) = 0;
    // The virtual time of this core in seconds; negative: there is none.
    [[nodiscard]] virtual double virtual_seconds() const { return -1; }
    // Called when the launch has ended on this core, even if the kernel never began there. The last core returns the
    // findings of all cores if they make the launch fail.
    virtual Status launch_ended() { return {}; }
};

// Creates the hooks of a core before the kernel begins on it.
using HooksFactory = std::function<std::unique_ptr<CoreHooks>(Core&)>;

}  // namespace npushmem::npu
