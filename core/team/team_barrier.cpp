#include "core/team/team_barrier.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>
#include <span>

#include "core/base/hash.hpp"

namespace npushmem {

namespace {

std::optional<PeRange> at_equal_distances(std::span<const int> pes) {
    if (pes.size() == 1) return PeRange::one(pes[0]);
    const PeRange range{pes[0], pes[1] - pes[0], static_cast<int>(pes.size())};
    for (int i = 0; i < range.count; ++i)
        if (pes[static_cast<std::size_t>(i)] != range.at(i)) return std::nullopt;
    return range;
}

}  // namespace

Members Members::listed(std::vector<int> pes) {
    if (const auto range = at_equal_distances(pes)) return {*range};
    auto list = std::make_shared<List>();
    list->pes = std::move(pes);
    for (std::size_t i = 0; i < list->pes.size(); ++i) list->places.emplace_back(list->pes[i], static_cast<int>(i));
    std::ranges::sort(list->places);
    Members members;
    members.range_ = {.count = static_cast<int>(list->pes.size()), .table = list->pes.data()};
    members.list_ = std::move(list);
    return members;
}

int Members::index_of(int world_pe) const {
    if (list_) {
        const auto place =
            std::ranges::lower_bound(list_->places, world_pe, {}, [](const auto& one) { return one.first; });
        return place != list_->places.end() && place->first == world_pe ? place->second : -1;
    }
    if (range_.count == 1) return world_pe == range_.first ? 0 : -1;
    const int distance = world_pe - range_.first;
    const int index = distance / range_.stride;
    return distance % range_.stride == 0 && index >= 0 && index < range_.count ? index : -1;
}

Members Members::every(int start, int stride, int count) const {
    if (!list_) return {PeRange{range_.at(start), count == 1 ? 1 : range_.stride * stride, count}};
    std::vector<int> pes;
    pes.reserve(static_cast<std::size_t>(count));
    for (int i = 0; i < count; ++i) pes.push_back(at(start + i * stride));
    return listed(std::move(pes));
}

std::uint32_t Members::list_hash() const { return list_ ? fnv1a<std::uint32_t>(list_->pes) : 0; }

std::string Members::text() const {
    constexpr int max_listed = 16;
    if (range_.count == 1) return fmt::format("PE {}", range_.at(0));
    if (!list_) return fmt::format("PEs {} to {}, every {}", range_.first, range_.at(range_.count - 1), range_.stride);
    const std::span<const int> some(list_->pes.data(), static_cast<std::size_t>(std::min(range_.count, max_listed)));
    return fmt::format("PEs {}{}", fmt::join(some, ", "),
                       range_.count > max_listed ? fmt::format(" and {} more", range_.count - max_listed) : "");
}

Code RemoteSignals::record_failure(Status status) {
    if (!status.ok()) cause_ = std::move(status);
    return cause_.code();
}

Code RemoteSignals::update(int pe, int slot, std::uint8_t operation, std::uint64_t value, std::uint64_t* before) {
    npushmem_atomic op{};
    op.pe = pe;
    op.operation = operation;
    op.width = 8;
    op.offset = offset_ + static_cast<std::uint64_t>(slot) * barrier::line_bytes;
    op.operand = value;
    op.result = before;
    return record_failure(remote_.atomic(op, RemoteAccess::Completion::local));
}

Code RemoteSignals::signal(int member, int slot, std::uint64_t value) {
    const int pe = members_.at(member);
    if (std::byte* state = visible_state(pe)) {
        // Release. Partner: the acquire load in load_slot() and the gets of members that read this state.
        barrier::slot_at(state, slot).store(value, std::memory_order_release);
        return Code::ok;
    }
    // Earlier puts must not be overtaken by the signal.
    if (const Code fenced = record_failure(remote_.fence()); fenced != Code::ok) return fenced;
    return update(pe, slot, NPUSHMEM_ATOMIC_SET, value, nullptr);
}

Code RemoteSignals::add(int member, int slot, std::uint64_t value, std::uint64_t& before) {
    const int pe = members_.at(member);
    if (std::byte* state = mapped_state(pe)) {
        // Release and acquire. Partner: the adds of the other members.
        before = barrier::slot_at(state, slot).fetch_add(value, std::memory_order_acq_rel);
        return Code::ok;
    }
    if (const Code fenced = record_failure(remote_.fence()); fenced != Code::ok) return fenced;
    return update(pe, slot, NPUSHMEM_ATOMIC_FETCH_ADD, value, &before);
}

Code RemoteSignals::load_slot(int pe, int slot, std::uint64_t& value) {
    std::byte* const state = visible_state(pe);
    if (state == nullptr) return update(pe, slot, NPUSHMEM_ATOMIC_FETCH, 0, &value);
    // Acquire. Partner: the release of the signal, or the transport's delivery.
    value = barrier::slot_at(state, slot).load(std::memory_order_acquire);
    return Code::ok;
}

Code RemoteSignals::wait(const barrier::AwaitedSlot& awaited, std::uint64_t value) {
    const int pe = members_.at(awaited.member);
    std::uint64_t seen = 0;
    const auto arrived = [&] { return load_slot(pe, awaited.slot, seen) != Code::ok || barrier::reached(seen, value); };
    // A transport may delay our own signals until it is driven, and the peer's answer needs them.
    const auto ready = [&] { return arrived() || !progress_ok() || arrived(); };
    const WaitFor what{.what = "a barrier", .needs = members_, .timeout = timeout_};
    WaitFailure reason;
    const Code code = waiter_.until(ready, what, &reason);
    if (code != Code::ok) failure_ = {awaited, value, seen, reason};
    return code == Code::ok ? cause_.code() : code;
}

Code RemoteSignals::complete() { return record_failure(remote_.quiet()); }

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

TeamBarrier::TeamBarrier(const Options& options, SliceLookup slice_of, RemoteAccess& remote, std::byte* own_slice,
                         const Waiter& waiter, Duration timeout)
    : members_(options.members) {
    const barrier::Plan plan{};  // every call passes its own
    const PeRange& members = members_.range();
    if (options.mapped && options.states.has_table()) {
        tabled_ = std::make_unique<Tabled>(barrier::MappedFabric(options.states.tabled, members, waiter, timeout),
                                           members, options.index, plan);
        return;
    }
    if (options.mapped) {
        mapped_ = std::make_unique<Mapped>(barrier::MappedFabric(options.states.strided, members, waiter, timeout),
                                           members, options.index, plan);
        return;
    }
    signals_ = std::make_unique<RemoteSignals>(std::move(slice_of), remote, own_slice + options.state, options.state,
                                               members, options.my_pe, waiter, timeout);
    remote_ = std::make_unique<Remote>(barrier::SignalFabricRef(*signals_), members, options.index, plan);
}

Status TeamBarrier::failure(Code code, std::string_view team) const {
    if (signals_ && !signals_->cause().ok()) return signals_->cause();
    return {code, mapped_   ? mapped_->failure_text(team)
                  : tabled_ ? tabled_->failure_text(team)
                            : remote_->failure_text(team)};
}

}  // namespace npushmem
