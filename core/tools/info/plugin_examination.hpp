// SPDX-License-Identifier: BSD-3-Clause
// Examines plugin files in child processes, so that a file that ends or blocks the process that loads it is refused by
// name, like any other bad file.
#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include "core/plugin/plugin_catalogue.hpp"

namespace npushmem::info {

// Loading a plugin takes milliseconds. The limit allows for a busy machine and slow disks.
inline constexpr std::chrono::milliseconds examination_limit{20'000};

// Does the work of examine_plugin() in a child process. A child that has not ended within the limit is killed.
PluginEntry examine_in_child(const FoundPlugin& found, std::chrono::milliseconds limit = examination_limit);

// Encodes an entry without the found file, and decodes it. `complete` is false if the bytes are not a whole entry.
std::string encode_entry(const PluginEntry& entry);
PluginEntry decode_entry(const FoundPlugin& found, std::string_view bytes, bool& complete);

}  // namespace npushmem::info
