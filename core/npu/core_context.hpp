// A vector core while a launch runs on it.
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

// The C++ runtime keeps the exceptions being handled per thread; cores that take turns on one thread need them per
// core, or a core that waits inside a catch block would hand its exception to another.
// The layout that the Itanium C++ ABI prescribes for what __cxa_get_globals returns.
struct ExceptionState {
    void* caught = nullptr;
    unsigned int uncaught = 0;

    // Of the calling thread.
    static ExceptionState& current() { return *reinterpret_cast<ExceptionState*>(abi::__cxa_get_globals()); }
};

// Tells the address and thread sanitizers about switches between contexts, which they cannot see: without it the one
// takes a foreign stack for an overflow and the other takes two cores for one thread. Nothing in other builds.
//
// What they see then: address sanitizer checks kernels as any code, UB included (one mapping: overflows from one core's
// UB into the next are not seen). Thread sanitizer takes each core for a thread of its own; a switch orders what came
// before it, because the cores of a launch really run one after the other.
// What the sanitizers know of one context. Bounds of a thread's own stack are learned at the first switch away from it.
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
    // Before a context is made on this stack. What an earlier one left there must not count as its redzones.
    void begin(const void* bottom, std::size_t bytes) {
        bottom_ = bottom, bytes_ = bytes, fake_stack_ = nullptr;
        __asan_unpoison_memory_region(bottom, bytes);
    }
    // After it: making a context runs on its stack for a moment.
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
    // Inlined without exception: the entry and exit of a function in which the context changes would be recorded in
    // different contexts.
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
    // The frames that a context leaves as it ends must be taken from its own record of calls: so the sanitizer learns
    // of this switch after it, and the target must be one that records no new frames before that, the thread's own.
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

// One stack that can be switched to: a core's, or the thread's own.
struct Context {
    // Where to continue; empty while it runs.
    boost::context::fiber handle;
    SanitizerFiber sanitizer;
};

// A vector core while a launch runs on it.
class RunningLaunch;
class Runner;

enum class CoreStatus : unsigned char {
    runnable,              // can go on at once (also: has not begun)
    polling,               // let others run between two polls of its own
    awaiting_word,         // for `condition`
    awaiting_predicate,    // for `predicate`
    awaiting_core_barrier  // for the launch's core barrier to pass `barrier`
};

// A core that polls unchanging memory more often than this, where a scheduler watches, waits for a change.
inline constexpr int max_idle_polls = 16;

// What a core waits for that is no word in memory.
struct WaitPredicate {
    const std::function<bool()>& ready;
    const char* what;
    int pe;  // without which it cannot come true; -1: any
    bool fulfilled = false;
};

// Used by one thread only: the one that runs the launch.
class CoreContext {
public:
    CoreContext() = default;
    CoreContext(const CoreContext&) = delete;
    CoreContext& operator=(const CoreContext&) = delete;

    // Whether it need not wait any longer; not asked of polling cores.
    [[nodiscard]] bool ready();

    Context context;
    std::optional<Core> core;
    std::unique_ptr<CoreHooks> hooks;
    RunningLaunch* run = nullptr;
    Runner* runner = nullptr;
    // The ring of the runner; null when its kernel has ended.
    CoreContext* next = nullptr;
    CoreContext* previous = nullptr;

    CoreStatus status = CoreStatus::runnable;
    Condition condition{};
    WaitPredicate* predicate = nullptr;
    std::uint64_t seen = 0;
    std::uint64_t barrier = 0;
    std::uint64_t polls = 0;
    // Where a scheduler counts changes of the memory: the state at the last poll, and polls in a row that found no
    // change.
    std::uint64_t polled_version = 0;
    int idle_polls = 0;
    // The last word of a wait loop that checked mode recognised, and the value that it keeps; null: none.
    const void* polled = nullptr;
    std::uint64_t polled_value = 0;
    bool deferred = false;                    // by a scheduler: until no other can go on
    bool used_transport = false;              // in this launch: has waited for a transport, or begun something there
    std::unique_ptr<RemoteCoreState> remote;  // of the device's way to PEs that are not mapped
    Where where;
    std::chrono::nanoseconds timeout{0};   // of the current wait; 0: none
    std::chrono::nanoseconds deadline{0};  // on the steady clock; 0: not yet fixed
    // Not ok: the wait is over, without its condition.
    Status failure;
};

}  // namespace npushmem::npu::detail
