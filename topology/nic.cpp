#include "topology/nic.hpp"

namespace npushmem::topology {

std::string_view name_of(PortState state) {
    switch (state) {
        case PortState::active: return "active";
        case PortState::down: return "down";
        case PortState::unknown: break;
    }
    return "state unknown";
}

}  // namespace npushmem::topology
