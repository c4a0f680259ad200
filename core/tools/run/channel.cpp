// SPDX-License-Identifier: BSD-3-Clause
#include "core/tools/run/channel.hpp"

#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstring>

namespace npushmem::run {
namespace {

using ControlBuffer = std::array<char, CMSG_SPACE(sizeof(int) * Channel::max_descriptors)>;

void attach(msghdr& header, ControlBuffer& buffer, std::span<const int> descriptors) {
    if (descriptors.empty()) return;
    header.msg_control = buffer.data();
    header.msg_controllen = CMSG_SPACE(descriptors.size_bytes());
    cmsghdr* control = CMSG_FIRSTHDR(&header);
    control->cmsg_level = SOL_SOCKET;
    control->cmsg_type = SCM_RIGHTS;
    control->cmsg_len = CMSG_LEN(descriptors.size_bytes());
    std::memcpy(CMSG_DATA(control), descriptors.data(), descriptors.size_bytes());
}

std::vector<FileDescriptor> detach(msghdr& header) {
    std::vector<FileDescriptor> out;
    cmsghdr* control = CMSG_FIRSTHDR(&header);
    if (control == nullptr || control->cmsg_type != SCM_RIGHTS) return out;
    const std::size_t count = (control->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (std::size_t i = 0; i < count; ++i) {
        int number = -1;
        std::memcpy(&number, CMSG_DATA(control) + i * sizeof(int), sizeof number);
        out.emplace_back(number);
    }
    return out;
}

}  // namespace

Result<std::pair<Channel, Channel>> Channel::pair() {
    std::array<int, 2> ends{};
    if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) != 0)
        return Status{Code::system, std::string("socketpair for the supervisor process: ") + std::strerror(errno)};
    return std::pair(Channel(FileDescriptor(ends[0])), Channel(FileDescriptor(ends[1])));
}

bool Channel::send(const Message& message, std::string_view payload, std::span<const int> descriptors) const {
    std::array<iovec, 2> parts{
        {{const_cast<Message*>(&message), sizeof message}, {const_cast<char*>(payload.data()), payload.size()}}};
    msghdr header{};
    header.msg_iov = parts.data();
    header.msg_iovlen = parts.size();
    alignas(cmsghdr) ControlBuffer buffer{};
    attach(header, buffer, descriptors);
    ssize_t sent = 0;
    do sent = ::sendmsg(socket_.get(), &header, MSG_NOSIGNAL);
    while (sent < 0 && errno == EINTR);
    return sent >= 0;
}

Received Channel::receive(bool wait) const {
    Received out;
    std::array<char, max_payload> payload;  // uninitialised: clearing 64 KiB takes longer than most messages
    std::array<iovec, 2> parts{{{&out.message, sizeof out.message}, {payload.data(), payload.size()}}};
    msghdr header{};
    header.msg_iov = parts.data();
    header.msg_iovlen = parts.size();
    alignas(cmsghdr) ControlBuffer buffer{};
    header.msg_control = buffer.data();
    header.msg_controllen = buffer.size();
    ssize_t bytes = 0;
    do bytes = ::recvmsg(socket_.get(), &header, MSG_CMSG_CLOEXEC | (wait ? 0 : MSG_DONTWAIT));
    while (bytes < 0 && errno == EINTR);
    const bool whole = bytes >= static_cast<ssize_t>(sizeof out.message);
    const bool nothing = bytes < 0 && (errno == EAGAIN || errno == EWOULDBLOCK);
    out.state = whole ? Received::State::message : nothing ? Received::State::nothing : Received::State::closed;
    if (whole) {
        out.descriptors = detach(header);
        out.payload.assign(payload.data(), static_cast<std::size_t>(bytes) - sizeof out.message);
    }
    return out;
}

}  // namespace npushmem::run
