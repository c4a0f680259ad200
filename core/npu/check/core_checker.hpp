// The hooks of one core in checked mode.
//
// The order between accesses is computed where the kernel issues a command, in program order, and does not depend on
// when the command runs: a missing flag is found under every schedule. When commands run, and thus what wrong kernels
// compute, is the schedule's choice.
#pragma once

#include <array>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>

#include "core/npu/check/domain.hpp"
#include "core/npu/check/outside.hpp"
#include "core/npu/check/scalar_cache.hpp"
#include "core/npu/check/ub_shadow.hpp"
#include "core/npu/check/wait_loop.hpp"
#include "core/npu/runner.hpp"
#include "npushmem/npu/core.hpp"

namespace npushmem::npu::check {

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
    void before_wait() override { hurry(); }
    bool poll(std::uint64_t round, Where where) override;
    void after_wait(const void* address, std::uint64_t seen, Where where) override;
    void enter_core_barrier(Where where) override;
    void leave_core_barrier() override;
    void ub_allocated(std::size_t offset, std::size_t bytes, bool placed, Where where) override;
    void ub_released(std::size_t mark) override { ub_shadow_.release(mark); }
    void atomic_mode(bool on, Where where) override;
    void barrier_begin(const BarrierDescriptor& call, Where where) override;
    void barrier_observed(std::uint64_t seen, const BarrierDescriptor& call, int peer, Where where) override;
    void failed(const KernelError& error) override;
    void kernel_begin() override { point(); }
    void kernel_end() override;
    Status launch_ended() override { return ended_ ? ended_() : Status{}; }

    [[nodiscard]] int pe() const { return pe_; }
    [[nodiscard]] int index() const { return index_; }
    // Runs the oldest queued command. False: there is none.
    bool run_oldest();

private:
    using Address = std::uintptr_t;
    using Ticket = std::uint64_t;

    // A command, or (without `run`) the point where a pipe waits for another one's ticket.
    struct Item {
        Ticket ticket;
        std::function<void()> run;
        Pipe awaited = Pipe::scalar;
        Ticket awaited_ticket = 0;
    };
    struct Flag {
        std::uint64_t sets = 0;
        std::uint64_t waits = 0;
        Ticket ticket = 0;  // everything of the pipe up to here comes before the flag
        Clock clock;
        FindingSide set_at;
        FindingSide waited_at;
    };
    struct FlagKey {
        Pipe from;
        Pipe to;
        int id;
        auto operator<=>(const FlagKey&) const = default;
    };

    [[nodiscard]] static std::size_t number(Pipe pipe) { return static_cast<std::size_t>(pipe); }
    [[nodiscard]] std::uint32_t agent(Pipe pipe) const {
        return core_ * agents_per_core + static_cast<std::uint32_t>(pipe);
    }
    [[nodiscard]] Clock& now() { return clocks_[0]; }
    [[nodiscard]] FindingSide side(Pipe pipe, const char* what, const SourceLocation& where) const;
    [[nodiscard]] Access scalar_access(const char* what, const SourceLocation& where);
    [[nodiscard]] bool in_ub(Address address) const { return address - ub_base_ < ub_.bytes + ub_.reserved; }
    // The kernel makes a call: records where it is, and lets others run when it was one of many without a wait.
    void enter(Where where);
    void give_way(Where where);
    void preempt(Where where);
    // A place where the schedule may let others go first.
    void point();
    // A read of the kernel. In a wait loop that found nothing new, others run.
    void observe(Address what, const void* address, std::uint64_t value, Where where);
    struct LastRead {
        const void* address = nullptr;
        std::uint64_t value = 0;
        SourceLocation where;
    };
    void wait_for_change(const LastRead& read);
    void load_checked(const Access& access, void* value, std::size_t bytes, const CacheLine* line, Stamp filled,
                      const void* address);
    // In a wait loop that reads a cached line: whether the memory has something else. It is reported, and the line is
    // read again, so that the kernel goes on.
    bool stale_poll(Address at, std::size_t bytes, CacheLine& line, const Access& access);
    // A line is read that no dcci refreshed, and nothing orders the last write of the word before that: the line may
    // have the word as it was before. True: it has.
    bool read_earlier(Address at, CacheLine& line);
    // `clock` as a write of a word passes it on: with the copies that fences ordered before writes to the word's PE.
    [[nodiscard]] Clock passed_on(Address word, Clock clock);
    // Where this core may wait for what others do only when they see its work.
    void hurry();

    void check_operand(const Operand& operand, bool write, const Access& access);
    void check_global(Address begin, Address end, bool write, const Access& access);
    // A copy of one block of 32 bytes, which arrives whole.
    [[nodiscard]] static bool may_poll(const Operand& source);
    // Such a copy that, when it has run, passes on what the words that it read announce.
    [[nodiscard]] std::function<void()> looking(const Operand& source, std::function<void()> run);
    void check_local(Address begin, Address end, std::size_t padding, bool write, const Access& access);
    // A report of `access`, for the shadows to call.
    [[nodiscard]] GmShadow::Report reporter(const Access& access, bool global);
    [[nodiscard]] std::string place_of(Address address, bool global) const;
    // The command with what must be noted when it has run.
    [[nodiscard]] std::function<void()> landing(const Command& command, const Access& access,
                                                std::function<void()> run);
    // The command that first looks whether PEs of other processes changed what it reads and writes since it was issued.
    // `own_writes`: earlier writes of this PE to the target had not landed then.
    [[nodiscard]] std::function<void()> watched(const Command& command, const Access& access, bool own_writes,
                                                std::function<void()> run);
    [[nodiscard]] bool written_by_own(const Operand& target) const;
    void look_again(const Operand& operand, const std::vector<std::byte>& before, Stamp issued, const Access& access,
                    bool write);
    // Symmetric memory that PEs of other processes write to, too, and that can be looked at.
    [[nodiscard]] bool watchable(const Operand& operand) const;
    // `own_bytes`: of the access that needs the line.
    [[nodiscard]] CacheLine& fill(Address address, std::size_t own_bytes);
    void record_atomic(const AtomicResult& result);
    // H8 towards PEs of other processes: a signal leaves while stores to the same PE are in the cache.
    void note_unflushed(int target, const Access& signal);
    void report_outside(Hazard hazard, const Access& access, Address at, const char* detail);
    void refuse_address(Address begin, std::size_t bytes, const Access& access) const;
    void touch(Address address);
    void store_uncached(Address address, const void* value, std::size_t bytes, const Access& access);

    void run_until(Pipe pipe, Ticket ticket);
    void run_all();
    void join_all_pipes();
    void clean_cache(const SourceLocation& where);
    bool clean_line(Address address, const SourceLocation& where);
    void flushed(Address begin, const CacheLine& line, const SourceLocation& where);
    [[noreturn]] void never(const FlagKey& key, const SourceLocation& where);
    void check_left_over();
    void tell_overtaken();

    std::shared_ptr<Domain> domain_;
    detail::UbRegion ub_;
    Address ub_base_;
    detail::CoreContext* context_;
    std::function<Status()> ended_;
    int pe_;
    int index_;
    int cores_;
    std::uint32_t core_ = 0;

    // By pipe: what its next command is ordered behind; how many commands it was given; what waits to run.
    std::array<Clock, pipes_per_core> clocks_;
    std::array<std::uint32_t, pipes_per_core> counts_{};
    std::array<std::deque<Item>, pipes_per_core> queues_;
    Ticket tickets_ = 0;
    std::map<FlagKey, Flag> flags_;
    UbShadow ub_shadow_;
    Clock polled_;  // what words that copies have read announced; S knows it when it has waited for MTE2
    ScalarCache cache_;
    std::set<Address> untouched_;  // lines not used since their last dcci
    Outside outside_;
    bool idle_ = false;  // nothing done since the last quiet
    Access atomic_access_;
    std::optional<JobLock> atomic_records_;  // from before an atomic until it is recorded
    bool atomic_ = false;
    FindingSide atomic_at_;
    WaitLoop loop_;
    LastRead last_read_;  // since the last yield
    detail::PollState polling_{};
    CorePlace* place_ = nullptr;
    std::uint64_t calls_ = 0;                             // since others could run
    std::uint64_t turns_ = 0;                             // that ended because of many calls
    std::unordered_map<Address, std::uint32_t> earlier_;  // words that were read as before the release of that number
};

}  // namespace npushmem::npu::check
