#include "bench/perf/host_memory_free.hpp"

#include <fstream>
#include <string>

namespace npushmem::perf {

std::uint64_t host_memory_free() {
    std::ifstream file("/proc/meminfo");
    for (std::string name; file >> name; file.ignore(256, '\n')) {
        std::uint64_t kilobytes = 0;
        if (name == "MemAvailable:" && file >> kilobytes) return kilobytes * 1024;
    }
    return 0;
}

}  // namespace npushmem::perf
