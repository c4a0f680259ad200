// SPDX-License-Identifier: BSD-3-Clause
// The entry symbol of the plugin. It has a file of its own, so that tests link the other files.
#include <iterator>

#include "mine_bootstrap.hpp"
#include "npushmem/plugin/bootstrap_export.hpp"

NPUSHMEM_EXPORT_BOOTSTRAP_WITH_CONFIG(mine_plugin::MineBootstrap, "mine", "ranks of one host, by a Unix socket",
                                      mine_plugin::MineBootstrap::config_rows,
                                      std::size(mine_plugin::MineBootstrap::config_rows));
