// SPDX-License-Identifier: BSD-3-Clause
#include "transports/shared/posted_operation.hpp"

namespace npushmem {
namespace {

template <class... Visitors>
struct Overloaded : Visitors... {
    using Visitors::operator()...;
};
// C++20 needs no deduction guide, but clang-tidy of Debian 12 does.
template <class... Visitors>
Overloaded(Visitors...) -> Overloaded<Visitors...>;

}  // namespace

int PostedOperation::pe() const {
    return std::visit(
        Overloaded{[](const PostedPut& put) { return put.op.pe; }, [](const PostedGet& get) { return get.op.pe; },
                   [](const npushmem_atomic& op) { return op.pe; },
                   [](const npushmem_put_signal& op) { return op.data.pe; },
                   [](const npushmem_put_strided& op) { return op.block.pe; }},
        what);
}

bool PostedOperation::updates() const {
    return std::visit(
        Overloaded{[](const PostedPut&) { return true; }, [](const PostedGet&) { return false; },
                   [](const npushmem_atomic& op) { return op.operation != NPUSHMEM_ATOMIC_FETCH; },
                   [](const npushmem_put_signal&) { return true; }, [](const npushmem_put_strided&) { return true; }},
        what);
}

Code PostedOperation::issue(Transport& transport, std::uint64_t queue, std::uint64_t* token) const {
    return std::visit(
        Overloaded{[&](const PostedPut& put) { return transport.put(queue, put.op, token); },
                   [&](const PostedGet& get) { return transport.get(queue, get.op, token); },
                   [&](const npushmem_atomic& op) { return transport.atomic(queue, op, token); },
                   [&](const npushmem_put_signal& op) { return transport.put_signal(queue, op, token); },
                   [&](const npushmem_put_strided& op) { return transport.put_strided(queue, op, token); }},
        what);
}

}  // namespace npushmem
