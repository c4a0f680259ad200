// SPDX-License-Identifier: BSD-3-Clause
// Batches that are launches of the emulated NPU.
#pragma once

#include <memory>
#include <stdexcept>

#include "bench/engine/engine.hpp"
#include "npushmem/npu/npu.hpp"

namespace npushmem::bench {

// Makes a second device of this PE, in fast mode, with one block of `vector_cores` cores.
inline std::shared_ptr<npu::Device> device_of(int vector_cores, npu::DeviceConfig config = {}) {
    config.blocks = 1;
    config.vector_cores = vector_cores;
    auto device = npu::Device::create(config, npu::device().fabric());
    if (!device.ok()) throw std::runtime_error(device.status().message());
    return std::move(device).value();
}

// A batch that is one launch of one block, so that the cost of the launch is spread over the iterations. It calls
// `kernel(core, iterations)`.
template <class Kernel>
Batch launched(const std::shared_ptr<npu::Device>& device, Kernel kernel) {
    return [device, kernel](std::uint64_t iterations) {
        npu::Stream& stream = device->default_stream();
        Status done = npu::launch(stream, 1, [kernel, iterations](npu::Core& core) { kernel(core, iterations); });
        if (done.ok()) done = stream.synchronize();
        if (!done.ok()) throw std::runtime_error(done.message());
    };
}

}  // namespace npushmem::bench
