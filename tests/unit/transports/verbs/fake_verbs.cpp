// SPDX-License-Identifier: BSD-3-Clause
#include "tests/unit/transports/verbs/fake_verbs.hpp"

#include <arpa/inet.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <cstring>
#include <utility>

namespace npushmem::fakes {

FakeVerbs::Device& FakeVerbs::add_device(const std::string& name, ibv_port_state state, std::uint8_t link_layer) {
    Device& out = devices_.emplace_back();
    std::memset(static_cast<ibv_device*>(&out), 0, sizeof(ibv_device));
    (void)name.copy(out.name, sizeof out.name - 1);
    out.attributes.max_qp = 1000;
    out.attributes.max_qp_wr = 4096;
    out.attributes.max_cqe = 4096;
    out.attributes.max_qp_rd_atom = out.attributes.max_qp_init_rd_atom = 16;
    out.attributes.phys_port_cnt = 1;
    out.attributes.atomic_cap = IBV_ATOMIC_HCA;
    ibv_port_attr port{};
    port.state = state;
    port.active_mtu = IBV_MTU_1024;
    port.gid_tbl_len = 4;
    port.pkey_tbl_len = 2;
    port.max_msg_sz = 1U << 30;
    port.active_width = 2;
    port.active_speed = 32;
    port.link_layer = link_layer;
    out.ports.push_back(port);
    ibv_gid_entry gid{};
    gid.port_num = 1;
    gid.gid_index = 1;
    gid.gid_type = link_layer == IBV_LINK_LAYER_ETHERNET ? IBV_GID_TYPE_ROCE_V2 : IBV_GID_TYPE_IB;
    if (link_layer != IBV_LINK_LAYER_ETHERNET) gid.gid_index = 0;
    gid.gid.raw[10] = gid.gid.raw[11] = 0xff;
    gid.gid.raw[12] = 10;
    gid.gid.raw[15] = static_cast<std::uint8_t>(devices_.size());
    out.gids.push_back(gid);
    return out;
}

int FakeVerbs::error_of(const std::string& call) {
    ++calls[call];
    const auto found = faults_.find(call);
    if (found == faults_.end() || found->second.after-- > 0) return 0;
    return found->second.error;
}

int FakeVerbs::refuses(const ibv_context* context, int access) {
    const bool none = static_cast<const Device*>(context->device)->attributes.atomic_cap == IBV_ATOMIC_NONE;
    return none && (access & IBV_ACCESS_REMOTE_ATOMIC) != 0 ? EINVAL : 0;
}

int FakeVerbs::new_descriptor() {
    descriptors_.push_back(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    return descriptors_.back();
}

ibv_device** FakeVerbs::get_device_list(int* count) {
    if (const int error = error_of("get_device_list"); error != 0) {
        errno = error;
        return nullptr;
    }
    auto** const out = new ibv_device*[devices_.size() + 1]();
    for (std::size_t i = 0; i < devices_.size(); ++i) out[i] = &devices_[i];
    *count = static_cast<int>(devices_.size());
    return out;
}

ibv_context* FakeVerbs::open_device(ibv_device* device) {
    auto* const out = make<Context>("open_device", nullptr);
    if (out == nullptr) return nullptr;
    out->device = device;
    out->async_fd = new_descriptor();
    return out;
}

int FakeVerbs::query_device(ibv_context* context, ibv_device_attr* out) {
    *out = static_cast<Device*>(context->device)->attributes;
    return error_of("query_device");
}

int FakeVerbs::query_port(ibv_context* context, std::uint8_t port, ibv_port_attr* out) {
    *out = static_cast<Device*>(context->device)->ports.at(port - 1U);
    return error_of("query_port");
}

ssize_t FakeVerbs::query_gid_table(ibv_context* context, ibv_gid_entry* out, std::size_t max_entries) {
    const auto& gids = static_cast<Device*>(context->device)->gids;
    if (const int error = error_of("query_gid_table"); error != 0) return -error;
    std::copy_n(gids.begin(), std::min(max_entries, gids.size()), out);
    return static_cast<ssize_t>(std::min(max_entries, gids.size()));
}

int FakeVerbs::query_pkey(ibv_context*, std::uint8_t, int index, std::uint16_t* out) {
    *out = index == 0 ? 0xffff : htons(second_pkey);
    return error_of("query_pkey");
}

ibv_mr* FakeVerbs::reg_mr(ibv_pd* pd, void* base, std::size_t bytes, int access) {
    const int refused = refuses(pd->context, access);
    if (refused != 0 || registered_bytes() + bytes > lockable) {
        errno = refused != 0 ? refused : ENOMEM;
        return nullptr;
    }
    auto* const out = make<ibv_mr>("reg_mr", pd->context);
    if (out == nullptr) return nullptr;
    out->addr = base;
    out->length = bytes;
    out->lkey = out->rkey = ++last_;
    memory_[out->lkey] = out;
    return out;
}

int FakeVerbs::dereg_mr(ibv_mr* mr) {
    memory_.erase(mr->lkey);
    return destroy(mr);
}

ibv_comp_channel* FakeVerbs::create_comp_channel(ibv_context* context) {
    auto* const out = make<ibv_comp_channel>("create_comp_channel", context);
    if (out != nullptr) out->fd = new_descriptor();
    return out;
}

ibv_cq* FakeVerbs::create_cq(ibv_context* context, int entries, ibv_comp_channel* /*channel*/) {
    auto* const out = make<Cq>("create_cq", context);
    if (out != nullptr) out->max_entries = entries;
    return out;
}

ibv_srq* FakeVerbs::create_srq(ibv_pd* pd, ibv_srq_init_attr* /*wanted*/) {
    return make<Srq>("create_srq", pd->context);
}

ibv_qp* FakeVerbs::create_qp(ibv_pd* pd, ibv_qp_init_attr* wanted) {
    auto* const out = make<Pair>("create_qp", pd->context);
    if (out == nullptr) return nullptr;
    out->qp_num = ++last_;
    out->qp_type = wanted->qp_type;
    out->completions = static_cast<Cq*>(wanted->send_cq);
    out->receives = static_cast<Srq*>(wanted->srq);
    out->max_requests = wanted->cap.max_send_wr;
    out->inline_bytes = wanted->cap.max_inline_data = std::min(wanted->cap.max_inline_data, 64U);
    pairs_[out->qp_num] = out;
    if (wanted->qp_type == IBV_QPT_RC) reliable_pairs.push_back(out->qp_num);
    return out;
}

int FakeVerbs::modify_qp(ibv_qp* qp, ibv_qp_attr* to, int mask) {
    if (const int error = error_of("modify_qp"); error != 0) return error;
    if ((mask & IBV_QP_ACCESS_FLAGS) != 0 && refuses(qp->context, static_cast<int>(to->qp_access_flags)) != 0)
        return EINVAL;
    auto& pair = *static_cast<Pair*>(qp);
    if ((mask & IBV_QP_STATE) != 0) pair.state = to->qp_state;
    if ((mask & IBV_QP_DEST_QPN) != 0) pair.destination = to->dest_qp_num;
    changes.push_back(*to);
    if (pair.state == IBV_QPS_ERR) stop(pair, IBV_WC_WR_FLUSH_ERR);
    return 0;
}

int FakeVerbs::destroy_qp(ibv_qp* qp) {
    // As on some devices, destroying the pair drops its unpolled completions and their receives.
    auto& entries = static_cast<Pair*>(qp)->completions->entries;
    std::erase_if(entries, [qp](const ibv_wc& each) { return each.qp_num == qp->qp_num; });
    pairs_.erase(qp->qp_num);
    return destroy(static_cast<Pair*>(qp));
}

ibv_ah* FakeVerbs::create_ah(ibv_pd* pd, ibv_ah_attr* /*to*/) { return make<ibv_ah>("create_ah", pd->context); }

int FakeVerbs::post_send(ibv_qp* qp, ibv_send_wr* first, ibv_send_wr** bad) {
    auto& pair = *static_cast<Pair*>(qp);
    for (ibv_send_wr* each = first; each != nullptr; each = each->next) {
        *bad = each;
        if (const int error = error_of("post_send"); error != 0) return error;
        if (pair.state != IBV_QPS_RTS && pair.state != IBV_QPS_ERR) return EINVAL;
        if (pair.requests.size() == pair.max_requests) return ENOMEM;
        Request request{*each, {}, {each->sg_list, each->sg_list + each->num_sge}};
        if ((each->send_flags & IBV_SEND_INLINE) != 0) {
            for (const auto& piece : request.pieces) {
                const auto* const from = reinterpret_cast<const std::byte*>(piece.addr);
                request.data.insert(request.data.end(), from, from + piece.length);
            }
            if (request.data.size() > pair.inline_bytes) return EINVAL;
        }
        pair.requests.push_back(std::move(request));
    }
    if (pair.state == IBV_QPS_ERR) stop(pair, IBV_WC_WR_FLUSH_ERR);
    return 0;
}

int FakeVerbs::post_recv(ibv_qp* qp, ibv_recv_wr* first, ibv_recv_wr** bad) {
    *bad = first;
    if (const int error = error_of("post_recv"); error != 0) return error;
    static_cast<Pair*>(qp)->own_receives.push_back({first->wr_id, first->sg_list[0]});
    return 0;
}

int FakeVerbs::post_srq_recv(ibv_srq* srq, ibv_recv_wr* first, ibv_recv_wr** bad) {
    *bad = first;
    if (const int error = error_of("post_srq_recv"); error != 0) return error;
    static_cast<Srq*>(srq)->receives.push_back({first->wr_id, first->sg_list[0]});
    return 0;
}

int FakeVerbs::poll_cq(ibv_cq* cq, int max_entries, ibv_wc* out) {
    if (const int error = error_of("poll_cq"); error != 0) return -1;
    run();
    auto& entries = static_cast<Cq*>(cq)->entries;
    int count = 0;
    for (; count < max_entries && !entries.empty(); ++count) {
        out[count] = entries.front();
        entries.pop_front();
    }
    return count;
}

int FakeVerbs::take_async_event(ibv_context* /*context*/, ibv_async_event* out) {
    if (events_.empty()) return -1;
    *out = events_.front();
    events_.pop_front();
    return 0;
}

void FakeVerbs::run() {
    bool more = true;
    while (more) {
        more = false;
        for (auto& [number, pair] : pairs_) more = run_one(*pair) || more;
    }
}

bool FakeVerbs::run_one(Pair& pair) {
    if (pair.requests.empty() || pair.state != IBV_QPS_RTS) return false;
    Request& request = pair.requests.front();
    if (pair.qp_type == IBV_QPT_UD) {
        if (!deliver_datagram(pair, request)) return false;
        complete(pair, request.what, IBV_WC_SUCCESS);
        pair.requests.pop_front();
        return true;
    }
    if (holds || pair.context->device->name == held) return false;
    const auto target = pairs_.find(pair.destination);
    bool waits = false;
    ibv_wc_status status = std::exchange(next_status, IBV_WC_SUCCESS);
    const std::string device = pair.context->device->name;
    if (status == IBV_WC_SUCCESS && device == cut_off) status = IBV_WC_RETRY_EXC_ERR;
    if (status == IBV_WC_SUCCESS)
        status = target == pairs_.end() || is_cut_off(pair, *target->second) || target->second->state < IBV_QPS_RTR ||
                         target->second->state > IBV_QPS_RTS
                     ? IBV_WC_RETRY_EXC_ERR
                     : carry_out(request, *target->second, waits);
    if (waits) return false;
    if (status != IBV_WC_SUCCESS) {
        stop(pair, status);
        return true;
    }
    sent_bytes[device] += request.data.size();
    opcodes.push_back(request.what.opcode);
    send_flags.push_back(request.what.send_flags);
    complete(pair, request.what, status);
    pair.requests.pop_front();
    return true;
}

bool FakeVerbs::within(const ibv_mr& memory, std::uint64_t address, std::uint64_t bytes) {
    const auto begin = reinterpret_cast<std::uintptr_t>(memory.addr);
    return address >= begin && address + bytes <= begin + memory.length;
}

const ibv_mr* FakeVerbs::memory_of(std::uint32_t key, std::uint64_t address, std::uint64_t bytes) const {
    const auto found = memory_.find(key);
    return found != memory_.end() && within(*found->second, address, bytes) ? found->second : nullptr;
}

// False when a piece is not registered.
bool FakeVerbs::gather(Request& request) {
    if ((request.what.send_flags & IBV_SEND_INLINE) != 0) return true;
    for (const auto& piece : request.pieces) {
        if (memory_of(piece.lkey, piece.addr, piece.length) == nullptr) return false;
        const auto* const from = reinterpret_cast<const std::byte*>(piece.addr);
        request.data.insert(request.data.end(), from, from + piece.length);
    }
    return true;
}

ibv_wc_status FakeVerbs::receive(const Request& request, Pair& target, bool& waits) {
    auto& receives = target.receives->receives;
    if (receives.empty()) {
        waits = true;
        return IBV_WC_SUCCESS;
    }
    const Receive into = receives.front();
    receives.pop_front();
    std::memcpy(reinterpret_cast<void*>(into.place.addr), request.data.data(), request.data.size());
    ibv_wc done{};
    done.wr_id = into.number;
    done.byte_len = static_cast<std::uint32_t>(request.data.size());
    done.qp_num = target.qp_num;
    if (request.what.opcode == IBV_WR_SEND_WITH_IMM) {
        done.wc_flags = IBV_WC_WITH_IMM;
        done.imm_data = request.what.imm_data;
    }
    target.completions->entries.push_back(done);
    return IBV_WC_SUCCESS;
}

ibv_wc_status FakeVerbs::carry_out(Request& request, Pair& target, bool& waits) {
    request.data.resize((request.what.send_flags & IBV_SEND_INLINE) != 0 ? request.data.size() : 0);
    if (!gather(request)) return IBV_WC_LOC_PROT_ERR;
    const auto& rdma = request.what.wr.rdma;
    const auto& atomic = request.what.wr.atomic;
    const auto here = [&] { return reinterpret_cast<void*>(request.pieces.at(0).addr); };
    switch (request.what.opcode) {
        case IBV_WR_SEND:
        case IBV_WR_SEND_WITH_IMM: return receive(request, target, waits);
        case IBV_WR_RDMA_WRITE:
            if (request.data.empty()) return IBV_WC_SUCCESS;
            if (memory_of(rdma.rkey, rdma.remote_addr, request.data.size()) == nullptr) return IBV_WC_REM_ACCESS_ERR;
            std::memcpy(reinterpret_cast<void*>(rdma.remote_addr), request.data.data(), request.data.size());
            return IBV_WC_SUCCESS;
        case IBV_WR_RDMA_READ:
            if (memory_of(rdma.rkey, rdma.remote_addr, request.data.size()) == nullptr) return IBV_WC_REM_ACCESS_ERR;
            std::memcpy(here(), reinterpret_cast<void*>(rdma.remote_addr), request.data.size());
            return IBV_WC_SUCCESS;
        case IBV_WR_ATOMIC_FETCH_AND_ADD:
        case IBV_WR_ATOMIC_CMP_AND_SWP: {
            if (memory_of(atomic.rkey, atomic.remote_addr, sizeof(std::uint64_t)) == nullptr)
                return IBV_WC_REM_ACCESS_ERR;
            auto& word = *reinterpret_cast<std::uint64_t*>(atomic.remote_addr);
            const std::uint64_t old = word;
            if (request.what.opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) word = old + atomic.compare_add;
            if (request.what.opcode == IBV_WR_ATOMIC_CMP_AND_SWP && old == atomic.compare_add) word = atomic.swap;
            std::memcpy(here(), &old, sizeof old);
            return IBV_WC_SUCCESS;
        }
        default: return IBV_WC_LOC_QP_OP_ERR;
    }
}

// False when it waits for a receive.
bool FakeVerbs::deliver_datagram(const Pair& sender, Request& request) {
    constexpr std::size_t header = 40;
    request.data.clear();
    const auto target = pairs_.find(request.what.wr.ud.remote_qpn);
    if (drop_datagrams > 0)
        --drop_datagrams;
    else if (target != pairs_.end() && !is_cut_off(sender, *target->second) && target->second->qp_type == IBV_QPT_UD &&
             !target->second->own_receives.empty() && gather(request)) {
        const Receive into = target->second->own_receives.front();
        target->second->own_receives.pop_front();
        std::memcpy(reinterpret_cast<std::byte*>(into.place.addr) + header, request.data.data(), request.data.size());
        ibv_wc done{};
        done.wr_id = into.number;
        done.byte_len = static_cast<std::uint32_t>(header + request.data.size());
        done.qp_num = target->second->qp_num;
        target->second->completions->entries.push_back(done);
    }
    return true;
}

void FakeVerbs::complete(Pair& pair, const ibv_send_wr& what, ibv_wc_status status) {
    if (status == IBV_WC_SUCCESS && (what.send_flags & IBV_SEND_SIGNALED) == 0) return;
    ibv_wc done{};
    done.wr_id = what.wr_id;
    done.status = status;
    done.qp_num = pair.qp_num;
    pair.completions->entries.push_back(done);
}

void FakeVerbs::stop(Pair& pair, ibv_wc_status first) {
    pair.state = IBV_QPS_ERR;
    for (const Request& request : pair.requests)
        complete(pair, request.what, std::exchange(first, IBV_WC_WR_FLUSH_ERR));
    pair.requests.clear();
}

}  // namespace npushmem::fakes
