// SPDX-License-Identifier: BSD-3-Clause
#include "topology/policy/decision.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <set>
#include <tuple>

#include "topology/machine/machine.hpp"
#include "topology/policy/nic_variables.hpp"
#include "topology/policy/policies.hpp"

namespace npushmem::topology {
namespace {

// Locations without a PCI address sort last.
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

namespace {

// A PE's rails, and the variable that gave them to it.
struct PeRails {
    std::vector<std::size_t> rails;
    std::string decided_by;
};

class Decider {
public:
    explicit Decider(const DecisionInput& input) : in_(input), request_(input.request) {}

    Result<Decision> run() const {
        if (request_.enable_nic_pe_mapping && !request_.hca_pe_mapping.empty()) return by_mapping();
        if (in_.candidates.rails.empty()) return none();
        if (request_.enable_nic_pe_mapping) return round_robin_choice("round robin", round_robin_variable());
        if (request_.policy == Policy::round_robin) return round_robin_choice("round_robin", round_robin_variable());
        if (request_.policy == Policy::list) return by_list();
        return by_distance();
    }

private:
    Decision none() const {
        const std::size_t pes = request_.pes.size();
        return {fmt::format("none, because {}", why_no_rails(in_.machine)), std::vector<std::vector<std::size_t>>(pes),
                std::vector<std::string>(pes)};
    }

    template <class RailsOf>
    Decision of_every_pe(std::string method, RailsOf rails_in_turn) const {
        Decision out{std::move(method), {}, {}};
        for (const auto& pe : request_.pes) {
            PeRails pe_rails = rails_in_turn(pe.number);
            out.rails.push_back(std::move(pe_rails.rails));
            out.decided_by.push_back(std::move(pe_rails.decided_by));
        }
        return out;
    }

    Result<Decision> by_mapping() const {
        const auto mapping = parse_nic_mapping(request_.hca_pe_mapping);
        if (!mapping.ok()) return mapping.status();
        std::vector<std::size_t> numbers;
        for (const auto& pe : request_.pes) numbers.push_back(pe.number);
        const auto mapped = map_pes(mapping.value(), request_.rails, numbers, request_.numbers_of_host);
        if (!mapped.ok()) return mapped.status();
        Decision out{"HCA_PE_MAPPING", {}, {}};
        for (const auto& [entry, rail] : mapped.value()) {
            out.rails.push_back({rail});
            out.decided_by.push_back(fmt::format("entry {} \"{}\" of NPUSHMEM_HCA_PE_MAPPING gives it ", entry + 1,
                                                 mapping.value()[entry].text));
        }
        return out;
    }

    std::string_view round_robin_variable() const {
        if (!request_.hca_list.empty()) return "NPUSHMEM_HCA_LIST";
        return request_.enable_nic_pe_mapping ? "NPUSHMEM_ENABLE_NIC_PE_MAPPING" : "NPUSHMEM_NIC_POLICY";
    }

    Decision round_robin_choice(std::string method, std::string_view variable) const {
        return of_every_pe(std::move(method), [&](std::size_t number) {
            return PeRails{rails_in_turn(number, in_.order), fmt::format("{} gives it, in turn, ", variable)};
        });
    }

    // With more ports than PEs, each PE gets a contiguous share of the list; the shares cover it. With other jobs the
    // number of PEs is unknown, and each PE gets one port.
    std::vector<std::size_t> rails_in_turn(std::size_t number, const std::vector<std::size_t>& order) const {
        const std::size_t pes = request_.pes.size();
        if (request_.numbers_of_host || order.size() <= pes) return {order[number % order.size()]};
        const std::size_t first = number * order.size() / pes;
        const std::size_t last = (number + 1) * order.size() / pes;
        const std::size_t count = std::min(last - first, request_.max_nics_per_pe);
        const auto begin = order.begin() + static_cast<std::ptrdiff_t>(first);
        return {begin, begin + static_cast<std::ptrdiff_t>(count)};
    }

    Result<Decision> by_list() const {
        if (!in_.candidates.in_users_order)
            return Status{Code::config,
                          "NPUSHMEM_NIC_POLICY=list needs NPUSHMEM_HCA_LIST to name a port for every PE of the host "
                          "(a list that excludes names none)"};
        const auto& order = in_.candidates.rails;
        for (const auto& pe : request_.pes) {
            if (pe.number >= order.size()) return list_too_short(order.size(), pe.number);
        }
        return of_every_pe("list", [&](std::size_t number) {
            return PeRails{{order[number]}, fmt::format("NPUSHMEM_HCA_LIST gives PE {} of the host ", number)};
        });
    }

    Status list_too_short(std::size_t ports, std::size_t number) const {
        return {Code::config,
                fmt::format("NPUSHMEM_HCA_LIST \"{}\" names {} port{}, but NPUSHMEM_NIC_POLICY=list needs one for PE "
                            "{} of the host (they count from 0); name more, or choose round_robin",
                            request_.hca_list, ports, ports == 1 ? "" : "s", number)};
    }

    // Policies get PEs and rails in the machine's order, so the result does not depend on the input's order.
    // Exceptions: rails follow the order of the user's list; NVSHMEM's algorithm gets PEs in their own order and rails
    // in the machine's.
    Result<Decision> by_distance() const {
        const auto pes = request_.policy == Policy::nearest ? all_pes() : in_machine_order(in_.machine, request_.pes);
        const auto& rails = request_.policy == Policy::nearest ? in_.machine_order : in_.order;
        const auto choice = choose(pes, cost_table(pes, rails));
        if (choice.size() < pes.size()) return too_few();
        Decision out{std::string(name_of(request_.policy)), std::vector<std::vector<std::size_t>>(pes.size()),
                     std::vector<std::string>(pes.size())};
        for (std::size_t i = 0; i < pes.size(); ++i) {
            for (const std::size_t column : choice[i]) out.rails[pes[i]].push_back(rails[column]);
        }
        return out;
    }

    std::vector<std::size_t> all_pes() const {
        std::vector<std::size_t> out(request_.pes.size());
        std::iota(out.begin(), out.end(), std::size_t{0});
        return out;
    }

    CostTable cost_table(const std::vector<std::size_t>& pes, const std::vector<std::size_t>& rails) const {
        std::vector<std::vector<Distance>> distances;
        for (const std::size_t pe : pes) {
            auto& row = distances.emplace_back();
            for (const std::size_t rail : rails) row.push_back(in_.distances[pe][rail]);
        }
        return rank_distances(distances);
    }

    Choice choose(const std::vector<std::size_t>& pes, const CostTable& costs) const {
        const std::size_t max_nics = request_.max_nics_per_pe;
        switch (request_.policy) {
            case Policy::nearest: return choose_nearest(costs, max_nics);
            case Policy::exclusive: return choose_exclusive(costs, devices_of(pes), max_nics, bins());
            default: return choose_balanced(costs, max_nics, bins());
        }
    }

    std::vector<std::uint32_t> devices_of(const std::vector<std::size_t>& pes) const {
        std::vector<std::uint32_t> devices;
        devices.reserve(pes.size());
        for (const std::size_t pe : pes) devices.push_back(request_.pes[pe].device);
        return devices;
    }

    Bins bins() const {
        Bins out = Bins::of(in_.order.size());
        for (std::size_t i = 0; i < in_.order.size(); ++i) {
            const std::size_t rail = in_.order[i];
            out.rates.push_back(rate_of(request_.rails[rail]));
            if (!request_.used_by_others.empty()) out.load[i] = request_.used_by_others[rail];
            out.half.push_back(!request_.secondary_for_others.empty() && request_.secondary_for_others[rail]);
        }
        return out;
    }

    // A port is at most as fast as its NIC's PCI slot.
    std::uint64_t rate_of(const Rail& rail) const {
        const auto link = rail.location.pci ? in_.machine.pci[*rail.location.pci].link_bits_per_second : 0;
        if (link == 0 || rail.bits_per_second == 0) return rail.bits_per_second;
        return std::min(link, rail.bits_per_second);
    }

    Status too_few() const {
        std::set<std::uint32_t> devices;
        for (const auto& pe : request_.pes) devices.insert(pe.device);
        const bool one = devices.size() == 1;
        return {Code::config,
                fmt::format("NPUSHMEM_NIC_POLICY=exclusive: {} device{} need{} a NIC port each, but {}; start fewer "
                            "PEs, or choose balanced",
                            devices.size(), one ? "" : "s", one ? "s" : "", free_text())};
    }

    // "of this host's 8 ports 5 are free: 1 is down or left out by NPUSHMEM_HCA_LIST, 2 are in use by other jobs".
    std::string free_text() const {
        const auto is = [](std::size_t count) { return fmt::format("{} {}", count, count == 1 ? "is" : "are"); };
        const std::size_t all = request_.rails.size();
        const std::size_t usable = in_.order.size();
        const std::size_t free = free_rails(bins()).size();
        if (free == all) return fmt::format("this host has {}", all);
        std::string why;
        if (usable < all) why = fmt::format("{} down or left out by NPUSHMEM_HCA_LIST", is(all - usable));
        if (free < usable) why += fmt::format("{}{} in use by other jobs", why.empty() ? "" : ", ", is(usable - free));
        return fmt::format("of this host's {} ports {} free: {}", all, is(free), why);
    }

    const DecisionInput& in_;
    const AssignmentRequest& request_;
};

}  // namespace

std::string_view why_no_rails(const Machine& machine) {
    const bool has_none = machine.devices_known && machine.nics.empty();
    return has_none ? "this host has no NIC" : "no transport in use offers a NIC";
}

Result<Decision> decide(const DecisionInput& input) { return Decider(input).run(); }

}  // namespace npushmem::topology
