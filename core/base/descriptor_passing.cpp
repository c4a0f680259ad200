// SPDX-License-Identifier: BSD-3-Clause
#include "core/base/descriptor_passing.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>

namespace npushmem {

namespace {

constexpr int receive_timeout = 10000;  // milliseconds

// The first message of a caller.
struct Hello {
    std::array<std::uint64_t, 2> secret;
    std::int64_t caller;
};

struct SocketName {
    sockaddr_un address{};
    socklen_t bytes = 0;

    [[nodiscard]] const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&address); }
};

std::string file_name(const OfferAddress& offer) {
    return fmt::format("npushmem-{:016x}{:016x}", offer.name[0], offer.name[1]);
}

// An empty folder: the abstract name. Nothing if the path is too long.
std::optional<SocketName> name_in(const std::string& folder, const OfferAddress& offer) {
    SocketName name;
    name.address.sun_family = AF_UNIX;
    const std::string text = folder.empty() ? '\0' + file_name(offer) : folder + "/" + file_name(offer);
    if (text.size() >= sizeof name.address.sun_path) return std::nullopt;
    std::memcpy(name.address.sun_path, text.data(), text.size());
    name.bytes = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + text.size() + (folder.empty() ? 0 : 1));
    return name;
}

FileDescriptor open_socket(int flags) {
    return FileDescriptor(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | flags, 0));
}

FileDescriptor listen_at(const SocketName& name) {
    FileDescriptor socket = open_socket(SOCK_NONBLOCK);
    if (!socket.valid() || ::bind(socket.get(), name.get(), name.bytes) != 0 || ::listen(socket.get(), SOMAXCONN) != 0)
        socket.reset();
    return socket;
}

Status failed(const char* attempt) { return {Code::system, fmt::format("{}: {}", attempt, std::strerror(errno))}; }

// Room for one descriptor behind a message's byte.
struct DescriptorMessage {
    char byte = 0;
    iovec data{&byte, 1};
    alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
    msghdr header{nullptr, 0, &data, 1, control.data(), control.size(), 0};
};

}  // namespace

std::vector<std::string> meeting_folders(const std::string& folder) {
    std::vector<std::string> folders{"", "/dev/shm", "/tmp"};
    if (!folder.empty()) folders.push_back(folder);
    return folders;
}

Result<DescriptorOffer> DescriptorOffer::open(std::span<const std::string> folders) {
    DescriptorOffer offer;
    std::array<std::uint64_t, 4> random{};
    if (::getrandom(random.data(), sizeof random, 0) != static_cast<ssize_t>(sizeof random))
        return failed("cannot draw a secret for a Unix socket");
    offer.address_ = {{random[0], random[1]}, {random[2], random[3]}};
    for (const std::string& folder : folders) {
        const auto name = name_in(folder, offer.address_);
        FileDescriptor listener = name ? listen_at(*name) : FileDescriptor();
        if (!listener.valid()) continue;
        offer.listeners_.push_back(std::move(listener));
        if (!folder.empty()) offer.paths_.emplace_back(name->address.sun_path);
    }
    if (offer.listeners_.empty()) return failed("cannot listen at a Unix socket");
    return offer;
}

void DescriptorOffer::close() {
    listeners_.clear();
    for (const std::string& path : paths_) ::unlink(path.c_str());
    paths_.clear();
}

// A caller without the secret is not answered.
void DescriptorOffer::accept_from(int listener) {
    for (;;) {
        FileDescriptor socket(::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
        if (!socket.valid()) return;
        Hello hello{};
        const ssize_t length = ::recv(socket.get(), &hello, sizeof hello, 0);
        if (length == static_cast<ssize_t>(sizeof hello) && hello.secret == address_.secret)
            callers_[static_cast<int>(hello.caller)] = std::move(socket);
    }
}

Status DescriptorOffer::accept(std::span<const int> callers) {
    for (const FileDescriptor& listener : listeners_) accept_from(listener.get());
    close();
    for (const int caller : callers)
        if (!callers_.contains(caller))
            return {Code::protocol,
                    fmt::format("PE {} has connected to a Unix socket of this PE, which cannot accept it; "
                                "is the limit of open files too low?",
                                caller)};
    std::erase_if(callers_,
                  [&](const auto& entry) { return std::ranges::find(callers, entry.first) == callers.end(); });
    return {};
}

Status DescriptorOffer::send(int descriptor) {
    for (const auto& [caller, socket] : callers_) {
        DescriptorMessage message;
        cmsghdr* const control = CMSG_FIRSTHDR(&message.header);
        control->cmsg_level = SOL_SOCKET;
        control->cmsg_type = SCM_RIGHTS;
        control->cmsg_len = CMSG_LEN(sizeof descriptor);
        std::memcpy(CMSG_DATA(control), &descriptor, sizeof descriptor);
        if (::sendmsg(socket.get(), &message.header, MSG_NOSIGNAL) != 1)
            return failed("cannot send a descriptor over a Unix socket").within(fmt::format("PE {}", caller));
    }
    return {};
}

Result<DescriptorCall> DescriptorCall::connect(const OfferAddress& address, std::span<const std::string> folders,
                                               int caller) {
    std::string tried;
    for (const std::string& folder : folders) {
        const auto name = name_in(folder, address);
        FileDescriptor socket = open_socket(0);
        if (!name || !socket.valid()) continue;
        if (::connect(socket.get(), name->get(), name->bytes) == 0) {
            const Hello hello{address.secret, caller};
            if (::send(socket.get(), &hello, sizeof hello, MSG_NOSIGNAL) == static_cast<ssize_t>(sizeof hello))
                return DescriptorCall(std::move(socket));
        }
        tried += fmt::format("{}{}: {}", tried.empty() ? "" : ", ", folder.empty() ? "abstract" : folder,
                             std::strerror(errno));
    }
    return Status{Code::unreachable, fmt::format("no common Unix socket ({})", tried)};
}

Result<FileDescriptor> DescriptorCall::receive() const {
    pollfd wanted{socket_.get(), POLLIN, 0};
    int ready = 0;
    do ready = ::poll(&wanted, 1, receive_timeout);
    while (ready < 0 && errno == EINTR);
    DescriptorMessage message;
    if (ready != 1 || ::recvmsg(socket_.get(), &message.header, MSG_CMSG_CLOEXEC | MSG_DONTWAIT) != 1)
        return Status{Code::system, "a descriptor that another PE should have sent over a Unix socket has not arrived"};
    const cmsghdr* const control = CMSG_FIRSTHDR(&message.header);
    if (control == nullptr || control->cmsg_level != SOL_SOCKET || control->cmsg_type != SCM_RIGHTS ||
        control->cmsg_len != CMSG_LEN(sizeof(int)))
        return Status{Code::system,
                      "a message over a Unix socket has no descriptor; is the limit of open files too low?"};
    int descriptor = -1;
    std::memcpy(&descriptor, CMSG_DATA(control), sizeof descriptor);
    return FileDescriptor(descriptor);
}

}  // namespace npushmem
