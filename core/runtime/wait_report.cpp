// SPDX-License-Identifier: BSD-3-Clause
#include "core/runtime/wait_report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "topology/report/describe.hpp"

namespace npushmem {

namespace {

using PeList = std::vector<std::uint32_t>;

constexpr std::string_view world_name = "world";  // see TeamTable

std::string subject_of(const PeList& pes) {
    return fmt::format("{} {}", pes.size() == 1 ? "PE" : "PEs", topology::pe_ranges(pes));
}

const char* verb(const PeList& pes, const char* singular, const char* plural) {
    return pes.size() == 1 ? singular : plural;
}

double seconds_since(std::int64_t since, std::int64_t now) { return static_cast<double>(now - since) * 1e-9; }

// The PEs that are in the same collective call of a team.
struct CallGroup {
    std::string call;  // with its number
    std::uint64_t number = 0;
    PeList pes;
};

// Groups by team; within a team, the largest group first.
std::map<std::string, std::vector<CallGroup>> groups_of(std::span<const PeProgress> pes) {
    std::map<std::string, std::vector<CallGroup>> teams;
    for (const PeProgress& pe : pes) {
        if (!pe.wait || pe.wait->call_number == 0) continue;
        auto& groups = teams[std::string(text_of(pe.wait->team))];
        const std::string call = fmt::format("{} #{}", text_of(pe.wait->call), pe.wait->call_number);
        auto known = std::ranges::find(groups, call, &CallGroup::call);
        if (known == groups.end()) known = groups.insert(groups.end(), {call, pe.wait->call_number, {}});
        known->pes.push_back(static_cast<std::uint32_t>(pe.pe));
    }
    for (auto& [team, groups] : teams)
        std::ranges::stable_sort(groups, std::ranges::greater{}, [](const CallGroup& one) { return one.pes.size(); });
    return teams;
}

// Adds the PEs that do not wait and have not entered the call that the others are in.
void append_missing(std::span<const PeProgress> pes, const std::string& team, const CallGroup& awaited,
                    std::vector<std::string>& out) {
    std::map<std::uint64_t, PeList> missing;  // by the number of the last call
    for (const PeProgress& pe : pes)
        if (pe.alive && pe.state == PeState::running && !pe.wait && pe.world_calls < awaited.number)
            missing[pe.world_calls].push_back(static_cast<std::uint32_t>(pe.pe));
    for (const auto& [last, list] : missing)
        out.push_back(fmt::format("{} {} not entered {} of the team {}: the last collective call there was #{}",
                                  subject_of(list), verb(list, "has", "have"), awaited.call, team, last));
}

std::string describe_state(const PeProgress& pe) {
    if (!pe.alive) return "ended";
    if (pe.state == PeState::starting) return "not finished the start";
    if (pe.state == PeState::finalized) return "finalized";
    return "no long wait in the library";
}

}  // namespace

PeProgress progress_of(const ControlBlock& control, bool alive) {
    PeProgress out;
    out.pe = control.pe;
    out.alive = alive;
    // Acquire: pairs with the release store in MappedSlices::publish_finalized.
    out.state = static_cast<PeState>(control.state.load(std::memory_order_acquire));
    out.world_calls = control.progress.world_calls.load(std::memory_order_relaxed);
    out.wait = control.progress.wait.read();
    if (out.wait && out.wait->since == 0) out.wait.reset();
    return out;
}

std::string describe_condition(const PeWait& wait) {
    std::string text(text_of(wait.what));
    if (wait.peer >= 0) text += fmt::format(" from PE {}", wait.peer);
    if (wait.object != 0) text += fmt::format(" at offset {}", wait.object);
    return text;
}

std::string describe_call(const PeWait& wait) {
    std::string text(text_of(wait.call));
    if (wait.call_number != 0) text += fmt::format(" #{}", wait.call_number);
    if (!text_of(wait.team).empty())
        text += fmt::format("{}the team {}", text.empty() ? "" : " of ", text_of(wait.team));  // during init: no call
    return text;
}

std::vector<std::string> describe_progress(std::span<const PeProgress> pes, std::int64_t now) {
    struct Group {
        PeList pes;
        std::int64_t since = 0;
    };
    std::vector<std::pair<std::string, Group>> groups;
    for (const PeProgress& pe : pes) {
        std::string text = describe_state(pe);
        if (pe.wait && pe.alive) {
            const std::string call = describe_call(*pe.wait);
            text = fmt::format("{}{}for {}", call.empty() ? "" : "in " + call, call.empty() ? "" : " ",
                               describe_condition(*pe.wait));
        }
        auto known = std::ranges::find(groups, text, [](const auto& one) { return one.first; });
        if (known == groups.end()) known = groups.insert(groups.end(), {text, {}});
        known->second.pes.push_back(static_cast<std::uint32_t>(pe.pe));
        const std::int64_t since = pe.wait && pe.alive ? pe.wait->since : 0;
        if (known->second.since == 0 || since < known->second.since) known->second.since = since;
    }
    std::vector<std::string> out;
    for (const auto& [text, group] : groups)
        out.push_back(group.since == 0
                          ? fmt::format("{} {} {}", subject_of(group.pes), verb(group.pes, "has", "have"), text)
                          : fmt::format("{} {} waited {:.1f} s {}", subject_of(group.pes),
                                        verb(group.pes, "has", "have"), seconds_since(group.since, now), text));
    return out;
}

std::vector<std::string> describe_disagreements(std::span<const PeProgress> pes, int npes) {
    std::vector<std::string> out;
    for (const auto& [team, groups] : groups_of(pes)) {
        const CallGroup& most = groups.front();
        for (std::size_t i = 1; i < groups.size(); ++i) {
            const PeList& few = groups[i].pes;
            const bool all = few.size() + most.pes.size() == static_cast<std::size_t>(npes) && most.pes.size() > 1;
            out.push_back(fmt::format(
                "{} {} in {} of the team {}, {} {} in {}", subject_of(few), verb(few, "is", "are"), groups[i].call,
                team, all ? "all others" : subject_of(most.pes), verb(most.pes, "is", "are"), most.call));
        }
        if (team == world_name) append_missing(pes, team, most, out);
    }
    return out;
}

std::string describe_other_hosts(const PeRange& local_pes, int npes,
                                 const std::function<RemotePeState(int pe)>& state) {
    PeList others;
    std::map<RemotePeState, PeList> known;
    for (int pe = 0; pe < npes; ++pe) {
        if (std::ranges::find(local_pes, pe) != local_pes.end()) continue;
        others.push_back(static_cast<std::uint32_t>(pe));
        known[state ? state(pe) : RemotePeState::unknown].push_back(static_cast<std::uint32_t>(pe));
    }
    if (others.empty()) return {};
    std::string text = fmt::format(
        "{} {}", subject_of(others),
        verb(others, "runs on another host, whose report covers it", "run on other hosts, whose reports cover them"));
    if (const PeList& lost = known[RemotePeState::lost]; !lost.empty())
        text += fmt::format("; {} {} lost", subject_of(lost), verb(lost, "is", "are"));
    if (const PeList& finalized = known[RemotePeState::finalized]; !finalized.empty())
        text += fmt::format("; {} {} finalized", subject_of(finalized), verb(finalized, "has", "have"));
    return text;
}

}  // namespace npushmem
