// SPDX-License-Identifier: BSD-3-Clause
#include "topology/machine/annotations.hpp"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <optional>

#include "core/base/parse.hpp"

namespace npushmem::topology {
namespace {

constexpr std::size_t max_npus = 65536;
constexpr double max_gigabits = 1e6;
constexpr unsigned active = 4;  // InfiniBand's number for a port that carries data
constexpr unsigned down = 1;

// A non-negative number without trailing characters.
template <class Number>
std::optional<Number> whole_number(std::string_view text) {
    Number number{};
    const auto parsed = std::from_chars(text.data(), text.data() + text.size(), number);
    const bool whole = parsed.ec == std::errc{} && parsed.ptr == text.data() + text.size();
    return whole && number >= 0 ? std::optional(number) : std::nullopt;
}

Status npu_error(std::string_view what) { return {Code::config, fmt::format("{}: {}", npus_annotation, what)}; }

}  // namespace

std::string state_annotation(unsigned port) { return fmt::format("Port{}State", port); }
std::string rate_annotation(unsigned port) { return fmt::format("Port{}Rate", port); }

Result<PortState> parse_port_state(std::string_view text) {
    const auto state = whole_number<unsigned>(text);
    if (!state) return Status{Code::config, fmt::format("\"{}\" is not a port state number", text)};
    return *state == active ? PortState::active : PortState::down;
}

Result<std::uint64_t> parse_port_rate(std::string_view text) {
    const auto rate = whole_number<double>(text);
    if (rate && *rate <= max_gigabits) return static_cast<std::uint64_t>(std::llround(*rate * 1e9));
    return Status{Code::config, fmt::format("\"{}\" is not a number of gigabits per second", text)};
}

std::string state_text(PortState state) { return fmt::format("{}", state == PortState::active ? active : down); }

std::string rate_text_of(std::uint64_t bits_per_second) {
    return fmt::format("{}", static_cast<double>(bits_per_second) / 1e9);
}

Status NpuSites::place(std::string_view text, const NpuSite& site) {
    for (const auto& part : split(text, ',')) {
        const auto number = whole_number<std::size_t>(part);
        if (!number || *number >= max_npus) return npu_error(fmt::format("\"{}\" is not an NPU number", part));
        if (!sites_.emplace(*number, site).second) return npu_error(fmt::format("NPU {} is placed twice", *number));
    }
    return {};
}

Result<std::vector<NpuSite>> NpuSites::sites() const {
    std::vector<NpuSite> out;
    for (const auto& [number, site] : sites_) {
        if (number != out.size()) return npu_error(fmt::format("NPU {} is placed, but not NPU {}", number, out.size()));
        out.push_back(site);
    }
    return out;
}

}  // namespace npushmem::topology
