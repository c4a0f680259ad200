// SPDX-License-Identifier: BSD-3-Clause
#include "core/npu/check/report/findings.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "core/npu/check/cores/pipes.hpp"
#include "npushmem/npu/error.hpp"

namespace npushmem::npu::check {
namespace {

bool same_line(const FindingSide& a, const FindingSide& b) {
    return a.where.line() == b.where.line() && std::strcmp(a.where.file_name(), b.where.file_name()) == 0 &&
           a.elsewhere == b.elsewhere;
}

}  // namespace

void require_accessible(const MemoryNames& names, std::uintptr_t begin, std::size_t bytes, const Access& access) {
    const std::string why = names.refusal(begin, bytes);
    if (why.empty()) return;
    throw KernelError(Code::range,
                      fmt::format("{}: {} bytes at {}: {} ({}) [{}]", access.name, bytes, names.name_of(begin), why,
                                  text_of(access.where), id_of(Hazard::bad_address)),
                      Hazard::bad_address, access.where);
}

std::uint32_t CoreTable::add(int pe, int index, CommandQueues& queues) {
    entries_.push_back({pe, index, &queues});
    return first_ + size() - 1;
}

void CoreTable::remove(std::uint32_t core) { entries_[core - first_].queues = nullptr; }

FindingSide CoreTable::side_of(const Access& access) const {
    if (!access.exists()) return {};
    if (!contains(access.core())) return peers_->side_of(access);
    const Entry& core = entries_[access.core() - first_];
    return {core.pe, core.index, access.pipe(), access.name, access.where};
}

bool CoreTable::run_oldest_command() {
    return std::ranges::any_of(entries_,
                               [](const Entry& core) { return core.queues != nullptr && core.queues->run_oldest(); });
}

std::uint32_t CopyOrder::agent_to(std::uint32_t core, int from_pe, int to_pe) {
    std::vector<AgentTo>& known = agents_to_[{from_pe, to_pe}];
    const auto found = std::ranges::find(known, core, &AgentTo::core);
    if (found != known.end()) return found->agent;
    if (next_agent_ == 0) next_agent_ = cores_.size() * agents_per_core;
    known.push_back({core, peers_ != nullptr ? peers_->new_agent() : next_agent_++});
    return known.back().agent;
}

void CopyOrder::pass_fences(Clock& clock, int from_pe, int to_pe) const {
    const auto found = agents_to_.find({from_pe, to_pe});
    if (found == agents_to_.end()) return;
    for (const AgentTo& to : found->second)
        if (const std::uint32_t fenced = clock[fenced_agent(to.core)]; fenced != 0) clock.raise(to.agent, fenced);
}

bool CopyOrder::is_fenced(const Access& copy) const {
    const auto found = facts_.find(copy.core());
    return found != facts_.end() && copy.sequence <= found->second.fenced;
}

void CopyOrder::record_sideways_flag(const Access& flag) {
    facts_[flag.core()].sideways_flag = flag;
    if (peers_ != nullptr) peers_->record_sideways_flag(flag);
}

PeerChecks::SidewaysFlag CopyOrder::sideways_flag(std::uint32_t core) const {
    if (peers_ != nullptr && !cores_.contains(core)) return peers_->sideways_flag(core);
    const auto found = facts_.find(core);
    if (found == facts_.end()) return {};
    const Access& flag = found->second.sideways_flag;
    return {flag.issued, text_of(flag.where)};
}

FindingLog::Report FindingLog::reporter(const Access& access) {
    return [this, access](Hazard hazard, const Access& other, std::uintptr_t at, const char* detail) {
        report(hazard, side_of(access), other, names_.name_of(at), detail);
    };
}

void FindingLog::report_external(Hazard hazard, const Access& access, std::uintptr_t at, const char* detail) {
    report(hazard, side_of(access), FindingSide{}, names_.name_of(at), detail);
}

void FindingLog::report(Hazard hazard, const FindingSide& here, const Access& other, const std::string& place,
                        const std::string& detail) {
    const bool copy_out = hazard == Hazard::unpublished && other.pipe() == Pipe::copy_out;
    if (copy_out && copies_.is_fenced(other))
        return report(hazard, here, side_of(other), place,
                      detail + "; a fence orders it before signals to the same PE only, quiet before all");
    const auto flag = copy_out ? copies_.sideways_flag(other.core()) : PeerChecks::SidewaysFlag{};
    if (flag.issued <= other.issued) return report(hazard, here, side_of(other), place, detail);
    report(Hazard::wrong_direction, here, side_of(other), place,
           fmt::format("{}; the flag set at {} does not go to S", detail, flag.where));
}

void FindingLog::report(Hazard hazard, const FindingSide& here, const FindingSide& other, const std::string& place,
                        const std::string& detail) {
    for (Finding& known : findings_) {
        if (known.hazard != hazard || !same_line(known.here, here)) continue;
        if (!same_line(known.other, other)) continue;
        ++known.times;
        return;
    }
    findings_.push_back({hazard, kernel_, here, other, place, detail});
    events_.attach_to(findings_.back(), [this](std::uintptr_t address) { return names_.pe_of(address); });
}

}  // namespace npushmem::npu::check
