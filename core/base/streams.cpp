// SPDX-License-Identifier: BSD-3-Clause
#include "core/base/streams.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "core/base/poller.hpp"

namespace npushmem {

namespace {

// The errno of a failed write_output(). stdio records only that a write failed.
std::atomic<int> output_errno{0};

}  // namespace

void prepare_standard_streams() {
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; ++fd)
        if (::fcntl(fd, F_GETFD) < 0) (void)::open("/dev/null", O_RDONLY | O_CLOEXEC);
    // Installs a handler instead of SIG_IGN: exec() resets handlers, while SIG_IGN would remain.
    const auto before = std::signal(SIGPIPE, [](int) {});
    if (before != SIG_DFL) (void)std::signal(SIGPIPE, before);
}

void write_output(std::string_view text) {
    if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size()) output_errno = errno;
}

void write_error(std::string_view text) { (void)std::fwrite(text.data(), 1, text.size(), stderr); }

Status flush_standard_output() {
    errno = 0;
    const bool flushed = std::fflush(stdout) == 0;  // what std::cout wrote, too
    const int error = errno != 0 ? errno : output_errno.load();
    const std::string reason = error != 0 ? fmt::format(": {}", std::strerror(error)) : std::string();
    if (flushed && std::ferror(stdout) == 0) return {};
    return {Code::system, fmt::format("cannot write to standard output{}", reason)};
}

int checked_status(std::string_view program, int status) {
    const Status written = flush_standard_output();
    if (written.ok()) return status;
    write_error(fmt::format("{}: {}\n", program, written.message()));
    return status == EXIT_SUCCESS ? EXIT_FAILURE : status;
}

namespace {

Status failed() { return {Code::system, std::strerror(errno)}; }

Result<std::string> read_all(int fd) {
    std::string out;
    for (std::array<char, 4096> piece;;) {
        const ssize_t got = ::read(fd, piece.data(), piece.size());
        if (got == 0) return out;
        if (got < 0 && errno != EINTR) return failed();
        if (got > 0) out.append(piece.data(), static_cast<std::size_t>(got));
    }
}

}  // namespace

Result<std::string> read_whole_file(const std::string& path) {
    int opened = -1;
    do opened = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    while (opened < 0 && errno == EINTR);
    const FileDescriptor file(opened);
    if (!file.valid()) return failed();
    return read_all(file.get());
}

}  // namespace npushmem
