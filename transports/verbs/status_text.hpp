// What the status of a failed work request means.
#pragma once

#include <infiniband/verbs.h>

#include "npushmem/plugin/status.hpp"

namespace npushmem::verbs {

Code code_of(ibv_wc_status status);

// A clause in which the user finds what to look at; empty: nothing is known.
const char* hint_for(ibv_wc_status status);

}  // namespace npushmem::verbs
