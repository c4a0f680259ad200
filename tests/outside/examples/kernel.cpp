// SPDX-License-Identifier: BSD-3-Clause
// A kernel of the emulated NPU on every PE. Each core doubles its part of the PE's numbers in the unified buffer, and
// puts it with a signal to the next PE. After the barrier, which the kernel calls itself, PE 0 reads the other PEs.
//
//     $ npushmem-run -n 4 ./kernel
//     sum over 4 PEs: 20480, expected 20480
//
// With the checker, which finds missing flags, flushes and signals, and finds none here:
//
//     $ NPUSHMEM_NPU_CHECK=1 npushmem-run -n 4 ./kernel
//     sum over 4 PEs: 20480, expected 20480
#include <npushmem.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <npushmem/npu/npu.hpp>

namespace npu = npushmem::npu;
using npu::Pipe;

namespace {

constexpr int blocks = 2;
constexpr int max_cores = blocks * 16;  // a block has 2 vector cores, or up to 16 if so configured
constexpr int per_core = 256;           // numbers

// In symmetric memory. A signal word must have a cache line of its own, as BarrierLine has.
struct Symmetric {
    float numbers[max_cores * per_core];
    float inbox[max_cores * per_core];
    npu::BarrierLine arrived[max_cores];
    npu::BarrierState barrier;
    float sum;
};

// Runs once on every core.
void exchange(npu::Core& core, Symmetric* memory) {
    const int n = core.n_pes();
    const int next = (core.my_pe() + 1) % n;
    const int previous = (core.my_pe() + n - 1) % n;
    float* const part = memory->numbers + core.index() * per_core;
    float* const target = memory->inbox + core.index() * per_core;
    std::uint64_t* const signal = &memory->arrived[core.index()].word;

    // Only flags order the pipes of a core: copy in, compute, copy out.
    const auto buffer = core.ub_alloc<float>(per_core);
    core.data_copy(buffer, npu::gm(part, per_core), per_core);
    core.set_flag<Pipe::copy_in, Pipe::vector>(0);
    core.wait_flag<Pipe::copy_in, Pipe::vector>(0);
    core.multiply_scalar(buffer, buffer, 2.0F, per_core);
    core.set_flag<Pipe::vector, Pipe::copy_out>(0);
    core.wait_flag<Pipe::vector, Pipe::copy_out>(0);
    core.data_copy(npu::gm(part, per_core), buffer, per_core);
    core.pipe_barrier<Pipe::copy_out>();  // the put reads what the copy writes

    core.put_signal(target, part, per_core, signal, 1, next);
    core.signal_wait_until(signal, npu::Compare::equal, 1, previous);

    // All cores of all PEs. It returns when every part has arrived everywhere.
    npu::barrier_v3(core, {0, 1, n}, &memory->barrier);
    if (core.my_pe() != 0 || core.index() != 0) return;
    const auto count = static_cast<std::size_t>(core.count() * per_core);
    float sum = 0;
    for (int pe = 0; pe < n; ++pe) {
        core.get(memory->numbers, memory->inbox, count, pe);
        core.quiet();                                       // the get is complete
        core.dcci(memory->numbers, count * sizeof(float));  // drops old cache lines
        for (std::size_t i = 0; i < count; ++i) sum += core.load(&memory->numbers[i]);
    }
    core.store(&memory->sum, sum);
    core.dcci(&memory->sum);  // writes the line to memory, for the host
}

}  // namespace

int main() {
    npushmem_init();
    const int n = npushmem_n_pes();
    auto* memory = static_cast<Symmetric*>(npushmem_calloc(1, sizeof(Symmetric)));
    if (memory == nullptr) return 1;
    for (float& number : memory->numbers) number = static_cast<float>(npushmem_my_pe() + 1);
    npushmem_barrier_all();

    npu::Stream& stream = npu::device().default_stream();
    npushmem::Status status = npu::launch(stream, npu::LaunchConfig(blocks), exchange, memory);
    if (status.ok()) status = stream.synchronize();  // a launch only queues the kernel
    if (!status.ok()) std::fprintf(stderr, "PE %d: %s\n", npushmem_my_pe(), status.message().c_str());

    const int count = blocks * npu::device().config().vector_cores * per_core;
    const float expected = 2.0F * static_cast<float>(count) * static_cast<float>(n * (n + 1) / 2);  // PE p holds p + 1
    const bool good = status.ok() && (npushmem_my_pe() != 0 || memory->sum == expected);
    if (npushmem_my_pe() == 0) std::printf("sum over %d PEs: %.0f, expected %.0f\n", n, memory->sum, expected);
    npushmem_free(memory);
    npushmem_finalize();
    return good ? 0 : 1;
}
