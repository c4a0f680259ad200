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
    int pes = 8;
    int nodes = 1;
    std::string save;  // file to write the machine to; empty: none
    std::string draw;  // file to write the drawing to; empty: none
};

// The program ends before any report: help, or a usage error with status 2.
struct EarlyExit {
    int status = 0;
    std::string text;
};

// `arguments` do not include the program's name.
std::variant<Options, EarlyExit> parse_options(const std::vector<std::string>& arguments);

// The environment without malformed variables, so that one malformed variable does not hide everything else.
class ReadableEnvironment final : public Environment {
public:
    // Leaves out the malformed variables of `all`.
    explicit ReadableEnvironment(const Environment& all);

    [[nodiscard]] std::optional<std::string> get(const std::string& name) const override;
    [[nodiscard]] std::map<std::string, std::string> npushmem_variables() const override { return readable_; }

    // One error for each variable that was left out, in order of their names.
    [[nodiscard]] const std::vector<Status>& mistakes() const { return mistakes_; }

private:
    std::map<std::string, std::string> readable_;  // NPUSHMEM_*
    std::map<std::string, std::string> standard_;  // of OpenSHMEM
    std::vector<Status> mistakes_;
};

}  // namespace npushmem::info
