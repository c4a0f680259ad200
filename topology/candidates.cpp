#include "topology/candidates.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <tuple>

#include "topology/natural_order.hpp"
#include "topology/nic_list.hpp"

namespace npushmem::topology {
namespace {

// Locations without a PCI address sort behind those that have one.
auto sort_key(const Machine& machine, const Location& location) {
    constexpr std::size_t unknown = std::numeric_limits<std::size_t>::max();
    return std::make_tuple(location.pci ? machine.pci[*location.pci].address : "~", location.numa.value_or(unknown));
}

std::vector<std::size_t> all_of(const std::vector<Rail>& rails) {
    std::vector<std::size_t> indices(rails.size());
    std::iota(indices.begin(), indices.end(), std::size_t{0});
    return indices;
}

Result<std::vector<std::size_t>> listed_rails(const AssignmentRequest& request, bool& in_users_order) {
    if (request.hca_list.empty()) return all_of(request.rails);
    const auto list = parse_nic_list(request.hca_list);
    if (!list.ok()) return list.status();
    in_users_order = !list.value().exclude;
    return select_rails(list.value(), request.rails);
}

Status nothing_active(const std::vector<Rail>& rails) {
    std::string states;
    for (const auto& rail : rails) {
        states += fmt::format("{}{} {}", states.empty() ? "" : ", ", name_of(rail), name_of(rail.state));
    }
    return {Code::system,
            fmt::format("no NIC port of this host can be used ({}); bring a link up, or choose transports that "
                        "need no NIC",
                        states)};
}

}  // namespace

Result<Candidates> usable_rails(const AssignmentRequest& request) {
    Candidates out;
    const auto listed = listed_rails(request, out.in_users_order);
    if (!listed.ok()) return listed.status();
    for (const std::size_t rail : listed.value()) {
        if (request.rails[rail].state == PortState::down) {
            out.notes.push_back(fmt::format("{} is down and not used", name_of(request.rails[rail])));
        } else {
            out.rails.push_back(rail);
        }
    }
    if (out.rails.empty() && !request.rails.empty()) return nothing_active(request.rails);
    return out;
}

std::vector<std::size_t> in_machine_order(const Machine& machine, const std::vector<Rail>& rails,
                                          std::vector<std::size_t> indices) {
    std::stable_sort(indices.begin(), indices.end(), [&](std::size_t a, std::size_t b) {
        const auto key_a = sort_key(machine, rails[a].location);
        const auto key_b = sort_key(machine, rails[b].location);
        if (key_a != key_b) return key_a < key_b;
        if (rails[a].nic != rails[b].nic) return natural_less(rails[a].nic, rails[b].nic);
        return rails[a].port < rails[b].port;
    });
    return indices;
}

std::vector<std::size_t> in_machine_order(const Machine& machine, const std::vector<DevicePlace>& pes) {
    std::vector<std::size_t> indices(pes.size());
    std::iota(indices.begin(), indices.end(), std::size_t{0});
    std::stable_sort(indices.begin(), indices.end(), [&](std::size_t a, std::size_t b) {
        return sort_key(machine, pes[a].location) < sort_key(machine, pes[b].location);
    });
    return indices;
}

}  // namespace npushmem::topology
