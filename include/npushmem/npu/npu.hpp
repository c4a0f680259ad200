// SPDX-License-Identifier: BSD-3-Clause
// Includes the whole kernel language.
#pragma once

#include "npushmem/npu/barrier.hpp"
#include "npushmem/npu/core.hpp"
#include "npushmem/npu/device.hpp"
#include "npushmem/npu/launch.hpp"
#include "npushmem/npu/numeric.hpp"
#include "npushmem/npu/stream.hpp"
