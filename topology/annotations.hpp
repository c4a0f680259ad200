// What a topology file says beyond what hwloc itself writes: values of attributes, checked. See discovery.hpp for the
// list.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "npushmem/plugin/status.hpp"
#include "topology/accelerator.hpp"
#include "topology/nic.hpp"

namespace npushmem::topology {

constexpr std::string_view npus_annotation = "NpushmemNpus";

// The names of a port's attributes: "Port1State", "Port1Rate".
std::string state_annotation(unsigned port);
std::string rate_annotation(unsigned port);

// Both fail with Code::config on what is no number; the message has the text.
Result<PortState> parse_port_state(std::string_view text);
Result<std::uint64_t> parse_port_rate(std::string_view text);  // gigabits per second; gives bits

// The texts that these read; of a known state, and of a rate other than 0.
std::string state_text(PortState state);
std::string rate_text_of(std::uint64_t bits_per_second);

// Collects where emulated NPUs are placed, in whatever order the file says it.
class NpuSites {
public:
    // `text`: numbers, separated by commas. Fails with Code::config when one is none, or is placed already.
    Status place(std::string_view text, const NpuSite& site);
    // By number. Fails with Code::config when a number below the largest is not placed.
    [[nodiscard]] Result<std::vector<NpuSite>> sites() const;

private:
    std::map<std::size_t, NpuSite> sites_;
};

}  // namespace npushmem::topology
