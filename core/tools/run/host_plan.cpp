#include "core/tools/run/host_plan.hpp"

namespace npushmem::run {

int emulated_host_of(int pe, int npes, int nodes, MapBy map_by) {
    if (map_by == MapBy::round_robin) return pe % nodes;
    const int small = npes / nodes;
    const int large_hosts = npes % nodes;
    const int in_large = large_hosts * (small + 1);
    return pe < in_large ? pe / (small + 1) : large_hosts + (pe - in_large) / small;
}

}  // namespace npushmem::run
