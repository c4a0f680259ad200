// SPDX-License-Identifier: BSD-3-Clause
#include "core/api/team_layer.hpp"

#include <cstring>
#include <utility>

#include "core/api/teams.hpp"
#include "npushmem/npu/device.hpp"
#include "npushmem/npu/error.hpp"
#include "npushmemx.h"

namespace npushmem::api {

template <class Call>
void HeapMemory::watch(const Call& call) {
    const CurrentWorld in_world(*world_);
    clear_failure();
    call();
    if (first_failure_.ok()) first_failure_ = last_failure();
}

Result<std::byte*> HeapMemory::allocate(moe::Bytes size) {
    const CurrentWorld in_world(*world_);
    clear_failure();
    void* memory = npushmem_align(moe::SlotLayout::line, size.value());
    if (memory == nullptr) return last_failure();
    std::memset(memory, 0, size.value());
    return static_cast<std::byte*>(memory);
}

void HeapMemory::release(std::byte* memory) {
    const CurrentWorld in_world(*world_);
    if (releases_here_) {
        if (runtime() != nullptr) runtime()->collective_heap().free_here(memory);
        return;
    }
    clear_failure();
    npushmem_free(memory);
    if (abandoned_ != nullptr && last_failure().code() == Code::peer_dead) abandoned_->push_back(memory);
}

Status HeapMemory::barrier() {
    const CurrentWorld in_world(*world_);
    clear_failure();
    if (team_ == NPUSHMEM_TEAM_WORLD)
        npushmem_barrier_all();
    else
        (void)npushmemx_team_barrier(team_);
    return last_failure();
}

Status HeapMemory::fetch(void* target, const std::byte* symmetric, moe::Bytes size, int pe) {
    const CurrentWorld in_world(*world_);
    clear_failure();
    npushmem_getmem(target, symmetric, size.value(), members_.at(pe));
    return last_failure();
}

Result<std::uint64_t> HeapMemory::compare_swap(std::uint64_t* symmetric, std::uint64_t expected, std::uint64_t desired,
                                               int pe) {
    const CurrentWorld in_world(*world_);
    clear_failure();
    const std::uint64_t before = npushmem_uint64_atomic_compare_swap(symmetric, expected, desired, members_.at(pe));
    if (!last_failure().ok()) return last_failure();
    return before;
}

void HeapMemory::put(std::byte* symmetric, const std::byte* source, moe::Bytes size, int pe) {
    watch([&] { npushmem_putmem_nbi(symmetric, source, size.value(), members_.at(pe)); });
}

void HeapMemory::add(std::uint64_t* symmetric, std::uint64_t value, int pe) {
    watch([&] { npushmem_uint64_atomic_add(symmetric, value, members_.at(pe)); });
}

void HeapMemory::fence() {
    watch([] { npushmem_fence(); });
}

void HeapMemory::signal(std::uint64_t* symmetric, std::uint64_t value, int pe) {
    watch([&] { npushmem_uint64_atomic_set(symmetric, value, members_.at(pe)); });
}

Status HeapMemory::quiet() {
    watch([] { npushmem_quiet(); });
    return std::exchange(first_failure_, {});
}

Status HeapMemory::wait(const std::function<bool()>& ready, std::chrono::nanoseconds timeout) {
    const CurrentWorld in_world(*world_);
    const WaitFor what{.what = "the rows of a combine",
                       .needs = members_.range(),
                       .timeout = timeout.count() > 0 ? timeout : runtime()->settings().timeout,
                       .call = call_};
    WaitFailure failure;
    const Code code = runtime()->waiter().until(ready, what, &failure);
    return code == Code::ok ? Status{} : Status{code, describe(what, failure)};
}

Result<npu::Device*> TeamLayer::device_for(const Team& team) {
    auto& npu = runtime()->npu();
    if (&team == &runtime()->teams().world()) return npu.device();
    auto device = npu.team_device(team.members());
    if (!device.ok()) return device.status();
    device_ = std::move(device).value();
    return &device_->device();
}

Result<std::unique_ptr<TeamLayer>> TeamLayer::create(npushmem_team_t handle, const Team& team,
                                                     const moe::CombineConfig& config, const Status& local_status,
                                                     HeapMemory::Abandoned* abandoned) {
    std::unique_ptr<TeamLayer> made(new TeamLayer(handle, team, abandoned));
    const auto device = made->device_for(team);
    if (!device.ok()) return device.status();
    auto layer = moe::Layer::create(config, made->memory_, *device.value(), local_status);
    if (!layer.ok()) return layer.status();
    made->layer_ = std::move(layer).value();
    return made;
}

}  // namespace npushmem::api
