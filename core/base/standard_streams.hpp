// The standard streams of this project's programs. A program whose output is lost has failed, and says so.
#pragma once

#include <string_view>

#include "npushmem/plugin/status.hpp"

namespace npushmem {

// First in main. A closed standard stream becomes one that cannot be written, so that no other file gets its number.
// A write to a pipe without a reader fails; programs that this one starts handle SIGPIPE as it was.
void prepare_standard_streams();

// `text` becomes part of the output. Whether it is lost is known after flush_standard_output().
void write_output(std::string_view text);
// To standard error; nothing can be done when that fails.
void write_error(std::string_view text);

// Fails when any of the output up to now is lost, whichever way it was written: write_output, stdio or std::cout.
Status flush_standard_output();
// Last in main. Returns `status`, or 1 and a message instead of 0 when output is lost.
int checked_status(std::string_view program, int status);

}  // namespace npushmem
