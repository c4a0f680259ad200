// SPDX-License-Identifier: BSD-3-Clause
// Every rule of collectives.h that a test can observe. gtest_main supplies main().
#include "npushmem/testing/contract.hpp"
#include "mine_collectives.hpp"

using mine_plugin::MineCollectives;

NPUSHMEM_COLLECTIVES_CONTRACT(MineCollectives);
