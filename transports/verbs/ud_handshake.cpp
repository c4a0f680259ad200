// SPDX-License-Identifier: BSD-3-Clause
#include "transports/verbs/ud_handshake.hpp"

#include <fmt/format.h>
#include <cerrno>

#include "transports/verbs/connection.hpp"
#include "transports/verbs/ports.hpp"
#include "transports/verbs/work_request.hpp"

namespace npushmem::verbs {

namespace {

Status handshake_failure(const char* what, int error) {
    return {Code::system, fmt::format("ibv_{} for connect messages: {}", what, text_of_error(error))};
}

}  // namespace

Result<std::unique_ptr<UdHandshake>> UdHandshake::open(OpenedPort& port) {
    std::unique_ptr<UdHandshake> out(new UdHandshake(port));
    auto incoming = BufferPool::make(port.domain(), receives, route_header_bytes + sizeof(ConnectMessage));
    if (!incoming.ok()) return incoming.status();
    out->incoming_ = std::move(incoming).value();
    auto outgoing = BufferPool::make(port.domain(), sends, sizeof(ConnectMessage));
    if (!outgoing.ok()) return outgoing.status();
    out->outgoing_ = std::move(outgoing).value();
    Status s = out->make_pair();
    if (s.ok()) s = out->make_ready();
    for (std::size_t i = 0; s.ok() && i < receives; ++i) s = out->post_receive(i);
    if (!s.ok()) return s;
    return out;
}

Status UdHandshake::make_pair() {
    ibv_qp_init_attr wanted{};
    wanted.qp_type = IBV_QPT_UD;
    wanted.send_cq = wanted.recv_cq = port_.completions().get();
    wanted.cap.max_send_wr = sends;
    wanted.cap.max_recv_wr = receives;
    wanted.cap.max_send_sge = wanted.cap.max_recv_sge = 1;
    pair_ = {port_.library().create_qp(port_.domain().get(), &wanted),
             [&library = port_.library()](ibv_qp* pair) { library.destroy_qp(pair); }};
    return pair_ ? Status{} : handshake_failure("create_qp", errno);
}

Status UdHandshake::make_ready() {
    ibv_qp_attr to{};
    to.qp_state = IBV_QPS_INIT;
    to.pkey_index = port_.pkey_index();
    to.port_num = port_.number();
    to.qkey = key;
    int failed =
        port_.library().modify_qp(pair_.get(), &to, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY);
    to.qp_state = IBV_QPS_RTR;
    if (failed == 0) failed = port_.library().modify_qp(pair_.get(), &to, IBV_QP_STATE);
    to.qp_state = IBV_QPS_RTS;
    to.sq_psn = 0;
    if (failed == 0) failed = port_.library().modify_qp(pair_.get(), &to, IBV_QP_STATE | IBV_QP_SQ_PSN);
    return failed == 0 ? Status{} : handshake_failure("modify_qp", failed);
}

Status UdHandshake::post_receive(std::size_t index) {
    ibv_sge place{reinterpret_cast<std::uintptr_t>(incoming_->at(index)),
                  static_cast<std::uint32_t>(incoming_->bytes()), incoming_->lkey()};
    ibv_recv_wr request{};
    request.wr_id =
        WorkRequestId{WorkRequestId::Kind::handshake_receive, 0, static_cast<std::uint32_t>(index)}.packed();
    request.sg_list = &place;
    request.num_sge = 1;
    ibv_recv_wr* bad = nullptr;
    const int failed = port_.library().post_recv(pair_.get(), &request, &bad);
    return failed == 0 ? Status{} : handshake_failure("post_recv", failed);
}

Result<ibv_ah*> UdHandshake::address_handle_for(const PortAddress& peer) {
    Owned<ibv_ah>& handle = address_handles_[peer.nonce];
    if (handle) return handle.get();
    ibv_ah_attr route = address_handle_attributes(peer, port_);
    handle = {port_.library().create_ah(port_.domain().get(), &route),
              [&library = port_.library()](ibv_ah* made) { library.destroy_ah(made); }};
    if (!handle)
        return Status{Code::unreachable,
                      fmt::format("ibv_create_ah: {}; is there a route to it?", text_of_error(errno))};
    return handle.get();
}

Status UdHandshake::send(const PortAddress& to, const ConnectMessage& message) {
    const auto handle = address_handle_for(to);
    if (!handle.ok()) return handle.status();
    std::byte* const buffer = outgoing_->take();
    if (buffer == nullptr) return {};
    std::memcpy(buffer, &message, sizeof message);
    ibv_sge data{reinterpret_cast<std::uintptr_t>(buffer), sizeof message, outgoing_->lkey()};
    ibv_send_wr request{};
    request.wr_id =
        WorkRequestId{WorkRequestId::Kind::handshake_send, 0, static_cast<std::uint32_t>(outgoing_->index_of(buffer))}
            .packed();
    request.sg_list = &data;
    request.num_sge = 1;
    request.opcode = IBV_WR_SEND;
    request.send_flags = IBV_SEND_SIGNALED | IBV_SEND_SOLICITED;
    request.wr.ud.ah = handle.value();
    request.wr.ud.remote_qpn = to.handshake_qp;
    request.wr.ud.remote_qkey = key;
    ibv_send_wr* bad = nullptr;
    if (port_.library().post_send(pair_.get(), &request, &bad) != 0) outgoing_->release(buffer);
    return {};
}

std::optional<ConnectMessage> UdHandshake::received(const ibv_wc& completion) {
    const std::size_t index = WorkRequestId::of(completion.wr_id).which;
    std::optional<ConnectMessage> out;
    if (completion.status == IBV_WC_SUCCESS && completion.byte_len >= route_header_bytes)
        out = connect_message_from(std::span(incoming_->at(index), completion.byte_len).subspan(route_header_bytes));
    (void)post_receive(index);
    return out;
}

void UdHandshake::sent(const ibv_wc& completion) {
    outgoing_->release(outgoing_->at(WorkRequestId::of(completion.wr_id).which));
}

}  // namespace npushmem::verbs
