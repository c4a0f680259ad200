// Which names a program calls the library by, and reports in those names.
#pragma once

#include <string>
#include <string_view>

namespace npushmem::api {

enum class ApiNames { npushmem, openshmem };

// A report of the library in the names of OpenSHMEM: functions and constants, not variables of the environment, tools
// and extensions (npushmemx_), which have no other names.
std::string to_openshmem_names(std::string_view text);

}  // namespace npushmem::api
