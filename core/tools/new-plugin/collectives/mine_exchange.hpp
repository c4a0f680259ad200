// SPDX-License-Identifier: BSD-3-Clause
// One call of a team in progress: the bytes that this member still sends to each other one, and receives from it.
//
// Every call is such an exchange. Both sides know the numbers of bytes from the call, and a stream keeps the order, so
// messages need no headers, and the next call may begin while another member is still in this one.
#pragma once

#include <cstddef>
#include <vector>

#include "mine_connections.hpp"

namespace mine_plugin {

class Exchange {
public:
    // `call` is one that this library supports.
    Exchange(const Connections& connections, const npushmem_coll_call& call);

    // Sends and receives what is possible at once. Code::again: the call is not complete.
    Status progress();

private:
    struct Transfer {
        const std::byte* send = nullptr;
        std::size_t send_bytes = 0;
        std::byte* receive = nullptr;
        std::size_t receive_bytes = 0;
    };

    void send_to_all(const void* data, std::size_t bytes);
    void exchange_barrier();
    void exchange_broadcast();
    // Member i's part arrives behind the parts of those before it.
    void exchange_parts(const std::vector<std::uint64_t>& bytes);
    void exchange_blocks(std::byte* into, std::size_t bytes);
    void exchange_operands();
    // The operand of a reduction of each member, in their order.
    [[nodiscard]] std::byte* operand(int member);
    void reduce();

    const Connections& connections_;
    npushmem_coll_call call_;
    std::vector<Transfer> transfers_;  // by member
    std::vector<std::byte> operands_;  // of reductions; the marks of a barrier
    std::size_t operand_bytes_ = 0;    // of one member
};

}  // namespace mine_plugin
