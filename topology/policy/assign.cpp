// SPDX-License-Identifier: BSD-3-Clause
#include "topology/policy/assign.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/nic_rails.hpp"
#include "topology/policy/assignment.hpp"
#include "topology/policy/decision.hpp"
#include "topology/policy/nic_variables.hpp"

namespace npushmem::topology {
namespace {

Distance distance_to(const Machine& machine, const DevicePlace& pe, const Rail& rail) {
    Distance out = distance(machine, pe.location, rail.location);
    narrow(out.bits_per_second, rail.bits_per_second);
    return out;
}

bool is_known(const Location& location) { return location.pci || location.numa; }

class Assigner {
public:
    Assigner(const Machine& machine, const AssignmentRequest& request) : machine_(machine), request_(request) {}

    Result<Assignment> run() {
        if (auto sound = check_request(); !sound.ok()) return sound;
        if (auto read = read_rail_numbers(); !read.ok()) return read;
        auto candidates = usable_rails(request_);
        if (!candidates.ok()) return candidates.status();
        candidates_ = std::move(candidates).value();
        const auto machine_order = in_machine_order(machine_, request_.rails, candidates_.rails);
        order_ = candidates_.in_users_order ? candidates_.rails : machine_order;
        measure();
        auto decision = decide({machine_, request_, candidates_, order_, machine_order, distances_});
        if (!decision.ok()) return decision.status();
        return to_assignment(decision.value());
    }

private:
    void measure() {
        for (const auto& pe : request_.pes) {
            auto& row = distances_.emplace_back();
            for (const auto& rail : request_.rails) row.push_back(distance_to(machine_, pe, rail));
        }
    }

    Status read_rail_numbers() {
        auto numbers = rail_numbers(request_.rails, request_.nic_rails);
        if (!numbers.ok()) return numbers.status();
        rail_numbers_ = std::move(numbers).value();
        return {};
    }

    Status check_request() {
        if (request_.max_nics_per_pe == 0) return {Code::argument, "a PE must be allowed at least one NIC"};
        if (!request_.pe_numbers.empty() && request_.pe_numbers.size() != request_.pes.size()) {
            return {Code::argument, fmt::format("{} PE numbers were given for {} PEs", request_.pe_numbers.size(),
                                                request_.pes.size())};
        }
        if (!request_.used_by_others.empty() && request_.used_by_others.size() != request_.rails.size()) {
            return {Code::argument, fmt::format("the load of {} NIC ports was given for {} ports",
                                                request_.used_by_others.size(), request_.rails.size())};
        }
        return check_variables();
    }

    // A malformed mapping is an error even without effect, so that enabling it later causes no surprise.
    Status check_variables() {
        if (request_.hca_pe_mapping.empty()) return {};
        if (const auto mapping = parse_nic_mapping(request_.hca_pe_mapping); !mapping.ok()) return mapping.status();
        if (!request_.enable_nic_pe_mapping) {
            notes_.emplace_back("NPUSHMEM_HCA_PE_MAPPING has no effect, because NPUSHMEM_ENABLE_NIC_PE_MAPPING is off");
            return {};
        }
        if (request_.hca_list.empty()) return {};
        return {Code::config,
                fmt::format("NPUSHMEM_HCA_LIST \"{}\" and NPUSHMEM_HCA_PE_MAPPING \"{}\" exclude each other; unset one",
                            request_.hca_list, request_.hca_pe_mapping)};
    }

    std::uint32_t number_of(std::size_t pe) const {
        return request_.pe_numbers.empty() ? static_cast<std::uint32_t>(pe) : request_.pe_numbers[pe];
    }

    Assignment to_assignment(const Decision& decision) const {
        Assignment out{decision.method, {}, candidates_.notes};
        out.notes.insert(out.notes.end(), notes_.begin(), notes_.end());
        const auto users = users_of_rails(decision);
        for (std::size_t pe = 0; pe < request_.pes.size(); ++pe) {
            PeAssignment entry{number_of(pe), request_.pes[pe].why, {}, {}};
            for (const std::size_t rail : decision.rails[pe]) entry.nics.push_back(to_choice(pe, rail, users[rail]));
            entry.reason = entry.nics.empty() ? std::string(why_no_rails(machine_))
                                              : reason_of(entry.nics, facts_of(pe, decision));
            out.pes.push_back(std::move(entry));
        }
        return out;
    }

    std::vector<std::vector<std::size_t>> users_of_rails(const Decision& decision) const {
        std::vector<std::vector<std::size_t>> users(request_.rails.size());
        for (std::size_t pe = 0; pe < decision.rails.size(); ++pe) {
            for (const std::size_t rail : decision.rails[pe]) users[rail].push_back(pe);
        }
        return users;
    }

    NicChoice to_choice(std::size_t pe, std::size_t index, const std::vector<std::size_t>& users) const {
        const auto& rail = request_.rails[index];
        NicChoice out{rail.nic,
                      rail.port,
                      static_cast<std::uint32_t>(index),
                      rail_numbers_[index],
                      class_between(pe, index),
                      rail.bits_per_second,
                      {},
                      others_on(index)};
        for (const std::size_t other : users) {
            if (other != pe) out.shared_with.push_back(number_of(other));
        }
        return out;
    }

    std::uint32_t others_on(std::size_t rail) const {
        return request_.used_by_others.empty() ? 0 : static_cast<std::uint32_t>(request_.used_by_others[rail]);
    }

    DistanceClass class_between(std::size_t pe, std::size_t rail) const { return distances_[pe][rail].distance_class; }

    ReasonFacts facts_of(std::size_t pe, const Decision& decision) const {
        const std::size_t first = decision.rails[pe].front();
        const auto own = class_between(pe, first);
        ReasonFacts facts;
        facts.decided_by = decision.decided_by[pe];
        facts.place_known = is_known(request_.pes[pe].location) && is_known(request_.rails[first].location);
        facts.equally_near =
            static_cast<std::size_t>(std::count_if(candidates_.rails.begin(), candidates_.rails.end(),
                                                   [&](std::size_t rail) { return class_between(pe, rail) == own; }));
        facts.nearer = nearer_than(pe, own);
        return facts;
    }

    // The nearest usable rail of a better class than `own`.
    std::string nearer_than(std::size_t pe, DistanceClass own) const {
        auto best = own;
        std::string text;
        for (const std::size_t rail : order_) {
            const auto other = class_between(pe, rail);
            if (other >= best) continue;
            best = other;
            text = fmt::format("{} ({})", name_of(request_.rails[rail]), name_of(other));
        }
        return text;
    }

    const Machine& machine_;
    const AssignmentRequest& request_;
    Candidates candidates_;
    std::vector<std::size_t> order_;                // of the candidates: the user's, or else the machine's
    std::vector<std::vector<Distance>> distances_;  // [PE][rail of the request]
    std::vector<std::uint32_t> rail_numbers_;       // of the request's rails
    std::vector<std::string> notes_;
};

}  // namespace

Result<Assignment> assign(const Machine& machine, const AssignmentRequest& request) {
    return Assigner(machine, request).run();
}

Result<std::vector<std::uint32_t>> device_indices(const PeAssignment& pe, std::span<const npushmem_device> devices) {
    const auto offered = rails_of(Machine{}, devices);
    std::vector<std::uint32_t> indices;
    for (const auto& nic : pe.nics) {
        const auto found = std::find_if(offered.begin(), offered.end(), [&](const Rail& rail) {
            return rail.nic == nic.nic && rail.port == nic.port && rail.state != PortState::down;
        });
        if (found == offered.end()) {
            return Status{
                Code::system,
                fmt::format("NIC {} was assigned to PE {}, but the transport no longer offers it as active; check "
                            "its link, or exclude it with NPUSHMEM_HCA_LIST=^{}",
                            name_of(nic), pe.pe, name_of(nic))};
        }
        indices.push_back(static_cast<std::uint32_t>(found - offered.begin()));
    }
    return indices;
}

Result<AssignmentRequest> request_from(const Settings& settings, std::vector<DevicePlace> pes,
                                       std::vector<Rail> rails) {
    const auto policy = parse_policy(settings.nic_policy);
    if (!policy.ok()) return policy.status().within("NPUSHMEM_NIC_POLICY");
    AssignmentRequest request;
    request.pes = std::move(pes);
    request.rails = std::move(rails);
    request.policy = policy.value();
    request.enable_nic_pe_mapping = settings.enable_nic_pe_mapping;
    request.hca_list = settings.hca_list;
    request.hca_pe_mapping = settings.hca_pe_mapping;
    request.nic_rails = settings.nic_rails;
    return request;
}

Status check_nic_variables(const Settings& settings) {
    if (const auto rails = parse_nic_rails(settings.nic_rails); !rails.ok()) return rails.status();
    if (!settings.hca_list.empty()) {
        if (const auto list = parse_nic_list(settings.hca_list); !list.ok()) return list.status();
    }
    if (settings.hca_pe_mapping.empty()) return {};
    return parse_nic_mapping(settings.hca_pe_mapping).status();
}

}  // namespace npushmem::topology
