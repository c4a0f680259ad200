// The dynamic linker trusts a file: one that is cut off ends the process with a signal, and one that is no regular file
// may block it. This check comes first.
#pragma once

#include <string>

#include "npushmem/plugin/status.hpp"

namespace npushmem {

// Is this a regular file with a shared object of this machine's class, and with all bytes that are to be loaded?
// Code::plugin_refused says what is wrong.
Status check_elf_file(const std::string& path);

}  // namespace npushmem
