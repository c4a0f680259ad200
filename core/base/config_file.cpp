// SPDX-License-Identifier: BSD-3-Clause
#include "core/base/config_file.hpp"

#include <fmt/core.h>

#include <algorithm>

#include "core/base/parse.hpp"
#include "core/base/streams.hpp"

namespace npushmem {

namespace {

constexpr std::string_view prefix = "NPUSHMEM_";

bool is_variable_name(std::string_view name) {
    return name.starts_with(prefix) && name.size() > prefix.size() && std::all_of(name.begin(), name.end(), [](char c) {
               return (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
           });
}

Status add_line(std::string_view line, const std::string& place, FileValues& into) {
    const auto equals = line.find('=');
    const auto name = std::string(trimmed(line.substr(0, equals)));
    if (equals == std::string_view::npos || !is_variable_name(name))
        return {Code::config,
                fmt::format("{}: '{}': expected NPUSHMEM_<name>=<value>, with a name of capital letters, or "
                            "a comment that begins with #",
                            place, line)};
    if (name == config_file_variable)
        return {Code::config, fmt::format("{}: a configuration file cannot name another one", place)};
    const auto [known, added] = into.emplace(name, FileValue{std::string(trimmed(line.substr(equals + 1))), place});
    if (added) return {};
    return {Code::config, fmt::format("{}: {} is set already at {}", place, name, known->second.place)};
}

}  // namespace

Result<FileValues> parse_config_file(std::string_view content, const std::string& path) {
    FileValues values;
    int number = 0;
    for (const std::string& whole : split(content, '\n')) {
        ++number;
        const std::string_view line = trimmed(std::string_view(whole).substr(0, whole.find_last_not_of(" \t\r") + 1));
        if (line.empty() || line.front() == '#') continue;
        if (Status added = add_line(line, fmt::format("{}:{}", path, number), values); !added.ok()) return added;
    }
    return values;
}

Result<std::string> read_content(const std::string& path) {
    auto content = read_whole_file(path);
    if (content.ok()) return content;
    return Status{Code::config, fmt::format("cannot read the file: {}", content.status().message())};
}

Result<FileValues> read_config_file(const std::string& path, const ContentReader& read) {
    if (path.empty()) return FileValues{};
    const auto content = read(path);
    if (content.ok()) return parse_config_file(content.value(), path);
    return Status{Code::config, fmt::format("{}='{}': {}; each process reads it on its own host", config_file_variable,
                                            path, content.status().message())};
}

}  // namespace npushmem
