// libfabric as a wire.
#pragma once

#include <rdma/fabric.h>
#include <rdma/fi_atomic.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_rma.h>

#include <deque>
#include <map>
#include <memory>
#include <vector>

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

// libfabric as a wire. It uses reliable-datagram endpoints: one receiver, and one sender per lane.
//
// Peers know the address of the receiver only, and only senders open connections. So each connection has one initiator,
// and two PEs that start to communicate at the same time open two connections, instead of one from both sides.
//
// The first use of a lane other than lane 0 opens its sender and completion queue. Both are closed when the lane has no
// peer left; later completions of that lane are not reported.
class LibfabricWire final : public network::Wire {
public:
    static Result<std::unique_ptr<network::Wire>> open(ChosenProvider provider, int npes);
    ~LibfabricWire() override;

    Result<Bytes> address() override;
    Status add_peer(int pe, std::span<const std::byte> address) override;
    Result<network::WireMemory> register_memory(void* base, std::uint64_t bytes) override;
    void deregister_memory(std::uint64_t number) override { memory_.erase(number); }
    Result<std::uint64_t> import_key(int pe, std::span<const std::byte> key) override;
    void release_key(std::uint64_t /*key*/) override {}
    Code write(const network::RemoteAddress& to, const void* from, std::uint64_t bytes,
               network::WireContext& context) override;
    Code read(const network::RemoteAddress& from, void* to, std::uint64_t bytes,
              network::WireContext& context) override;
    Code atomic(const network::RemoteAddress& at, const npushmem_atomic& op, network::WireContext& context) override;
    Code send(network::LaneId lane_id, std::span<const std::byte> head, std::span<const std::byte> rest) override;
    [[nodiscard]] std::string last_error() const override { return last_error_; }
    void close(network::LaneId lane_id) override;
    bool progress(network::WireListener& listener) override;
    [[nodiscard]] int descriptor() const override { return descriptor_; }
    bool prepare_to_wait(network::WakeEvents what) override;

private:
    static constexpr std::size_t message_bytes = max_message_bytes;
    static constexpr std::size_t receive_count = 64;
    static constexpr std::size_t send_count = 64;

    // A buffer for a message in flight, in either direction, or for the operands of an atomic operation.
    struct Buffer : network::WireContext {
        bool receives = false;
        bool busy = false;  // holds an operation of this lane
        network::LaneId lane_id;
        network::WireContext* atomic = nullptr;  // completes with this buffer; null: a message
        std::array<std::byte, message_bytes> bytes;
    };

    // A sender and its completion queue. Lane 0 uses the completion queue of the receiver. Closed in reverse order.
    struct Lane {
        Owned<fid_cq> completions;
        Owned<fid_ep> sender;
        std::vector<bool> peers;  // that use the lane; not recorded for lane 0
    };

    LibfabricWire(ChosenProvider provider, int npes);
    Status open_all();
    Status open_completions(Owned<fid_cq>& into);
    Status open_endpoints();
    Status list_atomics();
    [[nodiscard]] std::uint32_t atomics_on(fi_datatype type) const;
    ssize_t post_atomic(fid_ep* endpoint, const network::RemoteAddress& at, const npushmem_atomic& op, Buffer& buffer);
    void take(Buffer& buffer, network::LaneId lane_id, network::WireContext* atomic);
    Status open_endpoint(Owned<fid_ep>& endpoint, fid_cq& completions);
    Status open_lane(Lane& lane);
    Status open_descriptor();
    Status watch(fid_cq& completions);
    // Null on failure; sets last_error_ and code_.
    Lane* lane_for(network::LaneId lane_id);
    Status post_receives();
    Code post_receive(Buffer& buffer);
    Code outcome(ssize_t result, const char* what);
    [[nodiscard]] std::uint64_t address_of(const network::RemoteAddress& place) const;
    void completed(network::WireListener& listener, void* context, std::size_t bytes);
    bool failed(network::WireListener& listener, fid_cq& completions);
    bool poll(network::WireListener& listener, fid_cq& completions);
    void release(Buffer& buffer);
    [[nodiscard]] fi_addr_t peer(int pe) const { return peers_[static_cast<std::size_t>(pe)]; }

    InfoPtr info_;
    std::string last_error_;
    Code code_ = Code::ok;
    std::vector<fi_addr_t> peers_;
    std::deque<Buffer> buffers_;
    std::vector<Buffer*> free_sends_;
    std::vector<Buffer*> unposted_receives_;  // for lack of room
    // Closed in reverse order.
    Owned<fid_fabric> fabric_;
    Owned<fid_domain> domain_;
    Owned<fid_av> addresses_;
    Owned<fid_cq> completions_;
    Owned<fid_ep> receiver_;
    std::vector<Lane> lanes_;  // without a sender: closed or unused
    std::map<std::uint64_t, Owned<fid_mr>> memory_;
    std::uint64_t last_memory_ = 0;
    bool native_atomics_;
    fi_wait_obj wait_ = FI_WAIT_FD;
    std::vector<fid*> wait_objects_;  // completion queues that the descriptor watches
    int descriptor_ = -1;
};

// The Code for a libfabric error number.
Code code_of_error(int error);

}  // namespace npushmem::libfabric
