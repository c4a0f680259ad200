// The environment of a process to be started: a list of NAME=value strings in which a later setting replaces an
// earlier.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace npushmem::run {

class EnvironmentBlock {
public:
    // A copy of a null-terminated array such as main's third parameter; null is an empty environment.
    static EnvironmentBlock copy_of(const char* const* environment);

    void set(std::string_view name, std::string_view value);
    // Null if the variable is not set; the pointer holds until the next `set`.
    [[nodiscard]] const char* value(std::string_view name) const;
    void set_default(std::string_view name, std::string_view value);

    // For execve: null-terminated, valid until the next `set`.
    [[nodiscard]] std::vector<char*> pointers();

private:
    [[nodiscard]] std::vector<std::string>::const_iterator find(std::string_view name) const;

    std::vector<std::string> entries_;
};

}  // namespace npushmem::run
