// SPDX-License-Identifier: BSD-3-Clause
// UCX as a wire. Each lane has a worker, created at first use, with one endpoint per peer.
//
// The target's handler carries out atomics, unless the user requests UCX's. UCX uses the atomics of the network device
// if it has any; these are not atomic with the CPU's, and UCX does not report which ones it uses. Otherwise the
// target's CPU carries them out, as the handler does. The fetching and, or and xor of UCX 1.13 are never used: between
// processes of one host they return a value but store nothing.
#pragma once

#include <memory>
#include <string>

#include "transports/network/wire.hpp"
#include "transports/ucx/ucx_context.hpp"
#include "transports/ucx/worker.hpp"
#include "transports/ucx/worker_table.hpp"

namespace npushmem::ucx {

// Posts operations and dispatches their completions. It has as many functions as the interface Wire,
// and no state of its own but the last error.
class UcxWire final : public network::Wire {
public:
    static Result<std::unique_ptr<network::Wire>> open(const UcxOptions& options, int npes);

    Result<Bytes> address() override { return workers_.address(); }
    Status add_peer(int pe, std::span<const std::byte> address) override { return workers_.add_peer(pe, address); }
    Result<network::WireMemory> register_memory(void* base, std::uint64_t bytes) override {
        return context_.register_memory(base, bytes);
    }
    void deregister_memory(std::uint64_t number) override { context_.deregister_memory(number); }
    Result<std::uint64_t> import_key(int pe, std::span<const std::byte> key) override;
    void release_key(std::uint64_t key) override { workers_.release_key(key); }
    Code write(const network::RemoteAddress& to, const void* from, std::uint64_t bytes,
               network::WireContext& context) override;
    Code read(const network::RemoteAddress& from, void* to, std::uint64_t bytes,
              network::WireContext& context) override;
    Code atomic(const network::RemoteAddress& at, const npushmem_atomic& op, network::WireContext& context) override;
    Code flush(network::LaneId lane_id, network::WireContext& context) override;
    Code send(network::LaneId lane_id, std::span<const std::byte> head, std::span<const std::byte> rest) override;
    [[nodiscard]] std::string last_error() const override { return last_error_; }
    void close(network::LaneId lane_id) override;
    bool progress(network::WireListener& listener) override;
    [[nodiscard]] int descriptor() const override { return workers_.descriptor(); }
    bool prepare_to_wait(network::WakeEvents what) override;

private:
    static constexpr std::size_t send_count = 64;
    // Over TCP, UCX carries out a write as a message too, and acknowledges it by another message.
    static constexpr std::size_t max_write_as_message = 2048;

    explicit UcxWire(std::string options_text) : workers_(events_, std::move(options_text)) {}
    Status open_all(const UcxOptions& options, int npes);
    void set_traits(const UcxOptions& options);
    // The key of a remote address with the endpoint of its lane; without a key, connection_failed() is the result.
    struct Target {
        ucp_ep_h endpoint;
        ucp_rkey_h key;
    };
    Target target(const network::RemoteAddress& place);
    Code connection_failed();
    ucp_request_param_t parameters(network::WireContext& context);
    // The result of a call that posts `context`.
    Code outcome(ucs_status_ptr_t posted, network::WireContext& context, const char* what);
    void dispatch_event(network::WireListener& listener, Event& event);
    void forget_events(network::LaneId lane_id);
    void lose_peers(network::WireListener& listener);

    // Destroyed in reverse order: closing the workers completes operations, and the context outlives its workers.
    MessageBuffers buffers_{send_count};
    EventQueue events_;
    UcxContext context_;
    WorkerTable workers_;
    std::string last_error_;
};

}  // namespace npushmem::ucx
