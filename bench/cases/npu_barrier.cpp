// SPDX-License-Identifier: BSD-3-Clause
// Two hand-written cores: two contexts on one thread, which synchronise and wait by switching.
#include <sched.h>
#include <boost/context/fiber.hpp>

#include <atomic>
#include <cstdint>
#include <utility>
#include <vector>

#include "bench/cases/baselines.hpp"
#include "bench/cases/case.hpp"
#include "bench/cases/npu_batch.hpp"
#include "npushmem.h"

namespace npushmem::bench {

class PlainCores {
public:
    // Each core polls `polls` times before the thread yields its CPU to another PE.
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

    boost::context::fiber other_;  // the core that does not run
    int polls_before_yield_;
    int arrived_ = 0;
    std::uint64_t generation_ = 0;
};

// The NPU's barrier v3 in fast mode beside the same algorithm in plain C++, with one and with two cores on each PE, and
// beside the host's barrier.

namespace {

// Barrier v3 alone: publishes its arrival; then core c of k reads the words of the members c, c + k, ... The cores
// synchronise before, once each has read the generation, and after.
class PlainV3 {
public:
    PlainV3(const Arena& arena, std::byte* lines)
        : generation_(word(lines)), polls_(raw_polls(arena.pes)), me_(arena.pe) {
        for (int pe = 0; pe < arena.pes; ++pe)
            arrivals_.push_back(word(static_cast<std::byte*>(npushmem_ptr(lines + raw_line_bytes, pe))));
    }

    void with_one_core(std::uint64_t iterations) {
        for (; iterations > 0; --iterations) {
            const std::uint64_t next = begin();
            enter(next);
            for (int pe = 0; pe < static_cast<int>(arrivals_.size()); ++pe)
                if (pe != me_) raw_wait(reinterpret_cast<std::byte*>(arrivals_[pe]), next, polls_);
        }
    }

    void with_two_cores(std::uint64_t iterations) {
        PlainCores cores(polls_);
        cores.run([&](int core) {
            for (std::uint64_t i = 0; i < iterations; ++i) {
                const std::uint64_t next = begin();
                cores.barrier();
                if (core == 0) enter(next);
                for (int pe = core; pe < static_cast<int>(arrivals_.size()); pe += 2)
                    if (pe != me_) cores.await([&] { return has_entered(pe, next); });
                cores.barrier();
            }
        });
    }

private:
    static std::uint64_t* word(std::byte* line) { return reinterpret_cast<std::uint64_t*>(line); }

    // Written by this PE only.
    [[nodiscard]] std::uint64_t begin() const {
        return std::atomic_ref(*generation_).load(std::memory_order_relaxed) + 1;
    }
    void enter(std::uint64_t next) {
        raw_set(reinterpret_cast<std::byte*>(arrivals_[me_]), next);
        std::atomic_ref(*generation_).store(next, std::memory_order_relaxed);
    }
    // Acquire: pairs with the release of raw_set in that PE's enter().
    [[nodiscard]] bool has_entered(int pe, std::uint64_t next) const {
        return std::atomic_ref(*arrivals_[pe]).load(std::memory_order_acquire) >= next;
    }

    std::uint64_t* generation_;
    std::vector<std::uint64_t*> arrivals_;
    int polls_;
    int me_;
};

Point barrier(const Arena& arena, int cores) {
    auto* state = arena.own_as<npu::BarrierState>() + cores - 1;
    std::byte* lines = arena.own + 2 * sizeof(npu::BarrierState) + (cores - 1) * 2 * raw_line_bytes;
    Point point{.name = cores == 1 ? "barrier v3, one core" : "barrier v3, two cores", .shared = true};
    point.variants.push_back({"npushmem",
                              launched(device_of(cores),
                                       [state](npu::Core& core, std::uint64_t iterations) {
                                           const npu::TeamView world{0, 1, core.n_pes()};
                                           for (std::uint64_t i = 0; i < iterations; ++i)
                                               npu::sync_v3(core, world, state);
                                       }),
                              false});
    if (arena.all_mapped) {
        const auto plain = std::make_shared<PlainV3>(arena, lines);
        point.variants.push_back({"plain C++", [plain, cores](std::uint64_t iterations) {
                                      if (cores == 1) return plain->with_one_core(iterations);
                                      plain->with_two_cores(iterations);
                                  }});
    }
    point.variants.push_back(baseline("host barrier", [](std::uint64_t) { npushmem_sync_all(); }));
    return point;
}

std::vector<Point> points(const Arena& arena) {
    if (arena.pes == 1) return {};
    return {barrier(arena, 1), barrier(arena, 2)};
}

}  // namespace

Case npu_barrier_case() { return {"npu", 2 * sizeof(npu::BarrierState) + 4 * raw_line_bytes, points}; }

}  // namespace npushmem::bench
