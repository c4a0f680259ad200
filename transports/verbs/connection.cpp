// SPDX-License-Identifier: BSD-3-Clause
#include "transports/verbs/connection.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "transports/verbs/ports.hpp"
#include "transports/verbs/work_request.hpp"

namespace npushmem::verbs {
namespace {

constexpr std::uint8_t rnr_retry_unlimited = 7;
// The IBTA code for a minimum RNR NAK timer of 10 us. When a send finds no posted receive at this PE, the peer waits at
// least this long before it retries the send.
constexpr std::uint8_t rnr_timer_10_us = 1;

Status failure_of(const char* what, int error) {
    return {Code::system, fmt::format("{}: {}", what, text_of_error(error))};
}

}  // namespace

Status QueuePair::open(ibv_srq* receives, std::uint32_t depth) {
    Status s = make(receives, depth);
    return s.ok() ? to_init() : s;
}

// Tries several inline sizes, the largest first: devices do not report their maximum, and ibv_create_qp may fail with
// EINVAL above it.
Status QueuePair::make(ibv_srq* receives, std::uint32_t depth) {
    int error = 0;
    for (const std::uint32_t inline_wanted : {220U, 64U, 0U}) {
        ibv_qp_init_attr wanted{};
        wanted.qp_type = IBV_QPT_RC;
        wanted.send_cq = wanted.recv_cq = port_.completions().get();
        wanted.srq = receives;
        wanted.cap.max_send_wr = depth;
        wanted.cap.max_send_sge = 2;
        wanted.cap.max_inline_data = inline_wanted;
        pair_ = {library_.create_qp(port_.domain().get(), &wanted),
                 [&library = library_](ibv_qp* pair) { library.destroy_qp(pair); }};
        if (pair_) {
            inline_bytes_ = wanted.cap.max_inline_data;
            return {};
        }
        error = errno;
        if (error != EINVAL) break;
    }
    return {Code::system,
            fmt::format("ibv_create_qp with {} send requests (NPUSHMEM_QP_DEPTH): {}; the device supports at most "
                        "{} queue pairs{}",
                        depth, text_of_error(error), port_.device().max_qp,
                        registration_hint(error, port_.domain().registered_bytes()))};
}

Status QueuePair::to_init() {
    ibv_qp_attr to{};
    to.qp_state = IBV_QPS_INIT;
    to.pkey_index = port_.pkey_index();
    to.port_num = port_.number();
    to.qp_access_flags = static_cast<unsigned>(port_.domain().remote_access());
    const int failed =
        library_.modify_qp(pair_.get(), &to, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
    return failed == 0 ? Status{} : failure_of("ibv_modify_qp to INIT", failed);
}

Status QueuePair::to_receive(const ConnectMessage& peer) {
    ibv_qp_attr to{};
    to.qp_state = IBV_QPS_RTR;
    to.path_mtu = std::min(port_.mtu(), static_cast<ibv_mtu>(peer.from.mtu));
    to.dest_qp_num = peer.number;
    to.rq_psn = peer.initial_psn;
    to.max_dest_rd_atomic = port_.max_rd_atomic();
    to.min_rnr_timer = rnr_timer_10_us;
    to.ah_attr = address_handle_attributes(peer.from, port_);
    const int failed = library_.modify_qp(pair_.get(), &to,
                                          IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                                              IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
    return failed == 0 ? Status{} : failure_of("ibv_modify_qp to RTR (is there a route to the peer?)", failed);
}

Status QueuePair::to_send(const ConnectMessage& peer) {
    ibv_qp_attr to{};
    to.qp_state = IBV_QPS_RTS;
    to.timeout = port_.settings().timeout;
    to.retry_cnt = port_.settings().retry_count;
    to.rnr_retry = rnr_retry_unlimited;
    to.sq_psn = initial_psn_;
    to.max_rd_atomic = std::min(port_.max_rd_atomic(), peer.from.max_rd_atomic);
    const int failed = library_.modify_qp(
        pair_.get(), &to,
        IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC);
    return failed == 0 ? Status{} : failure_of("ibv_modify_qp to RTS", failed);
}

Status QueuePair::connect(const ConnectMessage& peer) {
    Status s = to_receive(peer);
    return s.ok() ? to_send(peer) : s;
}

void QueuePair::stop() {
    ibv_qp_attr to{};
    to.qp_state = IBV_QPS_ERR;
    (void)library_.modify_qp(pair_.get(), &to, IBV_QP_STATE);
}

void SendQueue::roll_back(std::uint32_t count) {
    for (; count > 0; --count) {
        const Entry& entry = ring_[--head_ & (ring_.size() - 1)];
        if (entry.signaled) --signaled_;
        if (entry.atomic) --atomics_;
    }
}

Connection::Connection(OpenedPort& port, const ConnectionRole& role)
    : role_(role),
      requests_(std::min(port.settings().queue_depth, static_cast<std::uint32_t>(port.device().max_qp_wr))),
      // The initial PSN (24 bits) is arbitrary. The peer's PE number makes it differ between peers.
      pair_(port, 0x5eed00U + static_cast<std::uint32_t>(role.lane_id.pe) % 0x1000U) {}

Result<std::unique_ptr<Connection>> Connection::make(OpenedPort& port, ibv_srq* receives, const ConnectionRole& role) {
    std::unique_ptr<Connection> out(new Connection(port, role));
    if (Status s = out->pair_.open(receives, out->requests_.depth()); !s.ok()) return s;
    return out;
}

Status Connection::connect(const ConnectMessage& peer) {
    if (connected_) return {};
    Status s = pair_.connect(peer);
    connected_ = s.ok();
    return s;
}

Code Connection::post(WorkChain& chain, CompletionAction last) {
    requests_.record(chain, last, role_.number);
    ibv_send_wr* bad = nullptr;
    const int failed = pair_.post(chain.first(), &bad);
    if (failed == 0) [[likely]]
        return Code::ok;
    requests_.roll_back(chain.size() -
                        static_cast<std::uint32_t>((bad != nullptr ? bad : chain.first()) - chain.first()));
    fail({Code::system, fmt::format("ibv_post_send: {}", text_of_error(failed))});
    pair_.stop();
    return failure_.code();
}

Code Connection::finish_burst() {
    WorkChain stamp;
    stamp.stamp();
    return post(stamp, {});
}

}  // namespace npushmem::verbs
