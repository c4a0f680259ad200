// SPDX-License-Identifier: BSD-3-Clause
#include "core/npu/check/cores/core_checker.hpp"

#include <fmt/format.h>

#include <utility>

#include "core/npu/core_context.hpp"
#include "core/npu/running_launch.hpp"
#include "npushmem/npu/error.hpp"

namespace npushmem::npu::check {
namespace {

using Kind = KernelEvent::Kind;

// Tells a block that a wait loop copies from the word at its beginning.
std::uintptr_t polled_block(const Command& command) { return number_of(command.source[0].address) * 2 + 1; }

}  // namespace

CoreChecker::CoreChecker(std::shared_ptr<Domain> domain, const Core& core, const detail::UbRegion& ub,
                         std::function<Status()> ended)
    : domain_(std::move(domain)),
      ended_(std::move(ended)),
      core_{core.my_pe(), core.index(), core.count(), domain_->cores.add(core.my_pe(), core.index(), queues_)},
      events_(domain_->events.add(core_.number, core_.pe, core_.index)),
      clocks_(core_, *domain_),
      flags_(core_, *domain_, clocks_, queues_),
      ub_(ub, domain_->findings),
      device_(core_, *domain_, core.context()->run->rules()),
      commands_(core_, *domain_, events_, clocks_, ub_),
      memory_(core_, *domain_, clocks_),
      atomics_(core_, *domain_, clocks_),
      scheduling_(core_, *domain_, queues_, core.context()) {
    if (domain_->steps.active())
        queues_.explore(domain_->steps, [this](const auto& ready) { scheduling_.wait_until(ready); });
}

CoreChecker::~CoreChecker() { domain_->cores.remove(core_.number); }

void CoreChecker::issue(const Command& command, std::function<void()> run) {
    scheduling_.enter(command.where);
    if (command.source[0].global && !command.target.global)
        scheduling_.read_point(polled_block(command), command.where);
    else if (command.target.global || !scheduling_.repeating())
        scheduling_.step_point();
    const std::size_t event = events_.record_command(command, clocks_.next_issue());
    device_.check_command(command);
    idle_ = false;
    std::function<void()> checked = commands_.check(command, event, std::move(run));
    queues_.push(command.pipe, std::move(checked),
                 domain_->steps.active() ? StepRecorder::accesses_of(command) : CommandQueues::Accesses{});
    if (domain_->control.run_command()) queues_.run_until(command.pipe, queues_.last());
    scheduling_.schedule_point_after();
    const Operand& source = command.source[0];
    if (source.global)
        scheduling_.observe(polled_block(command), {source.address, number_of(command.target.address), command.where});
}

void CoreChecker::set_flag(Pipe from, Pipe to, int id, Where where) {
    scheduling_.enter(where);
    record({.kind = Kind::set_flag,
            .pipe = from,
            .to = to,
            .what = "set_flag",
            .where = where,
            .value = static_cast<std::uint64_t>(id)});
    device_.check_flag(from, to, id, "set_flag", where);
    flags_.set(from, to, id, where);
}

void CoreChecker::wait_flag(Pipe from, Pipe to, int id, Where where) {
    scheduling_.enter(where);
    record({.kind = Kind::wait_flag,
            .pipe = from,
            .to = to,
            .what = "wait_flag",
            .where = where,
            .value = static_cast<std::uint64_t>(id)});
    device_.check_flag(from, to, id, "wait_flag", where);
    flags_.wait(from, to, id, where);
}

void CoreChecker::pipe_barrier(Pipe pipe, Where where) {
    scheduling_.enter(where);
    record({.kind = Kind::pipe_barrier, .pipe = pipe, .what = "pipe_barrier", .where = where});
    if (pipe != Pipe::all) return clocks_.order_pipe(pipe);
    queues_.run_all();
    clocks_.order_all();
}

void CoreChecker::load(const void* address, void* value, std::size_t bytes, Where where) {
    scheduling_.enter(where);
    const std::uintptr_t at = number_of(address);
    scheduling_.read_point(at, where);
    record({.kind = Kind::load, .what = "load", .where = where, .read = {number_of(address), bytes}}, true);
    const Access access = clocks_.scalar_access("load", where);
    if (ub_.contains(at)) {
        ub_.read(at, at + bytes, access, clocks_.now());
        domain_->steps.read(at, at + bytes);
        read_memory(address, value, bytes);
        return scheduling_.observe(at, {address, value_of(value, bytes), where});
    }
    require_accessible(domain_->names, at, bytes, access);
    device_.check_scalar(address, "load", where);
    idle_ = false;
    const bool was_cached = memory_.load(access, address, value, bytes);
    if (!scheduling_.repeats(at, {address, value_of(value, bytes), where})) return;
    if (was_cached && memory_.refresh_stale_poll(access, at, bytes)) return scheduling_.changed();
    scheduling_.wait_for_change();
}

void CoreChecker::store(void* address, const void* value, std::size_t bytes, Where where) {
    scheduling_.enter(where);
    const std::uintptr_t at = number_of(address);
    scheduling_.step_point();
    if (!ub_.contains(at)) scheduling_.write_point(at);
    record({.kind = Kind::store, .what = "store", .where = where, .written = {number_of(address), bytes}}, true);
    const Access access = clocks_.scalar_access("store", where);
    if (ub_.contains(at)) {
        domain_->steps.write(at, at + bytes);
        ub_.write(at, at + bytes, access, clocks_.now(), false);
        return write_memory(address, value, bytes);
    }
    require_accessible(domain_->names, at, bytes, access);
    device_.check_scalar(address, "store", where);
    idle_ = false;
    if (memory_.store(access, address, value, bytes)) scheduling_.changed();
}

void CoreChecker::dcci(const void* address, std::size_t bytes, Where where) {
    scheduling_.enter(where);
    if (!scheduling_.repeating() || memory_.writes_back(address, bytes)) scheduling_.schedule_point();
    scheduling_.run_deferred();
    idle_ = false;
    record({.kind = Kind::dcci, .what = "dcci", .where = where, .read = {number_of(address), bytes}});
    memory_.dcci(address, bytes, where);
}

void CoreChecker::complete_all(const SourceLocation& where) {
    queues_.run_all();
    clocks_.order_all();
    scheduling_.step_point();
    memory_.clean(where);
    scheduling_.deliver_signals();
}

void CoreChecker::quiet(Where where) {
    scheduling_.enter(where);
    scheduling_.schedule_point();
    if (idle_) {
        domain_->findings.report(Hazard::redundant, core_.side(Pipe::scalar, "quiet", where), FindingSide{}, "",
                                 "nothing was done since the last quiet");
    }
    record({.kind = Kind::quiet, .what = "quiet", .where = where});
    complete_all(where);
    idle_ = true;
}

void CoreChecker::fence(Where where) {
    scheduling_.enter(where);
    scheduling_.schedule_point();
    queues_.run_pipe(Pipe::copy_out);
    domain_->copies.record_fence(core_.number, clocks_.fence());
    scheduling_.step_point();
    record({.kind = Kind::fence, .what = "fence", .where = where});
    memory_.clean(where);
    scheduling_.deliver_signals();
}

void CoreChecker::signal(const Signal& signal, Where where) {
    scheduling_.enter(where);
    scheduling_.schedule_point();
    scheduling_.write_point();
    const std::uintptr_t at = number_of(signal.word);
    const char* name = signal.add ? "signal_add" : "signal_set";
    record({.kind = Kind::signal,
            .what = name,
            .where = where,
            .written = {number_of(signal.word), sizeof *signal.word},
            .value = signal.value},
           true);
    const Access access = clocks_.scalar_access(name, where);
    require_accessible(domain_->names, at, sizeof *signal.word, access);
    idle_ = false;
    memory_.bypass(at, where);
    domain_->steps.write_records(at, at + sizeof *signal.word);
    domain_->memory.signal(at, at + sizeof *signal.word, access, clocks_.now(), !signal.add,
                           domain_->findings.reporter(access));
    PendingSignal pending{core_.number, signal, access, domain_->passed_on(at, clocks_.now(), core_.pe),
                          domain_->steps.id()};
    const int target = domain_->names.pe_of(at);
    if (target >= 0 && target != core_.pe) {
        ++domain_->traffic.signals;
        domain_->overtaken.signalled(target, access, clocks_.now());
        memory_.record_unflushed(target, access);
    }
    if (target == core_.pe) domain_->overtaken.published(OvertakenCopies::any_pe, clocks_.now());
    if (target < 0 || target == core_.pe || domain_->control.deliver_signal())
        domain_->signals.arrive(pending);
    else
        domain_->signals.send(std::move(pending));
    scheduling_.schedule_point_after();
}

void CoreChecker::before_atomic(const void* address, std::size_t bytes, Where where) {
    scheduling_.enter(where);
    const std::uintptr_t at = number_of(address);
    scheduling_.schedule_point(at, where);
    record({.kind = Kind::atomic, .what = "atomic", .where = where, .written = {number_of(address), bytes}}, true);
    const Access access = clocks_.scalar_access("atomic", where);
    require_accessible(domain_->names, at, bytes, access);
    idle_ = false;
    memory_.bypass(at, where);
    atomics_.begin(access, at);
}

// An atomic that finds the word and leaves it as it is reads it only.
void CoreChecker::after_atomic(const AtomicResult& result, Where where) {
    const std::uintptr_t at = number_of(result.address);
    if (result.changed) {
        domain_->steps.write(at, at + result.bytes, result.before);
        domain_->steps.write_records(at, at + result.bytes);
    } else {
        domain_->steps.read(at, at + result.bytes);
    }
    atomics_.end(result);
    if (!result.changed) scheduling_.observe(number_of(result.address), {result.address, result.before, where});
}

// A dcci (`round` above 0) is no reason to let others run: the reads of the loop are.
bool CoreChecker::poll(std::uint64_t round, Where where) {
    if (round != 0) return true;
    scheduling_.enter(where);
    scheduling_.yield(where);
    return true;
}

void CoreChecker::before_fetch(const void* word, Where where) {
    if (!domain_->steps.active()) return;
    scheduling_.enter(where);
    scheduling_.read_point(number_of(word), where);
}

void CoreChecker::before_wait_until(const detail::Condition& condition, Where where) {
    if (!domain_->steps.active()) return;
    scheduling_.enter(where);
    scheduling_.wait_for(condition, where);
}

void CoreChecker::after_wait(const void* address, std::uint64_t seen, Where where) {
    scheduling_.enter(where);
    const std::uintptr_t at = number_of(address);
    if (!domain_->steps.waits_for(at)) domain_->steps.read(at, at + sizeof seen);
    const int owner = domain_->names.pe_of(at);
    if (owner >= 0 && owner != core_.pe) ++domain_->traffic.waits;
    idle_ = false;
    record({.kind = Kind::wait,
            .what = "signal",
            .where = where,
            .read = {number_of(address), sizeof seen},
            .value = seen});
    memory_.bypass(at, where);
    memory_.acquired();
    domain_->words.acquire(at, clocks_.now(), seen, true);
    scheduling_.observe(at, {address, seen, where});
}

void CoreChecker::enter_core_barrier(Where where) {
    scheduling_.enter(where);
    scheduling_.schedule_point();
    scheduling_.run_deferred();
    record({.kind = Kind::core_barrier, .what = "core_barrier", .where = where});
    const FindingSide here = core_.side(Pipe::scalar, "core_barrier", where);
    domain_->core_barriers[core_.pe].add_arrival(domain_->steps.id());
    if (domain_->core_barriers[core_.pe].arrive(core_, here, clocks_.now(), domain_->findings))
        domain_->version.changed();
}

void CoreChecker::leave_core_barrier() {
    memory_.acquired();
    const CoreBarrier& barrier = domain_->core_barriers[core_.pe];
    clocks_.now().join(barrier.passed());
    for (const explore::StepId arrival : barrier.arrivals()) domain_->steps.after(arrival);
}

void CoreChecker::ub_allocated(std::size_t offset, std::size_t bytes, bool placed, Where where) {
    ub_.allocate(offset, bytes, placed, {core_.agent(Pipe::scalar), 1, 1, placed ? "ub_at" : "ub_alloc", where});
}

void CoreChecker::barrier_begin(const BarrierDescriptor& call, Where where) {
    record({.kind = Kind::team_barrier, .what = call.variant, .where = where, .value = call.generation});
    domain_->team_calls.compare(call, core_.side(Pipe::scalar, call.variant, where), core_.count);
}

void CoreChecker::barrier_observed(std::uint64_t seen, const BarrierDescriptor& call, int peer, Where where) {
    if (seen - call.generation <= 1) return;
    domain_->findings.report(
        Hazard::generation, core_.side(Pipe::scalar, call.variant, where), FindingSide{},
        domain_->names.name_of(number_of(call.state)),
        fmt::format("PE {} is in generation {} while this PE is in {}; a member leads by one at most", peer, seen,
                    call.generation));
}

void CoreChecker::failed(const KernelError& error) {
    if (error.hazard() == Hazard::none) return;
    domain_->findings.report(error.hazard(), core_.side(Pipe::scalar, "the operation", error.where()), FindingSide{},
                             "", error.what());
}

void CoreChecker::report_overtaken() {
    domain_->overtaken.report_all([this](const Access& signal, const Access& copy, std::uintptr_t to) {
        const bool store = copy.pipe() == Pipe::scalar;
        domain_->findings.report(Hazard::unpublished, domain_->findings.side_of(signal), copy,
                                 domain_->names.name_of(to),
                                 fmt::format("signals to a PE {}, and nothing of this launch announces that later",
                                             store ? "while a store to its memory is still in the cache"
                                                   : "before a copy to it is complete"));
    });
}

void CoreChecker::kernel_end() {
    scheduling_.schedule_point();
    flags_.check_left_over();
    commands_.check_left_over();
    complete_all(scheduling_.last_call());
    domain_->core_ended(clocks_.now());
    CoreBarrier& barrier = domain_->core_barriers[core_.pe];
    if (barrier.end_kernel() == core_.count) report_overtaken();
    barrier.report_waiting(core_, domain_->findings);
}

}  // namespace npushmem::npu::check
