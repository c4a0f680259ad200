// SPDX-License-Identifier: BSD-3-Clause
#include "npushmem/npu/device_model.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <string>
#include <string_view>

#include "core/base/streams.hpp"
#include "core/npu/device_file.hpp"

namespace npushmem::npu {
namespace {

struct Row {
    const char* name;
    double DeviceModel::*value;
    const char* meaning;
};

constexpr std::array rows{
    Row{"gm_rate", &DeviceModel::gm_rate, "GB/s of global memory, shared by all cores"},
    Row{"gm_latency", &DeviceModel::gm_latency, "ns"},
    Row{"copy_rate", &DeviceModel::copy_rate, "GB/s of one MTE2 or MTE3 pipe"},
    Row{"vector_rate", &DeviceModel::vector_rate, "GB/s of the vector pipe"},
    Row{"vector_latency", &DeviceModel::vector_latency, "ns"},
    Row{"issue", &DeviceModel::issue, "ns of the scalar pipe for a command, a flag, a cached access"},
    Row{"flag", &DeviceModel::flag, "ns from one pipe to another"},
    Row{"core_barrier", &DeviceModel::core_barrier, "ns"},
    Row{"hccs_rate", &DeviceModel::hccs_rate, "GB/s of a link, each direction"},
    Row{"hccs_latency", &DeviceModel::hccs_latency, "ns, one way"},
    Row{"switch_rate", &DeviceModel::switch_rate, "GB/s of a PE's port to other groups, each direction"},
    Row{"switch_latency", &DeviceModel::switch_latency, "ns, one way"},
};

constexpr std::string_view group_name = "group";
constexpr int max_group = 4096;

bool parse_into(std::string_view text, auto& value) {
    const char* end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data(), end, value);
    return error == std::errc{} && stop == end;
}

// Rates must be above 0, or transfers would never end.
Status set(DeviceModel& model, std::string_view name, std::string_view value) {
    if (name == group_name) {
        if (parse_into(value, model.group) && model.group >= 1 && model.group <= max_group) return {};
        return {Code::config, fmt::format("'{}': expected a number of PEs from 1 to {}", value, max_group)};
    }
    for (const Row& row : rows) {
        if (name != row.name) continue;
        double& into = model.*row.value;
        const bool rate = name.ends_with("_rate");
        if (parse_into(value, into) && into <= 1e12 && (rate ? into > 0 : into >= 0)) return {};
        return {Code::config,
                fmt::format("'{}': expected a {}", value, rate ? "rate above 0" : "time of 0 ns or more")};
    }
    return unknown_setting(name);
}

}  // namespace

std::string names_of_speeds() {
    std::string names(group_name);
    for (const Row& row : rows) names.append(", ").append(row.name);
    return names;
}

bool is_speed(std::string_view name) {
    return name == group_name || std::ranges::find(rows, name, &Row::name) != rows.end();
}

Result<DeviceModel> DeviceModel::parse(std::string_view text) {
    DeviceModel model;
    const Status status = parse_device_file(
        text, "device model", [&](std::string_view name, std::string_view value) { return set(model, name, value); });
    if (!status.ok()) return status;
    return model;
}

Result<DeviceModel> DeviceModel::read(const std::string& path) {
    const auto text = read_whole_file(path);
    if (!text.ok())
        return Status{Code::config, fmt::format("cannot read the device model {}: {}", path, text.status().message())};
    auto model = parse(text.value());
    return model.ok() ? model : model.status().within(path);
}

std::string DeviceModel::text() const {
    std::string out;
    for (const Row& row : rows) out += fmt::format("{} = {}  # {}\n", row.name, this->*row.value, row.meaning);
    return out + fmt::format("{} = {}  # PEs that are fully linked\n", group_name, group);
}

}  // namespace npushmem::npu
