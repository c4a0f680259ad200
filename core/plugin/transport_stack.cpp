#include "core/plugin/transport_stack.hpp"

#include <fmt/format.h>

namespace npushmem {
namespace {

bool is_decorator(const LoadedTransport& plugin) { return (plugin.table().capabilities & NPUSHMEM_CAP_DECORATOR) != 0; }

std::string position_of(const TransportStack& stack, const TransportStack::Layer& layer) {
    return fmt::format("transport selection, character {} ('{}')", layer.position, stack.text());
}

Status check_position(const LoadedTransport& plugin, bool innermost) {
    if (is_decorator(plugin) != innermost) return {};
    if (innermost)
        return {
            Code::config,
            fmt::format("'{0}' wraps another transport: write {0}(<transport>), for instance {0}(p2p)", plugin.name())};
    return {Code::config, fmt::format("'{}' cannot wrap another transport", plugin.name())};
}

}  // namespace

Result<LoadedStack> load_stack(const PluginFinder& finder, const TransportStack& stack) {
    LoadedStack out;
    for (const auto& layer : stack.layers) {
        auto plugin = load_transport(finder, layer.name);
        if (!plugin.ok()) return plugin.status().within(position_of(stack, layer));
        if (Status s = check_position(*plugin.value(), &layer == &stack.layers.back()); !s.ok())
            return s.within(position_of(stack, layer));
        out.push_back(std::move(plugin).value());
    }
    return out;
}

Result<std::unique_ptr<OpenedTransport>> open_stack(const LoadedStack& stack, const npushmem_host& host,
                                                    const npushmem_transport_params& params) {
    std::unique_ptr<OpenedTransport> current;
    for (auto plugin = stack.rbegin(); plugin != stack.rend(); ++plugin) {
        auto opened = open_transport(*plugin, host, params, std::move(current));
        if (!opened.ok()) return opened.status();
        current = std::move(opened).value();
    }
    if (current == nullptr) return Status{Code::argument, "a transport stack without a transport"};
    return current;
}

}  // namespace npushmem
