// What the PEs tell each other, once peers are mapped, about whom they map.
#pragma once

#include <vector>

#include "core/map/host_layout.hpp"
#include "npushmem/plugin/bootstrap.hpp"

namespace npushmem {

struct SharingPes {
    std::vector<int> pes;      // world PEs that share memory with this one, in order, itself among them
    bool all_map_all = false;  // every PE of the job maps every PE
};

// Collective. `mapped`: by the local index of the host's PEs, which of them this PE maps; itself counts in any case.
Result<SharingPes> find_sharing_pes(Bootstrap& bootstrap, const HostLayout& layout, int my_pe,
                                    std::vector<bool> mapped);

}  // namespace npushmem
