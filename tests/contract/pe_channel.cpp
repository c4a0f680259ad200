// SPDX-License-Identifier: BSD-3-Clause
#include "tests/contract/pe_channel.hpp"

#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <stdexcept>

#include "tests/contract/fabric.hpp"

namespace npushmem::contract {
namespace {

constexpr std::size_t max_message = 16384;

struct ConnectInfoHeader {
    std::int32_t pe;
    std::int32_t process;
    std::uint32_t address_bytes;
    std::uint32_t handle_bytes;
};

std::string_view characters(const Bytes& bytes) { return {reinterpret_cast<const char*>(bytes.data()), bytes.size()}; }

Bytes bytes_of(std::string_view text) {
    Bytes out(text.size());
    if (!text.empty()) std::memcpy(out.data(), text.data(), text.size());
    return out;
}

}  // namespace

std::pair<PeChannel, PeChannel> PeChannel::make_pair() {
    std::array<int, 2> ends{};
    if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) != 0)
        throw std::runtime_error(std::string("cannot make a socket for the process of a PE: ") + std::strerror(errno));
    return {PeChannel(Descriptor(ends[0])), PeChannel(Descriptor(ends[1]))};
}

bool PeChannel::send(const PeMessage& message) const {
    const std::string bytes = static_cast<char>(message.kind) + message.content;
    if (bytes.size() > max_message)
        throw std::runtime_error("a message of " + std::to_string(bytes.size()) +
                                 " bytes between the processes of a case exceeds the limit of " +
                                 std::to_string(max_message));
    ssize_t sent = -1;
    do {
        sent = ::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    } while (sent < 0 && errno == EINTR);
    return sent == static_cast<ssize_t>(bytes.size());
}

std::optional<PeMessage> PeChannel::receive() {
    std::array<char, max_message> buffer;
    while (!is_closed()) {
        const ssize_t got = ::recv(socket_.get(), buffer.data(), buffer.size(), MSG_DONTWAIT);
        if (got > 0) return PeMessage{static_cast<PeMessage::Kind>(buffer[0]), {&buffer[1], &buffer[0] + got}};
        if (got < 0 && errno == EINTR) continue;
        if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) break;
        socket_.close();
    }
    return std::nullopt;
}

void PeChannel::wait() const {
    pollfd waited{socket_.get(), POLLIN, 0};
    (void)::poll(&waited, 1, -1);
}

npushmem_peer PeConnectInfo::peer(int number) const {
    npushmem_peer out = peer_of(number);
    out.struct_size = sizeof out;
    out.process_id = process;
    out.address = info.address.data();
    out.address_bytes = static_cast<std::uint32_t>(info.address.size());
    return out;
}

std::string encode(const PeConnectInfo& info) {
    const ConnectInfoHeader header{info.pe, info.process, static_cast<std::uint32_t>(info.info.address.size()),
                                   static_cast<std::uint32_t>(info.info.handle.size())};
    std::string out(reinterpret_cast<const char*>(&header), sizeof header);
    out += characters(info.info.address);
    out += characters(info.info.handle);
    return out;
}

PeConnectInfo decode_connect_info(std::string_view content) {
    ConnectInfoHeader header{};
    if (content.size() < sizeof header) throw std::runtime_error("the message with a PE's address is too short");
    std::memcpy(&header, content.data(), sizeof header);
    content.remove_prefix(sizeof header);
    if (content.size() != std::size_t{header.address_bytes} + header.handle_bytes)
        throw std::runtime_error("the message with a PE's address has a wrong length");
    return {header.pe,
            header.process,
            {bytes_of(content.substr(0, header.address_bytes)), bytes_of(content.substr(header.address_bytes))}};
}

}  // namespace npushmem::contract
