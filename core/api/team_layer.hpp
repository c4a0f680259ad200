// SPDX-License-Identifier: BSD-3-Clause
// A layer over the memory of a team's members.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "core/api/library.hpp"
#include "core/moe/layer.hpp"
#include "core/team/team.hpp"
#include "npushmem.h"

namespace npushmem::api {

// The memory of a team's members, by their numbers in the team, in the current world of the thread that makes the
// object. Uses the library's public functions, so that their checks and reports apply here too.
class HeapMemory final : public moe::SymmetricMemory {
public:
    // Memory that other PEs may still use after a death.
    using Abandoned = std::vector<std::byte*>;

    // `abandoned`, if not null, receives memory that cannot be released because of a death.
    HeapMemory(npushmem_team_t handle, const Team& team, Abandoned* abandoned = nullptr)
        : team_(handle), members_(team.members()), my_pe_(team.index()), abandoned_(abandoned) {}

    [[nodiscard]] World& world() const { return *world_; }
    [[nodiscard]] const Members& members() const { return members_; }

    [[nodiscard]] int my_pe() const override { return my_pe_; }
    [[nodiscard]] int n_pes() const override { return members_.count(); }

    Result<std::byte*> allocate(moe::Bytes size) override;
    void release(std::byte* memory) override;
    Status barrier() override;
    Status fetch(void* target, const std::byte* symmetric, moe::Bytes size, int pe) override;
    Result<std::uint64_t> compare_swap(std::uint64_t* symmetric, std::uint64_t expected, std::uint64_t desired,
                                       int pe) override;
    void put(std::byte* symmetric, const std::byte* source, moe::Bytes size, int pe) override;
    void add(std::uint64_t* symmetric, std::uint64_t value, int pe) override;
    void fence() override;
    void signal(std::uint64_t* symmetric, std::uint64_t value, int pe) override;
    Status quiet() override;
    Status wait(const std::function<bool()>& ready, std::chrono::nanoseconds timeout) override;

    // From now on release() is a call of this PE alone: see CollectiveHeap::free_here.
    void release_here() { releases_here_ = true; }
    // Reports of long waits name the function, a literal, from now on.
    void begin_call(const char* function) { call_ = function; }

private:
    template <class Call>
    void watch(const Call& call);

    World* world_ = current_world;
    npushmem_team_t team_;
    Members members_;
    int my_pe_;
    Abandoned* abandoned_;
    bool releases_here_ = false;
    Status first_failure_;
    const char* call_ = nullptr;
};

class TeamLayer {
public:
    // Collective over the team, whose members are the layer's ranks. `local_status`: as for Layer::create. `abandoned`:
    // as for HeapMemory; outlives the object.
    static Result<std::unique_ptr<TeamLayer>> create(npushmem_team_t handle, const Team& team,
                                                     const moe::CombineConfig& config, const Status& local_status,
                                                     HeapMemory::Abandoned* abandoned = nullptr);
    TeamLayer(const TeamLayer&) = delete;
    TeamLayer& operator=(const TeamLayer&) = delete;

    [[nodiscard]] HeapMemory& memory() { return memory_; }
    [[nodiscard]] moe::Layer& layer() { return *layer_; }

private:
    TeamLayer(npushmem_team_t handle, const Team& team, HeapMemory::Abandoned* abandoned)
        : memory_(handle, team, abandoned) {}
    Result<npu::Device*> device_for(const Team& team);

    HeapMemory memory_;
    std::unique_ptr<TeamDevice> device_;  // null: that of all PEs
    std::unique_ptr<moe::Layer> layer_;
};

}  // namespace npushmem::api
