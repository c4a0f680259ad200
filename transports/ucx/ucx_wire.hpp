// UCX as a wire: one worker per PE, one endpoint per peer, made at first use.
//
// Atomics are left to the target's handler: UCX's own are those of the network device where it has some, which are not
// atomic with the CPU's, and which of them these would be cannot be asked. (1.13's fetching and, or and xor between
// processes of one host return a value but store nothing, besides.)
#pragma once

#include <ucp/api/ucp.h>

#include <deque>
#include <map>
#include <memory>
#include <vector>

#include "transports/network/wire.hpp"

namespace npushmem::ucx {

struct UcxWish {
    std::string transports;  // as UCX_TLS; empty: what the environment says
    std::string devices;     // as UCX_NET_DEVICES; likewise
};

class UcxWire final : public network::Wire {
public:
    static Result<std::unique_ptr<network::Wire>> open(const UcxWish& wish, int npes);
    ~UcxWire() override;

    [[nodiscard]] const network::WireTraits& traits() const override { return traits_; }
    Result<Bytes> address() override;
    Status link(int pe, std::span<const std::byte> address) override;
    Result<network::WireMemory> register_memory(void* base, std::uint64_t bytes) override;
    void deregister_memory(std::uint64_t number) override;
    Result<std::uint64_t> import_key(int pe, std::span<const std::byte> key) override;
    void release_key(std::uint64_t key) override;
    Code write(const network::RemotePlace& to, const void* from, std::uint64_t bytes,
               network::WireContext& context) override;
    Code read(const network::RemotePlace& from, void* to, std::uint64_t bytes, network::WireContext& context) override;
    Code flush(network::Way way, network::WireContext& context) override;
    Code send(network::Way way, std::span<const std::byte> head, std::span<const std::byte> rest) override;
    [[nodiscard]] std::string why() const override { return why_; }
    bool progress(network::WireListener& listener) override;
    [[nodiscard]] int descriptor() const override { return descriptor_; }
    bool prepare_to_wait() override;

private:
    static constexpr std::size_t message_bytes = 4096;
    static constexpr std::size_t send_count = 64;

    // Memory for a message that is on its way.
    struct Buffer : network::WireContext {
        int pe = -1;
        std::array<std::byte, message_bytes> bytes;
    };
    struct Peer {
        UcxWire* wire = nullptr;
        int pe = -1;
        ucp_ep_h endpoint = nullptr;
        bool lost = false;
    };
    // What UCX told, kept until nobody is inside UCX: whoever hears of it may call the wire again.
    struct Event {
        network::WireContext* context = nullptr;  // completed; otherwise, with a message, arrived; otherwise lost
        Bytes message;
        int pe = -1;
        ucs_status_t status = UCS_OK;
    };

    explicit UcxWire(int npes);
    Status open_all(const UcxWish& wish);
    Status open_context(const UcxWish& wish);
    Status open_worker();
    Status open_descriptor();
    ucp_request_param_t parameters(network::WireContext& context);
    // Of a call that posts `context`.
    Code outcome(ucs_status_ptr_t posted, network::WireContext& context, const char* what);
    void note(Event event);
    void tell(network::WireListener& listener, Event& event);
    void settle_connections();
    void disconnect(ucp_ep_h endpoint);
    [[nodiscard]] Peer& peer(int pe) { return peers_[static_cast<std::size_t>(pe)]; }

    static void on_done(void* request, ucs_status_t status, void* context);
    static void on_lost(void* peer, ucp_ep_h endpoint, ucs_status_t status);
    static ucs_status_t on_message(void* wire, const void* header, std::size_t header_bytes, void* data,
                                   std::size_t bytes, const ucp_am_recv_param_t* param);

    network::WireTraits traits_;
    std::string wishes_;  // for people
    std::string why_;
    ucp_context_h context_ = nullptr;
    ucp_worker_h worker_ = nullptr;
    std::vector<Peer> peers_;
    std::deque<Buffer> buffers_;
    std::vector<Buffer*> free_sends_;
    std::map<std::uint64_t, ucp_mem_h> memory_;
    std::map<std::uint64_t, ucp_rkey_h> keys_;
    std::uint64_t last_number_ = 0;
    std::vector<Event> events_;
    bool awaited_ = false;  // somebody may be waiting for the descriptor
    int bell_ = -1;         // an eventfd, rung for events that UCX's own descriptor knows nothing of
    int descriptor_ = -1;   // of both
};

// What a status means for whoever called.
Code code_of_status(ucs_status_t status);

}  // namespace npushmem::ucx
