// SPDX-License-Identifier: BSD-3-Clause
// Kernels of several PEs that are wrong in what they do to each other's memory, and the same without the mistake.
// Prints what each PE's launches report.
//     api_checked_peers <case> wrong|right
#include <csignal>
#include <cstdio>
#include <cstring>
#include <functional>
#include <map>
#include <stdexcept>
#include <string>

#include "npushmem.h"
#include "npushmem/npu/npu.hpp"

namespace npushmem::api_test {
namespace {

using npu::BarrierState;
using npu::Compare;
using npu::Core;

constexpr int words_per_line = 8;

struct Program {
    bool right;
    int me = npushmem_my_pe();
    int npes = npushmem_n_pes();
    std::uint64_t* data = zeros(64 * words_per_line);
    std::uint64_t* signals = zeros(64 * words_per_line);

    static std::uint64_t* zeros(std::size_t count) {
        return static_cast<std::uint64_t*>(npushmem_calloc(count, sizeof(std::uint64_t)));
    }
    [[nodiscard]] std::uint64_t* signal(int number) const { return signals + number * words_per_line; }
};

void run(int cores, const std::function<void(Core&)>& kernel) {
    npu::Stream& stream = npu::device().default_stream();
    Status status = npu::launch(stream, cores, kernel);
    if (status.ok()) status = stream.synchronize();
    std::printf("PE %d: %s\n", npushmem_my_pe(), status.ok() ? "nothing found" : status.message().c_str());
    static_cast<void>(std::fflush(stdout));
}

void run_on_one_core(const std::function<void(Core&)>& kernel) {
    run(1, [&](Core& core) {
        if (core.index() == 0) kernel(core);
    });
}

// Each PE stores a part of a line of PE 0.
void halves(const Program& program) {
    run_on_one_core([&](Core& core) {
        std::uint64_t* const part =
            core.remote(program.data, 0) + program.me * (program.right ? words_per_line : words_per_line / 2);
        core.store(part, 1);
        core.dcci(part);
    });
}

// The same, and the kernels meet afterwards.
void halves_before_barrier(const Program& program) {
    auto* state = reinterpret_cast<BarrierState*>(npushmem_calloc(1, sizeof(BarrierState)));
    run(1, [&](Core& core) {
        if (core.index() == 0) {
            std::uint64_t* const part =
                core.remote(program.data, 0) + program.me * (program.right ? words_per_line : words_per_line / 2);
            core.store(part, 1);
            core.dcci(part);
        }
        npu::barrier_v3(core, {0, 1, program.npes}, state);
    });
}

// PE 0 stores to its own memory and signals; the others read it there.
void unflushed(const Program& program) {
    run_on_one_core([&](Core& core) {
        if (program.me == 0) {
            core.store(program.data, 7);
            if (program.right) core.dcci(program.data);
            for (int pe = 1; pe < program.npes; ++pe) core.signal_set_on(program.signal(0), 1, pe);
            return;
        }
        core.signal_wait_until(program.signal(0), Compare::equal, 1, 0);
        if (program.me == 1) return static_cast<void>(core.load(core.remote(program.data, 0)));
        const auto tile = core.ub_alloc<std::uint64_t>(words_per_line);
        core.data_copy(tile, npu::gm(core.remote(program.data, 0), words_per_line), words_per_line);
        core.pipe_barrier<npu::Pipe::all>();
    });
}

// v2 without the meeting of the cores between rounds: each core passes on its own j only.
void v2_without_join(Core& core, BarrierState* state, int size, int radix) {
    const int j = core.index() + 1;
    core.quiet();
    core.core_barrier();
    std::size_t slot = 0;
    for (int shift = 1; shift < size; shift *= radix, slot += static_cast<std::size_t>(radix - 1)) {
        if (j >= radix || j * shift >= size) continue;
        std::uint64_t* word = &state->slots[slot + static_cast<std::size_t>(j - 1)].word;
        core.signal_set_on(word, 1, (core.my_pe() + j * shift) % size);
        core.signal_wait_until(word, Compare::greater_equal, 1);
    }
    core.core_barrier();
}

// Every PE writes, all meet, every PE reads what the others wrote.
void barrier_v2(const Program& program) {
    auto* state = reinterpret_cast<BarrierState*>(npushmem_calloc(1, sizeof(BarrierState)));
    run(1, [&](Core& core) {
        if (core.index() == 0) {
            core.store(program.data, 1);
            core.dcci(program.data);
        }
        if (program.right)
            npu::barrier_v2(core, {0, 1, program.npes}, state, 3);
        else
            v2_without_join(core, state, program.npes, 3);
        if (core.index() != 0) return;
        const auto tile = core.ub_alloc<std::uint64_t>(words_per_line);
        for (int pe = 0; pe < program.npes; ++pe) {
            core.data_copy(tile, npu::gm(core.remote(program.data, pe), words_per_line), words_per_line);
            core.pipe_barrier<npu::Pipe::all>();
        }
    });
}

// PE 0 puts to PE 2 and signals PE 1, which signals PE 2.
void relay(const Program& program) {
    run_on_one_core([&](Core& core) {
        if (program.me == 0) {
            core.put(program.data + words_per_line, program.data, words_per_line, 2);
            if (program.right)
                core.quiet();
            else
                core.fence();
            core.signal_set_on(program.signal(0), 1, 1);
        } else {
            core.signal_wait_until(program.signal(program.me - 1), Compare::equal, 1, program.me - 1);
            if (program.me == 1) return core.signal_set_on(program.signal(1), 1, 2);
            static_cast<void>(core.load(program.data + words_per_line));
        }
    });
}

// Kernels without a mistake, in a row of launches that only they order.
void ring(const Program& program) {
    const int right = (program.me + 1) % program.npes;
    const int left = (program.me + program.npes - 1) % program.npes;
    for (std::uint64_t round = 1; round <= 3; ++round) {
        run_on_one_core([&](Core& core) {
            core.store(program.data, round);
            core.dcci(program.data);
            core.put_signal(program.data + 2 * words_per_line, program.data, words_per_line, program.signal(0), round,
                            right);
            core.signal_wait_until(program.signal(0), Compare::equal, round, left);
            core.dcci(program.data + 2 * words_per_line);
            if (core.load(program.data + 2 * words_per_line) != round) std::printf("wrong value in this launch\n");
            core.signal_set_on(program.signal(1), round, left);  // the next round may overwrite it
            core.signal_wait_until(program.signal(1), Compare::equal, round, right);
        });
    }
}

void locked_counter(const Program& program) {
    constexpr std::uint64_t turns = 20;
    run_on_one_core([&](Core& core) {
        std::uint64_t* const lock = core.remote(program.signal(0), 0);
        std::uint64_t* const count = core.remote(program.data, 0);
        for (std::uint64_t i = 0; i < turns; ++i) {
            while (core.atomic_compare_swap(lock, 0, 1) != 0) core.yield();
            core.dcci(count);
            core.store(count, core.load(count) + 1);
            core.dcci(count);
            if (i % 2 == 0)
                core.atomic_swap(lock, 0);
            else
                core.signal_set(lock, 0);
        }
        core.atomic_fetch_add_on(program.signal(1), 1, 0);
        if (program.me != 0) return;
        core.signal_wait_until(program.signal(1), Compare::equal, static_cast<std::uint64_t>(program.npes));
        core.dcci(count);
        if (core.load(count) != turns * static_cast<std::uint64_t>(program.npes))
            std::printf("wrong count in this launch\n");
    });
}

// All write, meet, read what all wrote, and meet again, by each barrier in turn.
void all_barriers(const Program& program) {
    auto* state = reinterpret_cast<BarrierState*>(npushmem_calloc(3, sizeof(BarrierState)));
    const char* const names[] = {"v1", "v2:3", "v3"};
    for (int launches = 0; launches < 2; ++launches) {
        run(1, [&](Core& core) {
            const auto tile = core.ub_alloc<std::uint64_t>(words_per_line);
            for (int round = 0; round < 6; ++round) {
                const auto meet = [&] {
                    npu::sync_with_choice(core, npu::BarrierChoice::parse(names[round % 3]).value(),
                                          {0, 1, program.npes}, state + round % 3);
                };
                core.store(program.data + core.index() * words_per_line, static_cast<std::uint64_t>(round));
                core.dcci(program.data + core.index() * words_per_line);
                meet();
                for (int pe = 0; pe < program.npes; ++pe) {
                    core.data_copy(tile, npu::gm(core.remote(program.data, pe), words_per_line), words_per_line);
                    core.pipe_barrier<npu::Pipe::all>();
                }
                meet();
            }
        });
    }
}

void store_part(const Program& program, int pe) {
    run_on_one_core([&](Core& core) {
        if (program.me != pe) return;
        std::uint64_t* const part = core.remote(program.data, 0) + program.me;
        core.store(part, 1);
        core.dcci(part);
    });
}

// One PE after the other stores to the line, in the order that the hosts make.
void ordered_by_barriers(const Program& program) {
    for (int pe = 0; pe < program.npes; ++pe) {
        if (program.right || pe == 0) npushmem_barrier_all();
        store_part(program, pe);
    }
}

void ordered_by_hosts(const Program& program) {
    if (program.me > 0 && program.right) npushmem_uint64_wait_until(program.signal(0), NPUSHMEM_CMP_EQ, 1);
    store_part(program, program.me);
    if (program.me + 1 < program.npes) npushmem_uint64_p(program.signal(0), 1, program.me + 1);
}

// The host of a PE waits for a kernel of another one, which goes on, and launches its own.
void ordered_by_running_kernel(const Program& program) {
    if (program.me == 1 && program.right) npushmem_uint64_wait_until(program.signal(0), NPUSHMEM_CMP_EQ, 1);
    run_on_one_core([&](Core& core) {
        if (program.me > 1) return;
        std::uint64_t* const part = core.remote(program.data, 0) + program.me;
        core.store(part, 1);
        core.dcci(part);
        core.signal_set_on(program.signal(program.me), 1, 1 - program.me);
        core.signal_wait_until(program.signal(1 - program.me), Compare::equal, 1, 1 - program.me);
    });
}

// PE 1 ends in its kernel while the others go on recording what theirs do.
void death(const Program& program) {
    run_on_one_core([&](Core& core) {
        std::uint64_t* const own = core.remote(program.data, 0) + program.me * words_per_line;
        for (std::uint64_t i = 0; i < 1000; ++i) {
            core.store(own, i);
            core.dcci(own);
            if (i == 500 && program.me == 1 && !program.right) static_cast<void>(std::raise(SIGKILL));
        }
    });
}

// Every core prints, with other cores and PEs on the same standard output.
void printing(const Program&) {
    run(2, [](Core& core) {
        const std::string rest(200, static_cast<char>('a' + core.index()));
        for (int i = 0; i < 100; ++i) {
            core.print("line %d %s", i, rest.c_str());
            if (i % 7 == 0) core.yield();
        }
    });
}

// PE 0 sends two signals that no fence orders. PE 1 waits for the first and expects the second, too: without it, it
// waits for a third one, which nobody sends. When the youngest signal arrives first, all is well.
void expected_order(const Program& program) {
    run_on_one_core([&](Core& core) {
        if (program.me == 0) {
            core.signal_set_on(program.signal(0), 1, 1);
            core.signal_set_on(program.signal(1), 1, 1);
        } else if (program.me == 1) {
            core.signal_wait_until(program.signal(0), Compare::equal, 1, 0);
            if (program.right) core.signal_wait_until(program.signal(1), Compare::equal, 1, 0);
            if (core.signal_fetch(program.signal(1)) != 1)
                core.signal_wait_until(program.signal(1), Compare::equal, 2, 0);
        }
    });
}

// All write, meet, and read what all wrote.
void one_barrier(const Program& program) {
    auto* state = reinterpret_cast<BarrierState*>(npushmem_calloc(1, sizeof(BarrierState)));
    run(1, [&](Core& core) {
        if (core.index() == 0) {
            core.store(program.data, 1);
            core.dcci(program.data);
        }
        npu::barrier_v3(core, {0, 1, program.npes}, state);
        if (core.index() != 0) return;
        for (int pe = 0; pe < program.npes; ++pe)
            if (core.load(core.remote(program.data, pe)) != 1) std::printf("wrong value in this launch\n");
    });
}

// Every PE signals the next; PE 1 ends instead of its last signal.
void early_death(const Program& program) {
    run_on_one_core([&](Core& core) {
        for (std::uint64_t round = 1; round <= 3; ++round) {
            if (round == 3 && program.me == 1 && !program.right) static_cast<void>(std::raise(SIGKILL));
            core.signal_set_on(program.signal(0), round, (program.me + 1) % program.npes);
            core.fence();
        }
        core.signal_wait_until(program.signal(0), Compare::equal, 3);
    });
}

// The host of PE 0 waits for its kernel, and then signals to the kernels of all PEs, which wait for that.
void host_beside_kernels(const Program& program) {
    npu::Stream& stream = npu::device().default_stream();
    const Status launched = npu::launch(stream, 1, [&](Core& core) {
        core.signal_set(program.signal(1), 1);
        core.signal_wait_until(program.signal(0), Compare::equal, 1, 0);
    });
    if (program.me == 0 && launched.ok()) {
        npushmem_signal_wait_until(program.signal(1), NPUSHMEM_CMP_EQ, 1);
        for (int pe = 0; pe < program.npes; ++pe) npushmem_uint64_p(program.signal(0), 1, pe);
        npushmem_quiet();
    }
    const Status status = stream.synchronize();
    std::printf("PE %d: %s\n", program.me, status.ok() ? "nothing found" : status.message().c_str());
}

// PE 1 signals and PE 0 reads, which may see the signal or not. The kernel must fail in both cases.
void signal_or_fail(Core& core, std::uint64_t* word, std::uint64_t failing) {
    if (core.my_pe() == 1) core.signal_set_on(word, 1, 0);
    if (core.my_pe() == 0 && core.signal_fetch(word) == failing) throw std::runtime_error("found");
}

// The kernel of PE 1 is queued behind another one when its host enters a barrier.
void queued_launch(const Program& program) {
    npu::Stream& stream = npu::device().default_stream();
    Status status;
    if (program.me == 1) status = npu::launch(stream, 1, [&](Core& core) { core.signal_set(program.signal(1), 1); });
    if (status.ok())
        status =
            npu::launch(stream, 1, [&](Core& core) { signal_or_fail(core, program.signal(0), program.right ? 1 : 0); });
    if (program.me == 0) status = stream.synchronize();
    npushmem_barrier_all();
    if (status.ok()) status = stream.synchronize();
    std::printf("PE %d: %s\n", program.me, status.ok() ? "nothing found" : status.message().c_str());
}

alignas(64) std::uint64_t global_words[words_per_line];

void global_variable(const Program& program) {
    run_on_one_core([&](Core& core) { signal_or_fail(core, global_words, program.right ? 1 : 0); });
}

int main_of(const char* name, bool right) {
    const std::map<std::string, void (*)(const Program&)> cases{
        {"halves", halves},
        {"halves_before_barrier", halves_before_barrier},
        {"unflushed", unflushed},
        {"barrier_v2", barrier_v2},
        {"relay", relay},
        {"ring", ring},
        {"locked_counter", locked_counter},
        {"all_barriers", all_barriers},
        {"ordered_by_barriers", ordered_by_barriers},
        {"ordered_by_hosts", ordered_by_hosts},
        {"ordered_by_running_kernel", ordered_by_running_kernel},
        {"death", death},
        {"printing", printing},
        {"expected_order", expected_order},
        {"one_barrier", one_barrier},
        {"early_death", early_death},
        {"host_beside_kernels", host_beside_kernels},
        {"queued_launch", queued_launch},
        {"global_variable", global_variable},
    };
    npushmem_init();
    const Program program{right};
    npushmem_barrier_all();
    cases.at(name)(program);
    npushmem_barrier_all();
    npushmem_finalize();
    return 0;
}

}  // namespace
}  // namespace npushmem::api_test

int main(int argc, char** argv) {
    return argc == 3 ? npushmem::api_test::main_of(argv[1], std::strcmp(argv[2], "right") == 0) : 2;
}
