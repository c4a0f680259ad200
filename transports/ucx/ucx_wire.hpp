// UCX as a wire. Each lane has a worker, created at first use, with one endpoint per peer. Peers know the address of
// the first worker only; the other workers only send.
//
// The target's handler carries out atomics, unless the user requests UCX's. UCX uses the atomics of the network device
// if it has any; these are not atomic with the CPU's, and UCX cannot be asked which ones it uses. Otherwise the
// target's CPU carries them out, as the handler does. The fetching and, or and xor of UCX 1.13 are never used: between
// processes of one host they return a value but store nothing.
#pragma once

#include <ucp/api/ucp.h>

#include <chrono>
#include <deque>
#include <map>
#include <memory>
#include <unordered_map>
#include <vector>

#include "transports/network/wire.hpp"

namespace npushmem::ucx {

struct UcxOptions {
    std::string transports;  // as UCX_TLS; empty: from the environment
    std::string devices;     // as UCX_NET_DEVICES; empty: from the environment
    bool atomics = false;    // use UCX's atomics
};

class UcxWire final : public network::Wire {
public:
    static Result<std::unique_ptr<network::Wire>> open(const UcxOptions& options, int npes);
    ~UcxWire() override;

    Result<Bytes> address() override;
    Status add_peer(int pe, std::span<const std::byte> address) override;
    Result<network::WireMemory> register_memory(void* base, std::uint64_t bytes) override;
    void deregister_memory(std::uint64_t number) override;
    Result<std::uint64_t> import_key(int pe, std::span<const std::byte> key) override;
    void release_key(std::uint64_t key) override;
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
    [[nodiscard]] int descriptor() const override { return descriptor_; }
    bool prepare_to_wait(network::WakeEvents what) override;

private:
    static constexpr unsigned message_id = 1;
    static constexpr std::size_t message_bytes = 4096;
    static constexpr std::size_t send_count = 64;
    // Over TCP, UCX carries out a write as a message too, and acknowledges it by another message.
    static constexpr std::size_t max_write_as_message = 2048;

    // A buffer for a message in flight.
    struct Buffer : network::WireContext {
        network::LaneId lane_id;
        std::array<std::byte, message_bytes> bytes;
    };
    struct Peer {
        UcxWire* wire = nullptr;
        network::LaneId lane_id;
        ucp_ep_h endpoint = nullptr;
        bool lost = false;
    };
    struct Lane {
        ucp_worker_h worker = nullptr;
        std::unordered_map<int, Peer> peers;  // at stable addresses: UCX holds pointers to them
        // Unpacked for the endpoints of this worker, by the key of import_key.
        std::unordered_map<std::uint64_t, ucp_rkey_h> keys;
    };
    struct ImportedKey {
        int pe;
        Bytes packed;
    };
    // An event that a UCX callback recorded. It is dispatched outside of UCX, because the listener may call the wire
    // again.
    struct Event {
        network::WireContext* context = nullptr;  // completed; null: a message arrived, or without one the lane is lost
        Bytes message;
        network::LaneId lane_id;
        ucs_status_t status = UCS_OK;
    };

    explicit UcxWire(int npes) : npes_(npes) {}
    Status open_all(const UcxOptions& options);
    Status open_context(const UcxOptions& options);
    Status open_worker(Lane& lane);
    Status set_message_handler();
    Status open_descriptor();
    Status watch(int descriptor);
    Status watch(const Lane& lane);
    Status open_lane(Lane& lane);
    Status connect(Lane& lane, network::LaneId lane_id);
    // Null on failure; sets last_error_ and code_.
    ucp_ep_h endpoint_for(network::LaneId lane_id);
    // Call endpoint_for first. Null on failure; sets last_error_ and code_.
    ucp_rkey_h key_for(const network::RemoteAddress& place);
    Code record_error(const Status& why);
    ucp_request_param_t parameters(network::WireContext& context);
    // The result of a call that posts `context`.
    Code outcome(ucs_status_ptr_t posted, network::WireContext& context, const char* what);
    void queue_event(Event event);
    void dispatch_event(network::WireListener& listener, Event& event);
    void flush_endpoint(const Lane& lane, const Peer& peer, std::chrono::steady_clock::time_point deadline);
    void disconnect(const Lane& lane, ucp_ep_h endpoint);
    void close_worker(Lane& lane);
    // True when it made progress.
    bool drive(const Lane& lane);
    void forget_events(network::LaneId lane_id);

    static void on_done(void* request, ucs_status_t status, void* context);
    static void on_lost(void* peer, ucp_ep_h endpoint, ucs_status_t status);
    static ucs_status_t on_message(void* wire, const void* header, std::size_t header_bytes, void* data,
                                   std::size_t bytes, const ucp_am_recv_param_t* param);

    int npes_;
    std::string options_text_;  // for people
    std::string last_error_;
    ucp_context_h context_ = nullptr;
    Code code_ = Code::ok;
    std::vector<Lane> lanes_;                   // without a worker: closed or unused
    std::unordered_map<int, Bytes> addresses_;  // of the added peers
    std::deque<Buffer> buffers_;
    std::vector<Buffer*> free_sends_;
    std::map<std::uint64_t, ucp_mem_h> memory_;
    std::map<std::uint64_t, ImportedKey> keys_;
    std::uint64_t last_number_ = 0;
    std::vector<Event> events_;
    bool armed_ = false;   // a thread may be waiting for the descriptor
    int event_fd_ = -1;    // an eventfd, signalled for events that UCX's descriptor does not report
    int descriptor_ = -1;  // watches both
};

}  // namespace npushmem::ucx
