// The library's configuration for a case.
#pragma once

#include "bench/perf/combine_case.hpp"
#include "npushmem/moe.h"

namespace npushmem::perf {

npushmemx_moe_config_t layer_config(const CombineCase& c, const CombineOptions& options);

}  // namespace npushmem::perf
