// SPDX-License-Identifier: BSD-3-Clause
#include "transports/hccs/links.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "core/base/parse.hpp"
#include "core/base/streams.hpp"

namespace npushmem::hccs {
namespace {

constexpr std::string_view annotation = "NpushmemHccs";

Result<int> parse_npu(std::string_view text) {
    auto value = parse_integer(text, 0, max_npus - 1);
    if (!value.ok()) return value.status().within("the number of an NPU");
    return static_cast<int>(value.value());
}

// The value of attribute `name` in the tag that starts with `tag`; empty when it has none.
std::string_view attribute(std::string_view tag, std::string_view name) {
    const std::string opening = fmt::format("{}=\"", name);
    const std::size_t begin = tag.find(opening);
    if (begin == std::string_view::npos) return {};
    const std::size_t value = begin + opening.size();
    return tag.substr(value, tag.find('"', value) - value);
}

}  // namespace

std::string Path::name() const {
    if (kind == LinkKind::none) return fmt::format("NPU {} itself", near);
    const auto [low, high] = std::minmax(near, far);
    return kind == LinkKind::direct ? fmt::format("HCCS link {}-{}", low, high)
                                    : fmt::format("the switch between NPU {} and NPU {}", low, high);
}

Result<Links> Links::parse(std::string_view text) {
    constexpr std::string_view mesh = "mesh:";
    if (text.starts_with(mesh)) {
        const auto size = parse_integer(text.substr(mesh.size()), 1, max_npus);
        if (!size.ok()) return size.status().within(fmt::format("'{}'", text));
        return Links(static_cast<int>(size.value()));
    }
    Links out(0);
    for (const auto& part : split(text, ',')) {
        const std::size_t dash = part.find('-');
        const auto first = parse_npu(std::string_view(part).substr(0, dash));
        if (!first.ok()) return first.status().within(fmt::format("'{}'", text));
        const auto last = dash == std::string::npos ? first : parse_npu(std::string_view(part).substr(dash + 1));
        if (!last.ok()) return last.status().within(fmt::format("'{}'", text));
        if (last.value() < first.value())
            return Status{Code::config, fmt::format("'{}': the last NPU of group {} is below its first", text, part)};
        for (int npu = first.value(); npu <= last.value(); ++npu)
            if (out.group_of(npu) >= 0) return Status{Code::config, fmt::format("'{}' lists NPU {} twice", text, npu)};
        out.groups_.push_back({first.value(), last.value()});
    }
    if (out.groups_.empty())
        return Status{Code::config,
                      "no group of NPUs is given; expected groups such as 0-7,8-15, or mesh:8 for groups of eight"};
    return out;
}

int Links::group_of(int npu) const {
    if (npu < 0) return -1;
    if (group_size_ > 0) return npu / group_size_;
    const auto found = std::find_if(groups_.begin(), groups_.end(),
                                    [&](const Group& group) { return npu >= group.first && npu <= group.last; });
    return found == groups_.end() ? -1 : static_cast<int>(found - groups_.begin());
}

Result<Path> Links::between(int near, int far) const {
    for (const int npu : {near, far})
        if (group_of(npu) < 0)
            return Status{Code::config, fmt::format("NPU {} is in no group of NPUSHMEM_HCCS_LINKS", npu)};
    if (near == far) return Path{LinkKind::none, near, far};
    return Path{group_of(near) == group_of(far) ? LinkKind::direct : LinkKind::switched, near, far};
}

Result<std::string> links_in_topology_file(const std::string& path) {
    const auto read = read_whole_file(path);
    if (!read.ok())
        return Status{Code::config,
                      fmt::format("cannot read NPUSHMEM_TOPO_FILE={}: {}", path, read.status().message())};
    const std::string& text = read.value();
    constexpr std::string_view opening = "<info ";
    for (std::size_t at = text.find(opening); at != std::string::npos; at = text.find(opening, at + 1)) {
        const std::string_view tag = std::string_view(text).substr(at, text.find('>', at) - at);
        if (attribute(tag, "name") == annotation) return std::string(attribute(tag, "value"));
    }
    return std::string();
}

namespace {

Result<FailedLink> parse_failed_link(std::string_view text) {
    const std::size_t dash = text.find('-');
    const std::size_t at = text.find('@');
    if (dash == std::string_view::npos || (at != std::string_view::npos && at < dash))
        return Status{
            Code::config,
            fmt::format("'{}' is not a link; expected 0-1, or 0-1@100 for a failure after 100 transfers", text)};
    const auto a = parse_integer(text.substr(0, dash), 0, max_npus - 1);
    const auto b =
        parse_integer(text.substr(dash + 1, at == std::string_view::npos ? at : at - dash - 1), 0, max_npus - 1);
    for (const auto& npu : {a, b})
        if (!npu.ok()) return npu.status().within(fmt::format("an NPU of '{}'", text));
    if (a.value() == b.value()) return Status{Code::config, fmt::format("'{}': an NPU has no link to itself", text)};
    std::int64_t after = 0;
    if (at != std::string_view::npos) {
        const auto given = parse_integer(text.substr(at + 1), 0, std::numeric_limits<std::int64_t>::max());
        if (!given.ok()) return given.status().within(fmt::format("the number of transfers in '{}'", text));
        after = given.value();
    }
    const auto [low, high] = std::minmax(a.value(), b.value());
    return FailedLink{static_cast<int>(low), static_cast<int>(high), static_cast<std::uint64_t>(after)};
}

// The groups that the user sets, else those of the topology file, else groups of eight.
Result<Links> read_links(const Host& host) {
    std::string text = host.config("HCCS_LINKS", "auto");
    if (text != "auto") {
        auto links = Links::parse(text);
        return links.ok() ? links : links.status().within("NPUSHMEM_HCCS_LINKS");
    }
    text.clear();
    const std::string file = host.config("TOPO_FILE");
    if (!file.empty()) {
        auto found = links_in_topology_file(file);
        if (!found.ok()) return found.status();
        text = std::move(found).value();
    }
    if (text.empty()) text = "mesh:8";
    auto links = Links::parse(text);
    return links.ok() ? links : links.status().within(fmt::format("annotation NpushmemHccs of {}", file));
}

Result<std::size_t> read_count(const Host& host, const char* name, const char* otherwise, std::int64_t max_value) {
    const auto value = parse_integer(host.config(name, otherwise), 1, max_value);
    if (!value.ok()) return value.status().within(fmt::format("NPUSHMEM_{}", name));
    return static_cast<std::size_t>(value.value());
}

Result<LinkSpeed> read_speed(const Host& host, const char* rate_name, const char* rate, const char* latency_name,
                             const char* latency) {
    const auto size = parse_size(host.config(rate_name, rate));
    if (!size.ok()) return size.status().within(fmt::format("NPUSHMEM_{}", rate_name));
    if (size.value().value == 0)
        return Status{Code::config, fmt::format("NPUSHMEM_{}: the bandwidth is 0; to let a link fail, set "
                                                "NPUSHMEM_HCCS_FAIL",
                                                rate_name)};
    const auto duration = parse_duration(host.config(latency_name, latency));
    if (!duration.ok()) return duration.status().within(fmt::format("NPUSHMEM_{}", latency_name));
    return LinkSpeed{static_cast<double>(size.value().value), duration.value()};
}

}  // namespace

Result<std::vector<FailedLink>> parse_failed_links(std::string_view text) {
    std::vector<FailedLink> out;
    for (const auto& part : split(text, ',')) {
        const auto link = parse_failed_link(part);
        if (!link.ok()) return link.status().within("NPUSHMEM_HCCS_FAIL");
        out.push_back(link.value());
    }
    return out;
}

Result<Settings> read_settings(const Host& host) {
    constexpr std::int64_t max_engines = 64;
    constexpr std::int64_t max_depth = 65536;
    auto links = read_links(host);
    if (!links.ok()) return links.status();
    const auto engines = read_count(host, "HCCS_ENGINES", default_engines, max_engines);
    if (!engines.ok()) return engines.status();
    const auto depth = read_count(host, "HCCS_DEPTH", default_depth, max_depth);
    if (!depth.ok()) return depth.status();
    const auto timed = parse_bool(host.config("HCCS_TIMED", "false"));
    if (!timed.ok()) return timed.status().within("NPUSHMEM_HCCS_TIMED");
    const auto direct = read_speed(host, "HCCS_BANDWIDTH", default_bandwidth, "HCCS_LATENCY", default_latency);
    if (!direct.ok()) return direct.status();
    const auto switched =
        read_speed(host, "HCCS_SWITCH_BANDWIDTH", default_bandwidth, "HCCS_SWITCH_LATENCY", default_switch_latency);
    if (!switched.ok()) return switched.status();
    auto failed = parse_failed_links(host.config("HCCS_FAIL"));
    if (!failed.ok()) return failed.status();
    return Settings{std::move(links).value(),           engines.value(),          depth.value(), timed.value(),
                    {direct.value(), switched.value()}, std::move(failed).value()};
}

}  // namespace npushmem::hccs
