// Finds the program to start as a shell would.
#pragma once

#include <string>
#include <variant>

namespace npushmem::run {

struct ProgramError {
    int status = 0;  // exit_not_found or exit_not_executable
    std::string message;
};

// A name with a slash is a path; any other is looked for in the colon-separated `search_path`.
std::variant<std::string, ProgramError> find_program(const std::string& name, const std::string& search_path);

}  // namespace npushmem::run
