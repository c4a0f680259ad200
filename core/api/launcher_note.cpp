#include "core/api/launcher_note.hpp"

#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

#include "core/base/environment.hpp"
#include "core/base/parse.hpp"

namespace npushmem::api {

namespace {

// From the environment itself: a start may have failed because the rest of the configuration is malformed.
std::string variable(const char* name, const char* otherwise) {
    return ProcessEnvironment{}.get(name).value_or(otherwise);
}

std::int64_t number_in(std::string_view text) {
    const auto parsed = parse_integer(text, -1, std::numeric_limits<std::int64_t>::max());
    return parsed.ok() ? parsed.value() : -1;
}

// The launcher's pipe, "descriptor:inode"; -1 when there is none. A program may have closed the descriptor, on purpose
// or as many do before they start others, and its number may name a file by now: the inode tells.
int launcher_pipe() {
    const std::string text = variable("NPUSHMEM_LAUNCHER_FD", "");
    const auto colon = text.find(':');
    if (colon == std::string::npos) return -1;
    const std::int64_t descriptor = number_in(std::string_view(text).substr(0, colon));
    const std::int64_t inode = number_in(std::string_view(text).substr(colon + 1));
    struct stat found {};
    if (descriptor < 0 || descriptor > std::numeric_limits<int>::max()) return -1;
    if (::fstat(static_cast<int>(descriptor), &found) != 0 || !S_ISFIFO(found.st_mode)) return -1;
    return found.st_ino == static_cast<ino_t>(inode) ? static_cast<int>(descriptor) : -1;
}

// One short write is one line, whoever else writes.
bool write_line(std::string_view verb, int status) {
    const int descriptor = launcher_pipe();
    if (descriptor < 0) return false;
    const std::string line = fmt::format("{} {} {}\n", verb, number_in(variable("NPUSHMEM_PE", "-1")), status);
    return ::write(descriptor, line.data(), line.size()) == static_cast<ssize_t>(line.size());
}

}  // namespace

bool note_exit(int status) { return write_line("exit", status); }

bool note_failure(int status) { return write_line("failed", status); }

}  // namespace npushmem::api
