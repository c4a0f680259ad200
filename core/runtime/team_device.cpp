// SPDX-License-Identifier: BSD-3-Clause
#include "core/runtime/team_device.hpp"

#include <utility>
#include <vector>

namespace npushmem {

namespace {

// The operations of the world name its PEs in their waits.
class TeamWait final : public npu::RemoteWait {
public:
    TeamWait(npu::RemoteWait& kernel, const Members& members) : kernel_(kernel), members_(members) {}
    Status until(const std::function<bool()>& ready, const char* what, int pe) override {
        return kernel_.until(ready, what, pe < 0 ? pe : members_.index_of(pe));
    }
    [[nodiscard]] std::unique_ptr<npu::RemoteCoreState>& core_state() override { return kernel_.core_state(); }

private:
    npu::RemoteWait& kernel_;
    const Members& members_;
};

npu::Window window_of(const npu::Window& world, const Members& members, int my_pe) {
    const PeRange& pes = members.range();
    const auto inside = [&](int pe) { return pe >= world.first_pe && pe < world.first_pe + world.pe_count; };
    if (pes.table != nullptr || !inside(pes.at(0)) || !inside(pes.at(pes.count - 1))) return {};
    return {world.base, world.bytes, world.stride * pes.stride, my_pe, 0, pes.count};
}

}  // namespace

class TeamFabric::Operations final : public npu::RemoteOperations {
public:
    Operations(npu::RemoteOperations& world, const Members& members) : world_(world), members_(members) {}

    [[nodiscard]] std::uint64_t offset_of(const void* address) const override { return world_.offset_of(address); }
    Status put(void* target, const void* source, std::size_t bytes, int pe, npu::RemoteWait& wait) override {
        TeamWait team(wait, members_);
        return world_.put(target, source, bytes, members_.at(pe), team);
    }
    Status get(void* target, const void* source, std::size_t bytes, int pe, npu::RemoteWait& wait) override {
        TeamWait team(wait, members_);
        return world_.get(target, source, bytes, members_.at(pe), team);
    }
    Status put_signal(void* target, const void* source, std::size_t bytes, std::uint64_t* signal, std::uint64_t value,
                      int pe, npu::RemoteWait& wait) override {
        TeamWait team(wait, members_);
        return world_.put_signal(target, source, bytes, signal, value, members_.at(pe), team);
    }
    Status atomic(const npu::RemoteAtomic& operation, std::uint64_t* before, int pe, npu::RemoteWait& wait) override {
        TeamWait team(wait, members_);
        return world_.atomic(operation, before, members_.at(pe), team);
    }
    Status fence(npu::RemoteWait& wait) override {
        TeamWait team(wait, members_);
        return world_.fence(team);
    }
    Status quiet(npu::RemoteWait& wait) override {
        TeamWait team(wait, members_);
        return world_.quiet(team);
    }

private:
    npu::RemoteOperations& world_;
    const Members& members_;
};

TeamFabric::TeamFabric(const npu::Fabric& world, Members members)
    : world_(world),
      members_(std::move(members)),
      my_pe_(members_.index_of(world.my_pe())),
      window_(window_of(world.window(), members_, my_pe_)) {
    const auto operations_of = [&](npu::RemoteMode mode) {
        auto* const there = world.remote_operations(mode);
        return there != nullptr ? std::make_unique<Operations>(*there, members_) : nullptr;
    };
    proxy_ = operations_of(npu::RemoteMode::proxy);
    direct_ = operations_of(npu::RemoteMode::direct);
}

TeamFabric::~TeamFabric() = default;

void* TeamFabric::remote(const void* symmetric, int pe) const {
    return pe >= 0 && pe < n_pes() ? world_.remote(symmetric, members_.at(pe)) : nullptr;
}

npu::RemoteOperations* TeamFabric::remote_operations(npu::RemoteMode mode) const {
    const bool direct = mode == npu::RemoteMode::configured
                            ? world_.remote_operations(mode) == world_.remote_operations(npu::RemoteMode::direct)
                            : mode == npu::RemoteMode::direct;
    return direct ? direct_.get() : proxy_.get();
}

int TeamFabric::pe_of(const void* address) const {
    const auto number = reinterpret_cast<std::uintptr_t>(address);
    if (npu::synthetic_address::is(number)) return npu::synthetic_address::pe_of(number);
    const int pe = world_.pe_of(address);
    return pe < 0 ? pe : members_.index_of(pe);
}

Status TeamWaitPolicy::peer_status(const npu::PeGroup& pes) const {
    std::vector<int> there;
    for (int i = 0; i < pes.count; ++i) there.push_back(members_.at(pes.at(i)));
    return world_.peer_status({.count = pes.count, .list = there.data()});
}

void TeamWaitPolicy::observe(const void* id, const npu::LongWait& wait) {
    npu::LongWait there = wait;
    if (there.pe >= 0) there.pe = members_.at(there.pe);
    world_.observe(id, there);
}

Result<std::unique_ptr<TeamDevice>> TeamDevice::create(const npu::DeviceConfig& config, const npu::Fabric& fabric,
                                                       npu::WaitPolicy& policy, const Members& members) {
    std::unique_ptr<TeamDevice> made(new TeamDevice(fabric, policy, members));
    auto device = npu::Device::create(config, made->fabric_, made->policy_);
    if (!device.ok()) return device.status().within("emulated NPU");
    made->device_ = std::move(device).value();
    return made;
}

}  // namespace npushmem
