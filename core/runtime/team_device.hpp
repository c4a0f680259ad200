// SPDX-License-Identifier: BSD-3-Clause
// An emulated NPU whose kernels number PEs as the members of a team.
#pragma once

#include <memory>

#include "core/team/members.hpp"
#include "npushmem/npu/device.hpp"
#include "npushmem/npu/fabric.hpp"
#include "npushmem/npu/wait_policy.hpp"

namespace npushmem {

// Access to the members' memory, by their numbers in the team.
class TeamFabric final : public npu::Fabric {
public:
    // This PE is a member. `world` outlives the object.
    TeamFabric(const npu::Fabric& world, Members members);
    ~TeamFabric() override;

    [[nodiscard]] int my_pe() const override { return my_pe_; }
    [[nodiscard]] int n_pes() const override { return members_.count(); }
    [[nodiscard]] void* remote(const void* symmetric, int pe) const override;
    [[nodiscard]] npu::Window window() const override { return window_; }
    [[nodiscard]] npu::RemoteOperations* remote_operations(npu::RemoteMode mode) const override;
    [[nodiscard]] int pe_of(const void* address) const override;

private:
    class Operations;

    const npu::Fabric& world_;
    Members members_;
    int my_pe_;
    npu::Window window_;                  // empty unless the members lie at equal distances in that of the world
    std::unique_ptr<Operations> proxy_;   // null: all members are mapped
    std::unique_ptr<Operations> direct_;  // also where it is the same
};

// The waits of such kernels.
class TeamWaitPolicy final : public npu::WaitPolicy {
public:
    // `world` outlives the object.
    TeamWaitPolicy(npu::WaitPolicy& world, Members members) : world_(world), members_(std::move(members)) {}

    Code until(const std::function<bool()>& ready, std::chrono::nanoseconds timeout) override {
        return world_.until(ready, timeout);
    }
    [[nodiscard]] int polls() const override { return world_.polls(); }
    void pause(std::uint64_t round) override { world_.pause(round); }
    [[nodiscard]] Status peer_status(const npu::PeGroup& pes) const override;
    void observe(const void* id, const npu::LongWait& wait) override;
    void end_observation(const void* id) override { world_.end_observation(id); }

private:
    npu::WaitPolicy& world_;
    Members members_;
};

class TeamDevice {
public:
    // `config` has no hooks; `fabric` and `policy` are those of a device of all PEs, and outlive the object.
    static Result<std::unique_ptr<TeamDevice>> create(const npu::DeviceConfig& config, const npu::Fabric& fabric,
                                                      npu::WaitPolicy& policy, const Members& members);

    [[nodiscard]] npu::Device& device() { return *device_; }

private:
    TeamDevice(const npu::Fabric& fabric, npu::WaitPolicy& policy, const Members& members)
        : fabric_(fabric, members), policy_(policy, members) {}

    TeamFabric fabric_;
    TeamWaitPolicy policy_;
    std::unique_ptr<npu::Device> device_;
};

}  // namespace npushmem
