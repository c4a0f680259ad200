// The teams that active sets have become.
#pragma once

namespace npushmem::api {

// When the library ends: they are gone with the runtime.
void clear_active_sets();

}  // namespace npushmem::api
