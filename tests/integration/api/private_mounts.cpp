// SPDX-License-Identifier: BSD-3-Clause
#include "tests/integration/api/private_mounts.hpp"

#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>

namespace npushmem::api_test {
namespace {

// Mounts the folder behind the descriptor again at a path that another mount covers.
int uncover(const FileDescriptor& folder, const std::string& path) {
    std::error_code error;
    if (std::filesystem::exists(path, error)) return 0;
    std::filesystem::create_directories(path, error);
    const std::string from = "/proc/self/fd/" + std::to_string(folder.get());
    if (error) return error.value();
    return ::mount(from.c_str(), path.c_str(), nullptr, MS_BIND | MS_REC, nullptr) == 0 ? 0 : errno;
}

// Returns 0 or the errno.
int mount_all(const std::vector<PrivateMounts::Mount>& mounts, const std::string& kept) {
    if (::unshare(CLONE_NEWNS) != 0) return errno;
    if (::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) return errno;
    const FileDescriptor kept_folder(kept.empty() ? -1 : ::open(kept.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
    for (const auto& [folder, options] : mounts)
        if (::mount("tmpfs", folder.c_str(), "tmpfs", 0, options.c_str()) != 0) return errno;
    return kept.empty() ? 0 : uncover(kept_folder, kept);
}

}  // namespace

PrivateMounts::PrivateMounts(const std::vector<Mount>& mounts, const std::string& kept) {
    std::array<int, 2> ends{};
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
        why_not_ = "no pipe";
        return;
    }
    const FileDescriptor read_end(ends[0]);
    FileDescriptor write_end(ends[1]);
    holder_ = ::fork();
    if (holder_ == 0) {
        ::prctl(PR_SET_PDEATHSIG, SIGKILL);
        const int error = mount_all(mounts, kept);
        (void)!::write(ends[1], &error, sizeof error);
        for (;;) ::pause();
    }
    int error = EPIPE;
    write_end.reset();
    (void)!::read(ends[0], &error, sizeof error);
    if (error != 0) why_not_ = std::string("a private mount is not possible here: ") + std::strerror(error);
    space_ = FileDescriptor(::open(("/proc/" + std::to_string(holder_) + "/ns/mnt").c_str(), O_RDONLY | O_CLOEXEC));
}

PrivateMounts::~PrivateMounts() {
    if (holder_ < 0) return;
    ::kill(holder_, SIGKILL);
    ::waitpid(holder_, nullptr, 0);
}

bool PrivateMounts::enter() const { return ::setns(space_.get(), CLONE_NEWNS) == 0; }

std::string PrivateMounts::seen_from_outside(const std::string& folder) const {
    return "/proc/" + std::to_string(holder_) + "/root" + folder;
}

}  // namespace npushmem::api_test
