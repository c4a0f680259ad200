#include "core/tools/run/program_path.hpp"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "core/base/strings.hpp"
#include "core/tools/run/exit_codes.hpp"

namespace npushmem::run {
namespace {

bool is_directory(const std::string& path) {
    struct stat facts {};
    return ::stat(path.c_str(), &facts) == 0 && S_ISDIR(facts.st_mode);
}

bool can_run(const std::string& path) { return ::access(path.c_str(), X_OK) == 0 && !is_directory(path); }

std::variant<std::string, ProgramError> checked(const std::string& path) {
    if (::access(path.c_str(), F_OK) != 0)
        return ProgramError{exit_not_found, fmt::format("program '{}' was not found: {}", path, std::strerror(errno))};
    if (is_directory(path))
        return ProgramError{exit_not_executable, fmt::format("'{}' is a directory, not a program", path)};
    if (!can_run(path))
        return ProgramError{exit_not_executable, fmt::format("program '{}' is there but you may not execute it", path)};
    return path;
}

}  // namespace

std::variant<std::string, ProgramError> find_program(const std::string& name, const std::string& search_path) {
    if (name.find('/') != std::string::npos) return checked(name);
    for (const auto& folder : split(search_path, ':')) {
        const std::string path = (folder.empty() ? "." : folder) + "/" + name;
        if (!name.empty() && can_run(path)) return path;
    }
    const bool here = !name.empty() && can_run("./" + name);
    return ProgramError{exit_not_found,
                        fmt::format("program '{}' was not found in PATH{}", name,
                                    here ? fmt::format("; for the one in this folder write ./{}", name) : "")};
}

}  // namespace npushmem::run
