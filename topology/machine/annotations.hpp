// SPDX-License-Identifier: BSD-3-Clause
// Attributes of a topology file that are ours, parsed and checked. discovery.hpp lists them.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "npushmem/plugin/status.hpp"
#include "topology/machine/machine.hpp"

namespace npushmem::topology {

constexpr std::string_view npus_annotation = "NpushmemNpus";

// The names of a port's attributes: "Port1State", "Port1Rate".
std::string state_annotation(unsigned port);
std::string rate_annotation(unsigned port);

// Both fail with Code::config for text that is not a number; the message quotes the text.
Result<PortState> parse_port_state(std::string_view text);
Result<std::uint64_t> parse_port_rate(std::string_view text);  // gigabits per second; returns bits

// The inverse of the parsers, for a known state and for a rate other than 0.
std::string state_text(PortState state);
std::string rate_text_of(std::uint64_t bits_per_second);

// Collects the sites of emulated NPUs, in any order.
class NpuSites {
public:
    // `text`: numbers, separated by commas. Fails with Code::config for a malformed number and for an NPU that already
    // has a site.
    Status place(std::string_view text, const NpuSite& site);
    // By number. Fails with Code::config when a number below the largest has no site.
    [[nodiscard]] Result<std::vector<NpuSite>> sites() const;

private:
    std::map<std::size_t, NpuSite> sites_;
};

}  // namespace npushmem::topology
