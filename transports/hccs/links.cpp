#include "transports/hccs/links.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/parse.hpp"
#include "core/base/strings.hpp"
#include "core/base/whole_file.hpp"

namespace npushmem::hccs {
namespace {

constexpr std::string_view annotation = "NpushmemHccs";

Result<int> parse_npu(std::string_view text) {
    auto value = parse_integer(text, 0, max_npus - 1);
    if (!value.ok()) return value.status().within("the number of an NPU");
    return static_cast<int>(value.value());
}

// The value of attribute `name` in the tag that begins with `tag`; empty when it has none.
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
            return Status{Code::config, fmt::format("'{}': the group {} ends before it begins", text, part)};
        for (int npu = first.value(); npu <= last.value(); ++npu)
            if (out.group_of(npu) >= 0) return Status{Code::config, fmt::format("'{}' has NPU {} twice", text, npu)};
        out.groups_.push_back({first.value(), last.value()});
    }
    if (out.groups_.empty())
        return Status{Code::config, "no group of NPUs; write groups as 0-7,8-15, or mesh:8 for groups of eight"};
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

}  // namespace npushmem::hccs
