#include "transports/verbs/greeter.hpp"

#include <fmt/format.h>

#include <cerrno>

#include "transports/verbs/port_list.hpp"
#include "transports/verbs/route.hpp"
#include "transports/verbs/work_number.hpp"

namespace npushmem::verbs {
namespace {

Status greeting_failure(const char* what, int error) {
    return {Code::system, fmt::format("ibv_{} for greetings: {}", what, text_of_error(error))};
}

}  // namespace

Result<std::unique_ptr<Greeter>> Greeter::open(OpenedPort& port) {
    std::unique_ptr<Greeter> out(new Greeter(port));
    auto incoming = BufferPool::make(port, receives, route_header_bytes + sizeof(Greeting));
    if (!incoming.ok()) return incoming.status();
    out->incoming_ = std::move(incoming).value();
    auto outgoing = BufferPool::make(port, sends, sizeof(Greeting));
    if (!outgoing.ok()) return outgoing.status();
    out->outgoing_ = std::move(outgoing).value();
    Status s = out->make_pair();
    if (s.ok()) s = out->make_ready();
    for (std::size_t i = 0; s.ok() && i < receives; ++i) s = out->post_receive(i);
    if (!s.ok()) return s;
    return out;
}

Status Greeter::make_pair() {
    ibv_qp_init_attr wanted{};
    wanted.qp_type = IBV_QPT_UD;
    wanted.send_cq = wanted.recv_cq = port_.cq();
    wanted.cap.max_send_wr = sends;
    wanted.cap.max_recv_wr = receives;
    wanted.cap.max_send_sge = wanted.cap.max_recv_sge = 1;
    pair_ = {port_.library().create_qp(port_.pd(), &wanted),
             [&library = port_.library()](ibv_qp* pair) { library.destroy_qp(pair); }};
    return pair_ ? Status{} : greeting_failure("create_qp", errno);
}

Status Greeter::make_ready() {
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
    return failed == 0 ? Status{} : greeting_failure("modify_qp", failed);
}

Status Greeter::post_receive(std::size_t index) {
    ibv_sge place{reinterpret_cast<std::uintptr_t>(incoming_->at(index)),
                  static_cast<std::uint32_t>(incoming_->bytes()), incoming_->lkey()};
    ibv_recv_wr request{};
    request.wr_id = WorkNumber{WorkNumber::Kind::greeting_in, 0, static_cast<std::uint32_t>(index)}.packed();
    request.sg_list = &place;
    request.num_sge = 1;
    ibv_recv_wr* bad = nullptr;
    const int failed = port_.library().post_recv(pair_.get(), &request, &bad);
    return failed == 0 ? Status{} : greeting_failure("post_recv", failed);
}

Result<ibv_ah*> Greeter::way_to(const Contact& peer) {
    Owned<ibv_ah>& way = ways_[peer.nonce];
    if (way) return way.get();
    ibv_ah_attr route = route_to(peer, port_);
    way = {port_.library().create_ah(port_.pd(), &route),
           [&library = port_.library()](ibv_ah* made) { library.destroy_ah(made); }};
    if (!way)
        return Status{Code::unreachable,
                      fmt::format("ibv_create_ah: {}; is there a route to it?", text_of_error(errno))};
    return way.get();
}

Status Greeter::send(const Contact& to, const Greeting& greeting) {
    const auto way = way_to(to);
    if (!way.ok()) return way.status();
    std::byte* const buffer = outgoing_->take();
    if (buffer == nullptr) return {};
    std::memcpy(buffer, &greeting, sizeof greeting);
    ibv_sge data{reinterpret_cast<std::uintptr_t>(buffer), sizeof greeting, outgoing_->lkey()};
    ibv_send_wr request{};
    request.wr_id =
        WorkNumber{WorkNumber::Kind::greeting_out, 0, static_cast<std::uint32_t>(outgoing_->index_of(buffer))}.packed();
    request.sg_list = &data;
    request.num_sge = 1;
    request.opcode = IBV_WR_SEND;
    request.send_flags = IBV_SEND_SIGNALED | IBV_SEND_SOLICITED;
    request.wr.ud.ah = way.value();
    request.wr.ud.remote_qpn = to.greeter;
    request.wr.ud.remote_qkey = key;
    ibv_send_wr* bad = nullptr;
    if (port_.library().post_send(pair_.get(), &request, &bad) != 0) outgoing_->give_back(buffer);
    return {};
}

std::optional<Greeting> Greeter::received(const ibv_wc& completion) {
    const std::size_t index = WorkNumber::of(completion.wr_id).which;
    std::optional<Greeting> out;
    if (completion.status == IBV_WC_SUCCESS && completion.byte_len >= route_header_bytes)
        out = greeting_from(std::span(incoming_->at(index), completion.byte_len).subspan(route_header_bytes));
    (void)post_receive(index);
    return out;
}

void Greeter::sent(const ibv_wc& completion) {
    outgoing_->give_back(outgoing_->at(WorkNumber::of(completion.wr_id).which));
}

}  // namespace npushmem::verbs
