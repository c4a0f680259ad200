// SPDX-License-Identifier: BSD-3-Clause
// The command line and the environment of npushmem-info.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "core/base/config.hpp"
#include "npushmem/plugin/status.hpp"

namespace npushmem::info {

struct Options {
    bool variables = false;
    bool plugins = false;
    bool topology = false;
    bool barriers = false;
    bool version = false;
    bool doctor = false;
    bool jobs = false;
    bool summary = false;  // no other report and no file is requested
    bool json = false;
    bool variables_page = false;  // --print-man-variables: the man page npushmem-variables(7); for the build
    int pes = 8;
    bool pes_given = false;  // false: the summary and the checks are about one PE for each usable CPU
    int nodes = 1;
    std::string save;  // output file for the description of the machine (for NPUSHMEM_TOPO_FILE); empty: none
    std::string draw;  // output file for the drawing (SVG); empty: none
};

// The program prints `text` and exits with `status` instead of printing reports. Status 0: `text` is the help. Status
// 2: `text` is a usage error.
struct EarlyExit {
    int status = 0;
    std::string text;
};

// Parses the command line. `arguments` excludes the program's name.
std::variant<Options, EarlyExit> parse_options(const std::vector<std::string>& arguments);

// The well-formed NPUSHMEM_* and OpenSHMEM variables of an environment; every other variable reads as unset. With this
// class npushmem-info prints its reports despite malformed variables, on which Config::read fails.
class ReadableEnvironment final : public Environment {
public:
    // Copies the well-formed variables of `all`, and stores an error for each malformed one.
    explicit ReadableEnvironment(const Environment& all);

    [[nodiscard]] std::optional<std::string> get(const std::string& name) const override;
    [[nodiscard]] std::map<std::string, std::string> npushmem_variables() const override { return readable_; }

    // One error for each malformed variable: first NPUSHMEM_* in order of their names, then those of OpenSHMEM.
    [[nodiscard]] const std::vector<Status>& errors() const { return errors_; }

private:
    std::map<std::string, std::string> readable_;  // NPUSHMEM_*
    std::map<std::string, std::string> standard_;  // the variables of the OpenSHMEM standard: SHMEM_*, SMA_*
    std::vector<Status> errors_;
};

}  // namespace npushmem::info
