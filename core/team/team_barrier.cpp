// SPDX-License-Identifier: BSD-3-Clause
#include "core/team/team_barrier.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace npushmem {

Code RemoteSignals::record_failure(Status status) {
    if (!status.ok()) cause_ = std::move(status);
    return cause_.code();
}

Code RemoteSignals::update(int pe, int slot, std::uint8_t operation, std::uint64_t value, std::uint64_t* before) {
    using Completion = RemoteAccess::Completion;
    npushmem_atomic op{};
    op.pe = pe;
    op.operation = operation;
    op.width = 8;
    op.offset = offset_of(slot);
    op.operand = value;
    op.result = before;
    return record_failure(resources_.remote.atomic(op, before == nullptr ? Completion::unawaited : Completion::local));
}

Code RemoteSignals::signal(int member, int slot, std::uint64_t value) {
    const int pe = members_.at(member);
    if (std::byte* slice = slice_of(resources_, pe)) {
        // Release. Partner: the acquire load in load_slot() and the gets of members that read this state.
        slot_in(slice, slot).store(value, std::memory_order_release);
        wake_sleepers(slice, slot);
        return Code::ok;
    }
    // Earlier puts must not be overtaken by the signal.
    if (const Code fenced = record_failure(resources_.remote.fence(pe, nullptr)); fenced != Code::ok) return fenced;
    return update(pe, slot, NPUSHMEM_ATOMIC_SET, value, nullptr);
}

Code RemoteSignals::add(int member, int slot, std::uint64_t value, std::uint64_t& before) {
    const int pe = members_.at(member);
    // Not slice_of(), which always returns the own slice: the others may reach it only through the transport.
    if (std::byte* slice = resources_.slice_of(pe)) {
        // Release and acquire. Partner: the adds of the other members.
        before = slot_in(slice, slot).fetch_add(value, std::memory_order_acq_rel);
        wake_sleepers(slice, slot);
        return Code::ok;
    }
    if (const Code fenced = record_failure(resources_.remote.fence(pe, nullptr)); fenced != Code::ok) return fenced;
    return update(pe, slot, NPUSHMEM_ATOMIC_FETCH_ADD, value, &before);
}

void RemoteSignals::wake_sleepers(std::byte* slice, int slot) const {
    full_fence();  // partner: that of AwaitedBytesParking::announce
    if (const std::uint32_t woken = wake_sleepers_in(slice, slice + offset_of(slot), sizeof(std::uint64_t)); woken != 0)
        waiter_.count_woken(woken);
}

Code RemoteSignals::load_slot(int pe, int slot, std::uint64_t& value) {
    std::byte* const slice = slice_of(resources_, pe);
    if (slice == nullptr) return update(pe, slot, NPUSHMEM_ATOMIC_FETCH, 0, &value);
    // Acquire. Partner: the release of the signal, or the transport's delivery.
    value = slot_in(slice, slot).load(std::memory_order_acquire);
    return Code::ok;
}

Code RemoteSignals::wait(const barrier::AwaitedSlot& awaited, std::uint64_t value) {
    const int pe = members_.at(awaited.member);
    std::uint64_t seen = 0;
    const auto arrived = [&] { return load_slot(pe, awaited.slot, seen) != Code::ok || barrier::reached(seen, value); };
    // A transport may delay our own signals until it is driven, and the peer's answer needs them.
    const auto ready = [&] { return arrived() || !progress_ok() || arrived(); };
    AwaitedBytesParking parking = parking_for_word(resources_, offset_of(awaited.slot));
    const bool is_own = pe == resources_.my_pe;
    const WaitFor what{.what = "a barrier",
                       .needs = members_,
                       .timeout = resources_.timeout,
                       .parking = is_own ? &parking : nullptr,
                       .writers_wake = is_own};
    WaitFailure reason;
    const Code code = waiter_.until(ready, what, &reason);
    if (code != Code::ok) failure_ = {awaited, value, seen, reason};
    return code == Code::ok ? cause_.code() : code;
}

Code RemoteSignals::complete() { return record_failure(complete_members(resources_.remote, pes_)); }

std::int64_t BarrierStatistics::enter(std::uint64_t timed) {
    const std::int64_t now = os_.now().count();
    // Relaxed: readers read it after the barrier, which orders it.
    mine().entered_at[timed % 2].store(now, std::memory_order_relaxed);
    return now;
}

void BarrierStatistics::leave(std::uint64_t timed, std::int64_t entered) {
    const auto took = static_cast<std::uint64_t>(os_.now().count() - entered);
    raise(mine().timed, 1);
    raise(mine().nanoseconds, took);
    mine().longest.store(std::max(took, mine().longest.load(std::memory_order_relaxed)), std::memory_order_relaxed);
    if (counts_.size() > 1 && timed % counts_.size() == own_) find_last_entered(timed);
}

void BarrierStatistics::find_last_entered(std::uint64_t timed) const {
    std::size_t last = 0;
    std::int64_t latest = 0;
    std::int64_t before = 0;  // the last PE but one
    for (std::size_t i = 0; i < counts_.size(); ++i) {
        const std::int64_t entered = counts_[i]->entered_at[timed % 2].load(std::memory_order_relaxed);
        before = std::max(before, std::min(entered, latest));
        if (entered <= latest) continue;
        latest = entered;
        last = i;
    }
    // Readers of two barriers may run at the same time.
    counts_[last]->entered_last.fetch_add(1, std::memory_order_relaxed);
    counts_[last]->late_nanoseconds.fetch_add(static_cast<std::uint64_t>(latest - before), std::memory_order_relaxed);
}

// The world's barrier does not use a table: a job whose slices are at unequal distances gets the fabric that drives the
// transports.
TeamBarrier::TeamBarrier(const TeamResources& resources, const MemberMemory& memory, const Offsets& offsets,
                         const Waiter& waiter, const std::string& team, const HostLayout* hosts)
    : resources_(resources),
      memory_(memory),
      offsets_(offsets),
      team_(team),
      selection_input_{memory.members().count(), resources.pes_per_core, hosts != nullptr ? hosts->hosts() : 1,
                       memory.all_mapped() && (hosts == nullptr || memory.is_strided())},
      default_plan_(first_choice().plan),
      entered_(reinterpret_cast<std::atomic<std::uint64_t>*>(resources.own_slice + offsets.entered)) {
    if (hosts != nullptr) set_nodes(*hosts);
    make_fabric(waiter);
    use_library(nullptr);
    if (resources_.sample_every != 0) enable_statistics();
}

// The setting that suits the world does not suit every team.
barrier::Choice TeamBarrier::first_choice() const {
    auto wanted = choose(resources_.algorithm);
    return wanted.ok() ? std::move(wanted).value() : barrier::choose_automatically(selection_input_);
}

barrier::Choice TeamBarrier::default_choice() const {
    return plan_was_set_ ? barrier::Choice{default_plan_, "set by npushmemx_team_set_barrier"} : first_choice();
}

void TeamBarrier::set_nodes(const HostLayout& hosts) {
    for (int host = 0; host < hosts.hosts(); ++host) leaders_.push_back(hosts.pes_of(host).at(0));
    const int host = hosts.host_of(resources_.my_pe);
    const PeRange local = hosts.pes_of(host);
    node_members_.assign(local.begin(), local.end());
    nodes_ = {node_members_, hosts.local_index(resources_.my_pe), leaders_, host};
}

void TeamBarrier::make_fabric(const Waiter& waiter) {
    const PeRange& members = memory_.members().range();
    const int index = memory_.own_index();
    const barrier::NodeLayout* const nodes = leaders_.empty() ? nullptr : &nodes_;
    const Duration timeout = resources_.timeout;
    if (!selection_input_.mapped) {
        signals_ = std::make_unique<RemoteSignals>(resources_, offsets_.state, members, waiter);
        remote_ = std::make_unique<Remote>(barrier::SignalFabricRef(*signals_), members, index, default_plan_, nodes);
        return;
    }
    const barrier::MemberStates states = memory_.addresses(offsets_.state);
    if (states.has_table())
        tabled_ = std::make_unique<Tabled>(barrier::MappedFabric(states.tabled, members, waiter, timeout), members,
                                           index, default_plan_, nodes);
    else
        mapped_ = std::make_unique<Mapped>(barrier::MappedFabric(states.strided, members, waiter, timeout), members,
                                           index, default_plan_, nodes);
}

// The last arrival is determined among the members of this host, if this PE sees the counts of all of them; otherwise
// each counts for itself.
void TeamBarrier::enable_statistics() {
    std::vector<BarrierCounters*> counts;
    std::size_t own = 0;
    const auto add = [&](int member) {
        if (member == memory_.own_index()) own = counts.size();
        counts.push_back(counts_of(member));
    };
    if (!leaders_.empty())
        std::ranges::for_each(nodes_.node_members, add);
    else if (memory_.all_mapped())
        for (int member = 0; member < memory_.members().count(); ++member) add(member);
    else
        add(memory_.own_index());
    if (std::ranges::find(counts, nullptr) != counts.end()) {
        counts = {counts_of(memory_.own_index())};
        own = 0;
    }
    statistics_ = std::make_unique<BarrierStatistics>(std::move(counts), own, resources_.sample_every, *resources_.os);
}

Code TeamBarrier::run_unstrided(const barrier::Plan& plan) { return tabled_ ? tabled_->run(plan) : remote_->run(plan); }

// The first call creates the library's team by barriers of our own, so this one has no number until it is complete.
Status TeamBarrier::run_library() {
    npushmem_coll_call call{};
    call.collective = NPUSHMEM_COLL_BARRIER;
    const auto done = library_->run(call, 0);
    if (!done) {
        use_library(library_);
        return sync(default_plan_);
    }
    if (done->ok()) barriers_.store(barriers_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    return *done;
}

Status TeamBarrier::failure(Code code) const {
    if (signals_ && !signals_->cause().ok()) return signals_->cause();
    const std::string text = mapped_   ? mapped_->failure_text(team_)
                             : tabled_ ? tabled_->failure_text(team_)
                                       : remote_->failure_text(team_);
    return {code, code == Code::timeout ? text + missing_members() : text};
}

// Names the PEs that have not entered this PE's barrier, "; missing: PEs 1, 5". Only reads the memory of PEs that may
// be missing.
std::string TeamBarrier::missing_members() const {
    constexpr std::size_t max_named = 16;
    const std::uint64_t number = entered_->load(std::memory_order_relaxed);
    const Members& members = memory_.members();
    std::vector<int> missing;
    for (int i = 0; i < members.count() && missing.size() <= max_named; ++i) {
        std::uint64_t entered = 0;
        if (const std::byte* word = memory_.address(i, offsets_.entered)) {
            // Relaxed: a number for a message, which its PE may be writing.
            entered = reinterpret_cast<const std::atomic<std::uint64_t>*>(word)->load(std::memory_order_relaxed);
        } else if (!resources_.remote
                        .get(members.at(i), offsets_.entered, &entered, sizeof entered, RemoteAccess::Completion::local)
                        .ok()) {
            return "";
        }
        if (!barrier::reached(entered, number)) missing.push_back(members.at(i));
    }
    if (missing.empty()) return "";
    const bool more = missing.size() > max_named;
    if (more) missing.pop_back();
    return fmt::format("; missing: {} {}{}", missing.size() == 1 ? "PE" : "PEs", fmt::join(missing, ", "),
                       more ? " and others" : "");
}

}  // namespace npushmem
