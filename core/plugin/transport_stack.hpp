// SPDX-License-Identifier: BSD-3-Clause
// The user's selection of transports: parsed ("self,fault(p2p)" → [self] and [fault around p2p]), loaded and opened.
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
        std::size_t position = 1;  // of its first character in the selection, from 1; for messages
    };
    std::vector<Layer> layers;  // outermost first; never empty

    // The form in which the user writes it: "trace(fault(p2p))".
    [[nodiscard]] std::string text() const;
    // The transport inside all decorators: "p2p".
    [[nodiscard]] const std::string& innermost() const { return layers.back().name; }
};

// Parses an ordered, comma-separated list. Blanks around names are dropped. An empty list, an empty name and a repeated
// entry are errors: Code::config, with the position. Does not check that the names exist.
Result<std::vector<TransportStack>> parse_transport_selection(std::string_view text);

using LoadedStack = std::vector<std::shared_ptr<const LoadedTransport>>;

// Loads every layer, and checks that all but the innermost are decorators. An error names the layer and its position in
// the selection. Declare the layers' config_rows() with the configuration before opening.
Result<LoadedStack> load_stack(const PluginFinder& finder, const TransportStack& stack);

// Opens the layers from the inside out; `host` must outlive the result. After a failure nothing is open.
Result<std::unique_ptr<OpenedTransport>> open_stack(const LoadedStack& stack, const npushmem_host& host,
                                                    const npushmem_transport_params& params);

}  // namespace npushmem
