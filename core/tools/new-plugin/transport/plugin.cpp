// SPDX-License-Identifier: BSD-3-Clause
// The entry symbol of the plugin. It has a file of its own, so that tests link the other files.
#include <iterator>

#include "mine_transport.hpp"
#include "npushmem/plugin/transport_export.hpp"

NPUSHMEM_EXPORT_TRANSPORT_WITH_CONFIG(mine_plugin::MineTransport, "mine", "messages over Unix sockets, within one host",
                                      mine_plugin::MineTransport::capabilities, mine_plugin::MineTransport::config_rows,
                                      std::size(mine_plugin::MineTransport::config_rows));
