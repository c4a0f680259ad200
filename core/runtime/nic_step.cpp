#include "core/runtime/nic_step.hpp"

#include <fmt/core.h>

#include <algorithm>

#include "core/runtime/exchange.hpp"
#include "topology/assign.hpp"
#include "topology/assignment_bytes.hpp"
#include "topology/describe.hpp"
#include "topology/discovery.hpp"
#include "topology/request.hpp"

namespace npushmem {

namespace {

// The transport of a PE that its NICs are for, and what it offers; none has no devices.
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

// A wrong file or variable must not wait for the day on which a transport with NICs is selected.
Status check_settings(const Settings& settings, bool first_of_host) {
    if (Status sound = topology::check_nic_variables(settings); !sound.ok()) return sound;
    if (!first_of_host || settings.topo_file.empty()) return {};
    return topology::machine_of(settings.topo_file, topology::Detail::cpus).status();
}

constexpr std::size_t max_pes_in_text = 16;

}  // namespace

// What a PE tells the others.
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
        processes.push_back(records[static_cast<std::size_t>(pe)].process_id());
    }
    return NicClaims::acquire(settings, machine.value(), wanted, processes, nic_table_place());
}

// What the host's first PE decided for this one, told to the transport.
Status NicStep::apply_own(const NamedTransport& user, std::span<const npushmem_device> devices, Outcome& into) const {
    auto assignment = topology::assignment_from(memory.published());
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
    into.text = topology::describe(assignment.value(), max_pes_in_text);
    return {};
}

Result<NicStep::Outcome> NicStep::run() {
    auto user = find_user(transports);
    if (!user.ok()) return user.status();
    const auto local = layout.pes_of(layout.host_of(my_pe));
    if (Status sound = check_settings(settings, local.front() == my_pe); !sound.ok()) return sound;
    const bool has_nics = user.value().transport != nullptr;
    const auto needs = gather(bootstrap, Need{has_nics ? 1 : 0, static_cast<std::int32_t>(settings.device)});
    if (!needs.ok()) return needs.status();
    const auto needs_nics = [&](int pe) { return needs.value()[static_cast<std::size_t>(pe)].has_nics != 0; };
    if (std::none_of(needs.value().begin(), needs.value().end(), [](const Need& need) { return need.has_nics != 0; }))
        return Outcome{};
    std::vector<int> users;
    std::copy_if(local.begin(), local.end(), std::back_inserter(users), needs_nics);
    Outcome out;
    if (!users.empty() && users.front() == my_pe) {
        auto chosen = assign(users, needs.value(), user.value().devices);
        if (!chosen.ok()) return chosen.status();
        out.claims = std::move(chosen.value().claims);
        out.warning = std::move(chosen.value().warning);
        if (Status posted = memory.publish(topology::to_bytes(chosen.value().assignment)); !posted.ok()) return posted;
    }
    if (Status met = bootstrap.barrier(); !met.ok()) return met;
    if (has_nics)
        if (Status taken = apply_own(*user.value().transport, user.value().devices, out); !taken.ok()) return taken;
    return out;
}

}  // namespace npushmem
