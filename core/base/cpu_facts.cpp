#include "core/base/cpu_facts.hpp"

#include <sched.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <fstream>
#include <iterator>

#include "core/base/strings.hpp"

namespace npushmem {
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

// From mount + path up to mount itself. Inside a container the path may name a folder that only the outside sees; the
// levels that cannot be read have no limit to tell.
template <class Quota>
double tightest(const std::string& mount, std::string path, const FileReader& read, Quota quota_at) {
    double best = 0.0;
    for (;;) {
        while (!path.empty() && path.back() == '/') path.pop_back();
        best = tighter(best, quota_at(mount + path, read));
        if (path.empty()) return best;
        path.erase(std::min(path.rfind('/'), path.size()));
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
    // Grown until the kernel's mask fits; machines with more CPUs than a cpu_set_t holds exist.
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
        std::ifstream file(path);
        if (!file) return std::nullopt;
        return std::string(std::istreambuf_iterator<char>(file), {});
    };
}

CpuFacts read_cpu_facts() {
    const FileReader read = system_files();
    return {affinity_of_this_process(), cgroup_quota(read("/proc/self/cgroup").value_or(""), read)};
}

}  // namespace npushmem
