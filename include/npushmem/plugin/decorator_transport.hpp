// SPDX-License-Identifier: BSD-3-Clause
// A transport around another: forwards every call. Derive and override the calls that the decorator changes.
#pragma once

#include "npushmem/plugin/table_transport.hpp"

namespace npushmem {

// The host opens the inner transport before this one and closes it after. One class, although it has more than twenty
// methods: it forwards the whole transport interface, so that a decorator overrides only the calls that it changes.
class DecoratorTransport : public Transport {
public:
    // `hidden`: capabilities of the inner transport that this one does not offer. Hide NPUSHMEM_CAP_MAP if data-path
    // calls must pass through the decorator: a caller with a mapping makes none.
    DecoratorTransport(const npushmem_transport_params& params, std::uint64_t hidden)
        : inner_(*params.inner, params.inner_self, TableTransport::Owning::no), hidden_(hidden) {}

    Result<std::vector<npushmem_device>> devices() override { return inner_.devices(); }
    Status use_devices(std::span<const std::uint32_t> index) override { return inner_.use_devices(index); }
    Result<Bytes> address() override { return inner_.address(); }
    Reach reach(const npushmem_peer& peer) override {
        Reach out = inner_.reach(peer);
        out.capabilities &= ~hidden_;
        if ((out.capabilities & NPUSHMEM_CAP_ATOMIC) == 0) out.atomic_32 = out.atomic_64 = 0;
        return out;
    }
    Status connect(const npushmem_peer& peer) override { return inner_.connect(peer); }
    Result<RegisteredMemory> register_memory(const npushmem_memory& memory) override {
        return inner_.register_memory(memory);
    }
    Code deregister_memory(std::uint64_t region) override { return inner_.deregister_memory(region); }
    Result<std::uint64_t> import_memory(int pe, std::span<const std::byte> handle) override {
        return inner_.import_memory(pe, handle);
    }
    Code release_memory(std::uint64_t remote) override { return inner_.release_memory(remote); }
    Result<void*> map(std::uint64_t remote) override {
        return (hidden_ & NPUSHMEM_CAP_MAP) == 0 ? inner_.map(remote) : Transport::map(remote);
    }
    Result<std::uint64_t> create_queue() override { return inner_.create_queue(); }
    Code destroy_queue(std::uint64_t queue) override { return inner_.destroy_queue(queue); }
    Code put(std::uint64_t queue, const npushmem_rma& op, std::uint64_t* token) override {
        return inner_.put(queue, op, token);
    }
    Code get(std::uint64_t queue, const npushmem_rma& op, std::uint64_t* token) override {
        return inner_.get(queue, op, token);
    }
    Code atomic(std::uint64_t queue, const npushmem_atomic& op, std::uint64_t* token) override {
        return inner_.atomic(queue, op, token);
    }
    Code put_signal(std::uint64_t queue, const npushmem_put_signal& op, std::uint64_t* token) override {
        return inner_.put_signal(queue, op, token);
    }
    Code put_strided(std::uint64_t queue, const npushmem_put_strided& op, std::uint64_t* token) override {
        return inner_.put_strided(queue, op, token);
    }
    Code fence(std::uint64_t queue) override { return inner_.fence(queue); }
    Code quiet(std::uint64_t queue) override { return inner_.quiet(queue); }
    Code test(std::uint64_t queue, std::uint64_t token) override { return inner_.test(queue, token); }
    Code progress() override { return inner_.progress(); }
    Code poll_event(npushmem_event& out) override { return inner_.poll_event(out); }
    Code forget(int pe) override { return inner_.forget(pe); }
    Code report_arrivals(void (*arrived)(void* context), void* context) override {
        return inner_.report_arrivals(arrived, context);
    }

protected:
    TableTransport& inner() { return inner_; }

private:
    TableTransport inner_;
    std::uint64_t hidden_;
};

// The first check of a decorator's `open`: only a host that breaks the contract gives no inner transport.
inline Status check_inner(const npushmem_transport_params& params) {
    if (params.inner != nullptr) return {};
    return {Code::argument, "a decorator was opened without a transport to wrap"};
}

}  // namespace npushmem
