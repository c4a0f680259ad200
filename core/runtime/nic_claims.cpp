#include "core/runtime/nic_claims.hpp"

#include <fmt/core.h>
#include <unistd.h>

#include <utility>

#include "core/base/os_facts.hpp"
#include "topology/describe.hpp"
#include "topology/discovery.hpp"

namespace npushmem {

namespace {

// Longer than any assignment takes, shorter than anybody waits for a start.
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

Result<std::string> preview_nics(const Settings& settings, const std::vector<int>& pes, std::size_t max_described) {
    auto machine = topology::machine_of(settings.topo_file);
    if (!machine.ok()) return machine.status();
    auto choices = preview_nics(settings, machine.value(), pes);
    if (!choices.ok()) return choices.status();
    return topology::describe(choices.value().assignment, max_described);
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

}  // namespace npushmem
