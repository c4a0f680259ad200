// SPDX-License-Identifier: BSD-3-Clause
// libfabric as a wire.
#pragma once

#include <rdma/fabric.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>

#include <memory>

#include "transports/libfabric/domain.hpp"
#include "transports/libfabric/endpoints.hpp"
#include "transports/libfabric/provider_choice.hpp"
#include "transports/network/wire.hpp"

namespace npushmem::libfabric {

// Posts operations on reliable-datagram endpoints and dispatches their completions. It has as many functions as the
// interface Wire, and a few for each kind of completion.
class LibfabricWire final : public network::Wire {
public:
    static Result<std::unique_ptr<network::Wire>> open(ChosenProvider provider, int npes);

    Result<Bytes> address() override { return endpoints_.address(); }
    Status add_peer(int pe, std::span<const std::byte> address) override { return domain_.add_peer(pe, address); }
    Result<network::WireMemory> register_memory(void* base, std::uint64_t bytes) override {
        return memory_.add(endpoints_.receiver(), base, bytes);
    }
    void deregister_memory(std::uint64_t number) override { memory_.remove(number); }
    Result<std::uint64_t> import_key(int pe, std::span<const std::byte> key) override;
    void release_key(std::uint64_t /*key*/) override {}
    Code write(const network::RemoteAddress& to, const void* from, std::uint64_t bytes,
               network::WireContext& context) override;
    Code read(const network::RemoteAddress& from, void* to, std::uint64_t bytes,
              network::WireContext& context) override;
    Code atomic(const network::RemoteAddress& at, const npushmem_atomic& op, network::WireContext& context) override;
    Code send(network::LaneId lane_id, std::span<const std::byte> head, std::span<const std::byte> rest) override;
    // The library does not report whether it has sent an injected message.
    [[nodiscard]] bool has_unsent_messages() const override { return buffers_.has_sends(); }
    [[nodiscard]] std::string last_error() const override { return last_error_; }
    // The library may never report the peer's messages in flight.
    void forget(int pe) override { buffers_.abandon(pe); }
    void start_probe(int pe) override { domain_.start_probe(pe); }
    [[nodiscard]] bool end_probe(int pe) override { return domain_.end_probe(pe); }
    void close(network::LaneId lane_id) override;
    bool progress(network::WireListener& listener) override;
    [[nodiscard]] int descriptor() const override { return endpoints_.descriptor(); }
    bool prepare_to_wait(network::WakeEvents /*what*/) override { return endpoints_.prepare_to_wait(); }

private:
    static constexpr std::size_t receive_count = 64;
    static constexpr std::size_t send_count = 64;

    LibfabricWire(ChosenProvider provider, int npes);
    Status open_all();
    [[nodiscard]] bool arrives_in_progress() const;
    Status list_atomics();
    ssize_t post_atomic(fid_ep* sender, const network::RemoteAddress& at, const npushmem_atomic& op,
                        MessageBuffer& buffer);
    bool post_receive(MessageBuffer& buffer);
    Code outcome(ssize_t result, const char* what);
    Code connection_failed();
    void completed(network::WireListener& listener, void* context, std::size_t bytes);
    bool failed(network::WireListener& listener, fid_cq& completions);
    bool poll(network::WireListener& listener, fid_cq& completions);

    bool native_atomics_;
    std::string last_error_;
    // Destroyed in reverse order: closing an endpoint drops its posted operations, which use the buffers.
    MessageBuffers buffers_{receive_count, send_count};
    Domain domain_;
    Endpoints endpoints_{domain_};
    MemoryRegistrations memory_{domain_};
};

}  // namespace npushmem::libfabric
