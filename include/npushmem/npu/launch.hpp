// SPDX-License-Identifier: BSD-3-Clause
// Launching kernels.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>

#include "npushmem/npu/core.hpp"
#include "npushmem/npu/source_location.hpp"
#include "npushmem/npu/stream.hpp"

namespace npushmem::npu {

// Parameters of a launch. Converts from a number, so that launch(stream, 20, kernel, ...) suffices. Records the source
// line of the launch for error messages.
struct LaunchConfig {
    LaunchConfig(int blocks, SourceLocation launched = SourceLocation::current())  // NOLINT
        : block_dim(blocks), where(launched) {}

    int block_dim;                        // 1 to the device's blocks; the kernel runs on every vector core of each
    std::string name;                     // for messages; empty: the source line of the launch
    std::chrono::nanoseconds timeout{0};  // from the start of the kernel; 0: the device's launch_timeout
    HooksFactory hooks = {};              // of this launch, e.g. from VirtualTime; empty: the device's hooks
    // True: the kernel calls functions of the host that wait for other PEs. The thread that runs it runs no other
    // launch meanwhile, and other launches get another thread.
    bool blocks_thread = false;
    SourceLocation where;
};

namespace detail {

// A kernel with its arguments. run() is called once per core, by one thread at a time.
class KernelBody {
public:
    KernelBody() = default;
    KernelBody(const KernelBody&) = delete;
    KernelBody& operator=(const KernelBody&) = delete;
    virtual ~KernelBody() = default;
    virtual void run(Core& core) const = 0;
};

template <class Kernel, class... Args>
class BoundKernel final : public KernelBody {
public:
    template <class K, class... A>
    explicit BoundKernel(K&& kernel, A&&... args) : kernel_(std::forward<K>(kernel)), args_(std::forward<A>(args)...) {}

    void run(Core& core) const override {
        std::apply([&](const Args&... args) { std::invoke(kernel_, core, args...); }, args_);
    }

private:
    Kernel kernel_;
    std::tuple<Args...> args_;
};

}  // namespace detail

// Queues a run of `kernel` on config.block_dim blocks at the end of `stream` and returns at once. The kernel and its
// arguments are copied (use std::ref for a reference); pointers must stay valid until the launch has ended. Every core
// calls the same copy, as const.
//
// Queues nothing and returns Code::range for a block_dim below 1 or above the device's blocks, and Code::state for a
// closed stream or a destroyed device. stream.synchronize() reports failures inside the kernel.
template <class Kernel, class... Args>
Status launch(Stream& stream, const LaunchConfig& config, Kernel&& kernel, Args&&... args) {
    static_assert(std::is_invocable_v<const std::decay_t<Kernel>&, Core&, const std::decay_t<Args>&...>,
                  "a kernel is callable as void(Core&, args...), and const");
    using Body = detail::BoundKernel<std::decay_t<Kernel>, std::decay_t<Args>...>;
    return detail::enqueue(stream, config,
                           std::make_unique<Body>(std::forward<Kernel>(kernel), std::forward<Args>(args)...));
}

}  // namespace npushmem::npu
