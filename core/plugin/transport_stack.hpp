// Loads and opens one entry of the user's selection: a transport inside its decorators.
#pragma once

#include <memory>
#include <vector>

#include "core/plugin/loader.hpp"
#include "core/plugin/opened_transport.hpp"
#include "core/plugin/transport_selection.hpp"

namespace npushmem {

// The libraries of a stack, outermost first.
using LoadedStack = std::vector<std::shared_ptr<const LoadedTransport>>;

// Loads every layer and checks that decorators are outside and something that is none is inside. An error names the
// layer and where in the selection it stands. Declare the layers' config_rows() with the configuration before opening.
Result<LoadedStack> load_stack(const PluginFinder& finder, const TransportStack& stack);

// Opens from the inside out; `host` must outlive the result. After a failure nothing is open.
Result<std::unique_ptr<OpenedTransport>> open_stack(const LoadedStack& stack, const npushmem_host& host,
                                                    const npushmem_transport_params& params);

}  // namespace npushmem
