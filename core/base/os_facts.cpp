#include "core/base/os_facts.hpp"

#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <limits>
#include <optional>
#include <sstream>

#include "core/base/strings.hpp"

namespace npushmem {

namespace {

constexpr auto no_limit = std::numeric_limits<std::uint64_t>::max();

std::string first_line(const std::string& path) {
    std::ifstream file(path);
    std::string line;
    std::getline(file, line);
    return line;
}

// Names of a control group's files; the two versions differ in nothing else that matters here. All count the group and
// everything below it.
struct GroupFiles {
    const char* mount;
    const char* limit;
    const char* used;
    std::string_view reclaimable;  // key in memory.stat: file pages that the kernel takes back when it needs memory
};
constexpr GroupFiles version_2{"/sys/fs/cgroup", "/memory.max", "/memory.current", "inactive_file"};
constexpr GroupFiles version_1{"/sys/fs/cgroup/memory", "/memory.limit_in_bytes", "/memory.usage_in_bytes",
                               "total_inactive_file"};

// `otherwise` for "max", for what is no number, and when there is no such file.
std::uint64_t group_number(const std::string& path, std::uint64_t otherwise, const FileReader& read) {
    std::istringstream text(read(path).value_or(""));
    std::uint64_t value = 0;
    return text >> value ? value : otherwise;
}

// The number behind a word that begins a line: "inactive_file 4096", "MemTotal:  1024 kB"; 0 when it is not there.
std::uint64_t number_behind(std::string_view key, const std::optional<std::string>& content) {
    std::istringstream text(content.value_or(""));
    for (std::string line; std::getline(text, line);) {
        std::istringstream words(line);
        std::string word;
        std::uint64_t value = 0;
        if (words >> word && word == key) return words >> value ? value : 0;
    }
    return 0;
}

std::uint64_t minus(std::uint64_t a, std::uint64_t b) { return a > b ? a - b : 0; }

void narrow(AvailableMemory& room, const std::string& folder, const GroupFiles& files, const FileReader& read) {
    const std::uint64_t limit = group_number(folder + files.limit, no_limit, read);
    if (limit == no_limit) return;
    const std::uint64_t used = group_number(folder + files.used, 0, read);
    const std::uint64_t kept = minus(used, number_behind(files.reclaimable, read(folder + "/memory.stat")));
    const std::uint64_t left = minus(limit, kept);
    if (left < room.available) room = {left, limit, true};
}

// Every ancestor's limit counts, up to the mount itself: without a namespace of its own, a container's process names a
// path that only the outside sees, and its limit is at the mount.
void narrow_upwards(AvailableMemory& room, std::string path, const GroupFiles& files, const FileReader& read) {
    for (;;) {
        while (!path.empty() && path.back() == '/') path.pop_back();
        narrow(room, files.mount + path, files, read);
        if (path.empty()) return;
        path.erase(std::min(path.rfind('/'), path.size()));
    }
}

// One line of /proc/self/cgroup: hierarchy:controllers:path, where version 2 is the one without controllers.
void narrow_by_line(AvailableMemory& room, std::string_view line, const FileReader& read) {
    const auto first = line.find(':');
    const auto second = first == std::string_view::npos ? first : line.find(':', first + 1);
    if (second == std::string_view::npos) return;
    const auto controllers = split(line.substr(first + 1, second - first - 1), ',');
    const std::string path(line.substr(second + 1));
    if (second == first + 1) return narrow_upwards(room, path, version_2, read);
    if (std::find(controllers.begin(), controllers.end(), "memory") == controllers.end()) return;
    narrow_upwards(room, path, version_1, read);
}

}  // namespace

std::string host_name() {
    std::array<char, 256> name{};
    if (gethostname(name.data(), name.size() - 1) != 0) return "unknown";
    return name.data();
}

std::uint64_t hash_bytes(std::string_view bytes) {
    std::uint64_t hash = 0xcbf29ce484222325U;
    for (const char byte : bytes) hash = (hash ^ static_cast<unsigned char>(byte)) * 0x100000001b3U;
    return hash;
}

Result<npushmem_host_id> host_identity(int emulated_host) {
    const std::string boot = first_line("/proc/sys/kernel/random/boot_id");
    struct stat space {};
    if (boot.empty() || stat("/proc/self/ns/pid", &space) != 0)
        return Status{Code::system, fmt::format("cannot identify this host: {} is not readable ({})",
                                                boot.empty() ? "/proc/sys/kernel/random/boot_id" : "/proc/self/ns/pid",
                                                std::strerror(errno))};
    npushmem_host_id id{};
    id.machine = hash_bytes(boot);
    id.space = static_cast<std::uint64_t>(space.st_ino);
    id.emulated = emulated_host;
    id.user = geteuid();
    return id;
}

AvailableMemory available_memory(const FileReader& read) {
    const auto machine = read("/proc/meminfo");
    AvailableMemory room{number_behind("MemAvailable:", machine) * 1024, number_behind("MemTotal:", machine) * 1024,
                         false};
    for (const std::string& line : split(read("/proc/self/cgroup").value_or(""), '\n'))
        narrow_by_line(room, line, read);
    return room;
}

AvailableMemory available_memory() { return available_memory(system_files()); }

}  // namespace npushmem
