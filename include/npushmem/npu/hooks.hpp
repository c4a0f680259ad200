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

namespace npushmem::npu {

class Core;

// What one command reads or writes: `blocks` times `bytes`, `step` bytes from one beginning to the next.
struct Operand {
    const void* address = nullptr;
    std::size_t bytes = 0;
    std::size_t blocks = 1;
    std::size_t step = 0;
    bool global = false;  // GM, otherwise UB
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
    // Before this core's signal or atomic becomes visible, and after this core saw a value in a wait.
    virtual void before_signal(const void* address, Where) = 0;
    virtual void after_wait(const void* address, std::uint64_t seen, Where) = 0;
    // Before this core counts as arrived.
    virtual void core_barrier(Where) = 0;
    virtual void ub_allocated(std::size_t offset, std::size_t bytes, Where) = 0;
    virtual void kernel_end() = 0;
};

// Makes the hooks of a core before the kernel begins on it.
using HooksFactory = std::function<std::unique_ptr<CoreHooks>(Core&)>;

}  // namespace npushmem::npu
