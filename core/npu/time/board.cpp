#include "core/npu/time/board.hpp"

#include <algorithm>

namespace npushmem::npu::time {
namespace {

constexpr std::size_t most_events = 1'000'000;
using Guard = std::lock_guard<std::mutex>;

}  // namespace

double Board::begin(int pe, int core, int cores) {
    const Guard guard(lock_);
    Pe& here = pes_[pe];
    if (core == 0) {
        here.start = here.end;
        here.meetings.clear();
    }
    here.cores = std::max(here.cores, cores);
    return here.start;
}

void Board::end(int pe, double begin, double end) {
    const Guard guard(lock_);
    Pe& here = pes_[pe];
    here.end = std::max(here.end, end);
    here.core_time += end - begin;
}

double Board::memory(int pe, double begin, double bytes) {
    const Guard guard(lock_);
    return memory_.try_emplace(pe, model.gm_rate).first->second.reserve(begin, bytes);
}

double Board::link(int from, int to, double begin, double bytes) {
    const Guard guard(lock_);
    if (from / model.group == to / model.group) return rate(links_, from, to, model.hccs_rate).reserve(begin, bytes);
    const double out = rate(links_, from, -1, model.switch_rate).reserve(begin, bytes);
    return std::max(out, rate(links_, -1, to, model.switch_rate).reserve(begin, bytes));
}

SharedRate& Board::rate(std::map<std::pair<int, int>, SharedRate>& rates, int from, int to, double bytes_per_ns) {
    return rates.try_emplace({from, to}, bytes_per_ns).first->second;
}

double Board::latency(int from, int to) const {
    if (from == to) return model.gm_latency;
    return from / model.group == to / model.group ? model.hccs_latency : model.switch_latency;
}

void Board::signal(const void* word, std::uint64_t value, double when) {
    const Guard guard(lock_);
    signals_[word] = {value, when};
}

double Board::arrival(const void* word, std::uint64_t seen) const {
    const Guard guard(lock_);
    const auto found = signals_.find(word);
    return found != signals_.end() && found->second.value == seen ? found->second.when : 0;
}

void Board::arrive(int pe, std::size_t meeting, double when) {
    const Guard guard(lock_);
    auto& meetings = pes_[pe].meetings;
    if (meetings.size() <= meeting) meetings.resize(meeting + 1, 0);
    meetings[meeting] = std::max(meetings[meeting], when);
}

double Board::met(int pe, std::size_t meeting) const {
    const Guard guard(lock_);
    return pes_.at(pe).meetings.at(meeting);
}

void Board::note(const Event& event, bool idle) {
    const Guard guard(lock_);
    if (!idle) pes_[event.pe].busy.at(index_of(event.pipe)) += event.end - event.begin;
    if (events_.size() < most_events) events_.push_back(event);
}

std::map<int, Board::Pe> Board::pes() const {
    const Guard guard(lock_);
    return pes_;
}

std::map<std::pair<int, int>, double> Board::links() const {
    const Guard guard(lock_);
    std::map<std::pair<int, int>, double> bytes;
    for (const auto& [ends, link] : links_) bytes.emplace(ends, link.passed());
    return bytes;
}

std::vector<Event> Board::events() const {
    const Guard guard(lock_);
    return events_;
}

}  // namespace npushmem::npu::time
