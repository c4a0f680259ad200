#include "transports/fault/held_operation.hpp"

namespace npushmem::fault {
namespace {

template <class... Visitors>
struct Overloaded : Visitors... {
    using Visitors::operator()...;
};
// C++20 deduces it without this, which clang-tidy of Debian 12 does not know.
template <class... Visitors>
Overloaded(Visitors...) -> Overloaded<Visitors...>;

}  // namespace

int HeldOperation::pe() const {
    return std::visit(
        Overloaded{[](const HeldPut& held) { return held.op.pe; }, [](const HeldGet& held) { return held.op.pe; },
                   [](const npushmem_atomic& op) { return op.pe; },
                   [](const npushmem_put_signal& op) { return op.data.pe; }},
        what);
}

bool HeldOperation::updates() const {
    return std::visit(Overloaded{[](const HeldPut&) { return true; }, [](const HeldGet&) { return false; },
                                 [](const npushmem_atomic& op) { return op.operation != NPUSHMEM_ATOMIC_FETCH; },
                                 [](const npushmem_put_signal&) { return true; }},
                      what);
}

Code HeldOperation::issue(Transport& inner, std::uint64_t queue, std::uint64_t* inner_token) const {
    return std::visit(
        Overloaded{[&](const HeldPut& held) { return inner.put(queue, held.op, inner_token); },
                   [&](const HeldGet& held) { return inner.get(queue, held.op, inner_token); },
                   [&](const npushmem_atomic& op) { return inner.atomic(queue, op, inner_token); },
                   [&](const npushmem_put_signal& op) { return inner.put_signal(queue, op, inner_token); }},
        what);
}

}  // namespace npushmem::fault
