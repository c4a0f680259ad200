// One vector core in virtual time: each operation runs where it is written, and its pipes' clocks move on.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <tuple>
#include <unordered_set>

#include "core/npu/time/simulation_state.hpp"
#include "npushmem/npu/core.hpp"
#include "npushmem/npu/hooks.hpp"

namespace npushmem::npu::time {

class TimedCore final : public CoreHooks {
public:
    TimedCore(std::shared_ptr<SimulationState> simulation, Core& core);

    void issue(const Command& command, std::function<void()> run) override;
    void set_flag(Pipe from, Pipe to, int id, Where) override;
    void wait_flag(Pipe from, Pipe to, int id, Where) override;
    void pipe_barrier(Pipe pipe, Where) override;
    void load(const void* address, void* value, std::size_t bytes, Where) override;
    void store(void* address, const void* value, std::size_t bytes, Where) override;
    void dcci(const void* address, std::size_t bytes, Where) override;
    void quiet(Where) override;
    void fence(Where) override { advance_scalar(simulation_->model.issue, "fence"); }
    void signal(const Signal& signal, Where) override;
    void before_atomic(const void* address, std::size_t bytes, Where) override;
    void after_atomic(const AtomicResult&, Where) override {}
    void before_wait() override {}
    void after_wait(const void* address, std::uint64_t seen, Where) override;
    void enter_core_barrier(Where) override;
    void leave_core_barrier() override;
    void ub_allocated(std::size_t, std::size_t, bool, Where) override {}
    void ub_released(std::size_t) override {}
    void atomic_mode(bool, Where) override { advance_scalar(simulation_->model.issue, "atomic mode"); }
    void barrier_begin(const BarrierDescriptor&, Where) override {}
    void barrier_observed(std::uint64_t, const BarrierDescriptor&, int, Where) override {}
    void kernel_begin() override {}
    void kernel_end() override;
    void failed(const KernelError&) override { kernel_end(); }

private:
    double& clock(Pipe pipe) { return clocks_.at(index_of(pipe)); }
    double& scalar() { return clock(Pipe::scalar); }
    [[nodiscard]] double drained() const;
    // S is busy for so long.
    void advance_scalar(double length, const char* what);
    // Of a pipe's command that begins then: when it is over.
    [[nodiscard]] double completion_time(const Command& command, double begin);
    // Between this PE's memory and another's.
    [[nodiscard]] bool uses_link(const Command& command) const;
    // Whose memory it is; this PE's when nobody else's.
    [[nodiscard]] int owner_of(const void* address) const;
    void access_line(const void* address, const char* what);

    std::shared_ptr<SimulationState> simulation_;
    Core& core_;
    const int pe_;
    const double begin_;
    std::array<double, pipes> clocks_;
    std::map<std::tuple<Pipe, Pipe, int>, double> flags_;
    std::unordered_set<std::uintptr_t> lines_;  // in the cache
    std::size_t core_barriers_ = 0;
};

}  // namespace npushmem::npu::time
