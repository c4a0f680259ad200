#include "core/tools/run/descendants.hpp"

#include <dirent.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace npushmem::run {
namespace {

using File = std::unique_ptr<std::FILE, decltype([](std::FILE* file) { std::fclose(file); })>;
using Directory = std::unique_ptr<DIR, decltype([](DIR* directory) { ::closedir(directory); })>;

// The parent of a process, or -1. The name in /proc/<pid>/stat may hold blanks and brackets: fields count from its
// last.
int parent_of(int pid) {
    const File file(std::fopen(("/proc/" + std::to_string(pid) + "/stat").c_str(), "re"));
    char text[512] = {};
    if (file == nullptr || std::fread(text, 1, sizeof text - 1, file.get()) == 0) return -1;
    const char* after_name = std::strrchr(text, ')');
    int parent = -1;
    if (after_name == nullptr || std::sscanf(after_name, ") %*c %d", &parent) != 1) return -1;
    return parent;
}

std::vector<int> all_processes() {
    std::vector<int> out;
    const Directory directory(::opendir("/proc"));
    if (directory == nullptr) return out;
    while (const dirent* entry = ::readdir(directory.get())) {
        int pid = 0;
        const char* end = entry->d_name + std::strlen(entry->d_name);
        if (std::from_chars(entry->d_name, end, pid).ptr == end && pid > 0) out.push_back(pid);
    }
    return out;
}

void kill_children() {
    const int self = ::getpid();
    for (const int pid : all_processes())
        if (parent_of(pid) == self) (void)::kill(pid, SIGKILL);
}

enum class Reaped { none_left, some, nothing_yet };

Reaped reap() {
    Reaped result = Reaped::nothing_yet;
    for (;;) {
        const int pid = ::waitpid(-1, nullptr, WNOHANG);
        if (pid < 0) return errno == ECHILD ? Reaped::none_left : result;
        if (pid == 0) return result;
        result = Reaped::some;
    }
}

}  // namespace

bool kill_descendants(std::chrono::milliseconds limit) {
    const auto end = std::chrono::steady_clock::now() + limit;
    auto pause = std::chrono::microseconds(100);
    for (bool first = true; std::chrono::steady_clock::now() < end; first = false) {
        const Reaped reaped = reap();
        if (reaped == Reaped::none_left) return true;
        // What was killed may have left children of its own, which are ours now.
        if (reaped == Reaped::some || first)
            kill_children();
        else
            std::this_thread::sleep_for(pause = std::min(pause * 2, std::chrono::microseconds(5000)));
    }
    return reap() == Reaped::none_left;
}

}  // namespace npushmem::run
