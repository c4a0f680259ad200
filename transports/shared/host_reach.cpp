#include "transports/shared/host_reach.hpp"

#include <fmt/format.h>

namespace npushmem::shared_memory {
namespace {

std::string emulated_name(int host) { return host < 0 ? "no emulated host" : fmt::format("emulated host {}", host); }

}  // namespace

std::string why_not_shareable(const npushmem_host_id& own, const npushmem_host_id& peer) {
    if (own.machine != peer.machine) return "another machine";
    // Before the namespace: that number has the emulated host mixed in.
    if (own.emulated != peer.emulated)
        return fmt::format("on {}, this PE is on {}: memory of different emulated hosts cannot be mapped",
                           emulated_name(peer.emulated), emulated_name(own.emulated));
    if (own.space != peer.space)
        return "same machine, another namespace (container): its processes cannot be seen from here";
    if (own.user != peer.user)
        return fmt::format("another user (uid {}, this PE has uid {}): no permission to map its memory", peer.user,
                           own.user);
    return {};
}

}  // namespace npushmem::shared_memory
