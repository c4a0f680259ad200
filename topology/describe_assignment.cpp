#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <span>

#include "topology/describe.hpp"
#include "topology/pe_ranges.hpp"
#include "topology/reason.hpp"
#include "topology/text_table.hpp"

namespace npushmem::topology {
namespace {

using Rows = std::vector<std::vector<std::string>>;

std::size_t ports_in_use(const Assignment& assignment) {
    std::set<std::string> ports;
    for (const auto& pe : assignment.pes) {
        for (const auto& nic : pe.nics) ports.insert(name_of(nic));
    }
    return ports.size();
}

// PEs whose line would be the same, with that line's text.
struct Group {
    std::vector<std::uint32_t> pes;
    const PeAssignment* first;
    std::string same;  // what makes them equal
};

// In order of their first PE. `same_of` gives what must be equal.
template <class SameOf>
std::vector<Group> grouped(std::span<const PeAssignment> pes, SameOf same_of) {
    std::vector<Group> groups;
    std::map<std::string, std::size_t> place_of;
    for (const auto& pe : pes) {
        std::string same = same_of(pe);
        const auto [place, added] = place_of.try_emplace(same, groups.size());
        if (added) groups.push_back({{}, &pe, std::move(same)});
        groups[place->second].pes.push_back(pe.pe);
    }
    return groups;
}

// The reason, told of all that share the NIC instead of one of them.
std::string common_reason(const PeAssignment& pe) {
    std::string reason = pe.reason;
    if (pe.nics.empty() || pe.nics.front().shared_with.empty()) return reason;
    const auto& others = pe.nics.front().shared_with;
    const std::string of_one = "shared with " + pes_text(others);
    if (const auto at = reason.find(of_one); at != std::string::npos)
        reason.replace(at, of_one.size(), fmt::format("shared by {} PEs", others.size() + 1));
    return reason;
}

std::string nic_line(const PeAssignment& pe) {
    std::string line = common_reason(pe);
    for (const auto& nic : pe.nics)
        line += fmt::format("|{}|{}|{}", name_of(nic), name_of(nic.distance), nic.bits_per_second);
    return line;
}

// The first NIC carries the reason; others follow on lines of their own.
void append_rows(Rows& rows, const Group& group) {
    const PeAssignment& pe = *group.first;
    const std::string reason = group.pes.size() == 1 ? pe.reason : common_reason(pe);
    for (std::size_t i = 0; i < pe.nics.size(); ++i) {
        const auto& nic = pe.nics[i];
        const auto rate = rate_text(nic.bits_per_second);
        rows.push_back({i == 0 ? pe_ranges(group.pes) : "", name_of(nic), std::string(name_of(nic.distance)),
                        rate.empty() ? "?" : rate, i == 0 ? reason : ""});
    }
    if (pe.nics.empty()) rows.push_back({pe_ranges(group.pes), "none", "", "", reason});
}

std::string nics_of(std::span<const PeAssignment> pes) {
    Rows rows{{"PE", "NIC", "path", "rate", "why"}};
    for (const auto& group : grouped(pes, nic_line)) append_rows(rows, group);
    return render_table(rows, 2);
}

std::string devices_of(std::span<const PeAssignment> pes) {
    Rows rows{{"PE", "device"}};
    for (const auto& group : grouped(pes, [](const PeAssignment& pe) { return pe.device; }))
        rows.push_back({pe_ranges(group.pes), group.same});
    return render_table(rows, 2);
}

std::string headline(const Assignment& assignment, std::size_t ports) {
    if (ports == 0) {
        return fmt::format("NIC assignment: {}\n  transports within one host (self, p2p) need none\n",
                           assignment.method);
    }
    return fmt::format("NIC assignment ({}): {} on {}\n", assignment.method, counted(assignment.pes.size(), "PE"),
                       counted(ports, "NIC port"));
}

}  // namespace

std::string rate_text(std::uint64_t bits_per_second) {
    return bits_per_second == 0 ? "" : fmt::format("{:.4g} Gb/s", static_cast<double>(bits_per_second) / 1e9);
}

std::string describe(const Assignment& assignment, std::size_t max_pes) {
    const std::size_t ports = ports_in_use(assignment);
    const std::size_t shown = std::min(max_pes, assignment.pes.size());
    const auto first = std::span(assignment.pes).first(shown);
    std::string out = headline(assignment, ports);
    if (ports != 0 && shown != 0) out += nics_of(first);
    if (shown != 0) out += devices_of(first);
    if (shown < assignment.pes.size())
        out += fmt::format("  ... and {} more\n", counted(assignment.pes.size() - shown, "PE"));
    for (const auto& note : assignment.notes) out += fmt::format("  note: {}\n", note);
    return out;
}

}  // namespace npushmem::topology
