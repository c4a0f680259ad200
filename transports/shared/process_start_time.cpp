#include "transports/shared/process_start_time.hpp"

#include <fmt/format.h>

#include <charconv>
#include <fstream>
#include <string>

namespace npushmem::shared_memory {

std::uint64_t start_time_in(std::string_view line) {
    constexpr int fields_after_name = 20;  // the name is field 2, the start time field 22
    std::size_t at = line.rfind(')');
    for (int field = 0; field < fields_after_name; ++field) {
        if (at == std::string_view::npos) return 0;
        at = line.find(' ', at + 1);
    }
    if (at == std::string_view::npos) return 0;
    std::uint64_t value = 0;
    std::from_chars(line.data() + at + 1, line.data() + line.size(), value);
    return value;
}

Result<std::uint64_t> start_time_of(int process) {
    std::ifstream file(fmt::format("/proc/{}/stat", process));
    std::string line;
    if (!std::getline(file, line))
        return Status{Code::peer_dead, fmt::format("there is no process {} (any more), or it is of another process "
                                                   "namespace",
                                                   process)};
    return start_time_in(line);
}

}  // namespace npushmem::shared_memory
