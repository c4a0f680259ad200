// SPDX-License-Identifier: BSD-3-Clause
// Follows the launches of a device and the host threads that wait for them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "npushmem/npu/hooks.hpp"

namespace npushmem::npu::detail {

// Called on any thread, under a lock of the device: calls of one device do not overlap.
class LaunchObserver {
public:
    LaunchObserver() = default;
    LaunchObserver(const LaunchObserver&) = delete;
    LaunchObserver& operator=(const LaunchObserver&) = delete;
    virtual ~LaunchObserver() = default;

    // A launch is queued or has ended: so many are queued or run now. A queued launch keeps the result, see
    // RunningLaunch::queued_at.
    virtual std::uint64_t launches_changed(std::size_t unfinished) = 0;
    // So many host threads wait, without a limit, until launches end.
    virtual void hosts_waiting(int threads) = 0;
};

// Hooks of a device that also observe its launches. A device finds the observer in the HooksFactory of its
// configuration.
struct ObservingHooks {
    HooksFactory make;
    std::shared_ptr<LaunchObserver> observer;

    std::unique_ptr<CoreHooks> operator()(Core& core) const { return make(core); }
};

}  // namespace npushmem::npu::detail
