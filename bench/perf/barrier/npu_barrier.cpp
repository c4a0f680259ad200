// SPDX-License-Identifier: BSD-3-Clause
#include "bench/perf/barrier/npu_barrier.hpp"

#include <algorithm>
#include <chrono>
#include <span>

#include "npushmem/npu/barrier.hpp"
#include "npushmem/npu/device.hpp"
#include "npushmem/npu/launch.hpp"

namespace npushmem::perf {

namespace {

using Clock = std::chrono::steady_clock;

void barriers(npu::Core& core, int pes, npu::BarrierState* state, int count, Clock::time_point* stamps) {
    const npu::TeamView world{0, 1, pes};
    for (int i = 0; i < count; ++i) {
        npu::barrier_v3(core, world, state);
        if (core.index() == 0) stamps[i] = Clock::now();
    }
}

// The number of cores that can poll at the same time, in whole blocks.
int blocks_for(int pes, const npu::DeviceConfig& device) {
    const int pollers = std::min(pes, npu::barrier_v3_pollers);
    return std::clamp((pollers + device.vector_cores - 1) / device.vector_cores, 1, device.blocks);
}

Status run_barriers(const Job& job, npu::BarrierState* state, int blocks, std::vector<Clock::time_point>& stamps) {
    npu::Stream& stream = npu::device().default_stream();
    npu::LaunchConfig config(blocks);
    config.name = "barrier latency";
    const int count = static_cast<int>(stamps.size());
    if (Status s = npu::launch(stream, config, barriers, job.pes(), state, count, stamps.data()); !s.ok()) return s;
    return stream.synchronize();
}

std::vector<double> gaps(std::span<const Clock::time_point> stamps) {
    std::vector<double> result;
    for (std::size_t i = 1; i < stamps.size(); ++i) {
        result.push_back(std::chrono::duration<double>(stamps[i] - stamps[i - 1]).count());
    }
    return result;
}

}  // namespace

Result<BarrierLatency> npu_barrier_latency(const Job& job, int warmup, int iterations) {
    auto state = make_symmetric<npu::BarrierState>(1);
    if (!state.ok()) return state.status();
    const npu::DeviceConfig& device = npu::device().config();
    const int blocks = blocks_for(job.pes(), device);
    std::vector<Clock::time_point> stamps(static_cast<std::size_t>(warmup + iterations + 1));
    if (Status s = run_barriers(job, state.value().get(), blocks, stamps); !s.ok()) return s;
    return BarrierLatency{bench::summarise(gaps(std::span(stamps).subspan(static_cast<std::size_t>(warmup)))),
                          blocks * device.vector_cores};
}

}  // namespace npushmem::perf
