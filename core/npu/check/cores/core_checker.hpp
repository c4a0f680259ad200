// SPDX-License-Identifier: BSD-3-Clause
// The hooks of one core in checked mode.
//
// The order between accesses is computed where the kernel issues a command, in program order, and does not depend on
// when the command runs: a missing flag is found under every schedule. When commands run, and thus what wrong kernels
// compute, is the schedule's choice.
#pragma once

#include <functional>
#include <memory>

#include "core/npu/check/cores/command_checks.hpp"
#include "core/npu/check/cores/core_scheduling.hpp"
#include "core/npu/check/cores/device_checks.hpp"
#include "core/npu/check/memory/scalar_memory.hpp"
#include "npushmem/npu/core.hpp"

namespace npushmem::npu::check {

// Has more functions than a class should, because it implements the whole interface CoreHooks. Each function passes the
// call on to the parts of the core that it concerns: pipes, commands, scalar memory, and scheduling.
class CoreChecker final : public CoreHooks {
public:
    // `ended` gives launch_ended() its result.
    CoreChecker(std::shared_ptr<Domain> domain, const Core& core, const detail::UbRegion& ub,
                std::function<Status()> ended = {});
    ~CoreChecker() override;

    void issue(const Command& command, std::function<void()> run) override;
    void set_flag(Pipe from, Pipe to, int id, Where where) override;
    void wait_flag(Pipe from, Pipe to, int id, Where where) override;
    void pipe_barrier(Pipe pipe, Where where) override;
    void load(const void* address, void* value, std::size_t bytes, Where where) override;
    void store(void* address, const void* value, std::size_t bytes, Where where) override;
    void dcci(const void* address, std::size_t bytes, Where where) override;
    void quiet(Where where) override;
    void fence(Where where) override;
    void signal(const Signal& signal, Where where) override;
    void before_atomic(const void* address, std::size_t bytes, Where where) override;
    void after_atomic(const AtomicResult& result, Where where) override;
    void before_wait() override { scheduling_.run_deferred(); }
    void before_fetch(const void* word, Where where) override;
    void before_wait_until(const detail::Condition& condition, Where where) override;
    bool poll(std::uint64_t round, Where where) override;
    void after_wait(const void* address, std::uint64_t seen, Where where) override;
    void enter_core_barrier(Where where) override;
    void leave_core_barrier() override;
    void ub_allocated(std::size_t offset, std::size_t bytes, bool placed, Where where) override;
    void ub_released(std::size_t mark) override { ub_.release(mark); }
    void atomic_mode(bool on, Where where) override { commands_.set_atomic_mode(on, where); }
    void barrier_begin(const BarrierDescriptor& call, Where where) override;
    void barrier_observed(std::uint64_t seen, const BarrierDescriptor& call, int peer, Where where) override;
    void failed(const KernelError& error) override;
    void kernel_begin() override { scheduling_.schedule_point(); }
    void kernel_end() override;
    Status launch_ended() override { return ended_ ? ended_() : Status{}; }

private:
    // Records an event for pictures of failures. `issued`: the next access is its access.
    void record(const KernelEvent& event, bool issued = false) {
        events_.record(event, issued ? clocks_.next_issue() : 0);
    }
    // Completes everything that the core has issued.
    void complete_all(const SourceLocation& where);
    void report_overtaken();

    const std::shared_ptr<Domain> domain_;
    const std::function<Status()> ended_;
    CommandQueues queues_;
    const CheckedCore core_;
    CoreEvents& events_;
    PipeClocks clocks_;
    PipeFlags flags_;
    UbShadow ub_;
    DeviceChecks device_;
    CommandChecks commands_;
    ScalarMemory memory_;
    ScalarAtomics atomics_;
    CoreScheduling scheduling_;
    bool idle_ = false;  // nothing done since the last quiet
};

}  // namespace npushmem::npu::check
