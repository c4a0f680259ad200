// SPDX-License-Identifier: BSD-3-Clause
// The configuration file of NPUSHMEM_CONFIG_FILE: lines NPUSHMEM_<name>=<value>. Blanks around the name and the value
// do not count; empty lines and lines that begin with # are skipped.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "npushmem/plugin/status.hpp"

namespace npushmem {

inline constexpr const char* config_file_variable = "NPUSHMEM_CONFIG_FILE";

struct FileValue {
    std::string text;
    std::string place;  // file and line, as in "job.conf:3"

    bool operator==(const FileValue&) const = default;
};
using FileValues = std::map<std::string, FileValue>;  // by full name

// Returns the variables of a file with this content. Fails with Code::config at a line that sets no NPUSHMEM_ variable,
// sets a variable for the second time, or names another configuration file; the message begins with its place.
Result<FileValues> parse_config_file(std::string_view content, const std::string& path);

// Returns the content of a file.
using ContentReader = std::function<Result<std::string>(const std::string& path)>;
Result<std::string> read_content(const std::string& path);

// Reads and parses the file; no variable if `path` is empty.
Result<FileValues> read_config_file(const std::string& path, const ContentReader& read);

}  // namespace npushmem
