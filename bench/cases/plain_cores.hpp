// Two cores as one would write them by hand: two contexts on one thread, which synchronise and wait by switching.
#pragma once

#include <sched.h>

#include <boost/context/fiber.hpp>
#include <cstdint>
#include <utility>

namespace npushmem::bench {

class PlainCores {
public:
    // A switch to the other core is not worth the yield of a CPU to another PE before each has looked `polls` times.
    explicit PlainCores(int polls) : polls_before_yield_(2 * polls) {}

    // Runs `core(0)` and `core(1)`, which may call barrier() and await(), until both return.
    template <class Body>
    void run(const Body& core) {
        other_ = boost::context::fiber([&](boost::context::fiber&& first) {
            other_ = std::move(first);
            core(1);
            return std::move(other_);
        });
        core(0);
        while (other_) switch_core();
    }

    void barrier() {
        const std::uint64_t before = generation_;
        if (++arrived_ == 2) {
            arrived_ = 0;
            ++generation_;
            return;
        }
        while (generation_ == before) switch_core();
    }

    template <class Ready>
    void await(const Ready& ready) {
        for (int polls = 0; !ready();) {
            switch_core();
            if (++polls % polls_before_yield_ == 0) sched_yield();
        }
    }

private:
    void switch_core() { other_ = std::move(other_).resume(); }

    boost::context::fiber other_;  // that does not run
    int polls_before_yield_;
    int arrived_ = 0;
    std::uint64_t generation_ = 0;
};

}  // namespace npushmem::bench
