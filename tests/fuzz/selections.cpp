// SPDX-License-Identifier: BSD-3-Clause
// Lists in environment variables: transports, NICs, rails, policies and failures on request.
#include "core/base/nic_rails.hpp"
#include "core/plugin/transport_stack.hpp"
#include "tests/fuzz/targets.hpp"
#include "topology/policy/nic_variables.hpp"
#include "topology/policy/policies.hpp"
#include "transports/fault/fault_transport.hpp"

namespace npushmem::fuzz {
namespace {

void check_transports(std::string_view text) {
    const auto parsed = parse_transport_selection(text);
    if (!parsed.ok()) return require_message(parsed.status());
    std::string written;
    for (const auto& stack : parsed.value()) {
        for (const auto& layer : stack.layers)
            require(text.substr(layer.position - 1).starts_with(layer.name), "a wrong position of " + layer.name);
        written.append(written.empty() ? "" : ",").append(stack.text());
    }
    const auto again = parse_transport_selection(written);
    require(again.ok(), "a written selection is rejected: " + written);
    require(again.value().size() == parsed.value().size(), "a selection changes: " + written);
    for (std::size_t i = 0; i < parsed.value().size(); ++i)
        require(again.value()[i].text() == parsed.value()[i].text(), "a stack changes: " + written);
}

void check_rails(std::string_view text) {
    const auto entries = parse_nic_rails(text);
    if (!entries.ok()) return require_message(entries.status());
    for (const auto& entry : entries.value()) require(entry.rail <= max_rail, "a rail is out of range: " + entry.text);
    const std::array ports{PortName{"a", 1}, PortName{"a", 2}, PortName{"b", 1}};
    const auto rails = configured_rails(entries.value(), ports);
    require_message(rails.status());
    require(!rails.ok() || rails.value().size() == ports.size(), "a port without an entry of the result");
}

void check_nics(std::string_view text) {
    const std::array rails{topology::Rail{"a", 1, topology::PortState::active, 1, {}},
                           topology::Rail{"a", 2, topology::PortState::active, 1, {}},
                           topology::Rail{"b", 1, topology::PortState::down, 1, {}}};
    const auto list = topology::parse_nic_list(text);
    if (!list.ok()) return require_message(list.status());
    const auto selected = topology::select_rails(list.value(), rails);
    if (!selected.ok()) return require_message(selected.status());
    require(!selected.value().empty(), "a list that selects nothing is accepted");
    for (const std::size_t rail : selected.value()) require(rail < rails.size(), "an index is out of range");
}

void check_mapping(std::string_view text) {
    const std::array rails{topology::Rail{"a", 1, topology::PortState::active, 1, {}},
                           topology::Rail{"b", 1, topology::PortState::active, 1, {}}};
    const std::array<std::size_t, 3> numbers{0, 1, 2};
    const auto mapping = topology::parse_nic_mapping(text);
    if (!mapping.ok()) return require_message(mapping.status());
    for (const bool others : {false, true}) {
        const auto mapped = topology::map_pes(mapping.value(), rails, numbers, others);
        require_message(mapped.status());
        if (!mapped.ok()) continue;
        require(mapped.value().size() == numbers.size(), "a PE without a rail");
        for (const auto& pe : mapped.value())
            require(pe.rail < rails.size() && pe.entry < mapping.value().size(), "an index is out of range");
    }
}

void check_policy(std::string_view text) {
    const auto policy = topology::parse_policy(text);
    require_message(policy.status());
    require(!policy.ok() || topology::parse_policy(topology::name_of(policy.value())).value() == policy.value(),
            "a policy changes");
}

void check_failures(std::string_view text) {
    const auto rules = fault::parse_fail_rules(text);
    require_message(rules.status());
    if (!rules.ok()) return;
    for (const auto& rule : rules.value()) require(rule.call >= 1 && rule.code != Code::ok, "an impossible failure");
}

}  // namespace

// The first byte selects the check.
void selections(Input input) {
    Taker in(input);
    switch (in.byte() % 6) {
        case 0: return check_transports(text_of(in.rest()));
        case 1: return check_rails(text_of(in.rest()));
        case 2: return check_nics(text_of(in.rest()));
        case 3: return check_mapping(text_of(in.rest()));
        case 4: return check_policy(text_of(in.rest()));
        default: return check_failures(text_of(in.rest()));
    }
}

}  // namespace npushmem::fuzz
