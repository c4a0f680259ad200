// Ending the whole job from one PE.
#pragma once

#include "core/runtime/runtime.hpp"

namespace npushmem::api {

// Tells the launcher if there is one, the bootstrap, and, without a launcher, the PEs of this host by signal; then
// exits with `status`. `runtime` may be null: then only this process ends.
[[noreturn]] void exit_job(Runtime* runtime, int status);

}  // namespace npushmem::api
