// Loads and opens one entry of the user's selection: a transport inside its decorators.
#pragma once

#include <memory>
#include <vector>

#include "core/plugin/loader.hpp"
#include "core/plugin/opened_transport.hpp"
#include "core/plugin/transport_selection.hpp"

namespace npushmem {

// The libraries of a nest, outermost first.
using LoadedNest = std::vector<std::shared_ptr<const LoadedTransport>>;

// Loads every part and checks that decorators are outside and something that is none is inside. An error names the part
// and where in the selection it stands. Declare the parts' config_rows() with the configuration before opening.
Result<LoadedNest> load_nest(const PluginFinder& finder, const TransportNest& nest);

// Opens from the inside out; `host` must outlive the result. After a failure nothing is open.
Result<std::unique_ptr<OpenedTransport>> open_nest(const LoadedNest& nest, const npushmem_host& host,
                                                   const npushmem_transport_params& params);

}  // namespace npushmem
