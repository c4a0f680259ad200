// Launching kernels.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <source_location>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>

#include "npushmem/npu/core.hpp"
#include "npushmem/npu/stream.hpp"

namespace npushmem::npu {

// How to launch. Converts from a number, so that launch(stream, 20, kernel, ...) needs no more, and remembers the line
// of the launch for error messages.
struct LaunchConfig {
    LaunchConfig(int blocks, std::source_location launched = std::source_location::current())  // NOLINT
        : block_dim(blocks), where(launched) {}

    int block_dim;                        // 1 to the device's blocks; the kernel runs on every vector core of each
    std::string name;                     // for messages; empty: the place of the launch
    std::chrono::nanoseconds timeout{0};  // from the start of the kernel; 0: the device's launch_timeout
    HooksFactory hooks = {};              // of this launch, as VirtualTime makes them; empty: the device's
    std::source_location where;
};

namespace detail {

// A kernel with its arguments; run() is called once per core, by one thread at a time.
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

// Puts a run of `kernel` over config.block_dim blocks at the end of `stream`, and returns at once. Kernel and arguments
// are copied (std::ref for a reference); pointers must stay valid until the launch has ended. Every core calls the same
// copy, as const.
//
// Fails, with nothing queued, for a block_dim that is 0 or above the device (Code::range) and for a stream whose device
// is gone or that was closed (Code::state). What goes wrong inside the kernel is reported by stream.synchronize().
template <class Kernel, class... Args>
Status launch(Stream& stream, const LaunchConfig& config, Kernel&& kernel, Args&&... args) {
    static_assert(std::is_invocable_v<const std::decay_t<Kernel>&, Core&, const std::decay_t<Args>&...>,
                  "a kernel is callable as void(Core&, args...), and const");
    using Body = detail::BoundKernel<std::decay_t<Kernel>, std::decay_t<Args>...>;
    return detail::enqueue(stream, config,
                           std::make_unique<Body>(std::forward<Kernel>(kernel), std::forward<Args>(args)...));
}

}  // namespace npushmem::npu
