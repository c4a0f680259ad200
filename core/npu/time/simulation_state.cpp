// SPDX-License-Identifier: BSD-3-Clause
#include "core/npu/time/simulation_state.hpp"

#include <algorithm>

namespace npushmem::npu::time {
namespace {

constexpr std::size_t max_events = 1'000'000;
constexpr std::size_t max_words_of_puts = 1'000'000;
using Guard = std::lock_guard<std::mutex>;

}  // namespace

double SimulationState::begin(int pe, int core, int cores) {
    const Guard guard(lock_);
    Pe& here = pes_[pe];
    if (core == 0) {
        here.start = here.end;
        here.barrier_arrivals.clear();
    }
    here.cores = std::max(here.cores, cores);
    return here.start;
}

void SimulationState::end(int pe, double begin, double end) {
    const Guard guard(lock_);
    Pe& here = pes_[pe];
    here.end = std::max(here.end, end);
    here.core_time += end - begin;
}

double SimulationState::memory(int pe, double begin, double bytes) {
    const Guard guard(lock_);
    return memory_.try_emplace(pe, model.gm_rate).first->second.reserve(begin, bytes);
}

double SimulationState::link(int from, int to, double begin, double bytes) {
    const Guard guard(lock_);
    if (from / model.group == to / model.group) return rate(links_, from, to, model.hccs_rate).reserve(begin, bytes);
    const double out = rate(links_, from, -1, model.switch_rate).reserve(begin, bytes);
    return std::max(out, rate(links_, -1, to, model.switch_rate).reserve(begin, bytes));
}

SharedBandwidth& SimulationState::rate(std::map<std::pair<int, int>, SharedBandwidth>& rates, int from, int to,
                                       double bytes_per_ns) {
    return rates.try_emplace({from, to}, bytes_per_ns).first->second;
}

double SimulationState::latency(int from, int to) const {
    if (from == to) return model.gm_latency;
    return from / model.group == to / model.group ? model.hccs_latency : model.switch_latency;
}

void SimulationState::update(const void* word, const WordUpdate& update) {
    const Guard guard(lock_);
    updates_.insert_or_assign(word, update);
}

void SimulationState::update_by_put(const void* word, const WordUpdate& update) {
    const Guard guard(lock_);
    if (updates_.size() < max_words_of_puts || updates_.contains(word)) updates_.insert_or_assign(word, update);
}

std::optional<WordUpdate> SimulationState::find_update(const void* word, std::uint64_t seen) const {
    const Guard guard(lock_);
    const auto found = updates_.find(word);
    if (found == updates_.end() || found->second.value != seen) return std::nullopt;
    return found->second;
}

void SimulationState::arrive(int pe, std::size_t barrier_index, double when) {
    const Guard guard(lock_);
    auto& barrier_arrivals = pes_[pe].barrier_arrivals;
    if (barrier_arrivals.size() <= barrier_index) barrier_arrivals.resize(barrier_index + 1, 0);
    barrier_arrivals[barrier_index] = std::max(barrier_arrivals[barrier_index], when);
}

double SimulationState::barrier_end(int pe, std::size_t barrier_index) const {
    const Guard guard(lock_);
    return pes_.at(pe).barrier_arrivals.at(barrier_index);
}

void SimulationState::record(const TraceEvent& event, bool idle) {
    const Guard guard(lock_);
    record_locked(event, idle);
}

void SimulationState::record_locked(const TraceEvent& event, bool idle) {
    if (!idle) pes_[event.pe].busy.at(index_of(event.pipe)) += event.end - event.begin;
    if (events_.size() < max_events) events_.push_back(event);
}

// The event of the update was recorded before, so it is in the timeline if the wait still fits.
void SimulationState::record_wait(const TraceEvent& wait, const std::optional<WordUpdate>& update) {
    const Guard guard(lock_);
    if (update && update->when > wait.begin && events_.size() < max_events)
        flows_.push_back({*update, {wait.pe, wait.core, wait.pipe, update->when}});
    record_locked(wait, true);
}

std::map<int, SimulationState::Pe> SimulationState::pes() const {
    const Guard guard(lock_);
    return pes_;
}

std::map<std::pair<int, int>, double> SimulationState::links() const {
    const Guard guard(lock_);
    std::map<std::pair<int, int>, double> bytes;
    for (const auto& [ends, link] : links_) bytes.emplace(ends, link.passed());
    return bytes;
}

std::vector<TraceEvent> SimulationState::events() const {
    const Guard guard(lock_);
    return events_;
}

std::vector<Flow> SimulationState::flows() const {
    const Guard guard(lock_);
    return flows_;
}

}  // namespace npushmem::npu::time
