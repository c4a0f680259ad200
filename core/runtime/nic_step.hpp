// The step of start-up that gives every PE its NICs: collective over the job, decided once per host.
#pragma once

#include <span>
#include <string>

#include "core/base/settings.hpp"
#include "core/map/host_layout.hpp"
#include "core/map/transport_map.hpp"
#include "core/memory/host_memory.hpp"
#include "core/runtime/nic_claims.hpp"
#include "core/runtime/pe_record.hpp"
#include "npushmem/plugin/bootstrap.hpp"

namespace npushmem {

// What the step works on; everything referred to outlives it.
struct NicStep {
    const Settings& settings;
    Bootstrap& bootstrap;
    HostMemory& memory;
    const HostLayout& layout;
    std::span<const NamedTransport> transports;
    std::span<const PeRecord> records;  // of all PEs
    int my_pe;

    struct Outcome {
        std::string text;     // the host's assignment; empty when this PE needs no NIC
        NicClaims claims;     // held by the PE that assigned
        std::string warning;  // empty: none
    };

    // The first PE of each host among those whose transports have NICs looks at the machine, assigns, and posts the
    // result in the host's memory; the others read it there. Each tells its transport which NICs to use: the first
    // transport that has any is the one they are for. Where no PE's transports have NICs nobody looks at the machine,
    // but what the user said about NICs is checked nevertheless.
    Result<Outcome> run();

private:
    struct Need;
    Status apply_own(const NamedTransport& user, std::span<const npushmem_device> devices, Outcome& into) const;
    Result<NicClaims::Outcome> assign(const std::vector<int>& users, const std::vector<Need>& needs,
                                      std::span<const npushmem_device> devices) const;
};

}  // namespace npushmem
