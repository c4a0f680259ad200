// SPDX-License-Identifier: BSD-3-Clause
#include "topology/report/describe.hpp"

#include <fmt/format.h>
#include <algorithm>
#include <map>
#include <set>
#include <span>
#include <tuple>

#include "topology/policy/assignment.hpp"

namespace npushmem::topology {

std::string render_table(const std::vector<std::vector<std::string>>& rows, std::size_t indent) {
    std::vector<std::size_t> widths;
    for (const auto& row : rows) {
        widths.resize(std::max(widths.size(), row.size()));
        for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
    }
    std::string out;
    for (const auto& row : rows) {
        std::string line(indent, ' ');
        for (std::size_t i = 0; i < row.size(); ++i) line += fmt::format("{:<{}}  ", row[i], widths[i]);
        line.erase(line.find_last_not_of(' ') + 1);
        out += line + '\n';
    }
    return out;
}

std::string counted(std::size_t count, std::string_view one) {
    return fmt::format("{} {}{}", count, one, count == 1 ? "" : "s");
}

namespace {

constexpr std::size_t max_pieces = 6;
constexpr std::size_t min_stride = 3;  // minimum members of "0,8..16"

// The number of equally spaced numbers at the beginning.
std::size_t run_length(std::span<const std::uint32_t> pes) {
    std::size_t length = pes.size() < 2 ? pes.size() : 2;
    while (length >= 2 && length < pes.size() && pes[length] - pes[length - 1] == pes[1] - pes[0]) ++length;
    return length;
}

struct Piece {
    std::string text;
    std::size_t length;
};

Piece first_piece(std::span<const std::uint32_t> pes) {
    const std::size_t length = run_length(pes);
    const std::uint32_t last = pes[length - 1];
    if (length >= 2 && pes[1] - pes[0] == 1) return {fmt::format("{}-{}", pes[0], last), length};
    if (length >= min_stride) return {fmt::format("{},{}..{}", pes[0], pes[1], last), length};
    return {fmt::format("{}", pes[0]), 1};
}

}  // namespace

std::string pe_ranges(std::span<const std::uint32_t> pes) {
    std::string text;
    for (std::size_t pieces = 0; !pes.empty() && pieces < max_pieces; ++pieces) {
        const Piece piece = first_piece(pes);
        text += (pieces == 0 ? "" : ",") + piece.text;
        pes = pes.subspan(piece.length);
    }
    if (!pes.empty()) text += fmt::format(" +{} more", pes.size());
    return text;
}

namespace {

using Rows = std::vector<std::vector<std::string>>;

std::string headline(const Machine& machine) {
    return fmt::format("Machine {}({}): {}, {}, {}, {}\n", machine.host_name.empty() ? "" : machine.host_name + " ",
                       machine.source, counted(machine.packages.size(), "package"),
                       counted(machine.numa_nodes.size(), "NUMA node"), counted(machine.cores.size(), "core"),
                       counted(cpu_count(machine), "hardware thread"));
}

std::string size_text(std::uint64_t bytes) {
    const bool mega = bytes >= 1024 * 1024;
    return fmt::format("{:g} {}", static_cast<double>(bytes) / (mega ? 1024.0 * 1024.0 : 1024.0), mega ? "MiB" : "KiB");
}

// Level, size and number of each kind of cache.
std::vector<std::tuple<unsigned, std::uint64_t, std::size_t>> kinds_of_caches(const Machine& machine) {
    std::vector<std::tuple<unsigned, std::uint64_t, std::size_t>> kinds;
    for (const auto& cache : machine.caches) {
        const bool same =
            !kinds.empty() && std::get<0>(kinds.back()) == cache.level && std::get<1>(kinds.back()) == cache.bytes;
        if (same) ++std::get<2>(kinds.back());
        if (!same) kinds.emplace_back(cache.level, cache.bytes, 1);
    }
    return kinds;
}

std::string processors(const Machine& machine) {
    Rows rows;
    for (const auto& package : machine.packages) {
        rows.push_back({fmt::format("package {}", package.os_index), "cpus " + describe(package.cpus), package.model});
    }
    for (const auto& node : machine.numa_nodes) {
        const double gibibytes = static_cast<double>(node.memory_bytes) / (1024.0 * 1024.0 * 1024.0);
        rows.push_back({fmt::format("NUMA node {}", node.os_index), "cpus " + describe(node.cpus),
                        fmt::format("{:.1f} GiB", gibibytes)});
    }
    for (const auto& [level, bytes, count] : kinds_of_caches(machine)) {
        rows.push_back({fmt::format("L{} cache", level), fmt::format("{} of {}", count, size_text(bytes))});
    }
    return render_table(rows, 2);
}

std::string numa_text(const Machine& machine, const std::optional<std::size_t>& numa) {
    return numa ? fmt::format("NUMA node {}", machine.numa_nodes[*numa].os_index) : "NUMA node unknown";
}

std::string port_text(const NicPort& port) {
    const auto rate = rate_text(port.bits_per_second);
    return fmt::format("port {} {}{}", port.number, name_of(port.state), rate.empty() ? "" : ", " + rate);
}

std::string nic_text(const Nic& nic) {
    std::string ports;
    for (const auto& port : nic.ports) ports += (ports.empty() ? "" : "; ") + port_text(port);
    return fmt::format("{}: {}", nic.kind == NicKind::rdma ? "verbs" : "network", ports);
}

class Forest {
public:
    explicit Forest(const Machine& machine) : machine_(machine) {}

    Rows rows() {
        for (std::size_t i = 0; i < machine_.pci.size(); ++i) append_object(i);
        for (const auto& nic : machine_.nics) {
            if (!nic.pci) append_nic(nic, 0);
        }
        return std::move(rows_);
    }

private:
    // Parents precede children, so the order of the vector is the order of the drawing.
    void append_object(std::size_t index) {
        const auto& object = machine_.pci[index];
        const std::size_t depth = depth_of(object);
        rows_.push_back({fmt::format("{:{}}{} {}", "", 2 * depth, kind_text(index), object.address), detail(object)});
        for (const auto& nic : machine_.nics) {
            if (nic.pci == index) append_nic(nic, depth + 1);
        }
    }

    void append_nic(const Nic& nic, std::size_t depth) {
        rows_.push_back({fmt::format("{:{}}NIC {}", "", 2 * depth, nic.name), nic_text(nic)});
    }

    std::size_t depth_of(const PciObject& object) const {
        std::size_t depth = 0;
        for (auto parent = object.parent; parent; parent = machine_.pci[*parent].parent) ++depth;
        return depth;
    }

    std::string_view kind_text(std::size_t index) const {
        const auto& object = machine_.pci[index];
        if (object.kind == PciKind::host_bridge) return "host bridge";
        if (object.kind == PciKind::bridge) return "bridge";
        const bool computes = std::any_of(machine_.accelerators.begin(), machine_.accelerators.end(),
                                          [&](const Accelerator& accelerator) { return accelerator.pci == index; });
        return computes ? "accelerator" : "device";
    }

    std::string detail(const PciObject& object) const {
        if (object.kind == PciKind::host_bridge) return numa_text(machine_, object.numa);
        const auto link = rate_text(object.link_bits_per_second);
        return fmt::format("[{:04x}:{:04x}] class {:04x}{}", object.vendor, object.device, object.class_id,
                           link.empty() ? "" : ", link " + link);
    }

    const Machine& machine_;
    Rows rows_;
};

std::string no_nic(const Machine& machine) {
    if (!machine.devices_known) return "  PCI devices: not read\n";
    if (!machine.nics.empty()) return {};
    return "  no NIC: transports within one host (self, p2p) need none\n";
}

}  // namespace

std::string describe(const Machine& machine) {
    std::string out =
        headline(machine) + processors(machine) + render_table(Forest(machine).rows(), 2) + no_nic(machine);
    for (const auto& note : machine.notes) out += fmt::format("  note: {}\n", note);
    return out;
}

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

// The reason, worded for all PEs that share the NIC.
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

namespace {

std::set<std::uint64_t> jobs_of(std::span<const NicClaim> claims) {
    std::set<std::uint64_t> jobs;
    for (const auto& claim : claims) jobs.insert(claim.job);
    return jobs;
}

std::string count_jobs(std::span<const NicClaim> claims) {
    const auto count = jobs_of(claims).size();
    return fmt::format("{} job{}", count, count == 1 ? "" : "s");
}

std::string table_of(std::vector<NicClaim> claims) {
    std::stable_sort(claims.begin(), claims.end(), [](const NicClaim& a, const NicClaim& b) {
        return std::tie(a.job, a.pe, b.first) < std::tie(b.job, b.pe, a.first);
    });
    const auto jobs = jobs_of(claims);
    std::vector<std::vector<std::string>> rows{{"job", "PE", "process", "NPU", "device", "NIC", "path"}};
    for (const auto& claim : claims) {
        const auto job = std::distance(jobs.begin(), jobs.find(claim.job)) + 1;
        rows.push_back({fmt::format("{}", job), fmt::format("{}", claim.pe), fmt::format("{}", claim.process.pid),
                        fmt::format("{}", claim.number), claim.device.empty() ? "?" : claim.device,
                        fmt::format("{}:{}{}", claim.nic, claim.port, claim.first ? "" : " (further)"),
                        std::string(name_of(claim.distance))});
    }
    return render_table(rows, 2);
}

}  // namespace

std::string describe(std::span<const NicClaim> claims, std::uint64_t machine) {
    std::vector<NicClaim> here;
    std::vector<NicClaim> elsewhere;
    for (const auto& claim : claims) (claim.machine == machine ? here : elsewhere).push_back(claim);
    std::string text = here.empty()
                           ? "NICs in use by jobs on this host: none\n"
                           : fmt::format("NICs in use by {} on this host:\n{}", count_jobs(here), table_of(here));
    if (elsewhere.empty()) return text;
    return text +
           fmt::format("\nNICs of other machines (topology files, emulated hosts), in use by {} on this host:\n{}",
                       count_jobs(elsewhere), table_of(elsewhere));
}

}  // namespace npushmem::topology
