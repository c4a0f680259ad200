// Tells the address and thread sanitizers about switches between contexts, which they cannot see: without it the one
// takes a foreign stack for an overflow and the other takes two cores for one thread. Nothing in other builds.
//
// What they see then: address sanitizer checks kernels as any code, UB included (one mapping: overflows from one core's
// UB into the next are not seen). Thread sanitizer takes each core for a thread of its own; a switch orders what came
// before it, because the cores of a launch really run one after the other.
#pragma once

#include <cstddef>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif
#if defined(__SANITIZE_THREAD__)
#include <sanitizer/tsan_interface.h>
#endif

namespace npushmem::npu::detail {

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

}  // namespace npushmem::npu::detail
