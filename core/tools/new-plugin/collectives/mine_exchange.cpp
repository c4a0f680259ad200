// SPDX-License-Identifier: BSD-3-Clause
#include "mine_exchange.hpp"

#include <cstring>

#include "mine_reduction.hpp"

namespace mine_plugin {

Exchange::Exchange(const Connections& connections, const npushmem_coll_call& call)
    : connections_(connections), call_(call), transfers_(static_cast<std::size_t>(connections.size())) {
    const auto size = static_cast<std::size_t>(connections.size());
    switch (call.collective) {
        case NPUSHMEM_COLL_BARRIER: exchange_barrier(); break;
        case NPUSHMEM_COLL_BROADCAST: exchange_broadcast(); break;
        case NPUSHMEM_COLL_COLLECT: exchange_parts({call.counts, call.counts + size}); break;
        case NPUSHMEM_COLL_FCOLLECT: exchange_parts(std::vector<std::uint64_t>(size, call.count)); break;
        case NPUSHMEM_COLL_ALLTOALL: exchange_blocks(static_cast<std::byte*>(call.dest), call.count); break;
        default: exchange_operands(); break;
    }
}

// Not to itself.
void Exchange::send_to_all(const void* data, std::size_t bytes) {
    for (int member = 0; member < connections_.size(); ++member) {
        if (member == connections_.index()) continue;
        Transfer& transfer = transfers_[static_cast<std::size_t>(member)];
        transfer.send = static_cast<const std::byte*>(data);
        transfer.send_bytes = bytes;
    }
}

// The byte of each member says that it has started.
void Exchange::exchange_barrier() {
    operands_.resize(transfers_.size());
    send_to_all(operands_.data() + connections_.index(), 1);
    for (int member = 0; member < connections_.size(); ++member) {
        if (member == connections_.index()) continue;
        Transfer& transfer = transfers_[static_cast<std::size_t>(member)];
        transfer.receive = operands_.data() + member;
        transfer.receive_bytes = 1;
    }
}

void Exchange::exchange_broadcast() {
    if (connections_.index() == call_.root) return send_to_all(call_.source, call_.count);
    Transfer& from_root = transfers_[static_cast<std::size_t>(call_.root)];
    from_root.receive = static_cast<std::byte*>(call_.dest);
    from_root.receive_bytes = call_.count;
}

void Exchange::exchange_parts(const std::vector<std::uint64_t>& bytes) {
    send_to_all(call_.source, call_.count);
    auto* into = static_cast<std::byte*>(call_.dest);
    for (int member = 0; member < connections_.size(); ++member) {
        const std::size_t part = bytes[static_cast<std::size_t>(member)];
        Transfer& transfer = transfers_[static_cast<std::size_t>(member)];
        if (member == connections_.index() && part > 0)
            std::memcpy(into, call_.source, part);
        else if (member != connections_.index())
            transfer = {transfer.send, transfer.send_bytes, into, part};
        into += part;
    }
}

// Block i of the source goes to member i; that of member i for this one arrives as block i of `into`.
void Exchange::exchange_blocks(std::byte* into, std::size_t bytes) {
    const auto* const from = static_cast<const std::byte*>(call_.source);
    for (std::size_t member = 0; member < transfers_.size(); ++member) {
        const std::size_t at = member * bytes;
        if (member == static_cast<std::size_t>(connections_.index()))
            std::memcpy(into + at, from + at, bytes);
        else
            transfers_[member] = {from + at, bytes, into + at, bytes};
    }
}

void Exchange::exchange_operands() {
    operand_bytes_ = call_.count * bytes_of(call_.type);
    operands_.resize(operand_bytes_ * transfers_.size());
    if (call_.collective == NPUSHMEM_COLL_REDUCESCATTER) return exchange_blocks(operands_.data(), operand_bytes_);
    send_to_all(call_.source, operand_bytes_);
    std::memcpy(operand(connections_.index()), call_.source, operand_bytes_);
    for (int member = 0; member < connections_.size(); ++member) {
        if (member == connections_.index()) continue;
        Transfer& transfer = transfers_[static_cast<std::size_t>(member)];
        transfer.receive = operand(member);
        transfer.receive_bytes = operand_bytes_;
    }
}

std::byte* Exchange::operand(int member) {
    return operands_.data() + static_cast<std::size_t>(member) * operand_bytes_;
}

// In the order of members, so that all get the same bits, and those of npushmem.
void Exchange::reduce() {
    for (int member = 1; member < connections_.size(); ++member)
        combine(call_.operation, call_.type, operand(0), operand(member), call_.count);
    std::memcpy(call_.dest, operand(0), operand_bytes_);
}

Status Exchange::progress() {
    bool complete = true;
    for (int member = 0; member < connections_.size(); ++member) {
        Transfer& transfer = transfers_[static_cast<std::size_t>(member)];
        Status moved = connections_.send(member, transfer.send, transfer.send_bytes);
        if (moved.ok()) moved = connections_.receive(member, transfer.receive, transfer.receive_bytes);
        if (!moved.ok()) return moved;
        complete = complete && transfer.send_bytes == 0 && transfer.receive_bytes == 0;
    }
    if (!complete) return {Code::again, {}};
    if (call_.collective >= NPUSHMEM_COLL_REDUCE) reduce();
    return {};
}

}  // namespace mine_plugin
