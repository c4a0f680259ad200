#include "core/npu/time/timed_core.hpp"

#include <algorithm>
#include <cstring>

#include "npushmem/npu/fabric.hpp"

namespace npushmem::npu::time {
namespace {

double bytes_of(const Operand& operand) {
    return operand.address == nullptr ? 0 : static_cast<double>(operand.bytes) * static_cast<double>(operand.blocks);
}

std::uintptr_t line_of(const void* address) { return reinterpret_cast<std::uintptr_t>(address) / cache_line; }

// As in fast mode: one machine access, relaxed; dcci, signals and barriers carry the order.
template <class Word>
void copy_word(void* to, const void* from) {
    Word word;
    __atomic_load(static_cast<const Word*>(from), &word, __ATOMIC_RELAXED);
    __atomic_store(static_cast<Word*>(to), &word, __ATOMIC_RELAXED);
}

void copy_scalar(void* to, const void* from, std::size_t bytes) {
    switch (bytes) {
        case 1: return copy_word<std::uint8_t>(to, from);
        case 2: return copy_word<std::uint16_t>(to, from);
        case 4: return copy_word<std::uint32_t>(to, from);
        default: return copy_word<std::uint64_t>(to, from);
    }
}

}  // namespace

TimedCore::TimedCore(std::shared_ptr<SimulationState> simulation, Core& core)
    : simulation_(std::move(simulation)),
      core_(core),
      pe_(core.my_pe()),
      begin_(simulation_->begin(pe_, core.index(), core.count())) {
    clocks_.fill(begin_);
}

int TimedCore::owner_of(const void* address) const {
    const int pe = core_.fabric().pe_of(address);
    return pe < 0 ? pe_ : pe;
}

double TimedCore::drained() const { return *std::max_element(clocks_.begin(), clocks_.end()); }

void TimedCore::advance_scalar(double length, const char* what) {
    simulation_->record({what, pe_, core_.index(), Pipe::scalar, scalar(), scalar() + length});
    scalar() += length;
}

double TimedCore::completion_time(const Command& command, double begin) {
    const DeviceModel& model = simulation_->model;
    if (command.pipe == Pipe::vector) {
        const double bytes =
            std::max({bytes_of(command.target), bytes_of(command.source[0]), bytes_of(command.source[1])});
        return begin + model.vector_latency + bytes / model.vector_rate;
    }
    double end = begin;
    double latency = 0;
    for (const Operand* operand : {&command.target, &command.source[0], &command.source[1]}) {
        if (operand->address == nullptr || !operand->global) continue;
        const double bytes = bytes_of(*operand);
        const int owner = owner_of(operand->address);
        end = std::max({end, begin + bytes / model.copy_rate, simulation_->memory(owner, begin, bytes)});
        if (owner != pe_) {
            const bool out = operand == &command.target;
            end = std::max(end, simulation_->link(out ? pe_ : owner, out ? owner : pe_, begin, bytes));
        }
        latency = std::max(latency, simulation_->latency(pe_, owner));
    }
    return end + latency;
}

bool TimedCore::uses_link(const Command& command) const {
    const auto is_far = [this](const Operand& operand) {
        return operand.address != nullptr && operand.global && owner_of(operand.address) != pe_;
    };
    return is_far(command.target) || is_far(command.source[0]) || is_far(command.source[1]);
}

void TimedCore::issue(const Command& command, std::function<void()> run) {
    run();
    // Cores take turns at a link: whoever asks first gets it first, and one that ran on would leave the others gaps.
    if (uses_link(command)) core_.yield();
    advance_scalar(simulation_->model.issue, "issue");
    const double begin = std::max(scalar(), clock(command.pipe));
    const double end = completion_time(command, begin);
    simulation_->record({command.name, pe_, core_.index(), command.pipe, begin, end});
    clock(command.pipe) = end;
}

void TimedCore::set_flag(Pipe from, Pipe to, int id, Where) {
    advance_scalar(simulation_->model.issue, "set_flag");
    flags_[{from, to, id}] = std::max(scalar(), clock(from)) + simulation_->model.flag;
}

void TimedCore::wait_flag(Pipe from, Pipe to, int id, Where) {
    advance_scalar(simulation_->model.issue, "wait_flag");
    const auto flag = flags_.extract({from, to, id});
    if (!flag.empty()) clock(to) = std::max(clock(to), flag.mapped());
}

// The commands of one pipe come one after the other in any case.
void TimedCore::pipe_barrier(Pipe pipe, Where) {
    advance_scalar(simulation_->model.issue, "pipe_barrier");
    if (pipe == Pipe::all) clocks_.fill(drained());
}

void TimedCore::access_line(const void* address, const char* what) {
    const bool missed = lines_.insert(line_of(address)).second;
    // There and back.
    const int owner = owner_of(address);
    const double far = owner == pe_ ? 0 : 2 * simulation_->latency(pe_, owner);
    advance_scalar(missed ? simulation_->model.gm_latency + far : simulation_->model.issue, what);
}

void TimedCore::load(const void* address, void* value, std::size_t bytes, Where) {
    copy_scalar(value, address, bytes);
    access_line(address, "load");
}

void TimedCore::store(void* address, const void* value, std::size_t bytes, Where) {
    copy_scalar(address, value, bytes);
    access_line(address, "store");
}

void TimedCore::dcci(const void* address, std::size_t bytes, Where) {
    const std::uintptr_t last = line_of(static_cast<const std::byte*>(address) + std::max<std::size_t>(bytes, 1) - 1);
    for (std::uintptr_t line = line_of(address); line <= last; ++line) {
        lines_.erase(line);
        advance_scalar(simulation_->model.issue, "dcci");
    }
}

void TimedCore::quiet(Where) {
    clocks_.fill(drained());
    advance_scalar(simulation_->model.gm_latency, "quiet");
}

void TimedCore::signal(const Signal& signal, Where) {
    advance_scalar(simulation_->model.issue, "signal");
    if (signal.send) return signal.send();
    const double when = scalar() + simulation_->latency(pe_, owner_of(signal.word));
    // Release: pairs with acquire_word in the waits.
    const std::uint64_t before = signal.add ? __atomic_fetch_add(signal.word, signal.value, __ATOMIC_RELEASE) : 0;
    simulation_->signal(signal.word, before + signal.value, when);
    if (!signal.add) __atomic_store_n(signal.word, signal.value, __ATOMIC_RELEASE);
}

void TimedCore::before_atomic(const void* address, std::size_t, Where) {
    advance_scalar(2 * simulation_->latency(pe_, owner_of(address)), "atomic");
}

// A poll that finds the value has gone there and back.
void TimedCore::after_wait(const void* address, std::uint64_t seen, Where) {
    const double begin = scalar();
    const int owner = owner_of(address);
    const double poll = owner == pe_ ? simulation_->model.gm_latency : 2 * simulation_->latency(pe_, owner);
    scalar() = std::max(scalar(), simulation_->arrival(address, seen));
    scalar() += poll;
    simulation_->record({"wait", pe_, core_.index(), Pipe::scalar, begin, scalar()}, true);
}

void TimedCore::enter_core_barrier(Where) { simulation_->arrive(pe_, core_barriers_, scalar()); }

void TimedCore::leave_core_barrier() {
    const double begin = scalar();
    scalar() =
        simulation_->barrier_end(pe_, core_barriers_++) + (core_.count() > 1 ? simulation_->model.core_barrier : 0);
    simulation_->record({"core_barrier", pe_, core_.index(), Pipe::scalar, begin, scalar()}, true);
}

void TimedCore::kernel_end() { simulation_->end(pe_, begin_, drained()); }

}  // namespace npushmem::npu::time
