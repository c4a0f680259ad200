// SPDX-License-Identifier: BSD-3-Clause
// Converts a stream of the kernel language to the handle of npushmemx_*_on_stream.
#pragma once

#include "npushmem/npu/stream.hpp"
#include "npushmem/on_stream.h"

namespace npushmem::npu {

// Valid until the stream is moved or destroyed.
inline npushmemx_stream_t handle_of(Stream& stream) { return reinterpret_cast<npushmemx_stream_t>(&stream); }

}  // namespace npushmem::npu
