// SPDX-License-Identifier: BSD-3-Clause
// One PE of a test with a thread per PE: memory, fabric and device; and the fixture that starts the threads.
#pragma once

#include <fmt/format.h>

#include <functional>
#include <memory>
#include <string>

#include "core/npu/wait_policies.hpp"
#include "npushmem/npu/device.hpp"
#include "tests/fakes/thread_world.hpp"

namespace npushmem::moe {

// The waits of a device in a world of threads.
class ThreadWait final : public npu::WaitPolicy {
public:
    explicit ThreadWait(const fakes::ThreadWorld& world) : world_(world), policy_(world.pes()) {}
    Code until(const std::function<bool()>& ready, std::chrono::nanoseconds timeout) override {
        return policy_.until(ready, timeout);
    }
    [[nodiscard]] int polls() const override { return policy_.polls(); }
    void pause(std::uint64_t round) override { policy_.pause(round); }
    [[nodiscard]] Status peer_status(const npu::PeGroup& pes) const override {
        for (int i = 0; i < pes.count; ++i)
            if (pes.at(i) == world_.dead()) return {Code::peer_dead, fmt::format("PE {} has died", world_.dead())};
        return {};
    }

private:
    const fakes::ThreadWorld& world_;
    npu::detail::StandaloneWaitPolicy policy_;
};

// A copy is the same PE: another layer on its memory and device.
class ThreadPe {
public:
    ThreadPe(fakes::ThreadWorld& world, int pe, int blocks, bool window)
        : world_(world),
          memory_(std::make_shared<fakes::ThreadMemory>(world, pe)),
          fabric_(std::make_shared<fakes::ThreadFabric>(world, pe, window)),
          waiting_(std::make_shared<ThreadWait>(world)),
          pe_(pe) {
        npu::DeviceConfig device;
        device.blocks = blocks;
        device_ = std::move(npu::Device::create(device, *fabric_, *waiting_)).value();
    }
    ThreadPe(const ThreadPe&) = default;
    ThreadPe& operator=(const ThreadPe&) = delete;
    ~ThreadPe() = default;

    [[nodiscard]] int pe() const { return pe_; }
    [[nodiscard]] fakes::ThreadMemory& memory() { return *memory_; }
    [[nodiscard]] fakes::ThreadFabric& fabric() { return *fabric_; }
    // Message of the last call, "" if it succeeded.
    [[nodiscard]] const std::string& error() const { return error_; }
    void barrier() { world_.barrier(); }
    void kill(int pe) { world_.kill(pe); }

protected:
    npu::Device& device() { return *device_; }
    bool succeeded(const Status& status) {
        error_ = status.message();
        return status.ok();
    }

private:
    fakes::ThreadWorld& world_;
    std::shared_ptr<fakes::ThreadMemory> memory_;
    std::shared_ptr<fakes::ThreadFabric> fabric_;
    std::shared_ptr<ThreadWait> waiting_;
    std::shared_ptr<npu::Device> device_;
    int pe_;
    std::string error_;
};

template <class Pe, class Config>
class ThreadFixture {
public:
    ThreadFixture(int pes, const Config& config, std::size_t heap, int blocks, bool window)
        : world_(pes, heap), config_(config), blocks_(blocks), window_(window) {}

    // Runs body on a thread per PE. Closes an open engine after all PEs have finished.
    void run(const std::function<void(Pe&)>& body) {
        world_.run([&](int pe) {
            Pe self(world_, config_, pe, blocks_, window_);
            body(self);
            world_.barrier();
        });
    }

private:
    fakes::ThreadWorld world_;
    Config config_;
    int blocks_;
    bool window_;
};

}  // namespace npushmem::moe
