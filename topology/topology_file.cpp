#include "topology/topology_file.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "core/base/host_facts.hpp"
#include "core/base/streams.hpp"

namespace npushmem::topology {

Status check_topology_file(const std::string& path) {
    std::error_code failure;
    if (std::filesystem::is_directory(path, failure)) {
        return {Code::config, fmt::format("topology file \"{}\" is a directory; name an XML file", path)};
    }
    errno = 0;
    if (std::ifstream(path).good()) return {};
    return {Code::config, fmt::format("cannot read topology file \"{}\": {}", path, std::strerror(errno))};
}

std::uint64_t hash_of_topology_file(const std::string& path) {
    const auto content = read_whole_file(path);
    return hash_bytes(content.ok() ? content.value() : "");
}

}  // namespace npushmem::topology
