// SPDX-License-Identifier: BSD-3-Clause
// Every rule of bootstrap.h that a test can observe. gtest_main supplies main().
#include "npushmem/testing/contract.hpp"
#include "mine_bootstrap.hpp"

using mine_plugin::MineBootstrap;

NPUSHMEM_BOOTSTRAP_CONTRACT(MineBootstrap);
