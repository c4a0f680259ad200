// SPDX-License-Identifier: BSD-3-Clause
#include "core/base/host_facts.hpp"

#include <fmt/core.h>
#include <sched.h>
#include <sys/random.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <limits>
#include <optional>
#include <sstream>
#include <utility>

#include "core/base/hash.hpp"
#include "core/base/parse.hpp"
#include "core/base/streams.hpp"

namespace npushmem {

namespace {

constexpr auto no_limit = std::numeric_limits<std::uint64_t>::max();

// File names of a control group, by version; all else is equal. The files' values include the groups below.
struct GroupFiles {
    const char* mount;
    const char* limit;
    const char* used;
    std::string_view reclaimable;  // key in memory.stat: file pages that the kernel can reclaim
};
constexpr GroupFiles version_2{"/sys/fs/cgroup", "/memory.max", "/memory.current", "inactive_file"};
constexpr GroupFiles version_1{"/sys/fs/cgroup/memory", "/memory.limit_in_bytes", "/memory.usage_in_bytes",
                               "total_inactive_file"};

// Returns `otherwise` for "max", for malformed text and when there is no such file.
std::uint64_t group_number(const std::string& path, std::uint64_t otherwise, const FileReader& read) {
    std::istringstream text(read(path).value_or(""));
    std::uint64_t value = 0;
    return text >> value ? value : otherwise;
}

// Returns the number after a word at the beginning of a line: "inactive_file 4096", "MemTotal:  1024 kB"; 0 if absent.
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

// Without a slash nothing remains: a path of a control group begins with one, unless the file is damaged.
void remove_last_part(std::string& path) {
    const auto last = path.rfind('/');
    path.erase(last == std::string::npos ? 0 : last);
}

// Every ancestor's limit applies, up to the mount itself. Without a cgroup namespace, a container's process names a
// path that exists only outside, and its limit is at the mount.
void narrow_upwards(AvailableMemory& room, std::string path, const GroupFiles& files, const FileReader& read) {
    for (;;) {
        while (!path.empty() && path.back() == '/') path.pop_back();
        narrow(room, files.mount + path, files, read);
        if (path.empty()) return;
        remove_last_part(path);
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

namespace {

// Returns the first number in the text of a link, or nothing.
template <class Number>
std::optional<Number> number_in_link(const char* path) {
    std::array<char, 64> link{};
    const ssize_t length = ::readlink(path, link.data(), link.size());
    const std::string_view text(link.data(), static_cast<std::size_t>(std::max<ssize_t>(length, 0)));
    const auto first = std::min(text.find_first_of("0123456789"), text.size());
    Number number{};
    if (std::from_chars(text.data() + first, text.data() + text.size(), number).ec != std::errc{}) return std::nullopt;
    return number;
}

}  // namespace

std::string host_name() {
    std::array<char, 256> name{};
    if (gethostname(name.data(), name.size() - 1) != 0) return "unknown";
    return name.data();
}

Result<npushmem_host_id> host_identity(int emulated_host) {
    const auto unreadable = [](const char* file, const std::string& why) {
        return Status{Code::system, fmt::format("cannot identify this host: {} is not readable ({})", file, why)};
    };
    constexpr const char* boot_file = "/proc/sys/kernel/random/boot_id";
    const auto read = read_whole_file(boot_file);
    if (!read.ok()) return unreadable(boot_file, read.status().message());
    const std::string boot = read.value().substr(0, read.value().find('\n'));
    if (boot.empty()) return unreadable(boot_file, "it is empty");
    constexpr const char* space_file = "/proc/self/ns/pid";
    // The link's text is "pid:[4026531836]". A stat of the link makes an inode, which takes longer.
    const auto space = number_in_link<std::uint64_t>(space_file);
    if (!space) return unreadable(space_file, "expected a link that contains a number");
    npushmem_host_id id{};
    id.machine = hash_bytes(boot);
    id.space = *space;
    // A /proc of another namespace: no process that this one sees there has the number that it knows.
    if (number_in_link<pid_t>("/proc/self") != getpid() &&
        ::getrandom(&id.space, sizeof id.space, 0) != static_cast<ssize_t>(sizeof id.space))
        return Status{Code::system, fmt::format("cannot draw a random number: {}", std::strerror(errno))};
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

namespace {

std::optional<double> number(std::string_view text) {
    text = trimmed(text);
    while (!text.empty() && text.back() == '\n') text.remove_suffix(1);
    double value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
    return value;
}

double cores_of(std::optional<double> quota, std::optional<double> period) {
    return quota && period && *quota > 0 && *period > 0 ? *quota / *period : 0.0;
}

double tighter(double a, double b) {
    if (a == 0.0 || b == 0.0) return std::max(a, b);
    return std::min(a, b);
}

double quota_v2(const std::string& folder, const FileReader& read) {
    return parse_cpu_max(read(folder + "/cpu.max").value_or(""));
}

double quota_v1(const std::string& folder, const FileReader& read) {
    return cores_of(number(read(folder + "/cpu.cfs_quota_us").value_or("")),
                    number(read(folder + "/cpu.cfs_period_us").value_or("")));
}

// Walks from mount + path up to the mount. Inside a container the path may name a folder that exists only outside;
// unreadable levels are skipped.
template <class Quota>
double tightest(const std::string& mount, std::string path, const FileReader& read, Quota quota_at) {
    double best = 0.0;
    for (;;) {
        while (!path.empty() && path.back() == '/') path.pop_back();
        best = tighter(best, quota_at(mount + path, read));
        if (path.empty()) return best;
        remove_last_part(path);
    }
}

bool has_cpu_controller(std::string_view controllers) {
    const auto names = split(controllers, ',');
    return std::find(names.begin(), names.end(), "cpu") != names.end();
}

// One line of /proc/self/cgroup: hierarchy:controllers:path, where version 2 is hierarchy 0 without controllers.
double quota_of_line(std::string_view line, const FileReader& read) {
    const auto first = line.find(':');
    if (first == std::string_view::npos) return 0.0;
    const auto second = line.find(':', first + 1);
    if (second == std::string_view::npos) return 0.0;
    const auto controllers = line.substr(first + 1, second - first - 1);
    const std::string path(line.substr(second + 1));
    if (controllers.empty()) return tightest("/sys/fs/cgroup", path, read, quota_v2);
    if (!has_cpu_controller(controllers)) return 0.0;
    return tighter(tightest("/sys/fs/cgroup/cpu", path, read, quota_v1),
                   tightest("/sys/fs/cgroup/cpu,cpuacct", path, read, quota_v1));
}

CpuMask affinity_of_this_process() {
    // Grows until the kernel's mask fits; some machines have more CPUs than cpu_set_t.
    for (std::size_t words = 16; words <= 4096; words *= 2) {
        CpuMask mask(words);
        auto* set = reinterpret_cast<cpu_set_t*>(mask.data());
        if (sched_getaffinity(0, words * sizeof(std::uint64_t), set) != 0) continue;
        while (!mask.empty() && mask.back() == 0) mask.pop_back();
        return mask;
    }
    return {1};
}

}  // namespace

int count_cpus(const CpuMask& mask) {
    int count = 0;
    for (const std::uint64_t word : mask) count += std::popcount(word);
    return count;
}

double usable_cores(std::span<const CpuMask> masks, double quota) {
    CpuMask all;
    for (const CpuMask& mask : masks) {
        all.resize(std::max(all.size(), mask.size()));
        for (std::size_t i = 0; i < mask.size(); ++i) all[i] |= mask[i];
    }
    const double cpus = std::max(count_cpus(all), 1);
    return quota > 0.0 ? std::clamp(quota, 0.01, cpus) : cpus;
}

double parse_cpu_max(std::string_view text) {
    const auto blank = text.find(' ');
    if (blank == std::string_view::npos) return 0.0;
    return cores_of(number(text.substr(0, blank)), number(text.substr(blank + 1)));
}

double cgroup_quota(std::string_view proc_self_cgroup, const FileReader& read) {
    double best = 0.0;
    for (const std::string& line : split(proc_self_cgroup, '\n')) best = tighter(best, quota_of_line(line, read));
    return best;
}

FileReader system_files() {
    return [](const std::string& path) -> std::optional<std::string> {
        auto content = read_whole_file(path);
        if (!content.ok()) return std::nullopt;
        return std::move(content).value();
    };
}

bool is_mount_of_huge_pages(const std::string& folder) {
    constexpr decltype(statfs::f_type) hugetlbfs = 0x958458f6;
    struct statfs facts {};
    return !folder.empty() && statfs(folder.c_str(), &facts) == 0 && facts.f_type == hugetlbfs;
}

CpuFacts read_cpu_facts() {
    const FileReader read = system_files();
    return {affinity_of_this_process(), cgroup_quota(read("/proc/self/cgroup").value_or(""), read)};
}

}  // namespace npushmem
