// SPDX-License-Identifier: BSD-3-Clause
#include "core/runtime/nic_assignment.hpp"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <numeric>
#include <set>
#include <utility>

#include "core/base/hash.hpp"
#include "core/runtime/start_exchange.hpp"
#include "topology/machine/discovery.hpp"
#include "topology/policy/assign.hpp"
#include "topology/policy/assignment.hpp"
#include "topology/policy/decision.hpp"

namespace npushmem {

namespace {

std::vector<std::optional<std::uint32_t>> requested_npus(const NicRequest& wanted) {
    return wanted.npus.empty() ? std::vector<std::optional<std::uint32_t>>(wanted.pes.size()) : wanted.npus;
}

// The number of NICs per device when all of the host's devices work, now or later, for any job: NICs that an earlier
// job took cannot be given to the next one.
std::size_t fair_share(const topology::Machine& machine, std::size_t rails, std::span<const std::uint32_t> numbers,
                       std::span<const topology::NicClaim> others) {
    std::set<std::uint32_t> npus(numbers.begin(), numbers.end());
    for (const auto& claim : others) npus.insert(claim.number);
    const std::size_t devices = std::max({machine.accelerators.size(), npus.size(), std::size_t{1}});
    return std::max<std::size_t>(1, rails / devices);
}

// Returns the rails in the machine's order, which is the same on hosts that are built alike, whatever order a transport
// lists them in.
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
    // NVSHMEM's algorithm has its own limit.
    const bool limits_itself = request.policy == topology::Policy::nearest && !request.enable_nic_pe_mapping;
    if (settings.nics_per_pe > 0)
        request.max_nics_per_pe = static_cast<std::size_t>(settings.nics_per_pe);
    else if (!limits_itself)
        request.max_nics_per_pe = fair_share(machine, request.rails.size(), numbers, others);
    auto assignment = topology::assign(machine, request);
    if (!assignment.ok()) return assignment.status();
    return NicChoices{std::move(assignment).value(), std::move(places)};
}

namespace {

// Longer than any assignment takes, shorter than users wait for a start.
constexpr std::chrono::seconds lock_timeout{5};

std::uint64_t job_of(std::span<const ProcessId> processes) {
    return hash_bytes(fmt::format("{} {}", processes.front().pid, processes.front().start));
}

std::string device_of(const topology::Machine& machine, const topology::DevicePlace& place) {
    return place.location.pci ? machine.pci[*place.location.pci].address : std::string();
}

std::vector<HostTableRow> rows_of(const NicChoices& choices, const topology::Machine& machine, std::uint64_t key,
                                  std::span<const ProcessId> processes) {
    std::vector<HostTableRow> rows;
    for (std::size_t i = 0; i < choices.places.size(); ++i) {
        const auto& pe = choices.assignment.pes[i];
        for (const auto& nic : pe.nics)
            rows.push_back(topology::to_row({processes[i], job_of(processes), key, pe.pe, choices.places[i].number,
                                             device_of(machine, choices.places[i]), nic.nic, nic.port,
                                             &nic == pe.nics.data(), nic.distance}));
    }
    return rows;
}

}  // namespace

HostTablePlace nic_table_place() { return {"/dev/shm", "npushmem-nics"}; }

std::vector<topology::NicClaim> all_nic_claims() {
    std::vector<topology::NicClaim> claims;
    for (const auto& row : peek_host_tables(nic_table_place())) {
        if (auto claim = topology::claim_from(row)) claims.push_back(std::move(*claim));
    }
    return claims;
}

Result<NicChoices> preview_nics(const Settings& settings, const topology::Machine& machine,
                                const std::vector<int>& pes) {
    std::vector<topology::NicClaim> others;
    if (settings.nic_arbitration)
        others = topology::claims_of_others(peek_host_tables(nic_table_place()),
                                            topology::machine_key(machine, settings.emulated_host), 0);
    return choose_nics(settings, machine, {pes, {}, {}}, others);
}

Result<topology::Assignment> preview_nics(const Settings& settings, const std::vector<int>& pes) {
    auto machine = topology::machine_of(settings.topo_file);
    if (!machine.ok()) return machine.status();
    auto choices = preview_nics(settings, machine.value(), pes);
    if (!choices.ok()) return choices.status();
    return std::move(choices.value().assignment);
}

NicClaims::NicClaims(HostTablePlace place, std::uint64_t job)
    : place_(std::move(place)), job_(job), owner_(::getpid()) {}

NicClaims::NicClaims(NicClaims&& other) noexcept
    : place_(std::move(other.place_)), job_(std::exchange(other.job_, 0)), owner_(other.owner_) {}

NicClaims& NicClaims::operator=(NicClaims&& other) noexcept {
    std::swap(place_, other.place_);
    std::swap(job_, other.job_);
    std::swap(owner_, other.owner_);
    return *this;
}

NicClaims::~NicClaims() {
    if (job_ == 0 || owner_ != ::getpid()) return;
    auto table = HostTable::lock(place_, lock_timeout);
    if (table.ok()) table.value().remove(job_);
}

Result<NicClaims::Outcome> NicClaims::acquire(const Settings& settings, const topology::Machine& machine,
                                              const NicRequest& wanted, std::span<const ProcessId> processes,
                                              const HostTablePlace& place) {
    auto table = settings.nic_arbitration ? HostTable::lock(place, lock_timeout)
                                          : Result<HostTable>(Status{Code::state, "NPUSHMEM_NIC_ARBITRATION is off"});
    const std::uint64_t job = job_of(processes);
    const std::uint64_t key = topology::machine_key(machine, settings.emulated_host);
    std::vector<topology::NicClaim> others;
    if (table.ok()) others = topology::claims_of_others(peek_host_tables(place), key, job);
    auto chosen = choose_nics(settings, machine, wanted, others);
    if (!chosen.ok()) return chosen.status();
    const Status claimed =
        table.ok() ? table.value().add(rows_of(chosen.value(), machine, key, processes)) : table.status();
    Outcome out{std::move(chosen.value().assignment), {}, {}};
    if (claimed.ok()) out.claims = NicClaims(place, job);
    if (!claimed.ok() && settings.nic_arbitration)
        out.warning = fmt::format(
            "NICs are assigned without regard to other jobs on this host: {} (silence this with "
            "NPUSHMEM_NIC_ARBITRATION=0)",
            claimed.message());
    if (!claimed.ok()) out.assignment.notes.push_back("other jobs on this host are not seen: " + claimed.message());
    return out;
}

namespace {

// The transport of a PE that gets its NICs, with its devices; a PE without one has none.
struct NicUser {
    const NamedTransport* transport = nullptr;
    std::vector<npushmem_device> devices;
};

Result<NicUser> find_user(std::span<const NamedTransport> transports) {
    for (const auto& named : transports) {
        auto listed = named.transport->devices();
        if (!listed.ok()) return listed.status().within(fmt::format("transport {}", named.name));
        if (!listed.value().empty()) return NicUser{&named, std::move(listed).value()};
    }
    return NicUser{};
}

// Reports a wrong file or variable now, not only when a transport with NICs is selected.
Status check_settings(const Settings& settings, bool first_of_host) {
    if (Status sound = topology::check_nic_variables(settings); !sound.ok()) return sound;
    if (!first_of_host || settings.topo_file.empty()) return {};
    return topology::machine_of(settings.topo_file).status();
}

}  // namespace

// The record that a PE sends to the others.
struct NicStep::Need {
    std::int32_t has_nics = 0;
    std::int32_t npu = -1;  // as NPUSHMEM_DEVICE
};

Result<NicClaims::Outcome> NicStep::assign(const std::vector<int>& users, const std::vector<Need>& needs,
                                           std::span<const npushmem_device> devices) const {
    auto machine = topology::machine_of(settings.topo_file);
    if (!machine.ok()) return machine.status();
    NicRequest wanted{users, {}, devices};
    std::vector<ProcessId> processes;
    for (const int pe : users) {
        const auto npu = needs[static_cast<std::size_t>(pe)].npu;
        wanted.npus.push_back(npu < 0 ? std::nullopt : std::optional(static_cast<std::uint32_t>(npu)));
        // Other jobs see this PE's process, but not that of a PE in another PID namespace.
        const bool is_visible = pes.traits(my_pe).sees_process_of(pes.traits(pe));
        processes.push_back(pes.process(is_visible ? pe : my_pe));
    }
    return NicClaims::acquire(settings, machine.value(), wanted, processes, nic_table_place());
}

// Passes the NICs that the host's first PE assigned to this one on to the transport.
Status NicStep::apply_own(const NamedTransport& user, std::span<const npushmem_device> devices, Outcome& into) const {
    auto assignment = topology::assignment_from(memory.published(HostMemory::Publication::nics));
    if (!assignment.ok()) return assignment.status();
    auto& pes = assignment.value().pes;
    const auto own = std::find_if(pes.begin(), pes.end(),
                                  [&](const auto& pe) { return pe.pe == static_cast<std::uint32_t>(my_pe); });
    if (own == pes.end())
        return {Code::protocol, fmt::format("the host's NIC assignment does not contain PE {}", my_pe)};
    auto indices = topology::device_indices(*own, devices);
    if (!indices.ok()) return indices.status();
    const Status used = user.transport->use_devices(indices.value());
    if (!used.ok()) return used.within(fmt::format("transport {}", user.name));
    into.nics.transport = user.name;
    into.nics.assignment = std::move(assignment).value();
    into.nics.devices.assign(devices.begin(), devices.end());
    return {};
}

Result<NicStep::Outcome> NicStep::run() {
    auto user = find_user(transports);
    if (!user.ok()) return user.status();
    const auto local = layout.pes_of(layout.host_of(my_pe));
    if (Status sound = check_settings(settings, local.at(0) == my_pe); !sound.ok()) return sound;
    if (!may_be_needed) return Outcome{};
    const bool has_nics = user.value().transport != nullptr;
    const auto needs = gather(bootstrap, Need{has_nics ? 1 : 0, static_cast<std::int32_t>(settings.device)});
    if (!needs.ok()) return needs.status();
    const auto needs_nics = [&](int pe) { return needs.value()[static_cast<std::size_t>(pe)].has_nics != 0; };
    if (std::none_of(needs.value().begin(), needs.value().end(), [](const Need& need) { return need.has_nics != 0; }))
        return Outcome{};
    std::vector<int> users;
    std::ranges::copy_if(local, std::back_inserter(users), needs_nics);
    Outcome out;
    out.nics.in_use = true;
    if (!users.empty() && users.front() == my_pe) {
        auto chosen = assign(users, needs.value(), user.value().devices);
        if (!chosen.ok()) return chosen.status();
        out.claims = std::move(chosen.value().claims);
        out.warning = std::move(chosen.value().warning);
        if (Status posted =
                memory.publish(HostMemory::Publication::nics, topology::to_bytes(chosen.value().assignment));
            !posted.ok())
            return posted;
    }
    if (Status done = bootstrap.barrier(); !done.ok()) return done;
    if (has_nics)
        if (Status taken = apply_own(*user.value().transport, user.value().devices, out); !taken.ok()) return taken;
    return out;
}

}  // namespace npushmem
