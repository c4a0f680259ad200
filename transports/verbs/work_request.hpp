// SPDX-License-Identifier: BSD-3-Clause
// Work requests: their IDs, and chains that are posted together.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <span>

#include "transports/verbs/verbs_library.hpp"

namespace npushmem::verbs {

// Identifies the completion of a work request.
//
//     | kind 8 | connection 24 | sequence or index 32 |
struct WorkRequestId {
    enum class Kind : std::uint8_t { post = 1, receive, handshake_send, handshake_receive };
    Kind kind;
    std::uint32_t connection = 0;  // index within the wire
    std::uint32_t which = 0;

    [[nodiscard]] std::uint64_t packed() const {
        return static_cast<std::uint64_t>(kind) << 56 | static_cast<std::uint64_t>(connection) << 32 | which;
    }
    static WorkRequestId of(std::uint64_t packed) {
        return {static_cast<Kind>(packed >> 56), static_cast<std::uint32_t>(packed >> 32 & 0xffffffU),
                static_cast<std::uint32_t>(packed)};
    }
};

// A range of this PE's memory.
struct LocalSegment {
    const void* address;
    std::uint32_t bytes;
    std::uint32_t lkey;
};
struct RemoteWord {
    std::uint64_t address;
    std::uint32_t rkey;
};

// A few work requests that are posted together.
class WorkChain {
public:
    static constexpr std::uint32_t max_size = 16;

    [[nodiscard]] std::uint32_t size() const { return size_; }
    [[nodiscard]] bool full() const { return size_ == max_size; }
    [[nodiscard]] ibv_send_wr* first() { return requests_.data(); }
    [[nodiscard]] ibv_send_wr& operator[](std::uint32_t i) { return requests_[i]; }

    // Inline data is copied when the chain is posted: its source may change afterwards.
    void write(const LocalSegment& from, const RemoteWord& to, bool is_inline) {
        add(IBV_WR_RDMA_WRITE, from, to).send_flags |= inline_flag(is_inline);
    }
    void read(const RemoteWord& from, const LocalSegment& to) { add(IBV_WR_RDMA_READ, to, from); }
    // A write of 0 bytes, for its completion only.
    void stamp() { next(IBV_WR_RDMA_WRITE); }
    void fetch_add(const RemoteWord& at, std::uint64_t operand, const LocalSegment& old) {
        atomic(IBV_WR_ATOMIC_FETCH_AND_ADD, at, old).compare_add = operand;
    }
    void compare_swap(const RemoteWord& at, std::uint64_t compare, std::uint64_t operand, const LocalSegment& old) {
        auto& made = atomic(IBV_WR_ATOMIC_CMP_AND_SWP, at, old);
        made.compare_add = compare;
        made.swap = operand;
    }
    // A message in up to two pieces, which wakes the receiver. Passes `immediate` to the receiver unless it is 0.
    void message(const LocalSegment& head, const LocalSegment& rest, bool is_inline, std::uint32_t immediate) {
        pieces_[size_] = {piece(head), piece(rest)};
        ibv_send_wr& request = next(immediate != 0 ? IBV_WR_SEND_WITH_IMM : IBV_WR_SEND);
        request.num_sge = rest.bytes > 0 ? 2 : 1;
        request.imm_data = immediate;
        request.send_flags |= inline_flag(is_inline) | IBV_SEND_SOLICITED;
    }

private:
    static unsigned inline_flag(bool is_inline) { return is_inline ? static_cast<unsigned>(IBV_SEND_INLINE) : 0U; }
    static ibv_sge piece(const LocalSegment& place) {
        return {reinterpret_cast<std::uintptr_t>(place.address), place.bytes, place.lkey};
    }
    ibv_send_wr& next(ibv_wr_opcode what) {
        ibv_send_wr& request = requests_[size_];
        request = {};
        request.opcode = what;
        request.sg_list = pieces_[size_].data();
        if (size_ > 0) requests_[size_ - 1].next = &request;
        ++size_;
        return request;
    }
    ibv_send_wr& add(ibv_wr_opcode what, const LocalSegment& here, const RemoteWord& there) {
        pieces_[size_][0] = piece(here);
        ibv_send_wr& request = next(what);
        request.num_sge = 1;
        request.wr.rdma.remote_addr = there.address;
        request.wr.rdma.rkey = there.rkey;
        return request;
    }
    auto atomic(ibv_wr_opcode what, const RemoteWord& at, const LocalSegment& old)
        -> decltype(ibv_send_wr{}.wr.atomic) & {
        pieces_[size_][0] = piece(old);
        ibv_send_wr& request = next(what);
        request.num_sge = 1;
        request.wr.atomic.remote_addr = at.address;
        request.wr.atomic.rkey = at.rkey;
        return request.wr.atomic;
    }

    std::array<ibv_send_wr, max_size> requests_;
    std::array<std::array<ibv_sge, 2>, max_size> pieces_;
    std::uint32_t size_ = 0;
};

}  // namespace npushmem::verbs
