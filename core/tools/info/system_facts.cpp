// SPDX-License-Identifier: BSD-3-Clause
#include "core/tools/info/system_facts.hpp"

#include <fcntl.h>
#include <fmt/core.h>
#include <ifaddrs.h>
#include <linux/capability.h>
#include <linux/userfaultfd.h>
#include <net/if.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>
#include <sstream>

#include "core/base/parse.hpp"
#include "core/base/poller.hpp"
#include "core/base/shared_segment.hpp"
#include "core/base/version.hpp"
#include "core/runtime/job_transports.hpp"
#include "core/tools/run/processes.hpp"

namespace npushmem::info {

namespace {

namespace fs = std::filesystem;

ResourceLimit limit_of(decltype(RLIMIT_NOFILE) resource) {
    rlimit limit{};
    if (::getrlimit(resource, &limit) != 0) return {};
    const auto bytes = [](rlim_t value) { return value == RLIM_INFINITY ? unlimited : std::uint64_t{value}; };
    return {bytes(limit.rlim_cur), bytes(limit.rlim_max)};
}

FolderFacts folder_facts(const std::string& path) {
    FolderFacts facts;
    std::error_code error;
    facts.exists = fs::is_directory(path, error);
    facts.writable = facts.exists && ::access(path.c_str(), W_OK | X_OK) == 0;
    struct statvfs space {};
    if (facts.exists && ::statvfs(path.c_str(), &space) == 0) {
        facts.total = std::uint64_t{space.f_blocks} * space.f_frsize;
        facts.free = std::uint64_t{space.f_bavail} * space.f_frsize;
    }
    facts.has_huge_pages = is_mount_of_huge_pages(path);
    return facts;
}

std::optional<std::int64_t> number_in(const std::optional<std::string>& content) {
    if (!content) return std::nullopt;
    std::int64_t value = 0;
    std::istringstream text(*content);
    return text >> value ? std::optional(value) : std::nullopt;
}

// Bytes of a line "CommitLimit:  1024 kB"; 0 if there is none.
std::uint64_t kilobytes_of(const std::optional<std::string>& content, std::string_view key) {
    std::istringstream lines(content.value_or(""));
    std::string word;
    std::uint64_t value = 0;
    for (std::string line; std::getline(lines, line);) {
        std::istringstream words(line);
        if (words >> word && word == key && words >> value) return value * 1024;
    }
    return 0;
}

// Names in a folder, in natural order; none if it cannot be read.
std::vector<std::string> names_in(const fs::path& folder) {
    std::vector<std::string> names;
    std::error_code error;
    for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error))
        names.push_back(entry->path().filename().string());
    std::sort(names.begin(), names.end(), topology::natural_less);
    return names;
}

std::string failure_to_open(const std::string& file) {
    const FileDescriptor opened(::open(file.c_str(), O_RDWR | O_CLOEXEC));
    return opened.valid() ? std::string() : std::strerror(errno);
}

std::vector<RdmaDevice> rdma_devices(const FileReader& read) {
    std::vector<RdmaDevice> out;
    const std::string folder = "/sys/class/infiniband_verbs";
    for (const std::string& entry : names_in(folder)) {
        if (!entry.starts_with("uverbs")) continue;
        std::istringstream content(read(fmt::format("{}/{}/ibdev", folder, entry)).value_or(""));
        RdmaDevice device{entry, "/dev/infiniband/" + entry, {}};
        (void)(content >> device.name);
        device.reason = failure_to_open(device.file);
        out.push_back(std::move(device));
    }
    return out;
}

std::vector<NetworkInterface> network_interfaces() {
    std::vector<NetworkInterface> out;
    ifaddrs* list = nullptr;
    if (::getifaddrs(&list) != 0) return out;
    const std::unique_ptr<ifaddrs, decltype(&::freeifaddrs)> owner(list, &::freeifaddrs);
    for (const ifaddrs* one = list; one != nullptr; one = one->ifa_next) {
        const bool has_address =
            one->ifa_addr != nullptr && (one->ifa_addr->sa_family == AF_INET || one->ifa_addr->sa_family == AF_INET6);
        const std::string name = one->ifa_name;
        const bool listed = std::any_of(out.begin(), out.end(), [&](const auto& other) { return other.name == name; });
        if (has_address && !listed)
            out.push_back({name, (one->ifa_flags & IFF_UP) != 0, (one->ifa_flags & IFF_LOOPBACK) != 0});
    }
    return out;
}

std::vector<ProgramFacts> programs_on(const std::string& path) {
    std::vector<ProgramFacts> out;
    for (const char* name : {"srun", "mpirun", "mpiexec"})
        for (const std::string& folder : split(path, ':')) {
            const std::string file = (fs::path(folder) / name).string();
            if (folder.empty() || ::access(file.c_str(), X_OK) != 0) continue;
            out.push_back({file, {}});
            break;
        }
    return out;
}

// The output of `program --version`; empty if it cannot be run.
std::string version_output(const std::string& program) {
    std::array<int, 2> ends{-1, -1};
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) return {};
    const FileDescriptor reading(ends[0]);
    FileDescriptor writing(ends[1]);
    const pid_t child = ::fork();
    if (child == 0) {
        (void)::dup2(writing.get(), STDOUT_FILENO);
        ::execl(program.c_str(), program.c_str(), "--version", static_cast<char*>(nullptr));
        ::_exit(EXIT_FAILURE);
    }
    writing.reset();
    if (child < 0) return {};
    std::string text;
    std::array<char, 256> piece;
    for (ssize_t got = 0; (got = ::read(reading.get(), piece.data(), piece.size())) != 0;) {
        if (got < 0 && errno != EINTR) break;
        if (got > 0) text.append(piece.data(), static_cast<std::size_t>(got));
    }
    while (::waitpid(child, nullptr, 0) < 0 && errno == EINTR) {
    }
    return text;
}

ProgramFacts launcher_in(const std::string& folder) {
    const std::string path = (fs::path(folder) / "npushmem-run").string();
    if (::access(path.c_str(), X_OK) != 0) return {};
    return {path, version_in(version_output(path))};
}

// The file behind the links has the version in its name.
ProgramFacts library_in(const std::string& folder) {
    std::error_code error;
    const fs::path link = fs::path(folder) / "libnpushmem.so";
    for (const fs::path& name : {link, fs::path(link.string() + "." + std::to_string(library_version.major))}) {
        const fs::path file = fs::canonical(name, error);
        if (!error) return {file.string(), version_in(file.filename().string())};
    }
    return {};
}

// Maps a segment of this process in a child process, as the PEs of a host do.
std::string shared_memory_failure() {
    const auto segment = SharedSegment::create(page_bytes(), "");
    if (!segment.ok()) return segment.status().message();
    const SegmentHandle handle = segment.value().handle();
    const pid_t child = ::fork();
    if (child == 0) ::_exit(SharedSegment::attach(handle).ok() ? EXIT_SUCCESS : EXIT_FAILURE);
    if (child < 0) return fmt::format("fork: {}", std::strerror(errno));
    int status = 0;
    while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    if (WIFEXITED(status) && WEXITSTATUS(status) == EXIT_SUCCESS) return {};
    return fmt::format("a child process cannot map the memory of this process through /proc/{}/fd/{}", handle.process,
                       handle.descriptor);
}

bool commits_huge_pages(const std::string& folder) {
    auto segment = SharedSegment::create(huge_page_bytes, folder);
    if (!segment.ok()) return false;
    segment.value().use_huge_pages();
    return segment.value().commit(0, huge_page_bytes).ok() && segment.value().huge_bytes() > 0;
}

std::string userfaultfd_failure() {
    const FileDescriptor made(
        static_cast<int>(::syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK | UFFD_USER_MODE_ONLY)));
    return made.valid() ? std::string() : std::strerror(errno);
}

std::string pidfd_failure() {
    const FileDescriptor made = open_pidfd(::getpid());
    return made.valid() ? std::string() : std::strerror(errno);
}

KernelFacts kernel_facts() {
    utsname name{};
    KernelFacts facts = ::uname(&name) == 0 ? kernel_of(name.release) : KernelFacts{};
    facts.pidfd_failure = pidfd_failure();
    facts.userfaultfd_failure = userfaultfd_failure();
    facts.shared_memory_failure = shared_memory_failure();
    return facts;
}

}  // namespace

std::string selected_word(const std::string& text) {
    const auto begin = text.find('[');
    const auto end = text.find(']', begin == std::string::npos ? 0 : begin);
    return begin == std::string::npos || end == std::string::npos ? "" : text.substr(begin + 1, end - begin - 1);
}

KernelFacts kernel_of(const std::string& release) {
    KernelFacts facts;
    facts.release = release;
    const char* const end = release.data() + release.size();
    const auto major = std::from_chars(release.data(), end, facts.major);
    if (major.ec != std::errc{} || major.ptr == end || *major.ptr != '.' ||
        std::from_chars(major.ptr + 1, end, facts.minor).ec != std::errc{})
        facts.major = facts.minor = 0;
    return facts;
}

MemoryFacts memory_facts(const FileReader& read) {
    MemoryFacts facts;
    facts.available = available_memory(read);
    facts.overcommit = number_in(read("/proc/sys/vm/overcommit_memory"));
    const auto machine = read("/proc/meminfo");
    facts.commit_limit = kilobytes_of(machine, "CommitLimit:");
    facts.committed = kilobytes_of(machine, "Committed_AS:");
    facts.huge_pages = selected_word(read("/sys/kernel/mm/transparent_hugepage/shmem_enabled").value_or(""));
    return facts;
}

bool has_capability(const std::string& status, unsigned capability) {
    std::istringstream words(status);
    for (std::string word; words >> word;) {
        std::uint64_t bits = 0;
        if (word == "CapEff:" && words >> std::hex >> bits) return (bits >> capability & 1) != 0;
    }
    return false;
}

std::string version_in(const std::string& text) {
    constexpr std::string_view characters = "0123456789.";
    const auto last = text.find_last_of("0123456789");
    if (last == std::string::npos) return {};
    const auto before = text.find_last_not_of(characters, last);
    std::string version = text.substr(before == std::string::npos ? 0 : before + 1, last - before);
    version.erase(0, std::min(version.find_first_not_of('.'), version.size()));
    return version;
}

SystemFacts gather_facts(const Settings& settings, const Installation& installation, const Environment& environment) {
    const FileReader read = system_files();
    const CpuFacts cpus = read_cpu_facts();
    SystemFacts facts;
    facts.locked_memory = limit_of(RLIMIT_MEMLOCK);
    facts.open_files = limit_of(RLIMIT_NOFILE);
    facts.processes = limit_of(RLIMIT_NPROC);
    facts.file_size = limit_of(RLIMIT_FSIZE);
    facts.address_space = limit_of(RLIMIT_AS);
    const std::string status = read("/proc/self/status").value_or("");
    facts.ignores_locked_limit = has_capability(status, CAP_IPC_LOCK);
    facts.raises_limits = has_capability(status, CAP_SYS_RESOURCE);
    facts.ignores_process_limit = facts.raises_limits || has_capability(status, CAP_SYS_ADMIN) || ::getuid() == 0;
    facts.cpus = std::max(count_cpus(cpus.affinity), 1);
    facts.quota = cpus.quota;
    facts.memory = memory_facts(read);
    facts.shm = folder_facts("/dev/shm");
    facts.memory.commits_huge_pages = commits_huge_pages(settings.heap_dir);
    if (!settings.heap_dir.empty()) facts.heap_dir = folder_facts(settings.heap_dir);
    facts.kernel = kernel_facts();
    facts.ptrace_scope = number_in(read("/proc/sys/kernel/yama/ptrace_scope"));
    facts.rdma = rdma_devices(read);
    facts.has_fabric = has_fabric_device();
    facts.interfaces = network_interfaces();
    facts.library = library_in(installation.library);
    facts.launcher = launcher_in(installation.programs);
    facts.launchers = programs_on(environment.get("PATH").value_or(""));
    facts.hwloc = topology::hwloc_versions();
    return facts;
}

}  // namespace npushmem::info
