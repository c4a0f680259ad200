// SPDX-License-Identifier: BSD-3-Clause
#include "tests/stress/storm/surroundings.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <net/if.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace npushmem::storm {
namespace {

constexpr rlim_t mib = 1U << 20;

std::string cannot(const char* attempt) { return fmt::format("{}: {}", attempt, std::strerror(errno)); }

bool raise_loopback() {
    const int socket = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    ifreq request{};
    std::strcpy(request.ifr_name, "lo");
    request.ifr_flags = IFF_UP | IFF_RUNNING;
    const bool up = ::ioctl(socket, SIOCSIFFLAGS, &request) == 0;
    ::close(socket);
    return up;
}

bool make_private(const char* mount_point) {
    return ::mount(nullptr, mount_point, nullptr, MS_REC | MS_PRIVATE, nullptr) == 0;
}

// For this process and its children only. In a chroot "/" may be no mount point; what is mounted on the folder's own
// mount then stays here too.
bool mount_private_tmpfs(const char* folder, const char* options) {
    return ::unshare(CLONE_NEWNS) == 0 && (make_private("/") || make_private(folder)) &&
           ::mount("tmpfs", folder, "tmpfs", 0, options) == 0;
}

bool limit(__rlimit_resource resource, rlim_t value) {
    const rlimit both{value, value};
    return ::setrlimit(resource, &both) == 0;
}

// The limit of processes applies to users other than root.
bool limit_processes(rlim_t count) {
    constexpr uid_t user = 64999;  // of nobody else
    return limit(RLIMIT_NPROC, count) && ::setresgid(user, user, user) == 0 && ::setresuid(user, user, user) == 0;
}

bool fill_disk() {
    if (!mount_private_tmpfs("/mnt", "size=1m,mode=1777")) return false;
    const int file = ::open("/mnt/full", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    const std::string block(4096, 'x');
    while (::write(file, block.data(), block.size()) > 0) {
    }
    ::close(file);
    ::setenv("NPUSHMEM_HEAP_DIR", "/mnt", 1);
    ::setenv("NPUSHMEM_DEBUG_FILE", "/mnt/log.%p", 1);
    return true;
}

bool limit_files(std::string_view kind) {
    if (kind == "shm-tiny") return mount_private_tmpfs("/dev/shm", "size=4k,mode=1777");
    if (kind == "shm-read-only") return mount_private_tmpfs("/dev/shm", "ro,size=1m");
    if (kind == "disk-full") return fill_disk();
    return mount_private_tmpfs("/proc", "ro,size=1m");
}

void add_inet_sockets(const char* table, std::set<std::string>& out) {
    std::ifstream file(table);
    std::string line;
    std::getline(file, line);
    while (std::getline(file, line)) {
        std::istringstream fields(line);
        std::string number, local, remote, state;
        fields >> number >> local >> remote >> state;
        if (state == "01" || state == "0A") out.insert(fmt::format("{} {} {} state {}", table, local, remote, state));
    }
}

}  // namespace

std::string enter_private_namespaces() {
    if (!mount_private_tmpfs("/dev/shm", "mode=1777")) return cannot("a private mount of /dev/shm");
    // Last: without its loopback a network of its own would fail every job.
    if (::unshare(CLONE_NEWNET) != 0) return cannot("a private network");
    return raise_loopback() ? "" : cannot("SIOCSIFFLAGS");
}

std::string limit_job(const Fault& fault) {
    const std::string_view kind = fault.kind->name;
    const auto amount = static_cast<rlim_t>(fault.amount);
    const bool done = kind == "descriptors" ? limit(RLIMIT_NOFILE, 3 + amount)
                      : kind == "memory"    ? limit(RLIMIT_AS, amount * 16 * mib)
                      : kind == "processes" ? limit_processes(amount / 2)
                      : kind == "file-size" ? limit(RLIMIT_FSIZE, (amount * 4 - 3) * mib)
                                            : limit_files(kind);
    return done ? "" : cannot("the limit");
}

std::set<std::string> present_sockets() {
    std::set<std::string> out;
    for (const char* table : {"/proc/net/tcp", "/proc/net/tcp6"}) add_inet_sockets(table, out);
    std::ifstream file("/proc/net/unix");
    for (std::string line; std::getline(file, line);)
        if (line.find("npushmem") != std::string::npos) out.insert(line);
    return out;
}

std::set<std::string> present_files(const std::string& temporary) {
    std::set<std::string> out;
    for (const std::string& folder : {std::string("/dev/shm"), temporary}) {
        std::error_code ignored;
        for (const auto& entry : std::filesystem::directory_iterator(folder, ignored))
            out.insert(entry.path().string());
    }
    return out;
}

}  // namespace npushmem::storm
