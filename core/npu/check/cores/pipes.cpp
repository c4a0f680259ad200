// SPDX-License-Identifier: BSD-3-Clause
#include "core/npu/check/cores/pipes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <limits>
#include <utility>

#include "npushmem/npu/error.hpp"

namespace npushmem::npu::check {

void CommandQueues::explore(StepRecorder& steps, std::function<void(const std::function<bool()>&)> wait) {
    steps_ = &steps;
    wait_ = std::move(wait);
}

void CommandQueues::push(Pipe pipe, std::function<void()> run, Accesses accesses) {
    Item item{++tickets_, std::move(run)};
    item.accesses = std::move(accesses);
    if (steps_ != nullptr) item.issued = steps_->id();
    queues_[index_of(pipe)].push_back(std::move(item));
}

bool CommandQueues::is_complete(Pipe pipe, Ticket ticket) const {
    return std::ranges::all_of(queues_[index_of(pipe)], [&](const Item& item) {
        return item.ticket > ticket || (!item.run && is_complete(item.awaited, item.awaited_ticket));
    });
}

bool CommandQueues::can_run(Pipe pipe) const {
    for (const Item& item : queues_[index_of(pipe)]) {
        if (item.run) return true;
        if (!is_complete(item.awaited, item.awaited_ticket)) return false;
    }
    return false;
}

void CommandQueues::join(Pipe pipe, Ticket ticket) {
    auto& queue = queues_[index_of(pipe)];
    while (!queue.empty() && !queue.front().run && queue.front().ticket <= ticket) {
        const Item item = std::move(queue.front());
        queue.pop_front();
        join(item.awaited, item.awaited_ticket);
    }
    const auto& completed = completed_[index_of(pipe)];
    const auto next = std::ranges::upper_bound(completed, ticket, {}, &Completed::ticket);
    if (next != completed.begin()) steps_->after(std::prev(next)->step);
}

void CommandQueues::run_next(Pipe pipe) {
    auto& queue = queues_[index_of(pipe)];
    while (!queue.front().run) join(pipe, queue.front().ticket);
    const Item item = std::move(queue.front());
    queue.pop_front();
    steps_->after(item.issued);
    steps_->add(item.accesses);
    item.run();
    completed_[index_of(pipe)].push_back({item.ticket, steps_->id()});
}

bool CommandQueues::has_joined(Pipe pipe, Ticket ticket) const {
    const auto& queue = queues_[index_of(pipe)];
    if (!queue.empty() && queue.front().ticket <= ticket) return false;
    const auto& completed = completed_[index_of(pipe)];
    const auto next = std::ranges::upper_bound(completed, ticket, {}, &Completed::ticket);
    return next == completed.begin() || std::prev(next)->ticket <= joined_[index_of(pipe)];
}

void CommandQueues::run_alone(Pipe pipe, Ticket ticket) {
    for (std::size_t each = 0; each < pipes_per_core; ++each)
        if (!completed_[each].empty() && completed_[each].back().ticket > joined_[each]) return;
    auto& queue = queues_[index_of(pipe)];
    while (!queue.empty() && queue.front().ticket <= ticket) {
        if (const Item& next = queue.front(); !next.run) run_alone(next.awaited, next.awaited_ticket);
        if (!can_run(pipe)) return;
        run_next(pipe);
        joined_[index_of(pipe)] = completed_[index_of(pipe)].back().ticket;
        ++run_alone_;
    }
}

// Only what the core does behind the wait comes after the commands.
void CommandQueues::await(Pipe pipe, Ticket ticket) {
    if (steps_->repeating()) run_alone(pipe, ticket);
    if (has_joined(pipe, ticket)) return;
    wait_([this, pipe, ticket] { return is_complete(pipe, ticket); });
    join(pipe, ticket);
    if (!completed_[index_of(pipe)].empty())
        joined_[index_of(pipe)] = std::min(ticket, completed_[index_of(pipe)].back().ticket);
}

void CommandQueues::push_wait(Pipe pipe, Pipe awaited, Ticket ticket) {
    queues_[index_of(pipe)].push_back({++tickets_, nullptr, awaited, ticket});
}

void CommandQueues::run_until(Pipe pipe, Ticket ticket) {
    if (steps_ != nullptr) return await(pipe, ticket);
    auto& queue = queues_[index_of(pipe)];
    while (!queue.empty() && queue.front().ticket <= ticket) {
        const Item item = std::move(queue.front());
        queue.pop_front();
        if (item.run)
            item.run();
        else
            run_until(item.awaited, item.awaited_ticket);
    }
}

void CommandQueues::run_pipe(Pipe pipe) { run_until(pipe, std::numeric_limits<Ticket>::max()); }

bool CommandQueues::run_oldest() {
    std::deque<Item>* oldest = nullptr;
    for (auto& queue : queues_) {
        if (!queue.empty() && (oldest == nullptr || queue.front().ticket < oldest->front().ticket)) oldest = &queue;
    }
    if (oldest == nullptr) return false;
    run_until(static_cast<Pipe>(oldest - queues_.data()), oldest->front().ticket);
    return true;
}

void CommandQueues::run_all() {
    for (std::size_t pipe = 0; steps_ != nullptr && pipe < pipes_per_core; ++pipe)
        await(static_cast<Pipe>(pipe), std::numeric_limits<Ticket>::max());
    while (run_oldest()) {
    }
}

PipeClocks::PipeClocks(const CheckedCore& core, Domain& domain) : core_(core), domain_(domain) {
    for (Clock& clock : clocks_) clock = domain.beginning(core.pe);
    // Earlier launches of the PE may have used the same numbers.
    for (std::size_t pipe = 0; pipe < pipes_per_core; ++pipe)
        counts_[pipe] = now()[core.agent(static_cast<Pipe>(pipe))];
}

Access PipeClocks::scalar_access(const char* name, const SourceLocation& where) {
    const std::uint32_t agent = core_.agent(Pipe::scalar);
    const std::uint32_t sequence = ++counts_[0];
    now().raise(agent, sequence);
    return {agent, sequence, sequence, name, where, -1, no_agent, domain_.number_of_text(name, where)};
}

// The command begins after everything that S knew when it issued it, except S's own stores to UB: those need a flag.
Access PipeClocks::issue(Pipe pipe, const char* name, const SourceLocation& where) {
    const std::size_t at = index_of(pipe);
    const std::uint32_t scalar = core_.agent(Pipe::scalar);
    const std::uint32_t issued = ++counts_[0];
    now().raise(scalar, issued);
    const std::uint32_t flagged = clocks_[at][scalar];
    clocks_[at].join(now());
    clocks_[at].set(scalar, flagged);
    Access access{core_.agent(pipe), ++counts_[at], issued, name, where};
    access.text = domain_.number_of_text(name, where);
    return access;
}

Clock PipeClocks::flag_clock(Pipe from) const {
    Clock clock = clocks_[index_of(from)];
    clock.raise(core_.agent(from), counts_[index_of(from)]);
    return clock;
}

void PipeClocks::order_pipe(Pipe pipe) { clocks_[index_of(pipe)].raise(core_.agent(pipe), counts_[index_of(pipe)]); }

void PipeClocks::order_all() {
    join_polled();
    for (std::size_t pipe = 1; pipe < pipes_per_core; ++pipe) {
        now().join(clocks_[pipe]);
        now().raise(core_.agent(static_cast<Pipe>(pipe)), counts_[pipe]);
    }
    for (std::size_t pipe = 1; pipe < pipes_per_core; ++pipe) clocks_[pipe] = now();
}

std::uint32_t PipeClocks::fence() {
    const std::size_t out = index_of(Pipe::copy_out);
    now().join(clocks_[out]);
    now().raise(fenced_agent(core_.number), counts_[out]);
    return counts_[out];
}

void PipeFlags::set(Pipe from, Pipe to, int id, const SourceLocation& where) {
    Flag& flag = flags_[{from, to, id}];
    if (flag.sets > flag.waits) {
        domain_.findings.report(Hazard::flag_set_twice, core_.side(from, "set_flag", where), flag.set_at, "",
                                fmt::format("flag {} from {} to {} is set while it is still set", id,
                                            npu::name_of(from), npu::name_of(to)));
    }
    ++flag.sets;
    flag.set_call = ++calls_;
    flag.set_at = core_.side(from, "set_flag", where);
    flag.ticket = queues_.last();
    flag.clock = clocks_.flag_clock(from);
    if (from == Pipe::copy_out && to != Pipe::scalar)
        domain_.copies.record_sideways_flag(clocks_.scalar_access("set_flag", where));
}

void PipeFlags::fail_wait(const Key& key, const SourceLocation& where) {
    throw KernelError(Code::mismatch,
                      fmt::format("wait_flag: S waits for flag {} from {}, which nobody has set: it would wait for "
                                  "ever ({}) [{}]",
                                  key.id, npu::name_of(key.from), text_of(where), id_of(Hazard::deadlock)),
                      Hazard::deadlock, where);
}

const PipeFlags::Flag* PipeFlags::unended_wait(Pipe pipe, Pipe awaited, std::uint64_t before) const {
    for (const auto& [key, flag] : flags_) {
        if (key.to != pipe || flag.waits <= flag.sets || flag.wait_call >= before) continue;
        // Each step reaches an older wait: the search ends.
        if (key.from == awaited || unended_wait(key.from, awaited, flag.wait_call) != nullptr) return &flag;
    }
    return nullptr;
}

void PipeFlags::wait(Pipe from, Pipe to, int id, const SourceLocation& where) {
    const Key key{from, to, id};
    Flag& flag = flags_[key];
    const bool set = flag.sets > flag.waits;
    if (!set && to == Pipe::scalar) fail_wait(key, where);
    ++flag.waits;
    flag.waited_at = core_.side(to, "wait_flag", where);
    flag.wait_call = ++calls_;
    if (const Flag* other = unended_wait(from, to, set ? flag.set_call : flag.wait_call); other != nullptr)
        domain_.findings.report(Hazard::deadlock, flag.waited_at, other->waited_at, "",
                                fmt::format("{} waits for {}, which waits for {}: neither goes on", npu::name_of(to),
                                            npu::name_of(from), npu::name_of(to)));
    // A pipe may wait before the flag is set; then no order is known.
    if (!set) return;
    clocks_.join(to, flag.clock);
    if (to == Pipe::scalar) {
        queues_.run_until(from, flag.ticket);
        if (from == Pipe::copy_in) clocks_.join_polled();
    } else if (from != Pipe::scalar) {
        queues_.push_wait(to, from, flag.ticket);
    }
}

void PipeFlags::check_left_over() const {
    for (const auto& [key, flag] : flags_) {
        const std::string name =
            fmt::format("flag {} from {} to {}", key.id, npu::name_of(key.from), npu::name_of(key.to));
        if (flag.sets > flag.waits)
            domain_.findings.report(Hazard::left_over, flag.set_at, FindingSide{}, "",
                                    "the kernel ends with " + name + " set");
        if (flag.waits > flag.sets)
            domain_.findings.report(Hazard::deadlock, flag.waited_at, FindingSide{}, "",
                                    name + " is never set: the pipe and the kernel would never end");
    }
}

}  // namespace npushmem::npu::check
