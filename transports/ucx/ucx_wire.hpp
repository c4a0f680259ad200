// UCX as a wire: a worker for each lane, made at first use, and an endpoint for each peer in it. Peers know the address
// of the first worker only: the others just send.
//
// Atomics are left to the target's handler unless the user says otherwise: UCX's own are those of the network device
// where it has some, which are not atomic with the CPU's, and which of them these would be cannot be asked; where it
// has none, they are done by the target's CPU as the handler does them. Of 1.13's the fetching and, or and xor are
// never used: between processes of one host they return a value but store nothing.
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
    std::string transports;  // as UCX_TLS; empty: what the environment says
    std::string devices;     // as UCX_NET_DEVICES; likewise
    bool atomics = false;    // UCX's own are to be used
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
    // Over TCP a write of UCX's is a message as well, and is acknowledged by another.
    static constexpr std::size_t max_write_as_message = 2048;

    // Memory for a message that is on its way.
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
        std::unordered_map<int, Peer> peers;  // which do not move: UCX knows them
        // As they were made for the endpoints of this worker, by the number of import_key.
        std::unordered_map<std::uint64_t, ucp_rkey_h> keys;
    };
    struct ImportedKey {
        int pe;
        Bytes packed;
    };
    // What UCX told, kept until nobody is inside UCX: whoever hears of it may call the wire again.
    struct Event {
        network::WireContext* context = nullptr;  // completed; otherwise, with a message, arrived; otherwise lost
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
    // Null: last_error_ and code_ say why there is none.
    ucp_ep_h endpoint_for(network::LaneId lane_id);
    // After endpoint_for; null likewise.
    ucp_rkey_h key_for(const network::RemoteAddress& place);
    Code record_error(const Status& why);
    ucp_request_param_t parameters(network::WireContext& context);
    // Of a call that posts `context`.
    Code outcome(ucs_status_ptr_t posted, network::WireContext& context, const char* what);
    void queue_event(Event event);
    void dispatch_event(network::WireListener& listener, Event& event);
    void flush_endpoint(const Lane& lane, const Peer& peer, std::chrono::steady_clock::time_point deadline);
    void disconnect(const Lane& lane, ucp_ep_h endpoint);
    void close_worker(Lane& lane);
    // True: something happened.
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
    std::vector<Lane> lanes_;                   // without a worker: closed, or not used yet
    std::unordered_map<int, Bytes> addresses_;  // of the peers that are linked
    std::deque<Buffer> buffers_;
    std::vector<Buffer*> free_sends_;
    std::map<std::uint64_t, ucp_mem_h> memory_;
    std::map<std::uint64_t, ImportedKey> keys_;
    std::uint64_t last_number_ = 0;
    std::vector<Event> events_;
    bool armed_ = false;   // somebody may be waiting for the descriptor
    int event_fd_ = -1;    // an eventfd, rung for events that UCX's own descriptor knows nothing of
    int descriptor_ = -1;  // of both
};

}  // namespace npushmem::ucx
