// SPDX-License-Identifier: BSD-3-Clause
#include "npushmem/npu/virtual_time.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <ostream>
#include <span>
#include <tuple>
#include <unordered_set>

#include "core/npu/time/simulation_state.hpp"
#include "npushmem/npu/core.hpp"
#include "npushmem/npu/fabric.hpp"
#include "npushmem/npu/hooks.hpp"
#include "npushmem/npu/remote_operations.hpp"

namespace npushmem::npu::time {

// One vector core in virtual time: each operation runs at its call and advances the clocks of its pipes.
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
    void after_atomic(const AtomicResult& result, Where) override;
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
    [[nodiscard]] double virtual_seconds() const override { return clocks_.front() * 1e-9; }

private:
    double& clock(Pipe pipe) { return clocks_.at(index_of(pipe)); }
    double& scalar() { return clock(Pipe::scalar); }
    [[nodiscard]] double drained() const;
    // Keeps the scalar pipe busy for `length` ns.
    void advance_scalar(double length, const char* what);
    // Returns the end time of a command that starts at `begin`.
    [[nodiscard]] double completion_time(const Command& command, double begin);
    // Whether the command accesses the memory of another PE.
    [[nodiscard]] bool uses_link(const Command& command) const;
    // The PE that owns the memory; this PE if no other PE owns it.
    [[nodiscard]] int owner_of(const void* address) const;
    // Whether it is an address of the core's unified buffer.
    [[nodiscard]] bool is_in_ub(const void* address);
    void access_line(const void* address, const char* what);
    [[nodiscard]] TimelinePoint point(Pipe pipe, double at) const { return {pe_, core_.index(), pipe, at}; }
    // Records the words that a finished command wrote, and the last put to each PE.
    void record_writes(const Command& command, double begin, double end);
    // Removes and returns the last put to `pe` since the last signal to it, if it began until `before`.
    [[nodiscard]] std::optional<TimelinePoint> take_put(int pe, double before);

    std::shared_ptr<SimulationState> simulation_;
    Core& core_;
    const int pe_;
    const double begin_;
    std::array<double, pipes> clocks_;
    std::map<std::tuple<Pipe, Pipe, int>, double> flags_;
    std::unordered_set<std::uintptr_t> lines_;  // lines in the scalar cache
    std::span<const std::byte> ub_;             // empty: not known yet
    std::map<int, TimelinePoint> puts_;         // the last to each PE since the last signal to it
    TimelinePoint atomic_begin_{};              // of the last atomic operation
    std::size_t core_barriers_ = 0;
};

namespace {

double bytes_of(const Operand& operand) {
    return operand.address == nullptr ? 0 : static_cast<double>(operand.bytes) * static_cast<double>(operand.blocks);
}

std::uintptr_t line_of(const void* address) { return reinterpret_cast<std::uintptr_t>(address) / cache_line; }

// Puts of at most this size may be flags that another core waits for; larger ones are taken as data.
constexpr std::size_t max_flag_bytes = 64;

bool is_synthetic(const void* address) { return synthetic_address::is(reinterpret_cast<std::uintptr_t>(address)); }

std::uint64_t value_of(const void* word) {
    return __atomic_load_n(static_cast<const std::uint64_t*>(word), __ATOMIC_RELAXED);
}

// Like fast mode: one machine access, relaxed; dcci, signals and barriers carry the order.
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
    // Cores take turns at a link, and the first to reserve is the first served. A core that continued without a yield
    // would leave gaps to the others. It yields before the copy, so that a wait that sees the bytes finds their record.
    if (uses_link(command)) core_.yield();
    run();
    advance_scalar(simulation_->model.issue, "issue");
    const double begin = std::max(scalar(), clock(command.pipe));
    const double end = completion_time(command, begin);
    simulation_->record({command.name, pe_, core_.index(), command.pipe, begin, end});
    clock(command.pipe) = end;
    record_writes(command, begin, end);
}

void TimedCore::record_writes(const Command& command, double begin, double end) {
    const Operand& target = command.target;
    if (target.address == nullptr || !target.global) return;
    const TimelinePoint from = point(command.pipe, begin);
    const int owner = owner_of(target.address);
    if (owner != pe_) puts_.insert_or_assign(owner, from);
    if (target.blocks != 1 || target.bytes > max_flag_bytes || is_synthetic(target.address)) return;
    constexpr std::size_t width = sizeof(std::uint64_t);
    const auto* address = static_cast<const std::byte*>(target.address);
    const std::size_t first = (width - reinterpret_cast<std::uintptr_t>(address) % width) % width;
    for (std::size_t at = first; at + width <= target.bytes; at += width)
        simulation_->update_by_put(address + at, {value_of(address + at), end, from});
}

std::optional<TimelinePoint> TimedCore::take_put(int pe, double before) {
    const auto put = puts_.find(pe);
    if (put == puts_.end() || put->second.at > before) return std::nullopt;
    const TimelinePoint taken = put->second;
    puts_.erase(put);
    return taken;
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

// Commands of one pipe are in order anyway.
void TimedCore::pipe_barrier(Pipe pipe, Where) {
    advance_scalar(simulation_->model.issue, "pipe_barrier");
    if (pipe == Pipe::all) clocks_.fill(drained());
}

bool TimedCore::is_in_ub(const void* address) {
    if (ub_.empty()) {
        const auto whole = core_.ub_at<std::byte>(0, core_.ub_used() + core_.ub_free());
        ub_ = {whole.data(), whole.size()};
    }
    const auto* const byte = static_cast<const std::byte*>(address);
    return byte >= ub_.data() && byte < ub_.data() + ub_.size();
}

void TimedCore::access_line(const void* address, const char* what) {
    if (is_in_ub(address)) return advance_scalar(simulation_->model.issue, what);
    const bool missed = lines_.insert(line_of(address)).second;
    // Round trip.
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
    const TimelinePoint from = point(Pipe::scalar, scalar());
    advance_scalar(simulation_->model.issue, "signal");
    if (signal.send) return signal.send();
    const int owner = owner_of(signal.word);
    const double when = scalar() + simulation_->latency(pe_, owner);
    // Release: pairs with acquire_word in the waits.
    const std::uint64_t before = signal.add ? __atomic_fetch_add(signal.word, signal.value, __ATOMIC_RELEASE) : 0;
    simulation_->update(signal.word, {before + signal.value, when, from, take_put(owner, from.at)});
    if (!signal.add) __atomic_store_n(signal.word, signal.value, __ATOMIC_RELEASE);
}

void TimedCore::before_atomic(const void* address, std::size_t, Where) {
    atomic_begin_ = point(Pipe::scalar, scalar());
    advance_scalar(2 * simulation_->latency(pe_, owner_of(address)), "atomic");
}

// The operation reaches the word after half of the round trip.
void TimedCore::after_atomic(const AtomicResult& result, Where) {
    if (!result.changed || result.bytes != sizeof(std::uint64_t) || is_synthetic(result.address)) return;
    const double one_way_latency = simulation_->latency(pe_, owner_of(result.address));
    simulation_->update(result.address, {value_of(result.address), scalar() - one_way_latency, atomic_begin_});
}

// The poll that sees the value takes a round trip.
void TimedCore::after_wait(const void* address, std::uint64_t seen, Where) {
    const double begin = scalar();
    const int owner = owner_of(address);
    const double poll = owner == pe_ ? simulation_->model.gm_latency : 2 * simulation_->latency(pe_, owner);
    const auto update = simulation_->find_update(address, seen);
    if (update) scalar() = std::max(scalar(), update->when);
    scalar() += poll;
    simulation_->record_wait({"wait", pe_, core_.index(), Pipe::scalar, begin, scalar()}, update);
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

namespace npushmem::npu {
namespace {

constexpr double ns_per_second = 1e9;
constexpr double ns_per_us = 1e3;  // the trace format uses microseconds

constexpr std::array every_pipe{Pipe::scalar, Pipe::vector, Pipe::copy_in, Pipe::copy_out};

int thread_of(int core, Pipe pipe) { return core * static_cast<int>(time::pipes) + static_cast<int>(pipe); }

// The names of operations need no escapes.
std::string trace_event(const time::TraceEvent& event) {
    return fmt::format(R"({{"name":"{}","ph":"X","pid":{},"tid":{},"ts":{:.3f},"dur":{:.3f}}})", event.name, event.pe,
                       thread_of(event.core, event.pipe), event.begin / ns_per_us,
                       (event.end - event.begin) / ns_per_us);
}

// `phase`: "s" begins an arrow, "t" continues it, "f" ends it. Each point lies in an event of its pipe.
std::string flow_event(const char* phase, std::size_t id, const time::TimelinePoint& at) {
    return fmt::format(
        R"({{"name":"ends the wait","cat":"wait","ph":"{}","bp":"e","id":{},"pid":{},"tid":{},"ts":{:.3f}}})", phase,
        id, at.pe, thread_of(at.core, at.pipe), at.at / ns_per_us);
}

std::string name_event(const char* kind, int process, int thread, const std::string& name) {
    return fmt::format(R"({{"name":"{}","ph":"M","pid":{},"tid":{},"args":{{"name":"{}"}}}})", kind, process, thread,
                       name);
}

}  // namespace

double VirtualReport::seconds() const {
    double longest = 0;
    for (const Pe& pe : pes) longest = std::max(longest, pe.seconds);
    return longest;
}

std::string VirtualReport::text() const {
    std::string out = "virtual time  PE  cores      us     S %     V %  MTE2 %  MTE3 %\n";
    for (const Pe& pe : pes) {
        out += fmt::format("{:16}  {:5}  {:6.2f}", pe.pe, pe.cores, pe.seconds * 1e6);
        for (const double share : pe.busy) out += fmt::format("  {:6.1f}", share * 100);
        out += '\n';
    }
    return out;
}

class VirtualTime::Impl {
public:
    explicit Impl(const DeviceModel& model) : simulation(std::make_shared<time::SimulationState>(model)) {}
    std::shared_ptr<time::SimulationState> simulation;
};

VirtualTime::VirtualTime(const DeviceModel& model) : impl_(std::make_unique<Impl>(model)) {}
VirtualTime::~VirtualTime() = default;

HooksFactory VirtualTime::hooks() {
    return [this](Core& core) { return std::make_unique<time::TimedCore>(impl_->simulation, core); };
}

VirtualReport VirtualTime::report() const {
    VirtualReport report;
    for (const auto& [number, pe] : impl_->simulation->pes()) {
        VirtualReport::Pe row{number, pe.cores, pe.end / ns_per_second, {}};
        for (std::size_t i = 0; i < time::pipes; ++i)
            row.busy.at(i) = pe.core_time > 0 ? pe.busy.at(i) / pe.core_time : 0;
        report.pes.push_back(row);
    }
    const DeviceModel& model = impl_->simulation->model;
    for (const auto& [ends, bytes] : impl_->simulation->links()) {
        const double rate = ends.first < 0 || ends.second < 0 ? model.switch_rate : model.hccs_rate;
        report.links.push_back({ends.first, ends.second, bytes, bytes / rate / ns_per_second / report.seconds()});
    }
    return report;
}

void VirtualTime::write_timeline(std::ostream& out) const {
    out << R"({"displayTimeUnit":"ns","traceEvents":[)";
    const char* separator = "\n";
    const auto write = [&](const std::string& event) { out << std::exchange(separator, ",\n") << event; };
    for (const auto& [number, pe] : impl_->simulation->pes()) {
        write(name_event("process_name", number, 0, fmt::format("PE {}", number)));
        for (int core = 0; core < pe.cores; ++core)
            for (const Pipe pipe : every_pipe)
                write(name_event("thread_name", number, thread_of(core, pipe),
                                 fmt::format("core {} {}", core, name_of(pipe))));
    }
    for (const time::TraceEvent& event : impl_->simulation->events()) write(trace_event(event));
    std::size_t id = 0;
    for (const time::Flow& flow : impl_->simulation->flows()) {
        ++id;
        if (flow.update.put) write(flow_event("s", id, *flow.update.put));
        write(flow_event(flow.update.put ? "t" : "s", id, flow.update.from));
        write(flow_event("f", id, flow.wait));
    }
    out << "\n]}\n";
}

void VirtualTime::reset() { impl_->simulation = std::make_shared<time::SimulationState>(impl_->simulation->model); }

}  // namespace npushmem::npu
