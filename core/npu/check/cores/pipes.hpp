// SPDX-License-Identifier: BSD-3-Clause
// The pipes of one core: deferred commands, vector clocks, and the flags between pipes.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <utility>

#include "core/npu/check/domain.hpp"
#include "npushmem/npu/hooks.hpp"

namespace npushmem::npu::check {

inline std::size_t index_of(Pipe pipe) { return static_cast<std::size_t>(pipe); }

// The commands that were issued and have not run. Each pipe runs its commands in order; a pipe that waits for another
// one runs the other one's commands first.
class CommandQueues {
public:
    using Ticket = std::uint64_t;

    using Accesses = std::vector<explore::MemoryAccess>;

    // With an exploration: `wait` returns when its argument returns true, in a step that has done nothing yet. Each
    // command is a step of its pipe, except in a loop that the core repeats alone.
    void explore(StepRecorder& steps, std::function<void(const std::function<bool()>&)> wait);
    // The commands that ran within steps of the core since the last call.
    [[nodiscard]] std::uint64_t take_run_alone() { return std::exchange(run_alone_, 0); }

    // `accesses`: of the command when it runs, for an exploration.
    void push(Pipe pipe, std::function<void()> run, Accesses accesses = {});
    // `pipe` waits until `awaited` has run everything up to `ticket`.
    void push_wait(Pipe pipe, Pipe awaited, Ticket ticket);
    // The ticket of the last command.
    [[nodiscard]] Ticket last() const { return tickets_; }
    void run_until(Pipe pipe, Ticket ticket);
    void run_pipe(Pipe pipe);
    // Returns false when no command is queued.
    bool run_oldest();
    void run_all();

    // For an exploration: whether the pipe's next command can run, and that step.
    [[nodiscard]] bool can_run(Pipe pipe) const;
    void run_next(Pipe pipe);

private:
    // Without `run`: the point where a pipe waits for another one's ticket.
    struct Item {
        Ticket ticket;
        std::function<void()> run;
        Pipe awaited = Pipe::scalar;
        Ticket awaited_ticket = 0;
        Accesses accesses = {};
        explore::StepId issued = {};
    };
    struct Completed {
        Ticket ticket;
        explore::StepId step;
    };

    // Whether the pipe has run everything up to the ticket.
    [[nodiscard]] bool is_complete(Pipe pipe, Ticket ticket) const;
    // The current step comes after the pipe's commands up to the ticket, which have run.
    void join(Pipe pipe, Ticket ticket);
    // S waits for the pipe.
    void await(Pipe pipe, Ticket ticket);
    // Whether an earlier wait of S was for all that the pipe has run up to the ticket.
    [[nodiscard]] bool has_joined(Pipe pipe, Ticket ticket) const;
    // Runs the commands up to the ticket within the current step, if S is behind all that the pipes have run.
    void run_alone(Pipe pipe, Ticket ticket);

    std::array<std::deque<Item>, pipes_per_core> queues_;
    Ticket tickets_ = 0;
    StepRecorder* steps_ = nullptr;  // null: no exploration
    std::function<void(const std::function<bool()>&)> wait_;
    std::array<std::vector<Completed>, pipes_per_core> completed_;
    std::array<Ticket, pipes_per_core> joined_{};  // of the last command that S has waited for
    std::uint64_t run_alone_ = 0;
};

// What the next command of each pipe is ordered behind, and the number of accesses of each pipe.
class PipeClocks {
public:
    PipeClocks(const CheckedCore& core, Domain& domain);

    // The clock of S.
    [[nodiscard]] Clock& now() { return clocks_[0]; }
    [[nodiscard]] const Clock& operator[](Pipe pipe) const { return clocks_[index_of(pipe)]; }
    // Access::issued of the next access.
    [[nodiscard]] std::uint32_t next_issue() const { return counts_[0] + 1; }
    // An access of S, now.
    [[nodiscard]] Access scalar_access(const char* name, const SourceLocation& where);
    // S issues a command.
    [[nodiscard]] Access issue(Pipe pipe, const char* name, const SourceLocation& where);

    // The clock of a flag that the pipe sets after all its commands so far.
    [[nodiscard]] Clock flag_clock(Pipe from) const;
    void join(Pipe to, const Clock& clock) { clocks_[index_of(to)].join(clock); }
    // The clocks of words that copies have read. S is ordered behind them when it has waited for MTE2.
    [[nodiscard]] Clock& polled() { return polled_; }
    void join_polled() { now().join(polled_); }
    // The pipe's next command is ordered behind its earlier ones.
    void order_pipe(Pipe pipe);
    // S is ordered behind all pipes, and every later command behind everything that S did.
    void order_all();
    // Copies out are ordered, but complete only for this PE and for PEs that a later signal to their target reaches.
    // Returns the number of these copies.
    std::uint32_t fence();

private:
    const CheckedCore& core_;
    Domain& domain_;
    std::array<Clock, pipes_per_core> clocks_;
    std::array<std::uint32_t, pipes_per_core> counts_{};
    Clock polled_;
};

// The flags of one core.
class PipeFlags {
public:
    PipeFlags(const CheckedCore& core, Domain& domain, PipeClocks& clocks, CommandQueues& queues)
        : core_(core), domain_(domain), clocks_(clocks), queues_(queues) {}

    void set(Pipe from, Pipe to, int id, const SourceLocation& where);
    // Throws KernelError when S would wait forever.
    void wait(Pipe from, Pipe to, int id, const SourceLocation& where);
    // Reports flags that are still set, or that were never set, when the kernel ends.
    void check_left_over() const;

private:
    struct Flag {
        std::uint64_t sets = 0;
        std::uint64_t waits = 0;
        CommandQueues::Ticket ticket = 0;  // commands of the pipe up to here come before the flag
        std::uint64_t set_call = 0;        // among all calls of set() and wait()
        std::uint64_t wait_call = 0;
        Clock clock;
        FindingSide set_at;
        FindingSide waited_at;
    };
    struct Key {
        Pipe from;
        Pipe to;
        int id;
        auto operator<=>(const Key&) const = default;
    };

    [[noreturn]] static void fail_wait(const Key& key, const SourceLocation& where);
    // A wait by which `pipe`, before the call, began to wait for `awaited`, perhaps through other pipes. The awaited
    // flags are not set yet, so their pipes set them behind their own waits. Null: there is none.
    [[nodiscard]] const Flag* unended_wait(Pipe pipe, Pipe awaited, std::uint64_t before) const;

    const CheckedCore& core_;
    Domain& domain_;
    PipeClocks& clocks_;
    CommandQueues& queues_;
    std::map<Key, Flag> flags_;
    std::uint64_t calls_ = 0;
};

}  // namespace npushmem::npu::check
