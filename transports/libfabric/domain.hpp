// SPDX-License-Identifier: BSD-3-Clause
// A libfabric provider opened for this PE: its objects, the peers' addresses, and the registered memory.
#pragma once

#include <fmt/format.h>
#include <rdma/fabric.h>
#include <rdma/fi_atomic.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>

#include <map>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "core/base/poller.hpp"
#include "transports/libfabric/provider_choice.hpp"
#include "transports/network/wire.hpp"

namespace npushmem::libfabric {

// Closes a libfabric object.
struct CloseFid {
    template <class Object>
    void operator()(Object* object) const {
        fi_close(&object->fid);
    }
};
template <class Object>
using Owned = std::unique_ptr<Object, CloseFid>;

// The Code for a libfabric error number.
Code code_of_error(int error);

// Calls a libfabric function, which returns a negative error number.
template <class Call>
Status check(const char* what, Call&& call) {
    const int failed = call();
    if (failed == 0) return {};
    return {code_of_error(-failed), fmt::format("{}: {} ({})", what, fi_strerror(-failed), -failed)};
}

// Calls a libfabric function that creates an object.
template <class Object, class Call>
Status create(const char* what, Owned<Object>& into, Call&& call) {
    Object* made = nullptr;
    Status done = check(what, [&] { return call(&made); });
    if (done.ok()) into.reset(made);
    return done;
}

// The access domain with its address vector. Objects of the domain are closed before it.
class Domain {
public:
    Domain(InfoPtr info, int npes) : info_(std::move(info)), peers_(static_cast<std::size_t>(npes), FI_ADDR_UNSPEC) {}

    Status open();
    [[nodiscard]] const fi_info& info() const { return *info_; }
    // Such as "tcp;ofi_rxm".
    [[nodiscard]] std::string_view provider() const { return info_->fabric_attr->prov_name; }
    [[nodiscard]] fid_fabric* fabric() const { return fabric_.get(); }
    [[nodiscard]] int npes() const { return static_cast<int>(peers_.size()); }

    // `wait`: FI_WAIT_FD or FI_WAIT_NONE.
    Status open_completions(Owned<fid_cq>& into, fi_wait_obj wait);
    // Enables a reliable-datagram endpoint that reports all completions to one queue.
    Status open_endpoint(Owned<fid_ep>& into, fid_cq& completions);
    [[nodiscard]] fid_domain* get() const { return domain_.get(); }

    // Whether two PEs may connect their receivers at the same time, and get one connection: over ofi_rxm. Versions
    // before 1.16 may lose messages then, and the provider tcp of 1.18 rejects both connections.
    [[nodiscard]] bool shares_connections() const;

    Status add_peer(int pe, std::span<const std::byte> address);
    [[nodiscard]] fi_addr_t peer(int pe) const { return peers_[static_cast<std::size_t>(pe)]; }
    // With TCP: starts to connect to the peer's endpoint. If the peer's process has ended, its host refuses, but
    // ofi_rxm connects again and again and reports nothing. Neither call blocks.
    void start_probe(int pe);
    // Ends the probe. True: the host has refused.
    [[nodiscard]] bool end_probe(int pe);
    // What an operation names at the target.
    [[nodiscard]] std::uint64_t address_of(const network::RemoteAddress& place) const {
        const bool virtual_addresses = (info_->domain_attr->mr_mode & FI_MR_VIRT_ADDR) != 0;
        return (virtual_addresses ? place.base : 0) + place.offset;
    }
    [[nodiscard]] bool has_atomic(fi_datatype type, fi_op operation, std::uint64_t form) const;

private:
    struct Probe {
        FileDescriptor socket;
        int error;  // of connect; EINPROGRESS: the socket has the result
    };

    InfoPtr info_;
    std::map<int, Probe> probes_;  // by PE
    // Closed in reverse order.
    Owned<fid_fabric> fabric_;
    Owned<fid_domain> domain_;
    Owned<fid_av> addresses_;
    std::vector<fi_addr_t> peers_;
};

// The memory that this PE has registered. It may be bound to an endpoint, so it is closed before the endpoints.
class MemoryRegistrations {
public:
    explicit MemoryRegistrations(const Domain& domain) : domain_(domain) {}

    // `receiver`: the endpoint through which peers access the memory.
    Result<network::WireMemory> add(fid_ep& receiver, void* base, std::uint64_t bytes);
    void remove(std::uint64_t number) { memory_.erase(number); }

private:
    [[nodiscard]] Result<std::uint64_t> random_key() const;

    const Domain& domain_;
    std::map<std::uint64_t, Owned<fid_mr>> memory_;
    std::uint64_t last_number_ = 0;
};

}  // namespace npushmem::libfabric
