// SPDX-License-Identifier: BSD-3-Clause
#include "transports/libfabric/domain.hpp"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string_view>

#include "core/base/sip_hash.hpp"

namespace npushmem::libfabric {

Code code_of_error(int error) {
    switch (error) {
        case FI_EAGAIN: return Code::again;
        case FI_ECONNREFUSED:
        case FI_ECONNRESET:
        case FI_ECONNABORTED:
        case FI_ENOTCONN:
        case FI_ESHUTDOWN:
        case EPIPE:
        case FI_ECANCELED:  // what was posted over a connection that has ended
        case FI_EIO: return Code::peer_dead;
        case FI_EHOSTUNREACH:
        case FI_ENETUNREACH:
        case FI_EHOSTDOWN:
        case FI_EADDRNOTAVAIL: return Code::unreachable;
        case FI_ETIMEDOUT: return Code::timeout;
        case FI_ENOMEM: return Code::memory;
        case FI_EACCES:
        case FI_ENOKEY: return Code::range;  // memory that the peer does not offer (any more)
        case FI_ENOSYS:
        case FI_EOPNOTSUPP: return Code::unsupported;
        default: return Code::system;
    }
}

Status Domain::open() {
    Status s =
        create("fi_fabric", fabric_, [this](fid_fabric** out) { return fi_fabric(info_->fabric_attr, out, nullptr); });
    if (s.ok())
        s = create("fi_domain", domain_,
                   [this](fid_domain** out) { return fi_domain(fabric_.get(), info_.get(), out, nullptr); });
    if (!s.ok()) return s;
    return create("fi_av_open", addresses_, [this](fid_av** out) {
        fi_av_attr wanted{};
        wanted.type = FI_AV_TABLE;
        return fi_av_open(domain_.get(), &wanted, out, nullptr);
    });
}

Status Domain::open_completions(Owned<fid_cq>& into, fi_wait_obj wait) {
    return create("fi_cq_open", into, [&](fid_cq** out) {
        fi_cq_attr wanted{};
        wanted.format = FI_CQ_FORMAT_MSG;
        wanted.wait_obj = wait;
        wanted.size = info_->tx_attr->size + info_->rx_attr->size;
        return fi_cq_open(domain_.get(), &wanted, out, nullptr);
    });
}

Status Domain::open_endpoint(Owned<fid_ep>& into, fid_cq& completions) {
    Status s = create("fi_endpoint", into,
                      [this](fid_ep** out) { return fi_endpoint(domain_.get(), info_.get(), out, nullptr); });
    if (s.ok()) s = check("fi_ep_bind", [&] { return fi_ep_bind(into.get(), &addresses_->fid, 0); });
    if (s.ok())
        s = check("fi_ep_bind", [&] { return fi_ep_bind(into.get(), &completions.fid, FI_TRANSMIT | FI_RECV); });
    if (s.ok()) s = check("fi_enable", [&] { return fi_enable(into.get()); });
    // libfabric sizes completion queues for FI_UNIVERSE_SIZE peers and ignores the device's limit.
    if (s.code() == Code::system && provider().starts_with("verbs"))
        return {s.code(),
                fmt::format("{}; if the device's completion queues are short, set FI_UNIVERSE_SIZE={}, which makes "
                            "libfabric request shorter ones",
                            s.message(), std::max<std::size_t>(peers_.size(), 4))};
    return s;
}

bool Domain::shares_connections() const {
    return fi_version() >= FI_VERSION(1, 16) && provider().find("ofi_rxm") != std::string_view::npos;
}

Status Domain::add_peer(int pe, std::span<const std::byte> address) {
    fi_addr_t made = FI_ADDR_UNSPEC;
    const int inserted = fi_av_insert(addresses_.get(), address.data(), 1, &made, 0, nullptr);
    if (inserted != 1)
        return {Code::unreachable, fmt::format("fi_av_insert: {}",
                                               inserted < 0 ? fi_strerror(-inserted) : "the address was not accepted")};
    peers_[static_cast<std::size_t>(pe)] = made;
    return {};
}

void Domain::start_probe(int pe) {
    if (!provider().starts_with("tcp")) return;
    sockaddr_storage address{};
    std::size_t bytes = sizeof address;
    if (fi_av_lookup(addresses_.get(), peer(pe), &address, &bytes) != 0) return;
    const bool is_inet = address.ss_family == AF_INET || address.ss_family == AF_INET6;
    if (!is_inet || bytes > sizeof address) return;
    Probe probe{FileDescriptor(::socket(address.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)), 0};
    if (!probe.socket.valid()) return;
    const auto* const to = reinterpret_cast<const sockaddr*>(&address);
    if (::connect(probe.socket.get(), to, static_cast<socklen_t>(bytes)) != 0) probe.error = errno;
    probes_.insert_or_assign(pe, std::move(probe));
}

bool Domain::end_probe(int pe) {
    const auto found = probes_.find(pe);
    if (found == probes_.end()) return false;
    int error = found->second.error;
    socklen_t bytes = sizeof error;
    // Leaves 0 in `error` while the connection is being established.
    if (error == EINPROGRESS) (void)::getsockopt(found->second.socket.get(), SOL_SOCKET, SO_ERROR, &error, &bytes);
    probes_.erase(found);
    return error == ECONNREFUSED;
}

bool Domain::has_atomic(fi_datatype type, fi_op operation, std::uint64_t form) const {
    fi_atomic_attr found{};
    return fi_query_atomic(domain_.get(), type, operation, &found, form) == 0;
}

// Providers that do not choose keys themselves take the requested one. A stranger must not guess it.
Result<std::uint64_t> MemoryRegistrations::random_key() const {
    std::uint64_t key = 0;
    if (Status random = fill_random(std::as_writable_bytes(std::span(&key, 1))); !random.ok()) return random;
    const std::size_t bytes = domain_.info().domain_attr->mr_key_size;
    return bytes < sizeof key ? key & ((std::uint64_t{1} << (8 * bytes)) - 1) : key;
}

Result<network::WireMemory> MemoryRegistrations::add(fid_ep& receiver, void* base, std::uint64_t bytes) {
    Owned<fid_mr> memory;
    const std::uint64_t number = ++last_number_;
    constexpr std::uint64_t access = FI_REMOTE_READ | FI_REMOTE_WRITE;
    const auto wanted = random_key();
    if (!wanted.ok()) return wanted.status();
    Status s = create("fi_mr_reg", memory, [&](fid_mr** out) {
        return fi_mr_reg(domain_.get(), base, bytes, access, 0, wanted.value(), 0, out, nullptr);
    });
    if (s.ok() && (domain_.info().domain_attr->mr_mode & FI_MR_ENDPOINT) != 0) {
        s = check("fi_mr_bind", [&] { return fi_mr_bind(memory.get(), &receiver.fid, 0); });
        if (s.ok()) s = check("fi_mr_enable", [&] { return fi_mr_enable(memory.get()); });
    }
    if (!s.ok()) return s;
    const std::uint64_t key = fi_mr_key(memory.get());
    network::WireMemory out{number, Bytes(sizeof key)};
    std::memcpy(out.key.data(), &key, sizeof key);
    memory_.emplace(number, std::move(memory));
    return out;
}

}  // namespace npushmem::libfabric
