#include "core/plugin/transport_nest.hpp"

#include <fmt/format.h>

namespace npushmem {
namespace {

bool is_decorator(const LoadedTransport& plugin) { return (plugin.table().capabilities & NPUSHMEM_CAP_DECORATOR) != 0; }

std::string place_of(const TransportNest& nest, const TransportNest::Part& part) {
    return fmt::format("transport selection, character {} ('{}')", part.position, nest.text());
}

Status check_place(const LoadedTransport& plugin, bool innermost) {
    if (is_decorator(plugin) != innermost) return {};
    if (innermost)
        return {
            Code::config,
            fmt::format("'{0}' wraps another transport: write {0}(<transport>), for instance {0}(p2p)", plugin.name())};
    return {Code::config, fmt::format("'{}' cannot wrap another transport", plugin.name())};
}

}  // namespace

Result<LoadedNest> load_nest(const PluginFinder& finder, const TransportNest& nest) {
    LoadedNest out;
    for (const auto& part : nest.parts) {
        auto plugin = load_transport(finder, part.name);
        if (!plugin.ok()) return plugin.status().within(place_of(nest, part));
        if (Status s = check_place(*plugin.value(), &part == &nest.parts.back()); !s.ok())
            return s.within(place_of(nest, part));
        out.push_back(std::move(plugin).value());
    }
    return out;
}

Result<std::unique_ptr<OpenedTransport>> open_nest(const LoadedNest& nest, const npushmem_host& host,
                                                   const npushmem_transport_params& params) {
    std::unique_ptr<OpenedTransport> current;
    for (auto plugin = nest.rbegin(); plugin != nest.rend(); ++plugin) {
        auto opened = open_transport(*plugin, host, params, std::move(current));
        if (!opened.ok()) return opened.status();
        current = std::move(opened).value();
    }
    if (current == nullptr) return Status{Code::argument, "a transport nest without a transport"};
    return current;
}

}  // namespace npushmem
