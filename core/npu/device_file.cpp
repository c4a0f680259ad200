// SPDX-License-Identifier: BSD-3-Clause
#include "core/npu/device_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>

#include "core/base/parse.hpp"
#include "core/base/streams.hpp"
#include "npushmem/npu/device_config.hpp"

namespace npushmem::npu {
namespace {

// An integer of DeviceConfig. A multiple of `unit`; or, if `unit` is 0, a power of two.
struct Limit {
    const char* name;
    std::int64_t (*get)(const DeviceConfig&);
    void (*set)(DeviceConfig&, std::int64_t);
    std::int64_t low;
    std::int64_t high;
    std::int64_t unit;
    const char* meaning;
};

constexpr std::int64_t number(auto value) { return static_cast<std::int64_t>(value); }

template <auto member>
constexpr Limit field(const char* name, std::int64_t low, std::int64_t high, std::int64_t unit, const char* meaning) {
    return {name,
            [](const DeviceConfig& device) { return number(device.*member); },
            [](DeviceConfig& device, std::int64_t value) {
                device.*member = static_cast<std::remove_reference_t<decltype(device.*member)>>(value);
            },
            low,
            high,
            unit,
            meaning};
}

template <auto member>
constexpr Limit rule(const char* name, std::int64_t low, std::int64_t high, std::int64_t unit, const char* meaning) {
    return {name,
            [](const DeviceConfig& device) { return number(device.rules.*member); },
            [](DeviceConfig& device, std::int64_t value) { device.rules.*member = static_cast<std::size_t>(value); },
            low,
            high,
            unit,
            meaning};
}

constexpr std::int64_t gib = 1 << 30;

constexpr std::array limits{
    field<&DeviceConfig::blocks>("blocks", 1, 4096, 1, "maximum blocks of a launch"),
    field<&DeviceConfig::vector_cores>("vector_cores", 1, 16, 1, "per block"),
    field<&DeviceConfig::ub_bytes>("ub_bytes", 4096, gib, 4096, "UB of a vector core"),
    field<&DeviceConfig::ub_reserved>("ub_reserved", 0, gib, 32, "at the end of UB, for the library"),
    rule<&DeviceRules::gm_bytes>("gm_bytes", 0, std::int64_t{1} << 50, 1, "symmetric memory of a PE; 0: no limit"),
    rule<&DeviceRules::ub_alignment>("ub_alignment", 32, 4096, 0, "bytes: addresses in UB"),
    rule<&DeviceRules::gm_alignment>("gm_alignment", 1, 4096, 0, "bytes: GM in copies to or from UB"),
    rule<&DeviceRules::max_copy_blocks>("max_copy_blocks", 1, 4095, 1, "of a copy to or from UB"),
    rule<&DeviceRules::max_copy_bytes>("max_copy_bytes", 32, 2097151, 1, "of a block of such a copy"),
    rule<&DeviceRules::flag_ids>("flag_ids", 1, 6, 1, "per pair of pipes"),
    rule<&DeviceRules::mapped_pes>("mapped_pes", 0, 1 << 20, 1,
                                   "consecutive PEs that load, store and copy each other's memory; 0: all"),
};

constexpr std::string_view pipes_name = "pipes";
constexpr const char* pipes_expected = "expected some of: V, MTE2, MTE3";

std::string expected(const Limit& limit) {
    if (limit.unit == 0) return fmt::format("a power of two from {} to {}", limit.low, limit.high);
    if (limit.unit == 1) return fmt::format("{} to {}", limit.low, limit.high);
    return fmt::format("a multiple of {} from {} to {}", limit.unit, limit.low, limit.high);
}

bool accepts(const Limit& limit, std::int64_t value) {
    if (value < limit.low || value > limit.high) return false;
    return limit.unit == 0 ? (value & (value - 1)) == 0 : value % limit.unit == 0;
}

Status set_pipes(DeviceRules& rules, std::string_view value) {
    rules.has_vector = rules.has_copy_in = rules.has_copy_out = false;
    while (!value.empty()) {
        const std::size_t blank = std::min(value.find(' '), value.size());
        const std::string_view name = value.substr(0, blank);
        value = trimmed(value.substr(blank));
        if (name == name_of(Pipe::vector))
            rules.has_vector = true;
        else if (name == name_of(Pipe::copy_in))
            rules.has_copy_in = true;
        else if (name == name_of(Pipe::copy_out))
            rules.has_copy_out = true;
        else if (name != name_of(Pipe::scalar))
            return {Code::config, fmt::format("pipes: '{}': {}", name, pipes_expected)};
    }
    return {};
}

Status set_limit(DeviceConfig& device, std::string_view name, std::string_view value) {
    if (name == pipes_name) return set_pipes(device.rules, value);
    const auto limit = std::ranges::find(limits, name, &Limit::name);
    if (limit == limits.end()) return unknown_setting(name);
    const auto size = parse_size(value);
    const bool fits = size.ok() && size.value().value <= static_cast<std::uint64_t>(limit->high);
    if (!fits || !accepts(*limit, number(size.value().value)))
        return {Code::config, fmt::format("{}: '{}': expected {}", name, value, expected(*limit))};
    limit->set(device, number(size.value().value));
    return {};
}

}  // namespace

Status parse_device_file(std::string_view text, const char* what,
                         const std::function<Status(std::string_view name, std::string_view value)>& set) {
    int number = 0;
    while (!text.empty()) {
        const std::size_t end = text.find('\n');
        std::string_view line = text.substr(0, end);
        text = end == std::string_view::npos ? std::string_view{} : text.substr(end + 1);
        ++number;
        line = trimmed(line.substr(0, line.find('#')));
        if (line.empty()) continue;
        const std::size_t equals = line.find('=');
        Status done = equals == std::string_view::npos
                          ? Status{Code::config, fmt::format("'{}': expected name = value", line)}
                          : set(trimmed(line.substr(0, equals)), trimmed(line.substr(equals + 1)));
        if (!done.ok()) return done.within(fmt::format("{}, line {}", what, number));
    }
    return {};
}

std::string names_of_limits() {
    std::string names(pipes_name);
    for (const Limit& limit : limits) names.append(", ").append(limit.name);
    return names;
}

bool is_limit(std::string_view name) {
    return name == pipes_name || std::ranges::find(limits, name, &Limit::name) != limits.end();
}

Status unknown_setting(std::string_view name) {
    if (is_limit(name) || is_speed(name)) return {};
    return {Code::config,
            fmt::format("unknown name '{}'; expected one of: {}, {}", name, names_of_limits(), names_of_speeds())};
}

Status DeviceConfig::apply(std::string_view text) {
    DeviceConfig changed = *this;
    Status status = parse_device_file(text, "device file", [&](std::string_view name, std::string_view value) {
        return set_limit(changed, name, value);
    });
    if (status.ok()) status = changed.validate();
    if (status.ok()) *this = changed;
    return status;
}

Status DeviceConfig::apply_file(const std::string& path) {
    const auto text = read_whole_file(path);
    if (!text.ok())
        return {Code::config, fmt::format("cannot read the device file {}: {}", path, text.status().message())};
    const Status status = apply(text.value());
    return status.ok() ? status : status.within(path);
}

std::string DeviceConfig::text() const {
    std::string out;
    for (const Limit& limit : limits)
        out += fmt::format("{} = {}  # {}\n", limit.name, limit.get(*this), limit.meaning);
    std::string pipes;
    for (const Pipe pipe : {Pipe::vector, Pipe::copy_in, Pipe::copy_out})
        if (rules.has(pipe)) pipes.append(pipes.empty() ? "" : " ").append(name_of(pipe));
    return out + fmt::format("{} = {}  # besides S\n", pipes_name, pipes);
}

Status DeviceRules::validate() const {
    DeviceConfig device;
    device.rules = *this;
    for (const Limit& limit : limits)
        if (const std::int64_t value = limit.get(device); !accepts(limit, value))
            return {Code::config, fmt::format("device: {} is {}, must be {}", limit.name, value, expected(limit))};
    return {};
}

}  // namespace npushmem::npu
