// The seam between the kernel language and modes that do more than execute: checking, tracing, virtual time. In fast
// mode a core has no hooks and every operation runs where it is written; with hooks, each operation is described to
// them and they decide when it runs. Kernels never see this interface.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <source_location>

#include "npushmem/npu/compare.hpp"
#include "npushmem/npu/pipe.hpp"
#include "npushmem/plugin/status.hpp"

namespace npushmem::npu {

class Core;
class KernelError;

// What one command reads or writes: `blocks` times `bytes`, `step` bytes from one beginning to the next.
struct Operand {
    const void* address = nullptr;
    std::size_t bytes = 0;
    std::size_t blocks = 1;
    std::size_t step = 0;
    bool global = false;      // GM, otherwise UB
    std::size_t padding = 0;  // bytes at the end of each block that are no data
};

// One command of a pipe. Operands that are not used have no address.
struct Command {
    const char* name;
    Pipe pipe;
    Operand target;
    bool reads_target;  // accumulating operations
    Operand source[2];
    std::source_location where;
};

// One call of a barrier: what all members of the team must agree on.
struct BarrierDescriptor {
    const char* variant;
    int start;
    int stride;
    int size;
    int radix;
    const void* state;         // this PE's
    std::uint64_t generation;  // that this barrier completes
};

// A word of this or another PE that is to be set to `value`, or added to.
struct Signal {
    std::uint64_t* word;  // where the memory is not mapped, only its name: see synthetic_address
    std::uint64_t value;
    bool add;
    std::function<void()> send = {};  // not empty: does it, where the memory is not mapped
};

// An atomic operation on a word when it is done.
struct AtomicResult {
    const void* address;
    std::size_t bytes;
    std::uint64_t before;  // the value that it found
    bool add;              // changes the word whatever it finds
    bool changed;          // the word has another value now
};

// One object per core and launch, called on that core's context only.
class CoreHooks {
public:
    using Where = const std::source_location&;

    CoreHooks() = default;
    CoreHooks(const CoreHooks&) = delete;
    CoreHooks& operator=(const CoreHooks&) = delete;
    virtual ~CoreHooks() = default;

    // `run` performs the command; call it exactly once, now or before the kernel's end. It owns copies of its
    // arguments.
    virtual void issue(const Command& command, std::function<void()> run) = 0;
    virtual void set_flag(Pipe from, Pipe to, int id, Where) = 0;
    virtual void wait_flag(Pipe from, Pipe to, int id, Where) = 0;
    virtual void pipe_barrier(Pipe pipe, Where) = 0;
    virtual void load(const void* address, void* value, std::size_t bytes, Where) = 0;
    virtual void store(void* address, const void* value, std::size_t bytes, Where) = 0;
    virtual void dcci(const void* address, std::size_t bytes, Where) = 0;
    virtual void quiet(Where) = 0;
    virtual void fence(Where) = 0;
    // Performs the signal, now or at the latest at the next fence or quiet, or before this core waits.
    virtual void signal(const Signal& signal, Where) = 0;
    virtual void before_atomic(const void* address, std::size_t bytes, Where) = 0;
    virtual void after_atomic(const AtomicResult& result, Where) = 0;
    // This core is about to wait for a word.
    virtual void before_wait() = 0;
    // This core saw a value in a wait, or fetched a signal.
    virtual void after_wait(const void* address, std::uint64_t seen, Where) = 0;
    // The kernel lets other cores run between two polls: `round` counts dcci calls for one line in a row; 0: a yield.
    // True: the hooks have decided whether others run. False: others run now.
    virtual bool poll(std::uint64_t /*round*/, Where) { return false; }
    // Before this core counts as arrived, and when all have.
    virtual void enter_core_barrier(Where) = 0;
    virtual void leave_core_barrier() = 0;
    // `placed`: by ub_at, where the kernel wanted it.
    virtual void ub_allocated(std::size_t offset, std::size_t bytes, bool placed, Where) = 0;
    virtual void ub_released(std::size_t mark) = 0;
    virtual void atomic_mode(bool on, Where) = 0;
    // A barrier among PEs begins on this core; a peer's word was seen in it.
    virtual void barrier_begin(const BarrierDescriptor& call, Where) = 0;
    virtual void barrier_observed(std::uint64_t seen, const BarrierDescriptor& call, int peer, Where) = 0;
    virtual void kernel_begin() = 0;
    // The kernel returned, or it threw this.
    virtual void kernel_end() = 0;
    virtual void failed(const KernelError& error) = 0;
    // This core's part of the launch is over, also where the kernel never began. The last core returns the findings of
    // all, if they make the launch fail.
    virtual Status launch_ended() { return {}; }
};

// Makes the hooks of a core before the kernel begins on it.
using HooksFactory = std::function<std::unique_ptr<CoreHooks>(Core&)>;

}  // namespace npushmem::npu
