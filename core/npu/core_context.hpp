// SPDX-License-Identifier: BSD-3-Clause
// The state of a vector core while a launch runs on it, and the context (stack) that it runs on.
#pragma once

#include <cxxabi.h>

#include <boost/context/fiber.hpp>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

#include "npushmem/npu/core.hpp"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

#if defined(__SANITIZE_THREAD__)
#include <sanitizer/tsan_interface.h>
#endif

namespace npushmem::npu::detail {

// The C++ runtime keeps the exceptions that are being handled per thread. Cores take turns on one thread and need them
// per core: otherwise a core that waits inside a catch block would hand its exception to another core. The Itanium C++
// ABI prescribes this layout for the result of __cxa_get_globals.
struct ExceptionState {
    void* caught = nullptr;
    unsigned int uncaught = 0;

    // The state of the calling thread.
    static ExceptionState& current() { return *reinterpret_cast<ExceptionState*>(abi::__cxa_get_globals()); }
};

// Reports switches between contexts to the address and thread sanitizers, which cannot see them. Without it the address
// sanitizer takes a foreign stack for an overflow, and the thread sanitizer takes two cores for one thread. Empty in
// other builds.
//
// The address sanitizer checks kernels like any other code. All UBs lie in one mapping, so it does not see an overflow
// from one core's UB into the next. The thread sanitizer treats each core as a thread; a switch orders everything
// before it, because the cores of a launch run one after the other.
//
// One object describes one context. The bounds of a thread's own stack become known at the first switch away from it.
class SanitizerFiber {
public:
    SanitizerFiber() = default;
    SanitizerFiber(const SanitizerFiber&) = delete;
    SanitizerFiber& operator=(const SanitizerFiber&) = delete;

#if defined(__SANITIZE_THREAD__)
    static constexpr bool ends_in_thread = true;
#else
    static constexpr bool ends_in_thread = false;
#endif

#if defined(__SANITIZE_ADDRESS__)
    ~SanitizerFiber() = default;
    // Called before a context is created on this stack. Redzones that an earlier context left there must not count.
    void begin(const void* bottom, std::size_t bytes) {
        bottom_ = bottom, bytes_ = bytes, fake_stack_ = nullptr;
        __asan_unpoison_memory_region(bottom, bytes);
    }
    // Called after the creation, which runs on the new stack for a moment.
    void made() {}
    void adopt_thread() {}
    void before_switch(const SanitizerFiber& to) {
        __sanitizer_start_switch_fiber(&fake_stack_, to.bottom_, to.bytes_);
    }
    static void before_last_switch(const SanitizerFiber& to) {
        __sanitizer_start_switch_fiber(nullptr, to.bottom_, to.bytes_);
    }
    void after_switch(SanitizerFiber& from) {
        __sanitizer_finish_switch_fiber(fake_stack_, &from.bottom_, &from.bytes_);
    }

private:
    const void* bottom_ = nullptr;
    std::size_t bytes_ = 0;
    void* fake_stack_ = nullptr;
#elif defined(__SANITIZE_THREAD__)
    // Always inlined: otherwise the sanitizer would record the entry and the exit of a function that switches the
    // context in different contexts.
    ~SanitizerFiber() { end(); }
    [[gnu::always_inline]] void begin(const void*, std::size_t) {
        end();
        fiber_ = __tsan_create_fiber(0), owned_ = true;
        maker_ = __tsan_get_current_fiber();
        __tsan_switch_to_fiber(fiber_, 0);
    }
    [[gnu::always_inline]] void made() { __tsan_switch_to_fiber(maker_, 0); }
    void end() {
        if (owned_) __tsan_destroy_fiber(fiber_);
        owned_ = false;
    }
    void adopt_thread() { fiber_ = __tsan_get_current_fiber(); }
    [[gnu::always_inline]] void before_switch(const SanitizerFiber& to) { __tsan_switch_to_fiber(to.fiber_, 0); }
    // The sanitizer must pop the frames of an ending context from that context's own call record. It therefore learns
    // of this last switch afterwards. The target must not record new frames before that, so it is the thread's own
    // context.
    static void before_last_switch(const SanitizerFiber&) {}
    [[gnu::always_inline]] void after_switch(SanitizerFiber&) {
        if (__tsan_get_current_fiber() != fiber_) __tsan_switch_to_fiber(fiber_, 0);
    }

private:
    void* fiber_ = nullptr;
    void* maker_ = nullptr;
    bool owned_ = false;
#else
    ~SanitizerFiber() = default;
    void begin(const void*, std::size_t) {}
    void made() {}
    void adopt_thread() {}
    void before_switch(const SanitizerFiber&) {}
    static void before_last_switch(const SanitizerFiber&) {}
    void after_switch(SanitizerFiber&) {}
#endif
};

// A stack that can be switched to: a core's, or the thread's own.
struct Context {
    // Continues the context; empty while it runs.
    boost::context::fiber handle;
    SanitizerFiber sanitizer;
};

class RunningLaunch;
class Runner;

enum class CoreStatus : unsigned char {
    runnable,              // can continue at once, or has not begun
    polling,               // yields between two polls of its own
    awaiting_word,         // waits for `condition`
    awaiting_predicate,    // waits for `predicate`
    awaiting_core_barrier  // waits until the launch's core barrier passes `barrier`
};

// With a scheduler, a core that has polled unchanged memory this often waits for a change of the memory.
inline constexpr int max_idle_polls = 16;

// A condition other than a word in memory.
struct WaitPredicate {
    const std::function<bool()>& ready;
    const char* what;
    int pe;  // the PE whose death ends the wait; -1: any PE
    bool fulfilled = false;
};

// A vector core while a launch runs on it: its context, its place in the runner's ring, and its current wait. One
// class, because it is the state behind the public Core: the launch, the runner and the core itself read and write its
// members together at every wait. Thread rule: only the thread that runs the launch uses it.
class CoreContext {
public:
    CoreContext() = default;
    CoreContext(const CoreContext&) = delete;
    CoreContext& operator=(const CoreContext&) = delete;

    // Whether the core can stop waiting. Not called for polling cores.
    [[nodiscard]] bool ready();

    Context context;
    std::optional<Core> core;
    std::unique_ptr<CoreHooks> hooks;
    RunningLaunch* run = nullptr;
    Runner* runner = nullptr;
    // Neighbours in the runner's ring; null after the kernel has ended.
    CoreContext* next = nullptr;
    CoreContext* previous = nullptr;

    CoreStatus status = CoreStatus::runnable;
    Condition condition{};
    WaitPredicate* predicate = nullptr;
    std::uint64_t seen = 0;
    std::uint64_t barrier = 0;
    std::uint64_t polls = 0;
    // With a scheduler: the memory version at the last poll, and the number of consecutive polls that saw no change.
    std::uint64_t polled_version = 0;
    int idle_polls = 0;
    // The last word of a wait loop that checked mode has recognised, and its unchanging value; null: no such loop.
    const void* polled = nullptr;
    std::uint64_t polled_value = 0;
    bool in_wait_loop = false;  // the current wait is between two polls of such a loop
    // With a scheduler: the current wait has a limit of its own, which is over when the scheduler decides so.
    bool may_time_out = false;
    // Of such a wait loop under exploration: the polls that it makes next without a wait, as the scheduler decides,
    // those that it has made so, the number of grants behind which it did something else, and whether it has used up
    // one.
    std::uint64_t granted_polls = 0;
    std::uint64_t polls_alone = 0;
    int ended_grants = 0;
    bool loop_used_up = false;
    bool used_transport = false;              // in this launch: has used or waited for a transport
    std::unique_ptr<RemoteCoreState> remote;  // state of the transport to PEs that are not mapped
    Where where;
    std::chrono::nanoseconds timeout{0};   // of the current wait; 0: no limit
    std::chrono::nanoseconds deadline{0};  // on the steady clock; 0: not set yet
    // Not ok: the wait has failed.
    Status failure;
};

}  // namespace npushmem::npu::detail
