// libibverbs as a wire: a reliable queue pair per peer and lane, created and connected at first use.
//
// Connections: two queue pairs need each other's numbers before either sends. A PE with work for a peer sends it a
// connect message, a datagram to the address that all PEs know from the start, and repeats it until the peer answers
// (connect_message.hpp). When both PEs start at the same time they still connect a single pair. On lanes other than
// lane 0 the peer's queue pair only receives. Wires exchange their control messages over lane 0.
//
// Memory: a PE publishes, at start, its memory regions and their chunk size. A PE that needs the key of a chunk
// requests it over the connection. Other memory of the program is copied through buffers when the transfer is small.
// Otherwise it is registered: for the transfer, or for as long as a watch can report that the program releases it.
//
// One queue pair carries the writes, atomics and messages of a lane to a peer in the order of posting, and an
// acknowledgement proves that a write has arrived. So fences are free.
#pragma once

#include <chrono>
#include <deque>
#include <optional>
#include <unordered_map>
#include <vector>

#include "transports/network/combined_descriptor.hpp"
#include "transports/network/multi_rail_wire.hpp"
#include "transports/network/wire.hpp"
#include "transports/verbs/connection.hpp"
#include "transports/verbs/local_memory.hpp"
#include "transports/verbs/ports.hpp"
#include "transports/verbs/registration_cache.hpp"
#include "transports/verbs/ud_handshake.hpp"

namespace npushmem::verbs {

struct LocalPe {
    int pe = 0;
    int npes = 1;
    int local_index = 0;              // index of the PE on its host: the default choice of its port
    std::vector<GidRange> subnets{};  // subnets of the host's interfaces
};

class VerbsWire final : public network::Wire {
public:
    using Clock = std::function<std::chrono::steady_clock::time_point()>;

    // The error says what the machine lacks. Opens no port.
    static Result<std::unique_ptr<VerbsWire>> open(
        Library library, const VerbsSettings& settings, const LocalPe& local_pe,
        Clock now = [] { return std::chrono::steady_clock::now(); });

    [[nodiscard]] const std::vector<npushmem_device>& ports() const { return ports_; }
    // Checks that an active port can be opened with the user's settings and limits. Leaves nothing open.
    Status check_usable();
    // Call this and the next two functions before `address`.
    Status use_port(std::size_t index);
    // With a watch, registrations of the program's memory are cached.
    void use_watch(std::shared_ptr<MemoryWatch> watch) { watch_ = std::move(watch); }
    // Shares the registration caches of the PE's other ports; not null.
    void use_caches(std::shared_ptr<RegistrationCaches> caches) { caches_ = std::move(caches); }

    // Opens the port.
    Result<Bytes> address() override;
    [[nodiscard]] network::Port port() const override;
    [[nodiscard]] Result<network::Port> port_of(std::span<const std::byte> address) const override;
    // A peer may have several ports. This PE's port is connected to the one with which it is paired.
    Result<std::string> route_to(int pe, std::span<const std::byte> address) override;
    Status add_peer(int pe, std::span<const std::byte> address) override;
    Result<network::WireMemory> register_memory(void* base, std::uint64_t bytes) override;
    void deregister_memory(std::uint64_t number) override { memory_->remove(number); }
    Result<std::uint64_t> import_key(int pe, std::span<const std::byte> key) override;
    void release_key(std::uint64_t key) override { remote_[key - 1].reset(); }
    Code write(const network::RemoteAddress& to, const void* from, std::uint64_t bytes,
               network::WireContext& context) override;
    Code read(const network::RemoteAddress& from, void* to, std::uint64_t bytes,
              network::WireContext& context) override;
    Code atomic(const network::RemoteAddress& at, const npushmem_atomic& op, network::WireContext& context) override;
    Code write_signal(const network::RemoteAddress& to, const void* from, std::uint64_t bytes,
                      const network::RemoteAddress& at, std::uint64_t signal, network::WireContext& context) override;
    Code send(network::LaneId lane_id, std::span<const std::byte> head, std::span<const std::byte> rest) override;
    [[nodiscard]] std::string last_error() const override { return last_error_; }
    void forget(int pe) override;
    void close(network::LaneId lane_id) override;
    bool progress(network::WireListener& listener) override;
    [[nodiscard]] int descriptor() const override { return descriptor_.get(); }
    bool prepare_to_wait(network::WakeEvents what) override;
    network::Readiness readiness(network::LaneId lane_id) override;

private:
    static constexpr std::size_t message_bytes = 4096;
    static constexpr std::size_t receive_count = 256;
    static constexpr std::size_t send_count = 64;
    static constexpr std::size_t word_count = 256;  // results of atomics in flight
    static constexpr std::size_t bounce_count = 64;
    static constexpr std::size_t bounce_bytes = 16384;  // longer transfers of unregistered memory register it
    static constexpr std::size_t polled_at_once = 16;
    static constexpr unsigned polls_per_event_check = 256;

    struct Lane {
        std::unique_ptr<Connection> connection;
        std::uint32_t generation = 0;     // number of times that it was closed
        bool connecting = false;          // in pending_connects_
        std::uint32_t requests_sent = 0;  // number without an answer
    };
    // The receiving end of a lane other than lane 0, whose sender is the peer.
    struct InboundLane {
        std::unique_ptr<Connection> connection;
        std::uint32_t generation = 0;
    };
    struct Peer {
        std::optional<PortAddress> port_address;
        std::size_t port = 0;     // index of that address among the peer's ports
        std::vector<Lane> lanes;  // up to the highest used
        std::unordered_map<std::uint32_t, InboundLane> inbound;
    };
    // A copy of a device event, because its queue pair may be destroyed before the event is handled.
    struct Event {
        ibv_event_type type;
        std::uint32_t queue_pair;  // number of the queue pair; 0: none
    };
    struct PendingConnect {
        network::LaneId lane_id;
        std::chrono::steady_clock::time_point retry_at;
    };
    struct Signal {
        RemoteWord at;
        std::uint64_t value;
    };
    // An operation that needs more than one request.
    struct Transfer {
        network::WireContext* context = nullptr;  // null: no caller waits for it
        bool reads = false;
        std::byte* local = nullptr;  // the next byte, in the program's memory or in `buffer`
        std::uint64_t left = 0;
        RemoteMemory* remote = nullptr;
        std::uint64_t base = 0;
        std::uint64_t offset = 0;
        std::optional<Signal> signal;  // sent after the last byte
        // The memory that holds the bytes, unless it is registered permanently.
        RegistrationCache::Registration registration;
        BufferPool* pool = nullptr;
        std::byte* buffer = nullptr;
        void* copy_to = nullptr;  // destination of the final copy from `buffer`
        std::uint64_t copy_size = 0;
    };
    // An atomic in flight, by the index of its result word.
    struct Fetch {
        network::WireContext* context;
        void* copy_to;  // null: discard the result
        std::uint8_t width;
    };
    struct Failed {
        network::WireContext* context;
        Status why;
    };
    enum class Prepared { yes, not_yet, failed };

    VerbsWire(Library library, const VerbsSettings& settings, const LocalPe& local_pe, Clock now);
    // Set-up
    Status ensure_open();
    Status open_all(const npushmem_device& which);
    void close_all();
    Status open_receives();
    Status open_descriptor();
    Status find_traits();
    Status post_receive(std::size_t index);
    Result<network::PortPair> pair_with(const network::PeerPorts& peer) const;
    [[nodiscard]] PortAddress own_port_address() const;
    Peer& peer(int pe);
    // Connections
    Lane& lane(network::LaneId lane_id);
    Code connection_to(network::LaneId lane_id, Connection*& out);
    // Null when the connection needs work or has a failure to report first.
    [[nodiscard]] Connection* open_connection(network::LaneId lane_id) const;
    // Null when it cannot be created.
    Connection* first_connection(int pe);
    Result<std::unique_ptr<Connection>> new_connection(network::LaneId lane_id, bool inbound);
    Status make_connection(network::LaneId lane_id);
    Code start_connecting(network::LaneId lane_id);
    // `own`: the queue pair to announce to the peer; null in a refusal.
    Status send_connect_message(network::LaneId lane_id, std::uint32_t generation, ConnectMessage::Kind kind,
                                const Connection* own);
    Status send_connect_request(network::LaneId lane_id);
    void handle_connect_message(network::WireListener& listener, const ConnectMessage& message);
    void handle_first_lane_message(network::WireListener& listener, const ConnectMessage& message);
    void handle_rejection(network::WireListener& listener, int pe);
    void accept_lane_request(const ConnectMessage& message);
    Status accept_lane(const ConnectMessage& message);
    void handle_lane_answer(network::WireListener& listener, const ConnectMessage& message);
    void retire(std::unique_ptr<Connection> connection);
    // True when the retired connection has no work left.
    static bool is_over(const Connection& retired);
    // Destroys those of the first `count` retired connections that are over and whose completions have all been polled.
    // Destroying a queue pair may drop its completions, and with them receives from the shared queue.
    void destroy_retired(std::size_t count);
    bool retry_connects(network::WireListener& listener);
    // Posting
    [[nodiscard]] std::uint32_t room(const Connection& connection) const;
    Code post(Connection& connection, WorkChain& chain, CompletionAction last);
    Prepared prepare_keys(Connection& connection, const network::RemoteAddress& place, std::uint64_t bytes,
                          network::WireContext& context);
    Prepared prepare_local(Transfer& transfer, void* local, std::uint64_t bytes);
    Prepared fail_deferred(network::WireContext& context, Status why);
    Code transfer(const network::RemoteAddress& place, void* local, std::uint64_t bytes, bool reads,
                  const network::RemoteAddress* signal_at, std::uint64_t signal, network::WireContext& context);
    // Code::again when the write is not a single request that can be posted now.
    Code try_inline_write(const network::RemoteAddress& to, const void* from, std::uint64_t bytes,
                          network::WireContext& context);
    Code post_remaining(Connection& connection, Transfer& transfer);
    void add_pieces(Connection& connection, Transfer& transfer, WorkChain& chain, std::uint32_t max_size);
    [[nodiscard]] LocalMemory::Piece local_piece(const Transfer& transfer) const;
    [[nodiscard]] RemoteMemory& remote(std::uint64_t key) { return *remote_[key - 1]; }
    [[nodiscard]] RemoteWord word_at(const network::RemoteAddress& place);
    Transfer& take_transfer(network::WireContext& context);
    void release(Transfer& transfer);
    Code send_message(Connection& connection, std::span<const std::byte> head, std::span<const std::byte> rest,
                      std::uint32_t immediate);
    // Control messages between wires: keys
    void send_control(Connection& connection, std::uint32_t kind, Bytes bytes);
    bool send_queued_control(Connection& connection);
    void handle_control(Connection& connection, std::uint32_t kind, std::span<const std::byte> bytes);
    void queue_for_service(Connection& connection);
    bool serve_connections(network::WireListener& listener);
    bool serve(network::WireListener& listener, Connection& connection);
    // Progress
    bool complete(network::WireListener& listener);
    void completed(network::WireListener& listener, const ibv_wc& completion);
    void posted_completed(network::WireListener& listener, const ibv_wc& completion);
    void finish(network::WireListener& listener, const CompletionAction& posted, const Status& done);
    void fetched(network::WireListener& listener, std::byte* word, const Status& done);
    void transferred(network::WireListener& listener, Transfer& transfer, const Status& done);
    void received(network::WireListener& listener, const ibv_wc& completion);
    bool report_failures(network::WireListener& listener);
    bool handle_async_events(network::WireListener& listener);
    void drain_async_events();
    void handle_async_event(network::WireListener& listener, const Event& event);
    // Changes of the port, as a suffix for error messages.
    [[nodiscard]] std::string port_change_hints() const;
    void lose(network::WireListener& listener, Connection& connection, Status why);
    void lose_all(network::WireListener& listener, const Status& why);

    Library library_;
    VerbsSettings settings_;
    LocalPe local_pe_;
    Clock now_;
    std::vector<npushmem_device> ports_;
    std::vector<RailId> rails_;  // rails of the ports, without their subnets
    std::size_t chosen_port_ = 0;
    std::string last_error_;
    std::uint64_t nonce_ = 0;
    std::shared_ptr<MemoryWatch> watch_;
    std::shared_ptr<RegistrationCaches> caches_ = std::make_shared<RegistrationCaches>();
    std::string port_hint_;     // change of the port's state; empty: it is up
    std::string address_hint_;  // change of the port's address; empty: the address that peers know is valid

    // Destroyed in reverse order: connections first, the port last.
    std::unique_ptr<OpenedPort> port_;
    network::CombinedDescriptor descriptor_;
    std::unique_ptr<LocalMemory> memory_;
    std::shared_ptr<RegistrationCache> cache_;  // of this port; also in caches_
    std::unique_ptr<BufferPool> receives_;
    std::unique_ptr<BufferPool> sends_;
    std::unique_ptr<BufferPool> words_;
    std::unique_ptr<BufferPool> bounce_buffers_;
    std::deque<Transfer> transfers_;
    std::vector<Transfer*> free_transfers_;
    std::vector<Fetch> fetches_;  // by the index of the word
    Owned<ibv_srq> receive_queue_;
    std::unique_ptr<UdHandshake> handshake_;
    // By key. Keys are not reused, so that late replies are ignored.
    std::vector<std::unique_ptr<RemoteMemory>> remote_;
    std::vector<std::unique_ptr<Peer>> peers_;
    std::unordered_map<std::uint32_t, Connection*> by_number_;  // by number of the queue pair
    std::vector<Connection*> connections_;                      // by ConnectionRole::number; null: unused
    std::vector<std::unique_ptr<Connection>> retired_;          // closed connections with work left
    static constexpr std::chrono::milliseconds connect_retry_interval{50};
    static constexpr std::uint32_t max_unanswered_requests = 20;  // then readiness() stops waiting for the peer
    std::vector<PendingConnect> pending_connects_;
    std::vector<Connection*> service_queue_;
    std::vector<Failed> failed_;
    std::vector<std::size_t> unposted_receives_;
    std::vector<ibv_wc> polled_;   // completions that prepare_to_wait polled for the next progress
    std::vector<Event> events_;    // taken for the next progress
    std::uint32_t in_flight_ = 0;  // posted requests that need room in the completion queue
    std::uint32_t max_in_flight_ = 0;
    unsigned until_event_check_ = polls_per_event_check;
    const Status ok_status_;  // the status of successful requests
};

}  // namespace npushmem::verbs
