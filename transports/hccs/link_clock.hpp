// When transfers would be over on real links. Pure arithmetic on times that the caller gives.
//
// Each NPU has a port per direct link and one to the switch, each with both directions at full rate. A PE accounts for
// the transfers that it asked for itself: those of one direction of one port come one after the other. What other PEs
// send to the same NPU over the same port meanwhile is not known here and costs nothing.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <tuple>

#include "transports/hccs/links.hpp"

namespace npushmem::hccs {

using Nanoseconds = std::chrono::nanoseconds;

struct LinkSpeed {
    double bytes_per_second;
    Nanoseconds latency;
};

struct LinkSpeeds {
    LinkSpeed direct;
    LinkSpeed switched;
};

enum class Direction { out, in };

class LinkClock {
public:
    explicit LinkClock(LinkSpeeds speeds) : speeds_(speeds) {}

    // A transfer that begins at `now` or when its port is free: when it is over.
    Nanoseconds transfer(const Path& path, Direction direction, std::uint64_t bytes, Nanoseconds now) {
        if (path.kind == LinkKind::none) return now;
        const bool direct = path.kind == LinkKind::direct;
        const LinkSpeed& speed = direct ? speeds_.direct : speeds_.switched;
        Nanoseconds& busy = busy_until_[{direct ? path.far : -1, direction}];
        const auto length =
            Nanoseconds(static_cast<std::int64_t>(static_cast<double>(bytes) * 1e9 / speed.bytes_per_second));
        busy = (busy > now ? busy : now) + length;
        return busy + speed.latency;
    }

private:
    LinkSpeeds speeds_;
    std::map<std::tuple<int, Direction>, Nanoseconds> busy_until_;  // by the far NPU, -1: the port to the switch
};

}  // namespace npushmem::hccs
