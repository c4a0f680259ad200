#include "core/map/transport_map.hpp"

#include <fmt/core.h>

namespace npushmem {

namespace {

bool same_route(const Route& a, const Route& b) {
    return a.transport == b.transport && a.reach.capabilities == b.reach.capabilities &&
           a.reach.atomic_32 == b.reach.atomic_32 && a.reach.atomic_64 == b.reach.atomic_64 &&
           a.reach.why == b.reach.why;
}

// The route to one PE; `transport` stays -1 and `reasons` explains when there is none.
Route find_route(std::span<const NamedTransport> transports, int pe, const TransportMap::PeerOf& peer_of,
                 std::string& reasons) {
    reasons.clear();
    for (int i = 0; i < static_cast<int>(transports.size()); ++i) {
        const auto& candidate = transports[static_cast<std::size_t>(i)];
        Reach reach = candidate.transport->reach(peer_of(i, pe));
        if (reach.reachable()) return {i, std::move(reach)};
        reasons += fmt::format("\n  {}: {}", candidate.name, reach.why.empty() ? "gave no reason" : reach.why);
    }
    return {};
}

std::string range_text(int first, int last) {
    return first == last ? fmt::format("{}", first) : fmt::format("{}-{}", first, last);
}

}  // namespace

void TransportMap::place(int pe, Route route) {
    in_use_ |= std::uint64_t{1} << route.transport;
    Route& shared = by_host_[static_cast<std::size_t>(layout_->host_of(pe))];
    if (pe == my_pe_ || (shared.transport >= 0 && !same_route(shared, route)))
        exceptions_.emplace(pe, std::move(route));
    else
        shared = std::move(route);
}

Result<TransportMap> TransportMap::build(std::span<const NamedTransport> transports, const HostLayout& layout,
                                         int my_pe, const PeerOf& peer_of) {
    TransportMap map(layout, my_pe);
    int unreachable = 0;
    std::string first_failure;
    for (int pe = 0; pe < layout.npes(); ++pe) {
        std::string reasons;
        Route route = find_route(transports, pe, peer_of, reasons);
        if (route.transport >= 0) {
            map.place(pe, std::move(route));
        } else if (unreachable++ == 0) {
            first_failure = fmt::format("PE {} cannot be reached from PE {} by any transport:{}", pe, my_pe,
                                        reasons.empty() ? "\n  none was selected" : reasons);
        }
    }
    if (unreachable == 0) return map;
    if (unreachable > 1) first_failure += fmt::format("\n  ({} more PEs likewise)", unreachable - 1);
    first_failure += "\n  select other transports with NPUSHMEM_TRANSPORTS or NPUSHMEM_REMOTE_TRANSPORT";
    return Status{Code::unreachable, std::move(first_failure)};
}

const Route& TransportMap::route(int pe) const {
    const auto exception = exceptions_.find(pe);
    return exception != exceptions_.end() ? exception->second
                                          : by_host_[static_cast<std::size_t>(layout_->host_of(pe))];
}

std::string TransportMap::describe(std::span<const NamedTransport> transports,
                                   const std::function<std::string(int pe)>& note_of) const {
    std::string text;
    for (int first = 0; first < layout_->npes();) {
        const std::string note = note_of(first);
        int last = first;
        while (last + 1 < layout_->npes() && same_route(route(first), route(last + 1)) && note_of(last + 1) == note)
            ++last;
        const Route& here = route(first);
        text += fmt::format("pe {}: {}{} ({}){}\n", range_text(first, last),
                            transports[static_cast<std::size_t>(here.transport)].name, here.maps() ? ", mapped" : "",
                            here.reach.why, note.empty() ? "" : "; " + note);
        first = last + 1;
    }
    return text;
}

}  // namespace npushmem
