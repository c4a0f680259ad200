// Which failures of an operation mean that its peer is lost, and not this one operation.
#pragma once

#include "npushmem/plugin/status.hpp"

namespace npushmem {

constexpr bool ends_a_peer(Code code) {
    return code == Code::peer_dead || code == Code::unreachable || code == Code::timeout;
}

}  // namespace npushmem
