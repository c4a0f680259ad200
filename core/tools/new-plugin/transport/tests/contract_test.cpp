// SPDX-License-Identifier: BSD-3-Clause
// Every rule of transport.h that a test can observe. gtest_main supplies main().
#include "npushmem/testing/contract.hpp"
#include "mine_transport.hpp"

using mine_plugin::MineTransport;

NPUSHMEM_TRANSPORT_CONTRACT(MineTransport);
