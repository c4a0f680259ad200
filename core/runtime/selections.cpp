// SPDX-License-Identifier: BSD-3-Clause
#include "core/runtime/selections.hpp"

#include <fmt/core.h>

#include <algorithm>

#include "core/base/parse.hpp"
#include "core/base/version.hpp"

namespace npushmem {

std::string describe(const BootstrapSelection& selection) {
    return selection.why.empty() ? selection.name : fmt::format("{} ({})", selection.name, selection.why);
}

std::string describe(const JobReport& job) {
    const std::size_t hosts = job.host_names.size();
    std::string text =
        fmt::format("npushmem {}.{}.{}: {} PEs on {} host{} ({}{}), symmetric heap {} each\n", library_version.major,
                    library_version.minor, library_version.patch, job.pes, hosts, hosts == 1 ? "" : "s",
                    name_of(job.distribution), job.even ? "" : ", uneven", format_size(job.heap_bytes));
    text += job.standard;
    text += fmt::format("static data: {}\n", job.static_data);
    text += fmt::format("bootstrap: {}\n", describe(job.bootstrap));
    if (!job.between_hosts.empty()) text += fmt::format("between hosts: {}\n", job.between_hosts);
    if (job.kernels) text += fmt::format("kernels: {}\n", job.kernels->text);
    if (!job.collectives.empty()) text += fmt::format("collectives: {}\n", job.collectives);
    text += fmt::format("barrier: {} ({})\n", name_of(job.barrier.plan), job.barrier.why);
    return text + fmt::format("waiting: {}\n", job.waiting);
}

namespace {

std::string pci_address_of(std::span<const npushmem_device> devices, const topology::NicChoice& nic) {
    const auto found = std::find_if(devices.begin(), devices.end(), [&](const npushmem_device& device) {
        return device.name == nic.nic && device.port == nic.port;
    });
    return found == devices.end() ? std::string() : std::string(found->pci_address);
}

}  // namespace

PeNics nics_of(const HostNics& host, int pe, const NicSubject& subject) {
    PeNics out;
    if (!host.in_use) {
        out.is_known = true;
        out.why = "no transport in use drives a NIC";
        return out;
    }
    const auto& pes = host.assignment.pes;
    const auto found =
        std::find_if(pes.begin(), pes.end(), [&](const auto& one) { return one.pe == static_cast<std::uint32_t>(pe); });
    if (found != pes.end()) {
        out = {true, host.transport, found->device, found->reason, {}};
        for (const auto& nic : found->nics) out.nics.push_back({nic, pci_address_of(host.devices, nic)});
        return out;
    }
    if (subject.other_host) {
        out.why =
            fmt::format("PE {} runs on another host ({}), whose PEs alone know their NICs", pe, subject.host_name);
        return out;
    }
    // Without an assignment this PE knows only that its own transports drive none.
    out.is_known = pe == subject.my_pe || !host.transport.empty();
    out.why = out.is_known ? fmt::format("no transport of PE {} drives a NIC", pe)
                           : fmt::format("no transport of PE {} drives a NIC, so it does not know those of PE {}",
                                         subject.my_pe, pe);
    return out;
}

}  // namespace npushmem
