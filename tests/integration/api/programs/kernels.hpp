// SPDX-License-Identifier: BSD-3-Clause
// Kernels that reach other PEs, mapped or not.
#pragma once

#include "npushmem/npu/npu.hpp"
#include "tests/integration/api/programs/checker.hpp"

namespace npushmem::api_test {

void test_kernels(Checker& check, const Job& job, npu::Stream& stream);

}  // namespace npushmem::api_test
