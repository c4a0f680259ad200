// Which PEs of a host share memory with which: the host in sets in which everybody maps everybody, as a pure function
// of who maps whom.
#pragma once

#include <vector>

namespace npushmem {

// maps[a][b]: the a-th PE of the host maps the b-th one.
using MappingMatrix = std::vector<std::vector<bool>>;

// Those that are in one set with `me`, in order, itself among them. Where mapping goes both ways and on to third ones,
// the sets are exactly those who map each other; elsewhere, because of a link that is down for instance, each PE joins
// the first set whose members it all maps, and is mapped by.
std::vector<int> sharing_group(int me, const MappingMatrix& maps);

}  // namespace npushmem
