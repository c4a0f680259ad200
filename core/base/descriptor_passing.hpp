// SPDX-License-Identifier: BSD-3-Clause
// Passes a file descriptor between processes of one machine that do not see each other in /proc, because their PID
// namespaces differ: over Unix sockets (SCM_RIGHTS). One process offers, others connect and later receive.
//
// Processes meet at an abstract socket if they share a network namespace, else at a socket in a folder that both see.
// The address has a secret, without which nobody receives anything; the names of the sockets do not contain it.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "core/base/poller.hpp"
#include "npushmem/plugin/status.hpp"

namespace npushmem {

// Plain bytes, for the bootstrap. All zero: there is no offer.
struct OfferAddress {
    std::array<std::uint64_t, 2> name{};
    std::array<std::uint64_t, 2> secret{};

    [[nodiscard]] bool exists() const { return secret != std::array<std::uint64_t, 2>{}; }
};

// The folders, besides `folder` (empty: none), that containers may share.
std::vector<std::string> meeting_folders(const std::string& folder);

class DescriptorOffer {
public:
    // Listens wherever it can; fails if it can nowhere. The folders contain sockets until this is closed.
    static Result<DescriptorOffer> open(std::span<const std::string> folders);

    DescriptorOffer(DescriptorOffer&&) = default;
    DescriptorOffer& operator=(DescriptorOffer&&) = default;
    ~DescriptorOffer() { close(); }

    [[nodiscard]] const OfferAddress& address() const { return address_; }
    // Accepts the connections of these callers, which have connected before, and closes all sockets that listen. Fails
    // if one is missing. Never waits.
    Status accept(std::span<const int> callers);
    // Sends the descriptor to all accepted callers. Never waits.
    Status send(int descriptor);

private:
    DescriptorOffer() = default;
    void close();
    void accept_from(int listener);

    OfferAddress address_;
    std::vector<FileDescriptor> listeners_;
    std::vector<std::string> paths_;  // of sockets in folders
    std::map<int, FileDescriptor> callers_;
};

class DescriptorCall {
public:
    // Connects to the offer as `caller`, a number of this process among those that connect. Fails if there is no way to
    // it, with the ways that were tried.
    static Result<DescriptorCall> connect(const OfferAddress& address, std::span<const std::string> folders,
                                          int caller);

    // Receives the descriptor. The offer has sent it, or its process has ended; otherwise fails after a few seconds.
    Result<FileDescriptor> receive() const;

private:
    explicit DescriptorCall(FileDescriptor socket) : socket_(std::move(socket)) {}

    FileDescriptor socket_;
};

}  // namespace npushmem
