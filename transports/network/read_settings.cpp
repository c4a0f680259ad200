#include "transports/network/read_settings.hpp"

#include <fmt/format.h>

#include "core/base/parse.hpp"
#include "core/base/strings.hpp"

namespace npushmem::network {

Result<NetworkSettings> read_settings(const Host& host, const std::string& prefix) {
    NetworkSettings out;
    const std::string thread_name = prefix + "PROGRESS_THREAD";
    const auto thread = parse_bool(host.config(thread_name.c_str(), "true"));
    if (!thread.ok()) return thread.status().within("NPUSHMEM_" + thread_name);
    out.thread = thread.value();
    const std::string peer_timeout_name = prefix + "PEER_TIMEOUT";
    const auto peer_timeout = parse_duration(host.config(peer_timeout_name.c_str(), "30s"));
    if (!peer_timeout.ok()) return peer_timeout.status().within("NPUSHMEM_" + peer_timeout_name);
    out.peer_timeout = std::chrono::ceil<std::chrono::milliseconds>(peer_timeout.value());
    const std::string lanes_name = prefix + "LANES";
    constexpr std::int64_t max_lanes = 1024;
    const auto lanes = parse_integer(host.config(lanes_name.c_str(), std::to_string(out.lanes)), 1, max_lanes);
    if (!lanes.ok()) return lanes.status().within("NPUSHMEM_" + lanes_name);
    out.lanes = static_cast<std::uint32_t>(lanes.value());
    return out;
}

Result<bool> read_native_atomics(const Host& host, const std::string& prefix) {
    const std::string name = prefix + "NATIVE_ATOMICS";
    const std::string word = lowercase(host.config(name.c_str(), "auto"));
    if (word != "auto" && word != "always" && word != "never")
        return Status{Code::config, fmt::format("NPUSHMEM_{}: {} is none of auto, always, never", name, word)};
    return word == "always";
}

}  // namespace npushmem::network
