#include "core/runtime/job_liveness.hpp"

namespace npushmem {

void JobLiveness::watch(int my_pe, ControlBlockLookup control, std::function<bool()> any_departed,
                        std::function<std::uint64_t()> barriers) {
    my_pe_ = my_pe;
    control_ = std::move(control);
    any_departed_ = std::move(any_departed);
    barriers_ = std::move(barriers);
}

bool JobLiveness::has_finalized(int pe) const {
    const ControlBlock* block = control_(pe);
    // Acquire: pairs with the release store in Runtime::finish, behind which last_barrier was written.
    if (block == nullptr) return has_sent_departure(pe);
    if (block->state.load(std::memory_order_acquire) != static_cast<std::uint32_t>(PeState::finalized)) return false;
    // As long as this PE is still inside that last barrier, everybody has come to it and nothing is missing.
    return barriers_() >= block->last_barrier.load(std::memory_order_relaxed);
}

// Acquire: pairs with the transport's delivery.
bool JobLiveness::has_sent_departure(int pe) const {
    const Departure sent =
        Departure::unpacked(control_(my_pe_)->departures[departure_slot(pe)].load(std::memory_order_acquire));
    return sent.pe == pe && sent.is_before(barriers_());
}

void JobLiveness::mark_lost(int pe) {
    const std::lock_guard guard(lost_lock_);
    lost_.insert(pe);
}

std::optional<int> JobLiveness::lost_among(const PeRange& pes) {
    const std::lock_guard guard(lost_lock_);
    for (int i = 0; i < pes.count && !lost_.empty(); ++i)
        if (lost_.contains(pes.at(i))) return pes.at(i);
    return std::nullopt;
}

std::optional<int> JobLiveness::lost_or_dead_among(const PeRange& pes) {
    if (const auto lost = lost_among(pes)) return lost;
    if (const auto dead = processes_.find_dead(pes)) return dead;
    if (!control_ || !any_departed_()) return std::nullopt;
    for (int i = 0; i < pes.count; ++i)
        if (has_finalized(pes.at(i))) return pes.at(i);
    return std::nullopt;
}

// Follows the notes from PE to PE. Each was written before its writer went, so they lead to an earlier end; only notes
// that two PEs made of each other could go round, which the number of steps ends.
int JobLiveness::cause_of(int gone) const {
    for (int steps = 0; steps < processes_.npes(); ++steps) {
        const ControlBlock* block = control_(gone);
        // Relaxed: the note alone matters, and whoever wrote it has been found gone.
        const int blamed = block != nullptr ? block->first_dead_pe.load(std::memory_order_relaxed) - 1 : -1;
        if (blamed < 0 || blamed >= processes_.npes() || blamed == my_pe_) return gone;
        gone = blamed;
    }
    return gone;
}

std::optional<int> JobLiveness::find_dead(const PeRange& pes) {
    const auto gone = lost_or_dead_among(pes);
    if (!gone || !control_) return gone;
    const int cause = cause_of(*gone);
    // The first one stays: what goes later may be a consequence of this PE's own end. Relaxed: see cause_of.
    if (ControlBlock* own = control_(my_pe_)) {
        std::int32_t nobody = 0;
        own->first_dead_pe.compare_exchange_strong(nobody, cause + 1, std::memory_order_relaxed);
    }
    return cause;
}

}  // namespace npushmem
