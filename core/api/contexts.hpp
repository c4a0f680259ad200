// The contexts that programs have made.
#pragma once

namespace npushmem::api {

// When the library ends: those that are left.
void end_contexts();

}  // namespace npushmem::api
