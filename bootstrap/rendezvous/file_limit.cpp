#include "bootstrap/rendezvous/file_limit.hpp"

#include <sys/resource.h>

#include <algorithm>

namespace npushmem::rendezvous {

std::size_t ensure_file_limit(std::size_t wanted) {
    rlimit limit{};
    if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return wanted;
    if (limit.rlim_cur >= wanted) return wanted;
    const rlim_t before = limit.rlim_cur;
    limit.rlim_cur = std::min<rlim_t>(limit.rlim_max, wanted);
    return ::setrlimit(RLIMIT_NOFILE, &limit) == 0 ? limit.rlim_cur : before;
}

}  // namespace npushmem::rendezvous
