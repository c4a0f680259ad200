// SPDX-License-Identifier: BSD-3-Clause
#include "core/plugin/transport_stack.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace npushmem {

namespace {

// Recursive descent over: list = stack {"," stack}; stack = name | name "(" stack ")".
class SelectionParser {
public:
    explicit SelectionParser(std::string_view text) : text_(text) {}

    Result<std::vector<TransportStack>> list() {
        std::vector<TransportStack> out;
        do {
            const std::size_t begin = at_;
            TransportStack stack;
            if (Status s = parse_stack(stack); !s.ok()) return s;
            if (listed(out, stack)) return wrong(begin, fmt::format("'{}' is listed twice", stack.text()));
            out.push_back(std::move(stack));
        } while (accept(','));
        if (at_ != text_.size()) return wrong(at_, fmt::format("unexpected '{}'", text_[at_]));
        return out;
    }

private:
    static constexpr std::size_t max_depth = 16;

    Status parse_stack(TransportStack& stack) {
        std::size_t open = 0;
        do {
            if (stack.layers.size() == max_depth)
                return wrong(at_, fmt::format("more than {} decorators", max_depth - 1));
            if (Status s = parse_name(stack); !s.ok()) return s;
        } while (accept('(') && ++open > 0);
        for (; open > 0; --open)
            if (!accept(')'))
                return wrong(at_, fmt::format("expected ')' to close '{}('", stack.layers[open - 1].name));
        return {};
    }

    Status parse_name(TransportStack& stack) {
        skip_blanks();
        const std::size_t begin = at_;
        at_ = std::min(text_.find_first_of(",() \t", begin), text_.size());
        if (at_ == begin) return wrong(begin, "expected the name of a transport");
        stack.layers.push_back({std::string(text_.substr(begin, at_ - begin)), begin + 1});
        return {};
    }

    void skip_blanks() { at_ = std::min(text_.find_first_not_of(" \t", at_), text_.size()); }

    bool accept(char wanted) {
        skip_blanks();
        if (at_ == text_.size() || text_[at_] != wanted) return false;
        ++at_;
        return true;
    }

    static bool listed(const std::vector<TransportStack>& list, const TransportStack& stack) {
        const auto same = [&](const TransportStack& other) { return other.text() == stack.text(); };
        return std::any_of(list.begin(), list.end(), same);
    }

    [[nodiscard]] Status wrong(std::size_t at, const std::string& what) const {
        return {Code::config, fmt::format("transport selection '{}', character {}{}: {}; write for instance "
                                          "self,p2p or self,fault(p2p)",
                                          text_, at + 1, at >= text_.size() ? " (the end)" : "", what)};
    }

    std::string_view text_;
    std::size_t at_ = 0;
};

}  // namespace

std::string TransportStack::text() const {
    std::string out;
    for (const auto& layer : layers) out.append(out.empty() ? "" : "(").append(layer.name);
    return out.append(layers.empty() ? 0 : layers.size() - 1, ')');
}

Result<std::vector<TransportStack>> parse_transport_selection(std::string_view text) {
    return SelectionParser(text).list();
}

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
