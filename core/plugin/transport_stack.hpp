// The user's choice of transports as a value: "self,fault(p2p)" → [self] and [fault around p2p].
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/plugin/loader.hpp"
#include "core/plugin/opened_plugin.hpp"
#include "npushmem/plugin/status.hpp"

namespace npushmem {

// One transport with its decorators.
struct TransportStack {
    struct Layer {
        std::string name;          // or a path
        std::size_t position = 1;  // of its first character in the selection, from 1: for messages
    };
    std::vector<Layer> layers;  // outermost first; never empty

    // As the user would write it: "trace(fault(p2p))".
    [[nodiscard]] std::string text() const;
    // The transport that does the work: "p2p".
    [[nodiscard]] const std::string& innermost() const { return layers.back().name; }
};

// An ordered, comma-separated list. Blanks around names are dropped. Code::config says what is wrong at which
// character; an empty list, an empty name and a repeated entry are wrong. Whether the names exist is not looked at
// here.
Result<std::vector<TransportStack>> parse_transport_selection(std::string_view text);

// Loads and opens one entry of the user's selection: a transport inside its decorators.
// The libraries of a stack, outermost first.
using LoadedStack = std::vector<std::shared_ptr<const LoadedTransport>>;

// Loads every layer and checks that decorators are outside and something that is none is inside. An error names the
// layer and where in the selection it stands. Declare the layers' config_rows() with the configuration before opening.
Result<LoadedStack> load_stack(const PluginFinder& finder, const TransportStack& stack);

// Opens from the inside out; `host` must outlive the result. After a failure nothing is open.
Result<std::unique_ptr<OpenedTransport>> open_stack(const LoadedStack& stack, const npushmem_host& host,
                                                    const npushmem_transport_params& params);

}  // namespace npushmem
