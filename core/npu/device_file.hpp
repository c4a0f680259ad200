// SPDX-License-Identifier: BSD-3-Clause
// Device files: lines "name = value" that describe a device. One file may hold both the limits of a device
// (DeviceConfig) and its speed (DeviceModel).
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "npushmem/plugin/status.hpp"

namespace npushmem::npu {

// Calls set(name, value) for each line. '#' begins a comment. Failures name `what` and the line.
Status parse_device_file(std::string_view text, const char* what,
                         const std::function<Status(std::string_view name, std::string_view value)>& set);

// The names of both kinds of settings, in the order of their files.
std::string names_of_limits();
std::string names_of_speeds();
bool is_limit(std::string_view name);
bool is_speed(std::string_view name);

// Ok if the name belongs to the other kind of settings in the same file.
Status unknown_setting(std::string_view name);

}  // namespace npushmem::npu
