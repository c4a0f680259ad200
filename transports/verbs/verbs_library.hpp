// SPDX-License-Identifier: BSD-3-Clause
// The functions of libibverbs that the transport uses, as an interface: tests replace it by a fake, and a machine
// without the library can run all other transports.
//
// Names, arguments and results are those of the functions ibv_<name>: null with errno, or an error number.
#pragma once

#include <infiniband/verbs.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>

#include "npushmem/plugin/status.hpp"

namespace npushmem::verbs {

class VerbsLibrary {
public:
    VerbsLibrary() = default;
    VerbsLibrary(const VerbsLibrary&) = delete;
    VerbsLibrary& operator=(const VerbsLibrary&) = delete;
    virtual ~VerbsLibrary() = default;

    virtual ibv_device** get_device_list(int* count) = 0;
    virtual void free_device_list(ibv_device** list) = 0;
    virtual ibv_context* open_device(ibv_device* device) = 0;
    virtual int close_device(ibv_context* context) = 0;
    virtual int query_device(ibv_context* context, ibv_device_attr* out) = 0;
    virtual int query_port(ibv_context* context, std::uint8_t port, ibv_port_attr* out) = 0;
    virtual ssize_t query_gid_table(ibv_context* context, ibv_gid_entry* out, std::size_t max_entries) = 0;
    virtual int query_pkey(ibv_context* context, std::uint8_t port, int index, std::uint16_t* out) = 0;

    virtual ibv_pd* alloc_pd(ibv_context* context) = 0;
    virtual int dealloc_pd(ibv_pd* pd) = 0;
    virtual ibv_mr* reg_mr(ibv_pd* pd, void* base, std::size_t bytes, int access) = 0;
    virtual int dereg_mr(ibv_mr* mr) = 0;
    virtual ibv_comp_channel* create_comp_channel(ibv_context* context) = 0;
    virtual int destroy_comp_channel(ibv_comp_channel* channel) = 0;
    virtual ibv_cq* create_cq(ibv_context* context, int entries, ibv_comp_channel* channel) = 0;
    virtual int destroy_cq(ibv_cq* cq) = 0;
    virtual ibv_srq* create_srq(ibv_pd* pd, ibv_srq_init_attr* wanted) = 0;
    virtual int destroy_srq(ibv_srq* srq) = 0;
    virtual ibv_qp* create_qp(ibv_pd* pd, ibv_qp_init_attr* wanted) = 0;
    virtual int modify_qp(ibv_qp* qp, ibv_qp_attr* to, int mask) = 0;
    virtual int destroy_qp(ibv_qp* qp) = 0;
    virtual ibv_ah* create_ah(ibv_pd* pd, ibv_ah_attr* to) = 0;
    virtual int destroy_ah(ibv_ah* ah) = 0;

    virtual int post_send(ibv_qp* qp, ibv_send_wr* first, ibv_send_wr** bad) = 0;
    virtual int post_recv(ibv_qp* qp, ibv_recv_wr* first, ibv_recv_wr** bad) = 0;
    virtual int post_srq_recv(ibv_srq* srq, ibv_recv_wr* first, ibv_recv_wr** bad) = 0;
    virtual int poll_cq(ibv_cq* cq, int max_entries, ibv_wc* out) = 0;
    virtual int req_notify_cq(ibv_cq* cq, bool solicited_only) = 0;
    // get_cq_event followed by ack_cq_events for that event. The descriptor of the channel is non-blocking.
    virtual int take_cq_event(ibv_comp_channel* channel) = 0;
    // get_async_event followed by ack_async_event. The descriptor of the context is non-blocking.
    virtual int take_async_event(ibv_context* context, ibv_async_event* out) = 0;

    virtual const char* wc_status_str(ibv_wc_status status) = 0;
    virtual const char* event_type_str(ibv_event_type type) = 0;
};

using Library = std::shared_ptr<VerbsLibrary>;

// Owns an object of the library and destroys it.
template <class Object>
using Owned = std::unique_ptr<Object, std::function<void(Object*)>>;

// Loads libibverbs. The error names the missing file or function, and the packages to install.
Result<Library> load_library(const char* file = "libibverbs.so.1");

// The Code for the status of a work request.
Code code_of(ibv_wc_status status);

// A hint, as a clause for people, about the cause of a failure; empty: unknown.
const char* hint_for(ibv_wc_status status);

}  // namespace npushmem::verbs
