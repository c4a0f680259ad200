#include "bench/perf/last_level_cache.hpp"

#include <unistd.h>

#include <initializer_list>

namespace npushmem::perf {

double last_level_cache() {
    for (const int level : {_SC_LEVEL4_CACHE_SIZE, _SC_LEVEL3_CACHE_SIZE, _SC_LEVEL2_CACHE_SIZE}) {
        if (const long bytes = sysconf(level); bytes > 0) return static_cast<double>(bytes);
    }
    return 0;
}

}  // namespace npushmem::perf
