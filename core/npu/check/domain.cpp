#include "core/npu/check/domain.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "core/npu/check/core_checker.hpp"
#include "npushmem/npu/barrier.hpp"

namespace npushmem::npu::check {
namespace {

bool same_line(const FindingSide& a, const FindingSide& b) {
    return a.where.line() == b.where.line() && std::strcmp(a.where.file_name(), b.where.file_name()) == 0 &&
           a.elsewhere == b.elsewhere;
}

bool same_call(const BarrierDescriptor& a, const BarrierDescriptor& b) {
    return std::strcmp(a.variant, b.variant) == 0 && a.start == b.start && a.stride == b.stride && a.size == b.size &&
           a.radix == b.radix;
}

// A stride of 0 stands for a list that is not known here.
bool takes_part(const BarrierDescriptor& call, int pe) {
    return call.stride == 0 || TeamView{call.start, call.stride, call.size}.index_of(pe) >= 0;
}

std::string describe(const BarrierDescriptor& call, int cores) {
    return fmt::format("{} of {} PEs from {} by {}, radix {}, on {} cores", call.variant, call.size, call.start,
                       call.stride, call.radix, cores);
}

}  // namespace

std::uint32_t Domain::join(CoreChecker& core) {
    cores_.push_back({&core, core.pe(), core.index(), {}, 0});
    places_.emplace_back(core.pe(), core.index());
    return first_core_ + static_cast<std::uint32_t>(cores_.size() - 1);
}

std::uint32_t Domain::agent_to(std::uint32_t core, int pe) {
    std::vector<AgentTo>& known = agents_to_[{facts(core).pe, pe}];
    const auto found = std::ranges::find(known, core, &AgentTo::core);
    if (found != known.end()) return found->agent;
    if (next_agent_ == 0) next_agent_ = static_cast<std::uint32_t>(cores_.size()) * agents_per_core;
    known.push_back({core, peers_ != nullptr ? peers_->new_agent() : next_agent_++});
    return known.back().agent;
}

void Domain::pass_fences(Clock& clock, int from_pe, int to_pe) const {
    const auto found = agents_to_.find({from_pe, to_pe});
    if (found == agents_to_.end()) return;
    for (const AgentTo& to : found->second)
        if (const std::uint32_t fenced = clock[fenced_agent(to.core)]; fenced != 0) clock.raise(to.agent, fenced);
}

void Domain::leave(std::uint32_t core) { facts(core).checker = nullptr; }

FindingSide Domain::side_of(const Access& access) const {
    if (!access.exists()) return {};
    if (!is_own(access.core())) return peers_->side_of(access);
    const CoreFacts& core = cores_[access.core() - first_core_];
    return {core.pe, core.index, access.pipe(), access.name, access.where};
}

void Domain::report(Hazard hazard, const FindingSide& here, const Access& other, const std::string& place,
                    const std::string& detail) {
    const bool copy_announced = hazard == Hazard::unpublished && other.pipe() == Pipe::copy_out && is_own(other.core());
    const Access flag = copy_announced ? facts(other.core()).sideways_flag : Access{};
    const bool fenced = copy_announced && other.sequence <= facts(other.core()).fenced;
    if (fenced)
        return report(hazard, here, side_of(other), place,
                      detail + "; a fence orders it before signals to the same PE only, quiet before all");
    if (flag.issued <= other.issued) return report(hazard, here, side_of(other), place, detail);
    report(Hazard::wrong_direction, here, side_of(other), place,
           fmt::format("{}; the flag set at {} does not go to S", detail, text_of(flag.where)));
}

void Domain::report(Hazard hazard, const FindingSide& here, const FindingSide& other, const std::string& place,
                    const std::string& detail) {
    for (Finding& known : findings_) {
        if (known.hazard != hazard || !same_line(known.here, here)) continue;
        if (!same_line(known.other, other)) continue;
        ++known.times;
        return;
    }
    findings_.push_back({hazard, kernel_, here, other, place, detail, 1});
}

std::string Domain::stuck(const std::string& title, double limit) const {
    const CorePlace* last = running_.load(std::memory_order_relaxed);
    const std::string call = last == nullptr
                                 ? "no core has made any"
                                 : fmt::format("PE {} core {} made the last one, at {}", last->pe, last->core,
                                               text_of(last->at.load(std::memory_order_relaxed)));
    return fmt::format(
        "{} has not ended within its deadline of {} s, and it cannot be ended because it makes no call into "
        "the kernel language; {}",
        title, limit, call);
}

void Domain::release_word(Address word, const Clock& clock, bool add, const Access& write, std::uint64_t before,
                          std::uint64_t after) {
    if (peers_ != nullptr) peers_->release(word, clock, add, before, after);
    Word& released = words_[word];
    if (!add) released.clock = clock;
    if (add) released.clock.join(clock);
    released.write = write;
    released.before = before;
    ++released.releases;
}

Domain::Earlier Domain::earlier(Address word, std::uint32_t core, const Clock& clock) const {
    const auto found = words_.find(word);
    if (found == words_.end()) return {};
    const Access& write = found->second.write;
    if (write.core() == core || write.complete(clock)) return {};
    return {found->second.releases, found->second.before};
}

void Domain::acquire_word(Address word, Clock& clock, std::optional<std::uint64_t> seen, bool waited) const {
    if (peers_ != nullptr) peers_->acquire(word, seen, waited, clock);
    const auto found = words_.find(word);
    if (found != words_.end()) clock.join(found->second.clock);
}

void Domain::arrive(const Message& message) {
    const Signal& signal = message.signal;
    const auto at = reinterpret_cast<Address>(signal.word);
    const auto records = lock_records();
    const std::uint64_t before = word_in_memory(at);
    // Release: pairs with the acquire of the waits, also of PEs in other processes.
    if (signal.send)
        signal.send();
    else if (signal.add)
        __atomic_fetch_add(signal.word, signal.value, __ATOMIC_RELEASE);
    else
        __atomic_store_n(signal.word, signal.value, __ATOMIC_RELEASE);
    const bool visibly = signal.send || word_in_memory(at) != before;
    memory_.landed(at, at + sizeof *signal.word, message.access, changed(visibly));
    release_word(at, message.clock, signal.add, message.access, before);
}

void Domain::send(Message message) { under_way_.push_back(std::move(message)); }

void Domain::deliver_from(std::uint32_t core) {
    const auto sent_by_it = [core](const Message& message) { return message.core == core; };
    for (;;) {
        const auto youngest = std::find_if(under_way_.rbegin(), under_way_.rend(), sent_by_it);
        if (youngest == under_way_.rend()) return;
        const Message message = std::move(*youngest);
        under_way_.erase(std::next(youngest).base());
        arrive(message);
    }
}

bool Domain::progress() {
    if (!under_way_.empty()) {
        deliver_from(under_way_.front().core);
        return true;
    }
    for (const CoreFacts& core : cores_) {
        if (core.checker != nullptr && core.checker->run_oldest()) return true;
    }
    return false;
}

void Domain::compare(const BarrierDescriptor& call, const FindingSide& here, int cores) {
    // The state lies at the same offset of the same allocation on every PE: its name without the PE.
    std::string state = names_.name_of(reinterpret_cast<Address>(call.state));
    state.resize(std::min(state.size(), state.rfind(" of PE ")));
    std::vector<TeamCall>& calls = calls_[{state, call.generation}];
    for (const TeamCall& other : calls) {
        // Disjoint teams may use the same state.
        if (!takes_part(call, other.side.pe) && !takes_part(other.call, here.pe)) continue;
        if (same_call(call, other.call) && cores == other.cores) return;
        report(Hazard::team_mismatch, here, other.side, state,
               fmt::format("{} here, {} on PE {}", describe(call, cores), describe(other.call, other.cores),
                           other.side.pe));
    }
    calls.push_back({call, here, cores});
}

}  // namespace npushmem::npu::check
