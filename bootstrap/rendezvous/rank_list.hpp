// Ranks as people read them.
#pragma once

#include <string>
#include <vector>

namespace npushmem::rendezvous {

// "rank 5", "ranks 5, 7, 9-12"; long lists end in "and 40 more". `ranks` is ascending and not empty.
[[nodiscard]] std::string rank_list(const std::vector<int>& ranks);

}  // namespace npushmem::rendezvous
