// SPDX-License-Identifier: BSD-3-Clause
#include "core/runtime/job_liveness.hpp"

#include <algorithm>
#include <iterator>
#include <map>
#include <utility>

#include "core/base/service_thread.hpp"
#include "core/runtime/pe_table.hpp"

namespace npushmem {

JobLiveness::JobLiveness(int npes, ProcessLiveness::ProcessLookup process_of)
    : processes_(npes, std::move(process_of)) {}

void JobLiveness::watch(int my_pe, ControlBlockLookup control, std::function<bool(std::uint64_t barriers)> any_departed,
                        std::function<std::uint64_t()> barriers) {
    my_pe_ = my_pe;
    control_ = std::move(control);
    any_departed_ = std::move(any_departed);
    barriers_ = std::move(barriers);
    sweep_ = nullptr;
    visible_pes_ = 0;
    for (int pe = 0; pe < processes_.npes() && control_; ++pe) {
        if (processes_.process_of(pe).pid == 0) continue;
        if (visible_pes_++ == 0) sweep_ = control_(pe);
    }
}

void JobLiveness::watch_unseen(std::vector<int> pes, std::function<bool(int pe)> has_ended) {
    unseen_ = std::move(pes);
    unseen_has_ended_ = std::move(has_ended);
}

void JobLiveness::on_own_finding(std::function<bool(int pe)> listener) {
    on_own_finding_ = std::move(listener);
    unreported_ = unseen_;
    for (int pe = 0; pe < processes_.npes() && on_own_finding_; ++pe)
        if (processes_.process_of(pe).pid != 0) unreported_.push_back(pe);
}

namespace {

// A wait for so many PEs checks their processes by itself. Waits for more would spend the cores on that (with 64 PEs,
// each opened 63 descriptors), so one PE checks for all.
constexpr int max_checked_by_each = 16;

std::chrono::nanoseconds sweep_interval(int pes) {
    using std::chrono::milliseconds;
    return std::min(milliseconds(16) * pes, milliseconds(1000));
}

// So few of the sweeps read /proc, which takes about 40 us for each PE. The others ask the kernel whether a process
// exists: they miss zombies and reused numbers.
constexpr int sweeps_per_proc_sweep = 4;

// Ends only grow in number. A sweep may be older than that of another PE. Relaxed: it orders no other memory.
void raise(std::atomic<std::uint32_t>& number, std::uint32_t to) {
    std::uint32_t known = number.load(std::memory_order_relaxed);
    while (known < to && !number.compare_exchange_weak(known, to, std::memory_order_relaxed)) {
    }
}

}  // namespace

std::optional<int> JobLiveness::ended_among(const PeRange& pes) {
    const bool is_swept = std::min(pes.count, visible_pes_) > max_checked_by_each;
    if (const auto dead = is_swept ? swept_among(pes) : processes_.find_dead(pes)) return dead;
    for (int i = 0; i < pes.count && !unseen_.empty(); ++i)
        if (std::ranges::binary_search(unseen_, pes.at(i)) && unseen_has_ended_(pes.at(i))) return pes.at(i);
    return std::nullopt;
}

void JobLiveness::add_ended(ProcessLiveness::Depth depth) {
    std::vector<int> all;
    std::ranges::set_union(ended_, processes_.ended(depth), std::back_inserter(all));
    ended_ = std::move(all);
}

// A PE that reads a larger number than that of the ends it knows finds them too. The launcher reaps most at once, so
// the kernel does not know them any more.
std::optional<int> JobLiveness::swept_among(const PeRange& pes) {
    using Depth = ProcessLiveness::Depth;
    const std::lock_guard guard(sweep_lock_);
    const auto knows_all = [this] { return ended_.size() >= sweep_->ended.load(std::memory_order_relaxed); };
    const auto now = std::chrono::steady_clock::now();
    const std::chrono::nanoseconds interval = sweep_interval(visible_pes_);
    const bool reads_proc = sweep_->proc_sweeps.take(now, interval * sweeps_per_proc_sweep);
    if (sweep_->sweeps.take(now, interval) || reads_proc || !knows_all()) {
        add_ended(reads_proc ? Depth::proc : Depth::kernel);
        if (!reads_proc && !knows_all()) add_ended(Depth::proc);
        raise(sweep_->ended, static_cast<std::uint32_t>(ended_.size()));
    }
    for (int i = 0; i < pes.count && !ended_.empty(); ++i)
        if (std::ranges::binary_search(ended_, pes.at(i))) return pes.at(i);
    return std::nullopt;
}

bool JobLiveness::has_finalized(int pe) const {
    const ControlBlock* block = control_(pe);
    // Acquire: pairs with the release store in MappedSlices::publish_finalized, which follows the write of
    // last_barrier.
    if (block == nullptr) return has_sent_departure(pe);
    if (block->state.load(std::memory_order_acquire) != static_cast<std::uint32_t>(PeState::finalized)) return false;
    // While this PE is still inside that last barrier, all PEs have arrived at it and nothing is missing.
    return barriers_() >= block->last_barrier.load(std::memory_order_relaxed);
}

// Acquire: pairs with the transport's delivery.
bool JobLiveness::has_sent_departure(int pe) const {
    const Departure sent =
        Departure::unpacked(control_(my_pe_)->departures[departure_slot(pe)].load(std::memory_order_acquire));
    return sent.pe == pe && !sent.is_dead && sent.is_before(barriers_());
}

void JobLiveness::mark_lost(int pe) {
    const std::lock_guard guard(lost_lock_);
    lost_.insert(pe);
}

void JobLiveness::learn_dead(int pe) {
    {
        const std::lock_guard guard(lost_lock_);
        reported_dead_.insert(pe);
    }
    if (on_dead_) on_dead_(pe);
}

// Another death may need the slot.
void JobLiveness::read_reported_deaths() {
    for (auto& slot : control_(my_pe_)->departures) {
        // Acquire. Partner: the release in Departures, or the transport's delivery.
        std::uint64_t word = slot.load(std::memory_order_acquire);
        const Departure reported = Departure::unpacked(word);
        if (!reported.is_dead) continue;
        const std::lock_guard guard(lost_lock_);
        reported_dead_.insert(reported.pe);
        slot.compare_exchange_strong(word, 0);
    }
}

RemotePeState JobLiveness::remote_state(int pe) {
    if (lost_among(PeRange::one(pe)) || reported_among(PeRange::one(pe))) return RemotePeState::lost;
    const bool finalized = control_ && control_(pe) == nullptr && has_sent_departure(pe);
    return finalized ? RemotePeState::finalized : RemotePeState::unknown;
}

namespace {

std::optional<int> first_among(const std::set<int>& some, const PeRange& pes) {
    for (int i = 0; i < pes.count && !some.empty(); ++i)
        if (some.contains(pes.at(i))) return pes.at(i);
    return std::nullopt;
}

}  // namespace

std::optional<int> JobLiveness::lost_among(const PeRange& pes) {
    const std::lock_guard guard(lost_lock_);
    return first_among(lost_, pes);
}

std::optional<int> JobLiveness::reported_among(const PeRange& pes) {
    const std::lock_guard guard(lost_lock_);
    return first_among(reported_dead_, pes);
}

std::optional<int> JobLiveness::lost_or_dead_among(const PeRange& pes) {
    if (const auto lost = lost_among(pes)) return lost;
    if (const auto dead = ended_among(pes)) return dead;
    if (control_ && survives_deaths_) read_reported_deaths();
    if (const auto dead = reported_among(pes)) return dead;
    if (!control_ || !any_departed_(barriers_())) return std::nullopt;
    for (int i = 0; i < pes.count; ++i)
        if (has_finalized(pes.at(i))) return pes.at(i);
    return std::nullopt;
}

// Follows the recorded causes from PE to PE. Each was written before its writer ended, so they lead to an earlier end.
// Only two PEs that record each other form a cycle; the number of steps ends it.
int JobLiveness::cause_of(int dead) const {
    for (int steps = 0; steps < processes_.npes(); ++steps) {
        const ControlBlock* block = control_(dead);
        // Relaxed: only this value matters, and its writer has ended.
        const int blamed = block != nullptr ? block->first_dead_pe.load(std::memory_order_relaxed) - 1 : -1;
        if (blamed < 0 || blamed >= processes_.npes() || blamed == my_pe_) return dead;
        dead = blamed;
    }
    return dead;
}

std::optional<int> JobLiveness::find_dead(const PeRange& pes) {
    const auto dead = lost_or_dead_among(pes);
    if (dead && on_dead_) on_dead_(*dead);
    if (on_own_finding_) report_own_findings(dead);
    if (!dead || !control_ || survives_deaths_) return dead;
    const int cause = cause_of(*dead);
    // The first cause stays: later ends may be consequences of this PE's own end. Relaxed: see cause_of.
    if (ControlBlock* own = control_(my_pe_)) {
        std::int32_t nobody = 0;
        own->first_dead_pe.compare_exchange_strong(nobody, cause + 1, std::memory_order_relaxed);
    }
    return cause;
}

// Reports the lost PE, but not one that has finalized, nor one whose death another PE has reported. Also reports the
// dead of this host that this wait does not need: PEs of other hosts may need them, and two PEs that wait for the dead
// of each other's hosts would wait for ever.
void JobLiveness::report_own_findings(std::optional<int> dead) {
    if (dead && lost_among(PeRange::one(*dead))) (void)on_own_finding_(*dead);
    const std::lock_guard guard(unreported_lock_);
    // A sweep may not have found it yet.
    if (dead && std::ranges::find(unreported_, *dead) != unreported_.end() && ended_among(PeRange::one(*dead))) {
        if (!on_own_finding_(*dead)) return;
        std::erase(unreported_, *dead);
    }
    const auto next = [this] {
        return ended_among({.count = static_cast<int>(unreported_.size()), .table = unreported_.data()});
    };
    while (const auto found = next()) {
        if (!on_own_finding_(*found)) return;
        std::erase(unreported_, *found);
    }
}

PeRange JobLiveness::awaited_pes() const {
    // Acquire. Partner: the release in acknowledge().
    const std::vector<int>* const awaited = current_awaited_.load(std::memory_order_acquire);
    if (awaited == nullptr) return {0, 1, processes_.npes()};
    return {.count = static_cast<int>(awaited->size()), .table = awaited->data()};
}

void JobLiveness::acknowledge(int pe) {
    const std::lock_guard guard(acknowledge_lock_);
    if (is_acknowledged(pe)) return;
    const PeRange before = awaited_pes();
    std::vector<int>& now = awaited_.emplace_back();
    for (int i = 0; i < before.count; ++i)
        if (before.at(i) != pe) now.push_back(before.at(i));
    current_awaited_.store(&now, std::memory_order_release);
}

bool JobLiveness::is_acknowledged(int pe) const {
    // Acquire. Partner: the release in acknowledge(). The PEs are in ascending order.
    const std::vector<int>* const awaited = current_awaited_.load(std::memory_order_acquire);
    return awaited != nullptr && !std::ranges::binary_search(*awaited, pe);
}

std::unique_ptr<DelayedTask> DelayedTask::start(std::chrono::milliseconds delay, Work work) {
    std::unique_ptr<DelayedTask> task(new DelayedTask);
    auto thread = start_service_thread("npushmem-delay", [delay, own = task.get(), work = std::move(work)] {
        if (!own->wait_for_cancel(delay)) work(*own);
    });
    if (!thread.ok()) return nullptr;
    task->thread_ = std::move(thread).value();
    return task;
}

DelayedTask::~DelayedTask() {
    {
        const std::lock_guard guard(lock_);
        cancelled_ = true;
    }
    changed_.notify_all();
    if (thread_.joinable()) thread_.join();
}

bool DelayedTask::wait_for_cancel(std::chrono::milliseconds limit) const {
    std::unique_lock guard(lock_);
    return changed_.wait_for(guard, limit, [this] { return cancelled_; });
}

namespace {

// Counts PEs that share cores.
class CoreUse {
public:
    // `quota`: of their cgroup; 0: none.
    void add(const HostFacts& facts, double quota) {
        ++pes_;
        if (&facts == last_) return;  // all PEs may have one in common
        last_ = &facts;
        CpuMask mask = facts.affinity();
        if (masks_.empty() || masks_.back() != mask) masks_.push_back(std::move(mask));
        quota_ = std::max(quota_, quota);
    }
    [[nodiscard]] HostOccupancy occupancy() const { return {usable_cores(masks_, quota_), pes_}; }

private:
    const HostFacts* last_ = nullptr;
    std::vector<CpuMask> masks_;
    double quota_ = 0;
    int pes_ = 0;
};

// The PEs of a machine, whichever host they emulate, and those of each of its containers. PEs of a container share its
// quota; all of them share the CPUs.
class MachineUse {
public:
    void add(const CommonRecord& record) {
        all_.add(record.facts, 0);
        containers_[record.process_space].add(record.facts, record.facts.cpu_quota);
    }
    // Returns what is more crowded, the container of a process space or the machine.
    [[nodiscard]] HostOccupancy occupancy(std::uint64_t process_space) const {
        const HostOccupancy container = containers_.at(process_space).occupancy();
        const HostOccupancy machine = all_.occupancy();
        return machine.pes_per_core() > container.pes_per_core() ? machine : container;
    }
    [[nodiscard]] double max_pes_per_core() const {
        double max = 0;
        for (const auto& [space, use] : containers_) max = std::max(max, occupancy(space).pes_per_core());
        return max;
    }

private:
    CoreUse all_;
    std::map<std::uint64_t, CoreUse> containers_;
};

HostOccupancy share_of(const PeRecords& records, int npes, const CommonRecord& mine) {
    MachineUse use;
    for (std::size_t pe = 0; pe < static_cast<std::size_t>(npes); ++pe)
        if (records.common_of(pe).host.machine == mine.host.machine) use.add(records.common_of(pe));
    return use.occupancy(mine.process_space);
}

}  // namespace

double max_pes_per_core(const PeRecords& records, int npes) {
    std::map<std::uint64_t, MachineUse> machines;
    for (std::size_t pe = 0; pe < static_cast<std::size_t>(npes); ++pe)
        machines[records.common_of(pe).host.machine].add(records.common_of(pe));
    double max = 0;
    for (const auto& [machine, use] : machines) max = std::max(max, use.max_pes_per_core());
    return max;
}

WaitServices::WaitServices(const PeRecords& records, const PeTable& pes, const HostLayout& layout, int my_pe)
    : share(share_of(records, pes.npes(), records.common_of(static_cast<std::size_t>(my_pe)))),
      budget(choose_wait_budget(share)),
      // Processes of other hosts and PID namespaces are not visible here.
      liveness(pes.npes(),
               [&pes, &layout, my_pe](int pe) {
                   const bool is_visible =
                       layout.host_of(pe) == layout.host_of(my_pe) && pes.traits(my_pe).sees_process_of(pes.traits(pe));
                   return is_visible ? pes.process(pe) : ProcessId{};
               }),
      transport_waiter(budget, os, counters, &liveness, nullptr, &recorder),
      driving_waiter(budget, os, counters, &liveness, &progress, &recorder) {}

}  // namespace npushmem
