// SPDX-License-Identifier: BSD-3-Clause
// Annotations of topology files: rates and states of ports, sites of NPUs, and groups of linked NPUs.
#include "tests/fuzz/targets.hpp"
#include "topology/machine/annotations.hpp"
#include "transports/hccs/links.hpp"

namespace npushmem::fuzz {
namespace {

void check_rate(std::string_view text) {
    const auto rate = topology::parse_port_rate(text);
    if (!rate.ok()) return require_message(rate.status());
    const auto again = topology::parse_port_rate(topology::rate_text_of(rate.value()));
    require(again.ok() && again.value() == rate.value(),
            "a rate changes by formatting and parsing: " + std::to_string(rate.value()));
}

void check_state(std::string_view text) {
    const auto state = topology::parse_port_state(text);
    if (!state.ok()) return require_message(state.status());
    require(topology::parse_port_state(topology::state_text(state.value())).value() == state.value(),
            "a state changes");
}

// Each line places NPUs at the site of its number.
void check_sites(Taker& in) {
    topology::NpuSites sites;
    for (std::size_t line = 0; !in.empty(); ++line) {
        const Status placed = sites.place(in.line(), {line, std::nullopt});
        if (!placed.ok()) return require_message(placed);
    }
    require_message(sites.sites().status());
}

void check_links(std::string_view text) {
    const auto links = hccs::Links::parse(text);
    if (!links.ok()) return require_message(links.status());
    for (const int npu : {0, 1, 7, 8, 100}) {
        const auto path = links.value().between(0, npu);
        require_message(path.status());
        if (!path.ok()) continue;
        const bool together = links.value().group_of(0) == links.value().group_of(npu);
        require((path.value().kind == hccs::LinkKind::switched) != together, "a wrong kind of link");
    }
}

void check_failed_links(std::string_view text) {
    const auto failed = hccs::parse_failed_links(text);
    if (!failed.ok()) return require_message(failed.status());
    for (const auto& link : failed.value()) require(link.low <= link.high && link.low >= 0, "a link in wrong order");
}

}  // namespace

// The first byte selects the check.
void topology(Input input) {
    Taker in(input);
    switch (in.byte() % 5) {
        case 0: return check_rate(text_of(in.rest()));
        case 1: return check_state(text_of(in.rest()));
        case 2: return check_sites(in);
        case 3: return check_links(text_of(in.rest()));
        default: return check_failed_links(text_of(in.rest()));
    }
}

}  // namespace npushmem::fuzz
