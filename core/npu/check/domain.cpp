#include "core/npu/check/domain.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "core/npu/check/core_checker.hpp"
#include "npushmem/npu/barrier.hpp"

namespace npushmem::npu::check {
namespace {

bool same_line(const std::source_location& a, const std::source_location& b) {
    return a.line() == b.line() && std::strcmp(a.file_name(), b.file_name()) == 0;
}

bool same_call(const BarrierCall& a, const BarrierCall& b) {
    return std::strcmp(a.variant, b.variant) == 0 && a.start == b.start && a.stride == b.stride && a.size == b.size &&
           a.radix == b.radix;
}

// A stride of 0 stands for a list that is not known here.
bool takes_part(const BarrierCall& call, int pe) {
    return call.stride == 0 || TeamView{call.start, call.stride, call.size}.index_of(pe) >= 0;
}

std::string describe(const BarrierCall& call, int cores) {
    return fmt::format("{} of {} PEs from {} by {}, radix {}, on {} cores", call.variant, call.size, call.start,
                       call.stride, call.radix, cores);
}

}  // namespace

std::uint32_t Domain::join(CoreChecker& core) {
    cores_.push_back({&core, core.pe(), core.index(), {}});
    return static_cast<std::uint32_t>(cores_.size() - 1);
}

void Domain::leave(std::uint32_t core) { cores_[core].checker = nullptr; }

FindingSide Domain::side_of(const Access& access) const {
    if (!access.exists()) return {};
    const CoreFacts& core = cores_[access.core()];
    return {core.pe, core.index, access.pipe(), access.name, access.where};
}

void Domain::report(Hazard hazard, const FindingSide& here, const Access& other, const std::string& place,
                    const std::string& detail) {
    const bool copy_announced = hazard == Hazard::unpublished && other.pipe() == Pipe::copy_out;
    const Access flag = copy_announced ? cores_[other.core()].sideways_flag : Access{};
    if (flag.issued <= other.issued) return report(hazard, here, side_of(other), place, detail);
    report(
        Hazard::wrong_direction, here, side_of(other), place,
        fmt::format("{}; the flag set at {}:{} does not go to S", detail, flag.where.file_name(), flag.where.line()));
}

void Domain::report(Hazard hazard, const FindingSide& here, const FindingSide& other, const std::string& place,
                    const std::string& detail) {
    for (Finding& known : findings_) {
        if (known.hazard != hazard || !same_line(known.here.where, here.where)) continue;
        if (!same_line(known.other.where, other.where)) continue;
        ++known.times;
        return;
    }
    findings_.push_back({hazard, kernel_, here, other, place, detail, 1});
}

void Domain::release_word(Address word, const Clock& clock, bool add) {
    Clock& released = words_[word];
    if (!add) released = clock;
    if (add) released.join(clock);
}

void Domain::acquire_word(Address word, Clock& clock) const {
    const auto found = words_.find(word);
    if (found != words_.end()) clock.join(found->second);
}

void Domain::arrive(const Message& message) {
    const Signal& signal = message.signal;
    // Release: pairs with the acquire of the waits, also of PEs in other processes.
    if (signal.send)
        signal.send();
    else if (signal.add)
        __atomic_fetch_add(signal.word, signal.value, __ATOMIC_RELEASE);
    else
        __atomic_store_n(signal.word, signal.value, __ATOMIC_RELEASE);
    const auto at = reinterpret_cast<Address>(signal.word);
    memory_.landed(at, at + sizeof *signal.word, message.access, changed());
    release_word(at, message.clock, signal.add);
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

void Domain::compare(const BarrierCall& call, const FindingSide& here, int cores) {
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
