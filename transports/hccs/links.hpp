// How the NPUs of a server are wired: groups of NPUs in which each has a link to each other one, and a switch between
// the groups. Pure functions of values.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "npushmem/plugin/host.hpp"
#include "npushmem/plugin/status.hpp"

namespace npushmem::hccs {

// Most NPUs of a server.
inline constexpr int max_npus = 1024;

enum class LinkKind { none, direct, switched };

// What a transfer between two NPUs goes over. `near` is the NPU that asks, `far` the other one.
struct Path {
    LinkKind kind = LinkKind::none;  // none: an NPU and itself
    int near = 0;
    int far = 0;

    // "HCCS link 0-3", "the switch between NPU 2 and NPU 9".
    [[nodiscard]] std::string name() const;
};

class Links {
public:
    // Groups as ranges, "0-7,8-15": each NPU in one group. "mesh:8": groups of eight, as many as there are NPUs.
    // Code::config says what was wrong.
    static Result<Links> parse(std::string_view text);

    // Code::config for an NPU that is in no group.
    [[nodiscard]] Result<Path> between(int near, int far) const;
    [[nodiscard]] int group_of(int npu) const;  // -1: in none

private:
    struct Group {
        int first;
        int last;
    };

    explicit Links(int group_size) : group_size_(group_size) {}

    int group_size_;             // of equal groups; 0: those of the list
    std::vector<Group> groups_;  // disjoint
};

// What the annotation NpushmemHccs of a topology file says; empty when the file has none. Code::config when the file
// cannot be read.
Result<std::string> links_in_topology_file(const std::string& path);

// When transfers would be over on real links. Pure arithmetic on times that the caller gives.
//
// Each NPU has a port per direct link and one to the switch, each with both directions at full rate. A PE accounts for
// the transfers that it asked for itself: those of one direction of one port come one after the other. What other PEs
// send to the same NPU over the same port meanwhile is not known here and costs nothing.

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

// What the transport is told by the environment.

// Defaults, as the user would write them. Bandwidths are bytes per second, of each link and direction: 28e9.
inline constexpr const char* default_engines = "4";
inline constexpr const char* default_depth = "256";
inline constexpr const char* default_bandwidth = "28000000000";
inline constexpr const char* default_latency = "1us";
inline constexpr const char* default_switch_latency = "2us";

// The link between two NPUs fails: at this PE's transfer number `after` + 1 over it, and for good; 0: from the start.
struct FailedLink {
    int low;
    int high;
    std::uint64_t after;
};

struct Settings {
    Links links;
    std::size_t engines;
    std::size_t depth;  // transfers that one engine's queue has room for
    bool timed;
    LinkSpeeds speeds;
    std::vector<FailedLink> failed;
};

// "0-1,2-5@100". Code::config says what was wrong.
Result<std::vector<FailedLink>> parse_failed_links(std::string_view text);

Result<Settings> read_settings(const Host& host);

}  // namespace npushmem::hccs
