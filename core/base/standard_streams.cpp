#include "core/base/standard_streams.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <string>

namespace npushmem {
namespace {

// Why write_output() has failed, as in errno. stdio keeps only that a write has failed.
std::atomic<int> output_errno{0};

}  // namespace

void prepare_standard_streams() {
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; ++fd)
        if (::fcntl(fd, F_GETFD) < 0) (void)::open("/dev/null", O_RDONLY | O_CLOEXEC);
    // A handler where the signal would end the program: exec() resets it, while SIG_IGN would stay.
    const auto before = std::signal(SIGPIPE, [](int) {});
    if (before != SIG_DFL) (void)std::signal(SIGPIPE, before);
}

void write_output(std::string_view text) {
    if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size()) output_errno = errno;
}

void write_error(std::string_view text) { (void)std::fwrite(text.data(), 1, text.size(), stderr); }

Status flush_standard_output() {
    errno = 0;
    const bool streamed = std::cout.flush().good();
    const bool flushed = std::fflush(stdout) == 0;
    const int error = errno != 0 ? errno : output_errno.load();
    const std::string reason = error != 0 ? fmt::format(": {}", std::strerror(error)) : std::string();
    if (streamed && flushed && std::ferror(stdout) == 0) return {};
    return {Code::system, fmt::format("cannot write to standard output{}", reason)};
}

int checked_status(std::string_view program, int status) {
    const Status written = flush_standard_output();
    if (written.ok()) return status;
    write_error(fmt::format("{}: {}\n", program, written.message()));
    return status == EXIT_SUCCESS ? EXIT_FAILURE : status;
}

}  // namespace npushmem
