// What the transport is told by the environment.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "npushmem/plugin/host.hpp"
#include "transports/hccs/link_clock.hpp"
#include "transports/hccs/links.hpp"

namespace npushmem::hccs {

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
