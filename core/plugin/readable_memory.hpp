// Whether memory that a plugin points to can be read, without reading it.
#pragma once

#include <cstddef>

namespace npushmem {

bool is_readable(const void* address, std::size_t bytes);
// A text with its end. Texts of plugins are short: one without an end within 64 KiB is none.
bool is_readable_text(const char* text);

}  // namespace npushmem
