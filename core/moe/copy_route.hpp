// How a row gets from x to its slot.
#pragma once

#include <cstdint>
#include <string_view>

#include "core/moe/units.hpp"

namespace npushmem::moe {

enum class CopyRoute : std::int32_t {
    staged,     // x -> unified buffer -> slot, double buffered: the form that runs on a device
    direct,     // x -> slot with ordinary stores
    streaming,  // x -> slot with stores that go past the caches
};

constexpr std::string_view name_of(CopyRoute route) {
    switch (route) {
        case CopyRoute::staged: return "staged through the unified buffer";
        case CopyRoute::direct: return "direct, ordinary stores";
        case CopyRoute::streaming: return "direct, streaming stores";
    }
    return "unknown";
}

// Streaming pays when a row fills whole lines and what one PE receives per call (`received`) leaves the caches before
// it is read. The last cache is shared by an unknown number of others, so the bound is the size of a core's own. On a
// CPU staging never pays in direct mode: each row has a slot of its own, so rows cannot be joined into longer writes.
constexpr CopyRoute choose_route(Bytes row, Bytes received) {
    return row >= Bytes{1024} && received > Bytes{4U << 20} ? CopyRoute::streaming : CopyRoute::direct;
}

}  // namespace npushmem::moe
