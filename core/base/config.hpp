// The configuration table: one row per variable. A row parses its text, prints it and documents it; defaults are text
// and go through the same parser as a user's value.
#pragma once

#include <deque>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/environment.hpp"
#include "core/base/settings.hpp"
#include "npushmem/plugin/abi.h"
#include "npushmem/plugin/status.hpp"

namespace npushmem {

struct ConfigRow {
    const char* name;  // without NPUSHMEM_
    const char* default_value;
    const char* type;  // what a user may write: "bool", "size", "int 0..7", ...
    const char* subsystem;
    const char* meaning;
    Status (*parse)(std::string_view text, Settings& into);
};

// The runtime's own rows, sorted by subsystem, then in reading order.
std::span<const ConfigRow> config_rows();

// Checks a text against one of the type names of npushmem_config_row; used for plugins' rows.
Status check_typed(std::string_view type, std::string_view text);

// One variable as it came out: for reports.
struct EffectiveValue {
    std::string name;
    std::string value;
    std::string default_value;
    std::string type;
    std::string subsystem;
    std::string meaning;
    bool from_environment = false;
    std::string standard;  // the variable of the standard that gave the value, or that NPUSHMEM_<name> has overruled
};

class Config {
public:
    // Reads all rows. A malformed value fails with variable, value and accepted syntax.
    static Result<Config> read(const Environment& environment);

    [[nodiscard]] const Settings& settings() const { return settings_; }

    // For each variable of the standard that is set: what has become of it. Lines of text.
    [[nodiscard]] std::string describe_standard() const;
    // Is the standard's variable for this row set?
    [[nodiscard]] bool is_standard_variable_set(std::string_view name) const;

    // Adds a plugin's rows, owned by `subsystem`; malformed values fail as in read. Repeating a plugin's rows is
    // allowed.
    Status declare(const char* subsystem, std::span<const npushmem_config_row> rows);

    // Effective text of a declared variable; null if no row has this name.
    [[nodiscard]] const char* value(std::string_view name) const;

    [[nodiscard]] const std::deque<EffectiveValue>& effective() const { return effective_; }

    // One sentence for every NPUSHMEM_* variable that no row declares, with the nearest known name.
    [[nodiscard]] std::vector<std::string> unknown_variables() const;

private:
    [[nodiscard]] Status read_row(const ConfigRow& row, const Environment& environment);

    Settings settings_;
    std::deque<EffectiveValue> effective_;  // a deque: value() hands out pointers that survive declare()
    std::map<std::string, std::string> npushmem_variables_;  // NPUSHMEM_* as found
};

}  // namespace npushmem
