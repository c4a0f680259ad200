#include "core/runtime/nic_choice.hpp"

#include <algorithm>
#include <numeric>
#include <set>

#include "topology/assign.hpp"
#include "topology/candidates.hpp"
#include "topology/request.hpp"

namespace npushmem {

namespace {

std::vector<std::optional<std::uint32_t>> requested_npus(const NicRequest& wanted) {
    return wanted.npus.empty() ? std::vector<std::optional<std::uint32_t>>(wanted.pes.size()) : wanted.npus;
}

// What the host's devices get when all of them work, now or later, for whatever job: NICs that were taken by a job that
// came first cannot be given to the next one.
std::size_t fair_share(const topology::Machine& machine, std::size_t rails, std::span<const std::uint32_t> numbers,
                       std::span<const topology::NicClaim> others) {
    std::set<std::uint32_t> npus(numbers.begin(), numbers.end());
    for (const auto& claim : others) npus.insert(claim.number);
    const std::size_t devices = std::max({machine.accelerators.size(), npus.size(), std::size_t{1}});
    return std::max<std::size_t>(1, rails / devices);
}

// In the machine's order, in which hosts that are built alike number their NICs alike, however a transport lists them.
std::vector<topology::Rail> ordered_rails(const topology::Machine& machine, const NicRequest& wanted) {
    const auto rails =
        wanted.devices.empty() ? topology::rails_of(machine) : topology::rails_of(machine, wanted.devices);
    std::vector<std::size_t> order(rails.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::vector<topology::Rail> out;
    for (const std::size_t rail : topology::in_machine_order(machine, rails, std::move(order)))
        out.push_back(rails[rail]);
    return out;
}

bool any_named(const NicRequest& wanted) {
    return std::any_of(wanted.npus.begin(), wanted.npus.end(), [](const auto& npu) { return npu.has_value(); });
}

}  // namespace

Result<NicChoices> choose_nics(const Settings& settings, const topology::Machine& machine, const NicRequest& wanted,
                               std::span<const topology::NicClaim> others) {
    auto rails = ordered_rails(machine, wanted);
    const auto numbers = topology::npu_numbers(requested_npus(wanted), others);
    auto places = topology::place_emulated(machine, numbers);
    auto made = topology::request_from(settings, places, std::move(rails));
    if (!made.ok()) return made.status();
    auto& request = made.value();
    request.pe_numbers.assign(wanted.pes.begin(), wanted.pes.end());
    request.numbers_of_host = any_named(wanted) || !others.empty();
    auto use = topology::use_of(others, request.rails);
    request.used_by_others = std::move(use.first_users);
    request.secondary_for_others = std::move(use.further);
    // NVSHMEM's algorithm has a limit of its own.
    const bool limits_itself = request.policy == topology::Policy::nearest && !request.enable_nic_pe_mapping;
    if (settings.nics_per_pe > 0)
        request.max_nics_per_pe = static_cast<std::size_t>(settings.nics_per_pe);
    else if (!limits_itself)
        request.max_nics_per_pe = fair_share(machine, request.rails.size(), numbers, others);
    auto assignment = topology::assign(machine, request);
    if (!assignment.ok()) return assignment.status();
    return NicChoices{std::move(assignment).value(), std::move(places)};
}

}  // namespace npushmem
