// What a waiting PE asks of the operating system; an interface, so that tests wait without time passing.
#pragma once

#include <chrono>
#include <cstdint>

namespace npushmem {

class WaitOs {
public:
    WaitOs() = default;
    WaitOs(const WaitOs&) = delete;
    WaitOs& operator=(const WaitOs&) = delete;
    virtual ~WaitOs() = default;

    // Monotonic, from any fixed point.
    virtual std::chrono::nanoseconds now() = 0;
    // Lets another runnable thread of this core go first.
    virtual void yield() = 0;
    // At least this long, unless a signal comes.
    virtual void sleep(std::chrono::nanoseconds time) = 0;
    // As a futex in memory that processes share: returns when woken there, after `longest`, for no reason, and at once
    // when the word is not as expected.
    virtual void sleep_on(std::uint32_t* word, std::uint32_t expected, std::chrono::nanoseconds longest) = 0;
};

class SystemWaitOs final : public WaitOs {
public:
    std::chrono::nanoseconds now() override;
    void yield() override;
    void sleep(std::chrono::nanoseconds time) override;
    void sleep_on(std::uint32_t* word, std::uint32_t expected, std::chrono::nanoseconds longest) override;
};

// Tells the core that this is a polling loop: fewer mispredicted loads when the value comes, less taken from a
// hyper-thread beside. 10 to 50 ns.
inline void cpu_pause() {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    asm volatile("yield");
#endif
}

}  // namespace npushmem
