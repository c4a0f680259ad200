// SPDX-License-Identifier: BSD-3-Clause
// A byte stream to the launcher: text out, lines or counted bytes in, each within a deadline. One thread.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "bootstrap/launcher/launched_job.hpp"
#include "core/base/socket.hpp"

namespace npushmem::launcher {

class Stream {
public:
    // The environment owns the descriptor: it stays open.
    static Stream borrow(int fd) { return Stream(fd, FileDescriptor()); }
    static Stream own(FileDescriptor fd) {
        const int number = fd.get();
        return Stream(number, std::move(fd));
    }
    // Connects to "host:port".
    static Result<Stream> connect(const std::string& where, Deadline deadline);

    Status send(std::string_view text, Deadline deadline);
    // Returns the line without its newline.
    Result<std::string> receive_line(Deadline deadline);
    Result<std::string> receive(std::size_t bytes, Deadline deadline);

private:
    Stream(int fd, FileDescriptor owned) : fd_(fd), owned_(std::move(owned)) {}
    Status await(short events, Deadline deadline) const;
    Status fill(Deadline deadline);
    std::string take(std::size_t bytes);

    int fd_;
    FileDescriptor owned_;
    std::string received_;
};

}  // namespace npushmem::launcher
