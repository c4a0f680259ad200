// The variables of the OpenSHMEM standard: SHMEM_VERSION, SHMEM_INFO, SHMEM_SYMMETRIC_SIZE, SHMEM_DEBUG, and their
// deprecated forms SMA_*. Each gives a value to the variable NPUSHMEM_* of the same meaning, unless that is set.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "core/base/environment.hpp"
#include "npushmem/plugin/status.hpp"

namespace npushmem {

struct StandardVariable {
    const char* row;       // name of the configuration row, without NPUSHMEM_
    const char* names[2];  // in the order in which they count
    const char* meaning;
    const char* accepted;
    // From the standard's syntax to the row's.
    Result<std::string> (*translate)(std::string_view text);
};

std::span<const StandardVariable> standard_variables();

// What the environment says for a row in the standard's words.
struct StandardValue {
    const StandardVariable* variable;
    std::string name;
    std::string text;
};
std::optional<StandardValue> standard_value(const Environment& environment, std::string_view row);

// The help that SHMEM_INFO asks for.
std::string describe_standard_variables();

}  // namespace npushmem
