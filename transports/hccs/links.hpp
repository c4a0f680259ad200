// SPDX-License-Identifier: BSD-3-Clause
// The emulated fabric between the NPUs of a server: links, their speeds, and the settings of the transport.
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

// The maximum number of NPUs of a server.
inline constexpr int max_npus = 1024;

enum class LinkKind { none, direct, switched };

// The path of a transfer between two NPUs. `near` is the NPU that initiates it, `far` the other one.
struct Path {
    LinkKind kind = LinkKind::none;  // none: an NPU and itself
    int near = 0;
    int far = 0;

    // "HCCS link 0-3", "the switch between NPU 2 and NPU 9".
    [[nodiscard]] std::string name() const;
};

// How the NPUs of a server are connected: the NPUs of a group are fully linked, and a switch joins the groups. Its
// functions are pure.
class Links {
public:
    // Parses groups: "0-7,8-15" lists ranges, and each NPU is in one group; "mesh:8" makes groups of eight for any
    // number of NPUs. Code::config names the error.
    static Result<Links> parse(std::string_view text);

    // Code::config when an NPU is in no group.
    [[nodiscard]] Result<Path> between(int near, int far) const;
    [[nodiscard]] int group_of(int npu) const;  // -1: in no group

private:
    struct Group {
        int first;
        int last;
    };

    explicit Links(int group_size) : group_size_(group_size) {}

    int group_size_;             // of equal groups; 0: `groups_` lists them
    std::vector<Group> groups_;  // disjoint
};

// The annotation NpushmemHccs of a topology file; empty when the file has none. Code::config when the file cannot be
// read.
Result<std::string> links_in_topology_file(const std::string& path);

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

// Computes when transfers end on real links, from times that the caller passes.
//
// Each NPU has one port per direct link and one to the switch. Each port runs both directions at full rate. A PE
// accounts for its own transfers only: those in one direction of one port run one after the other. Transfers of other
// PEs over the same port cost nothing here.
class LinkClock {
public:
    explicit LinkClock(LinkSpeeds speeds) : speeds_(speeds) {}

    // The end of a transfer that starts at `now`, or as soon as its port is free.
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

// Defaults in the notation of the variables. Bandwidths are bytes per second and direction of a link: 28e9.
inline constexpr const char* default_engines = "4";
inline constexpr const char* default_depth = "256";
inline constexpr const char* default_bandwidth = "28000000000";
inline constexpr const char* default_latency = "1us";
inline constexpr const char* default_switch_latency = "2us";

// The link between two NPUs fails permanently at transfer number `after` + 1 of this PE over it; 0: from the start.
struct FailedLink {
    int low;
    int high;
    std::uint64_t after;
};

struct Settings {
    Links links;
    std::size_t engines;
    std::size_t depth;  // capacity of one engine, in transfers
    bool timed;
    LinkSpeeds speeds;
    std::vector<FailedLink> failed;
};

// Parses "0-1,2-5@100". Code::config names the error.
Result<std::vector<FailedLink>> parse_failed_links(std::string_view text);

Result<Settings> read_settings(const Host& host);

}  // namespace npushmem::hccs
