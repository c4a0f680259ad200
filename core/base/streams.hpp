// SPDX-License-Identifier: BSD-3-Clause
// The standard streams of this project's programs, and whole files. A program that loses output fails and reports it.
#pragma once

#include <string>
#include <string_view>

#include "npushmem/plugin/status.hpp"

namespace npushmem {

// Call it first in main. Replaces a closed standard stream by one that rejects writes, so that no other file gets its
// number. Makes writes to a pipe without a reader fail; programs started from this one handle SIGPIPE as before.
void prepare_standard_streams();

// Appends to the output. flush_standard_output() reports whether it was lost.
void write_output(std::string_view text);
// Writes to standard error; ignores failures.
void write_error(std::string_view text);

// Fails when any output so far was lost, whether written by write_output, stdio or std::cout.
Status flush_standard_output();
// Call it last in main. Returns `status`; if output was lost and `status` is 0, prints a message and returns 1.
int checked_status(std::string_view program, int status);

// Reads a file or a pipe. The message of a failure is only the system's reason, such as "Is a directory": the caller
// adds the operation and the path.
Result<std::string> read_whole_file(const std::string& path);

}  // namespace npushmem
