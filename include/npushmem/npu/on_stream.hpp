// From a stream of the kernel language to the handle that npushmemx_*_on_stream takes.
#pragma once

#include "npushmem/npu/stream.hpp"
#include "npushmem/on_stream.h"

namespace npushmem::npu {

// Valid as long as the stream stays where it is.
inline npushmemx_stream_t handle_of(Stream& stream) { return reinterpret_cast<npushmemx_stream_t>(&stream); }

}  // namespace npushmem::npu
