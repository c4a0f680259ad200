#include "transports/verbs/connection.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>

#include "transports/verbs/port_list.hpp"
#include "transports/verbs/route.hpp"
#include "transports/verbs/work_number.hpp"

namespace npushmem::verbs {
namespace {

// Of a burst, one in so many asks for a completion. The first ones all do: a request that has not asked costs another
// that does, if it was the last.
constexpr std::uint32_t most_unasked = 32;
constexpr std::uint32_t first_ones = 32;
constexpr std::uint8_t not_ready_forever = 7;
constexpr std::uint8_t not_ready_delay = 1;  // 10 us until a peer without a free receive is tried again

Status failure_of(const char* what, int error) {
    return {Code::system, fmt::format("{}: {}", what, text_of_error(error))};
}

}  // namespace

Connection::Connection(OpenedPort& port, const Purpose& purpose)
    : port_(port),
      purpose_(purpose),
      depth_(std::min(port.settings().queue_depth, static_cast<std::uint32_t>(port.device().max_qp_wr))),
      first_packet_(0x5eed00U + static_cast<std::uint32_t>(purpose.way.pe) % 0x1000U),
      ring_(std::bit_ceil(depth_)) {}

Result<std::unique_ptr<Connection>> Connection::make(OpenedPort& port, ibv_srq* receives, const Purpose& purpose) {
    std::unique_ptr<Connection> out(new Connection(port, purpose));
    Status s = out->make_pair(receives);
    if (s.ok()) s = out->to_init();
    if (!s.ok()) return s;
    return out;
}

// Devices differ in how much they take within a request, and some refuse what they could round down.
Status Connection::make_pair(ibv_srq* receives) {
    int error = 0;
    for (const std::uint32_t inline_wanted : {220U, 64U, 0U}) {
        ibv_qp_init_attr wanted{};
        wanted.qp_type = IBV_QPT_RC;
        wanted.send_cq = wanted.recv_cq = port_.cq();
        wanted.srq = receives;
        wanted.cap.max_send_wr = depth_;
        wanted.cap.max_send_sge = 2;
        wanted.cap.max_inline_data = inline_wanted;
        pair_ = {port_.library().create_qp(port_.pd(), &wanted),
                 [&library = port_.library()](ibv_qp* pair) { library.destroy_qp(pair); }};
        if (pair_) {
            inline_bytes_ = wanted.cap.max_inline_data;
            return {};
        }
        error = errno;
        if (error != EINVAL) break;
    }
    return {Code::system, fmt::format("ibv_create_qp with {} requests (NPUSHMEM_QP_DEPTH): {}; the device has {} queue "
                                      "pairs in all{}",
                                      depth_, text_of_error(error), port_.device().max_qp,
                                      registration_hint(error, port_.registered_bytes()))};
}

Status Connection::to_init() {
    ibv_qp_attr to{};
    to.qp_state = IBV_QPS_INIT;
    to.pkey_index = port_.pkey_index();
    to.port_num = port_.number();
    to.qp_access_flags = static_cast<unsigned>(port_.remote_access());
    const int failed = port_.library().modify_qp(pair_.get(), &to,
                                                 IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
    return failed == 0 ? Status{} : failure_of("ibv_modify_qp to INIT", failed);
}

Status Connection::to_receive(const Greeting& peer) {
    ibv_qp_attr to{};
    to.qp_state = IBV_QPS_RTR;
    to.path_mtu = std::min(port_.mtu(), static_cast<ibv_mtu>(peer.from.mtu));
    to.dest_qp_num = peer.number;
    to.rq_psn = peer.first_packet;
    to.max_dest_rd_atomic = port_.reads_at_once();
    to.min_rnr_timer = not_ready_delay;
    to.ah_attr = route_to(peer.from, port_);
    const int failed = port_.library().modify_qp(pair_.get(), &to,
                                                 IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
                                                     IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
    return failed == 0 ? Status{} : failure_of("ibv_modify_qp to RTR (is there a route to the peer?)", failed);
}

Status Connection::to_send(const Greeting& peer) {
    ibv_qp_attr to{};
    to.qp_state = IBV_QPS_RTS;
    to.timeout = port_.settings().timeout;
    to.retry_cnt = port_.settings().retry_count;
    to.rnr_retry = not_ready_forever;
    to.sq_psn = first_packet_;
    to.max_rd_atomic = std::min(port_.reads_at_once(), peer.from.reads_at_once);
    const int failed = port_.library().modify_qp(
        pair_.get(), &to,
        IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC);
    return failed == 0 ? Status{} : failure_of("ibv_modify_qp to RTS", failed);
}

Status Connection::connect(const Greeting& peer) {
    if (connected_) return {};
    Status s = to_receive(peer);
    if (s.ok()) s = to_send(peer);
    connected_ = s.ok();
    return s;
}

void Connection::enter(ibv_send_wr& request, Posted posted, bool asked) {
    const bool atomic = request.opcode == IBV_WR_ATOMIC_FETCH_AND_ADD || request.opcode == IBV_WR_ATOMIC_CMP_AND_SWP;
    // Without it a later write may arrive before an earlier atomic.
    if (atomics_ > 0 && !atomic) request.send_flags |= IBV_SEND_FENCE;
    if (asked) request.send_flags |= IBV_SEND_SIGNALED;
    request.wr_id = WorkNumber{WorkNumber::Kind::post, purpose_.number, head_}.packed();
    ring_[head_ & (ring_.size() - 1)] = {posted, asked, atomic};
    ++head_;
    if (atomic) ++atomics_;
    since_asked_ = asked ? 0 : since_asked_ + 1;
    if (asked) ++asked_;
}

Code Connection::post(WorkChain& chain, Posted last) {
    const bool ask = asked_ == 0 || under_way() < first_ones || since_asked_ + chain.size() >= most_unasked;
    for (std::uint32_t i = 0; i < chain.size(); ++i) {
        const bool is_last = i + 1 == chain.size();
        enter(chain[i], is_last ? last : Posted{}, is_last && ask);
    }
    ibv_send_wr* bad = nullptr;
    const int failed = port_.library().post_send(pair_.get(), chain.first(), &bad);
    if (failed == 0) [[likely]]
        return Code::ok;
    take_back(chain.size() - static_cast<std::uint32_t>((bad != nullptr ? bad : chain.first()) - chain.first()));
    fail({Code::system, fmt::format("ibv_post_send: {}", text_of_error(failed))});
    stop();
    return failure_.code();
}

// The newest were not taken by the device.
void Connection::take_back(std::uint32_t count) {
    for (; count > 0; --count) {
        const Entry& entry = ring_[--head_ & (ring_.size() - 1)];
        if (entry.asked) --asked_;
        if (entry.atomic) --atomics_;
    }
}

void Connection::stop() {
    ibv_qp_attr to{};
    to.qp_state = IBV_QPS_ERR;
    (void)port_.library().modify_qp(pair_.get(), &to, IBV_QP_STATE);
}

Code Connection::finish_burst() {
    WorkChain stamp;
    stamp.stamp();
    return post(stamp, {});
}

}  // namespace npushmem::verbs
