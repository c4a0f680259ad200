// SPDX-License-Identifier: BSD-3-Clause
#include "transports/verbs/verbs_library.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

// The header defines macros with these names, but the functions are needed.
#undef ibv_query_port
#undef ibv_reg_mr

namespace npushmem::verbs {
namespace {

// The functions that dlsym finds in libibverbs. It has a member for each function that VerbsLibrary needs.
struct Functions {
    decltype(&::ibv_get_device_list) get_device_list;
    decltype(&::ibv_free_device_list) free_device_list;
    decltype(&::ibv_open_device) open_device;
    decltype(&::ibv_close_device) close_device;
    decltype(&::ibv_query_device) query_device;
    int (*query_port)(ibv_context*, std::uint8_t, ibv_port_attr*);
    decltype(&::_ibv_query_gid_table) query_gid_table;
    decltype(&::ibv_query_pkey) query_pkey;
    decltype(&::ibv_alloc_pd) alloc_pd;
    decltype(&::ibv_dealloc_pd) dealloc_pd;
    ibv_mr* (*reg_mr)(ibv_pd*, void*, std::size_t, int);
    decltype(&::ibv_dereg_mr) dereg_mr;
    decltype(&::ibv_create_comp_channel) create_comp_channel;
    decltype(&::ibv_destroy_comp_channel) destroy_comp_channel;
    decltype(&::ibv_create_cq) create_cq;
    decltype(&::ibv_destroy_cq) destroy_cq;
    decltype(&::ibv_create_srq) create_srq;
    decltype(&::ibv_destroy_srq) destroy_srq;
    decltype(&::ibv_create_qp) create_qp;
    decltype(&::ibv_modify_qp) modify_qp;
    decltype(&::ibv_destroy_qp) destroy_qp;
    decltype(&::ibv_create_ah) create_ah;
    decltype(&::ibv_destroy_ah) destroy_ah;
    decltype(&::ibv_get_cq_event) get_cq_event;
    decltype(&::ibv_ack_cq_events) ack_cq_events;
    decltype(&::ibv_get_async_event) get_async_event;
    decltype(&::ibv_ack_async_event) ack_async_event;
    decltype(&::ibv_wc_status_str) wc_status_str;
    decltype(&::ibv_event_type_str) event_type_str;
};

// Implements VerbsLibrary by the loaded library. It is wide because the interface has a function for each function of
// libibverbs that the transport uses.
class LoadedLibrary final : public VerbsLibrary {
public:
    explicit LoadedLibrary(const Functions& functions) : f_(functions) {}

    ibv_device** get_device_list(int* count) override { return f_.get_device_list(count); }
    void free_device_list(ibv_device** list) override { f_.free_device_list(list); }
    ibv_context* open_device(ibv_device* device) override { return f_.open_device(device); }
    int close_device(ibv_context* context) override { return f_.close_device(context); }
    int query_device(ibv_context* context, ibv_device_attr* out) override { return f_.query_device(context, out); }
    int query_port(ibv_context* context, std::uint8_t port, ibv_port_attr* out) override {
        *out = {};  // an older library sets fewer fields
        return f_.query_port(context, port, out);
    }
    ssize_t query_gid_table(ibv_context* context, ibv_gid_entry* out, std::size_t max_entries) override {
        return f_.query_gid_table(context, out, max_entries, 0, sizeof *out);
    }
    int query_pkey(ibv_context* context, std::uint8_t port, int index, std::uint16_t* out) override {
        return f_.query_pkey(context, port, index, out);
    }
    ibv_pd* alloc_pd(ibv_context* context) override { return f_.alloc_pd(context); }
    int dealloc_pd(ibv_pd* pd) override { return f_.dealloc_pd(pd); }
    ibv_mr* reg_mr(ibv_pd* pd, void* base, std::size_t bytes, int access) override {
        return f_.reg_mr(pd, base, bytes, access);
    }
    int dereg_mr(ibv_mr* mr) override { return f_.dereg_mr(mr); }
    ibv_comp_channel* create_comp_channel(ibv_context* context) override { return f_.create_comp_channel(context); }
    int destroy_comp_channel(ibv_comp_channel* channel) override { return f_.destroy_comp_channel(channel); }
    ibv_cq* create_cq(ibv_context* context, int entries, ibv_comp_channel* channel) override {
        return f_.create_cq(context, entries, nullptr, channel, 0);
    }
    int destroy_cq(ibv_cq* cq) override { return f_.destroy_cq(cq); }
    ibv_srq* create_srq(ibv_pd* pd, ibv_srq_init_attr* wanted) override { return f_.create_srq(pd, wanted); }
    int destroy_srq(ibv_srq* srq) override { return f_.destroy_srq(srq); }
    ibv_qp* create_qp(ibv_pd* pd, ibv_qp_init_attr* wanted) override { return f_.create_qp(pd, wanted); }
    int modify_qp(ibv_qp* qp, ibv_qp_attr* to, int mask) override { return f_.modify_qp(qp, to, mask); }
    int destroy_qp(ibv_qp* qp) override { return f_.destroy_qp(qp); }
    ibv_ah* create_ah(ibv_pd* pd, ibv_ah_attr* to) override { return f_.create_ah(pd, to); }
    int destroy_ah(ibv_ah* ah) override { return f_.destroy_ah(ah); }

    // These calls go directly to the device's driver, through inline functions of the header.
    int post_send(ibv_qp* qp, ibv_send_wr* first, ibv_send_wr** bad) override { return ibv_post_send(qp, first, bad); }
    int post_recv(ibv_qp* qp, ibv_recv_wr* first, ibv_recv_wr** bad) override { return ibv_post_recv(qp, first, bad); }
    int post_srq_recv(ibv_srq* srq, ibv_recv_wr* first, ibv_recv_wr** bad) override {
        return ibv_post_srq_recv(srq, first, bad);
    }
    int poll_cq(ibv_cq* cq, int max_entries, ibv_wc* out) override { return ibv_poll_cq(cq, max_entries, out); }
    int req_notify_cq(ibv_cq* cq, bool solicited_only) override {
        return ibv_req_notify_cq(cq, solicited_only ? 1 : 0);
    }

    int take_cq_event(ibv_comp_channel* channel) override {
        ibv_cq* cq = nullptr;
        void* context = nullptr;
        if (f_.get_cq_event(channel, &cq, &context) != 0) return -1;
        f_.ack_cq_events(cq, 1);
        return 0;
    }
    int take_async_event(ibv_context* context, ibv_async_event* out) override {
        if (f_.get_async_event(context, out) != 0) return -1;
        f_.ack_async_event(out);
        return 0;
    }
    const char* wc_status_str(ibv_wc_status status) override { return f_.wc_status_str(status); }
    const char* event_type_str(ibv_event_type type) override { return f_.event_type_str(type); }

private:
    Functions f_;
};

// Looks up functions by name and records the first missing one.
class Finder {
public:
    explicit Finder(void* library) : library_(library) {}
    template <class Function>
    void find(Function& into, const char* name) {
        into = reinterpret_cast<Function>(::dlsym(library_, name));
        if (into == nullptr && missing_ == nullptr) missing_ = name;
    }
    [[nodiscard]] const char* missing() const { return missing_; }

private:
    void* library_;
    const char* missing_ = nullptr;
};

void find_set_up(Finder& finder, Functions& f) {
    finder.find(f.get_device_list, "ibv_get_device_list");
    finder.find(f.free_device_list, "ibv_free_device_list");
    finder.find(f.open_device, "ibv_open_device");
    finder.find(f.close_device, "ibv_close_device");
    finder.find(f.query_device, "ibv_query_device");
    finder.find(f.query_port, "ibv_query_port");
    finder.find(f.query_gid_table, "_ibv_query_gid_table");
    finder.find(f.query_pkey, "ibv_query_pkey");
    finder.find(f.alloc_pd, "ibv_alloc_pd");
    finder.find(f.dealloc_pd, "ibv_dealloc_pd");
    finder.find(f.reg_mr, "ibv_reg_mr");
    finder.find(f.dereg_mr, "ibv_dereg_mr");
}

void find_queues(Finder& finder, Functions& f) {
    finder.find(f.create_comp_channel, "ibv_create_comp_channel");
    finder.find(f.destroy_comp_channel, "ibv_destroy_comp_channel");
    finder.find(f.create_cq, "ibv_create_cq");
    finder.find(f.destroy_cq, "ibv_destroy_cq");
    finder.find(f.create_srq, "ibv_create_srq");
    finder.find(f.destroy_srq, "ibv_destroy_srq");
    finder.find(f.create_qp, "ibv_create_qp");
    finder.find(f.modify_qp, "ibv_modify_qp");
    finder.find(f.destroy_qp, "ibv_destroy_qp");
    finder.find(f.create_ah, "ibv_create_ah");
    finder.find(f.destroy_ah, "ibv_destroy_ah");
    finder.find(f.get_cq_event, "ibv_get_cq_event");
    finder.find(f.ack_cq_events, "ibv_ack_cq_events");
    finder.find(f.get_async_event, "ibv_get_async_event");
    finder.find(f.ack_async_event, "ibv_ack_async_event");
    finder.find(f.wc_status_str, "ibv_wc_status_str");
    finder.find(f.event_type_str, "ibv_event_type_str");
}

}  // namespace

Result<Library> load_library(const char* file) {
    // The drivers that the library opens stay in the process, so the library must stay too.
    void* const opened = ::dlopen(file, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (opened == nullptr) {
        const char* const why = ::dlerror();
        return Status{Code::unreachable, fmt::format("cannot open libibverbs: {} (on Debian: packages libibverbs1 and "
                                                     "ibverbs-providers)",
                                                     why != nullptr ? why : file)};
    }
    Functions functions{};
    Finder finder(opened);
    find_set_up(finder, functions);
    find_queues(finder, functions);
    if (finder.missing() == nullptr) return Library(std::make_shared<LoadedLibrary>(functions));
    return Status{Code::unreachable,
                  fmt::format("{} is too old: it lacks {} (rdma-core 32 or newer is needed)", file, finder.missing())};
}

Code code_of(ibv_wc_status status) {
    switch (status) {
        case IBV_WC_SUCCESS: return Code::ok;
        case IBV_WC_RETRY_EXC_ERR:
        case IBV_WC_RNR_RETRY_EXC_ERR:
        case IBV_WC_REM_ABORT_ERR:
        case IBV_WC_WR_FLUSH_ERR: return Code::peer_dead;
        case IBV_WC_RESP_TIMEOUT_ERR: return Code::timeout;
        case IBV_WC_REM_ACCESS_ERR: return Code::range;
        default: return Code::system;
    }
}

const char* hint_for(ibv_wc_status status) {
    switch (status) {
        case IBV_WC_RETRY_EXC_ERR:
            return "the peer's port did not acknowledge in time: has the process or host gone, is a cable or switch "
                   "down, does RoCE's traffic class match the network? NPUSHMEM_IB_TIMEOUT and NPUSHMEM_IB_RETRY_COUNT "
                   "set the number and time of retries";
        case IBV_WC_REM_ACCESS_ERR:
            return "the peer's key does not allow it: the peer has deregistered or freed the memory";
        case IBV_WC_REM_INV_REQ_ERR:
        case IBV_WC_REM_OP_ERR: return "the peer's port cannot carry it out; the kernel's log there may say more";
        case IBV_WC_LOC_PROT_ERR: return "memory of this PE is not registered (any more)";
        case IBV_WC_WR_FLUSH_ERR: return "the queue pair was stopped by an earlier error or by its owner";
        default: return "";
    }
}

}  // namespace npushmem::verbs
