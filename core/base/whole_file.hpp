// A file's content as a string.
#pragma once

#include <string>

#include "npushmem/plugin/status.hpp"

namespace npushmem {

// Also of pipes. A failure's message is the system's reason alone, such as "Is a directory": the caller says what was
// to be read.
Result<std::string> read_whole_file(const std::string& path);

}  // namespace npushmem
