// SPDX-License-Identifier: BSD-3-Clause
// The entry symbol of the plugin. It has a file of its own, so that tests link the other files.
#include "mine_collectives.hpp"
#include "npushmem/plugin/collectives_export.hpp"

NPUSHMEM_EXPORT_COLLECTIVES(mine_plugin::MineCollectives, "mine", "PEs of one host, over Unix sockets");
