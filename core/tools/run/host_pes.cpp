#include "core/tools/run/host_pes.hpp"

#include <algorithm>

namespace npushmem::run {

HostPes pes_of_host(int host, int hosts, int npes, MapBy map_by) {
    const int each = npes / hosts;
    const int larger = npes % hosts;
    const int count = each + (host < larger ? 1 : 0);
    if (map_by == MapBy::round_robin) return {{host, hosts}, count};
    return {{host * each + std::min(host, larger), 1}, count};
}

}  // namespace npushmem::run
