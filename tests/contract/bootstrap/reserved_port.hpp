// SPDX-License-Identifier: BSD-3-Clause
// A port chosen by the system. During the object's life no other program gets it from the system, but a program may
// listen on this number if it sets SO_REUSEADDR.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>

namespace npushmem::contract {

class ReservedPort {
public:
    ReservedPort() : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
        const int on = 1;
        sockaddr_in address{};
        address.sin_family = AF_INET;
        socklen_t length = sizeof address;
        auto* const form = reinterpret_cast<sockaddr*>(&address);
        const bool bound = ::setsockopt(socket_, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) == 0 &&
                           ::bind(socket_, form, length) == 0 && ::getsockname(socket_, form, &length) == 0;
        error_ = bound ? 0 : errno;
        if (bound) number_ = ntohs(address.sin_port);
    }
    ReservedPort(const ReservedPort&) = delete;
    ReservedPort& operator=(const ReservedPort&) = delete;
    ~ReservedPort() {
        if (socket_ >= 0) ::close(socket_);
    }

    // 0 if no port could be reserved; error() then returns the errno.
    [[nodiscard]] int number() const { return number_; }
    [[nodiscard]] int error() const { return error_; }

private:
    int socket_;
    int number_ = 0;
    int error_ = 0;
};

}  // namespace npushmem::contract
