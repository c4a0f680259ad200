// How messages call a line of source.
#pragma once

#include <source_location>
#include <string>

namespace npushmem::npu {

// "file.cpp:12"; files of this library without the folder that it was built in; "the library" where no line is known,
// as for operations in the order of a stream.
std::string text_of(const std::source_location& where);

}  // namespace npushmem::npu
