// SPDX-License-Identifier: BSD-3-Clause
// RDMA devices in memory. Polling executes posted requests. Keys and states are checked as a device checks them, and
// every call can be made to fail.
#pragma once

#include <unistd.h>

#include <cerrno>
#include <deque>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "transports/verbs/registration_cache.hpp"
#include "transports/verbs/verbs_library.hpp"

namespace npushmem::fakes {

// Serves all PEs of a test, in one thread.
class FakeVerbs final : public verbs::VerbsLibrary {
public:
    struct Device : ibv_device {
        ibv_device_attr attributes{};
        std::vector<ibv_port_attr> ports;
        std::vector<ibv_gid_entry> gids;
    };

    ~FakeVerbs() override {
        for (const int descriptor : descriptors_) ::close(descriptor);
    }

    // Settings of the test.
    Device& add_device(const std::string& name, ibv_port_state state = IBV_PORT_ACTIVE,
                       std::uint8_t link_layer = IBV_LINK_LAYER_ETHERNET);
    // Makes the call of this name fail with this error, from the `after`-th call on.
    void fail(const std::string& call, int error, int after = 0) { faults_[call] = {error, after}; }
    void clear_fault(const std::string& call) { faults_.erase(call); }
    // The status of the next request on a reliable queue pair; a failure stops the pair.
    ibv_wc_status next_status = IBV_WC_SUCCESS;
    bool armed_for_all = false;                       // by the last req_notify_cq
    std::string cut_off;                              // sends of the device with this name are never acknowledged
    std::map<std::string, std::uint64_t> sent_bytes;  // on reliable pairs, by device
    std::size_t lockable = ~std::size_t{0};           // bytes that all may register
    bool holds = false;                               // no request on a reliable pair executes
    std::string held;                                 // nor what a device of this name sends
    int drop_datagrams = 0;
    bool isolated = false;               // no packet passes between devices
    std::uint16_t second_pkey = 0x8001;  // of every port
    [[nodiscard]] Device& device(std::size_t index) { return devices_.at(index); }
    // Delivers a message of one byte from no sender on this queue pair.
    void arrive(std::uint32_t pair) {
        bool waits = false;
        Request request{};
        request.what.opcode = IBV_WR_SEND;
        request.data.resize(1);
        (void)receive(request, *pairs_.at(pair), waits);
    }
    void raise(ibv_event_type type, std::uint32_t pair = 0) {
        ibv_async_event event{};
        event.event_type = type;
        if (pair != 0) event.element.qp = pairs_.at(pair);
        events_.push_back(event);
    }

    // State for the test.
    [[nodiscard]] std::size_t objects() const { return live_.size(); }
    [[nodiscard]] std::size_t registered_bytes() const {
        std::size_t out = 0;
        for (const auto& [key, memory] : memory_) out += memory->length;
        return out;
    }
    std::map<std::string, int> calls;
    std::vector<unsigned> opcodes;     // carried out on reliable pairs
    std::vector<unsigned> send_flags;  // likewise
    std::vector<std::uint32_t> reliable_pairs;
    std::vector<ibv_qp_attr> changes;  // of queue pairs

    ibv_device** get_device_list(int* count) override;
    void free_device_list(ibv_device** list) override { delete[] list; }
    ibv_context* open_device(ibv_device* device) override;
    int close_device(ibv_context* context) override { return destroy(static_cast<Context*>(context)); }
    int query_device(ibv_context* context, ibv_device_attr* out) override;
    int query_port(ibv_context* context, std::uint8_t port, ibv_port_attr* out) override;
    ssize_t query_gid_table(ibv_context* context, ibv_gid_entry* out, std::size_t max_entries) override;
    int query_pkey(ibv_context* context, std::uint8_t port, int index, std::uint16_t* out) override;
    ibv_pd* alloc_pd(ibv_context* context) override { return make<ibv_pd>("alloc_pd", context); }
    int dealloc_pd(ibv_pd* pd) override { return destroy(pd); }
    ibv_mr* reg_mr(ibv_pd* pd, void* base, std::size_t bytes, int access) override;
    int dereg_mr(ibv_mr* mr) override;
    ibv_comp_channel* create_comp_channel(ibv_context* context) override;
    int destroy_comp_channel(ibv_comp_channel* channel) override { return destroy(channel); }
    ibv_cq* create_cq(ibv_context* context, int entries, ibv_comp_channel* channel) override;
    int destroy_cq(ibv_cq* cq) override { return destroy(static_cast<Cq*>(cq)); }
    ibv_srq* create_srq(ibv_pd* pd, ibv_srq_init_attr* wanted) override;
    int destroy_srq(ibv_srq* srq) override { return destroy(static_cast<Srq*>(srq)); }
    ibv_qp* create_qp(ibv_pd* pd, ibv_qp_init_attr* wanted) override;
    int modify_qp(ibv_qp* qp, ibv_qp_attr* to, int mask) override;
    int destroy_qp(ibv_qp* qp) override;
    ibv_ah* create_ah(ibv_pd* pd, ibv_ah_attr* to) override;
    int destroy_ah(ibv_ah* ah) override { return destroy(ah); }
    int post_send(ibv_qp* qp, ibv_send_wr* first, ibv_send_wr** bad) override;
    int post_recv(ibv_qp* qp, ibv_recv_wr* first, ibv_recv_wr** bad) override;
    int post_srq_recv(ibv_srq* srq, ibv_recv_wr* first, ibv_recv_wr** bad) override;
    int poll_cq(ibv_cq* cq, int max_entries, ibv_wc* out) override;
    int req_notify_cq(ibv_cq* /*cq*/, bool solicited_only) override {
        armed_for_all = !solicited_only;
        return error_of("req_notify_cq");
    }
    int take_cq_event(ibv_comp_channel* /*channel*/) override { return -1; }
    int take_async_event(ibv_context* context, ibv_async_event* out) override;
    const char* wc_status_str(ibv_wc_status status) override {
        return status == IBV_WC_RETRY_EXC_ERR ? "transport retry counter exceeded" : "some status";
    }
    const char* event_type_str(ibv_event_type /*type*/) override { return "some event"; }

private:
    struct Context : ibv_context {};
    struct Receive {
        std::uint64_t number;
        ibv_sge place;
    };
    struct Srq : ibv_srq {
        std::deque<Receive> receives;
    };
    struct Cq : ibv_cq {
        std::deque<ibv_wc> entries;
        int max_entries = 0;
    };
    struct Request {
        ibv_send_wr what;
        std::vector<std::byte> data;  // of what is sent or written, as it was when it is carried out, or inline
        std::vector<ibv_sge> pieces;
    };
    struct Pair : ibv_qp {
        Cq* completions = nullptr;
        Srq* receives = nullptr;
        std::deque<Receive> own_receives;
        std::deque<Request> requests;
        std::uint32_t max_requests = 0;
        std::uint32_t inline_bytes = 0;
        std::uint32_t destination = 0;
    };

    int error_of(const std::string& call);
    // EINVAL when atomics are requested of a device without them.
    static int refuses(const ibv_context* context, int access);
    template <class Object>
    Object* make(const char* call, ibv_context* context);
    template <class Object>
    int destroy(Object* object);
    int new_descriptor();
    void run();
    bool run_one(Pair& pair);
    bool deliver_datagram(const Pair& sender, Request& request);
    [[nodiscard]] bool is_cut_off(const Pair& from, const Pair& to) const {
        return isolated && from.context->device != to.context->device;
    }
    ibv_wc_status carry_out(Request& request, Pair& target, bool& waits);
    ibv_wc_status receive(const Request& request, Pair& target, bool& waits);
    static bool within(const ibv_mr& memory, std::uint64_t address, std::uint64_t bytes);
    const ibv_mr* memory_of(std::uint32_t key, std::uint64_t address, std::uint64_t bytes) const;
    bool gather(Request& request);
    static void complete(Pair& pair, const ibv_send_wr& what, ibv_wc_status status);
    void stop(Pair& pair, ibv_wc_status first);

    struct Fault {
        int error;
        int after;
    };
    std::map<std::string, Fault> faults_;
    std::deque<Device> devices_;
    std::set<void*> live_;
    std::map<std::uint32_t, ibv_mr*> memory_;
    std::map<std::uint32_t, Pair*> pairs_;
    std::deque<ibv_async_event> events_;
    std::vector<int> descriptors_;
    std::uint32_t last_ = 0;
};

template <class Object>
Object* FakeVerbs::make(const char* call, ibv_context* context) {
    if (const int error = error_of(call); error != 0) {
        errno = error;
        return nullptr;
    }
    auto* const out = new Object();
    if constexpr (requires { out->context; }) out->context = context;
    live_.insert(out);
    return out;
}

template <class Object>
int FakeVerbs::destroy(Object* object) {
    if (live_.erase(object) != 1) return EINVAL;
    delete object;
    return 0;
}

// A memory watch that reports the changes that the test sets.
class FakeWatch final : public verbs::MemoryWatch {
public:
    bool watch(const verbs::AddressRange& pages) override {
        watched.push_back(pages);
        return can;
    }
    Position now() override { return gone.size(); }
    ChangesResult changes(Position& position, const ChangeHandler& report) override {
        for (; position < gone.size(); ++position) report(gone[position]);
        return result;
    }

    std::vector<verbs::AddressRange> watched;
    std::vector<verbs::AddressRange> gone;
    bool can = true;
    ChangesResult result = ChangesResult::all;
};

}  // namespace npushmem::fakes
