// SPDX-License-Identifier: BSD-3-Clause
// Source lines in messages.
#pragma once

#include <string>

#include "npushmem/npu/source_location.hpp"

namespace npushmem::npu {

// "file.cpp:12". Files of this library appear without the folder in which they were built. "the library" when the line
// is unknown, as for operations in stream order.
std::string text_of(const SourceLocation& where);

}  // namespace npushmem::npu
