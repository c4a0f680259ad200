// Where plugins are looked for.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace npushmem {

// Directories in order of preference, without repetitions:
//   1. those of `user_path` (the value of NPUSHMEM_PLUGIN_PATH, separated by colons);
//   2. beside this library, or beside the program that it was linked into: <dir>/npushmem, <dir>/../lib/npushmem;
//   3. the directory in which plugins are installed.
// Directories need not exist.
std::vector<std::string> plugin_search_path(std::string_view user_path);

// The same as a library in `own` would search: what a program that does not link the library tells of it. "" for none.
std::vector<std::string> plugin_search_path_from(std::string_view user_path, std::string_view own);

// A sentence for each directory of `user_path` that does not exist.
std::vector<std::string> missing_directories(std::string_view user_path);

// The directory of the file that this code was loaded from; "" when the system does not tell.
std::string directory_of_this_library();

}  // namespace npushmem
