// SPDX-License-Identifier: BSD-3-Clause
#include "tests/contract/process_states.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <vector>

namespace npushmem::contract {
namespace {

namespace fs = std::filesystem;

// The whole file without a newline at its end; empty if it is not readable, also because its process has ended.
std::string content_of(const fs::path& path) {
    std::ifstream file(path);
    std::string out;
    std::getline(file, out, '\0');  // an iterator over the buffer would throw at an error
    while (!out.empty() && out.back() == '\n') out.pop_back();
    return out;
}

// The folders of `parent` whose names are numbers, in ascending order.
std::vector<fs::path> numbered_folders(const fs::path& parent) {
    std::vector<fs::path> out;
    std::error_code error;
    for (fs::directory_iterator at(parent, error), end; !error && at != end; at.increment(error)) {
        const std::string name = at->path().filename();
        if (name.find_first_not_of("0123456789") == std::string::npos) out.push_back(at->path());
    }
    std::sort(out.begin(), out.end(), [](const fs::path& a, const fs::path& b) {
        return std::stol(a.filename().string()) < std::stol(b.filename().string());
    });
    return out;
}

struct Stat {
    char state = '?';
    long group = -1;
};

Stat stat_of(const fs::path& folder) {
    const std::string text = content_of(folder / "stat");
    Stat out;
    const auto name_end = text.rfind(')');  // a name may contain anything
    if (name_end == std::string::npos) return out;
    long parent = 0;
    std::istringstream(text.substr(name_end + 1)) >> out.state >> parent >> out.group;
    return out;
}

void describe_thread(const fs::path& process, const fs::path& thread, std::ostream& out) {
    out << "  process " << process.filename().string() << ", thread " << thread.filename().string() << " ("
        << content_of(thread / "comm") << "): state " << stat_of(thread).state;
    const std::string wait = content_of(thread / "wchan");
    if (!wait.empty() && wait != "0") out << ", waits in " << wait;
    if (const std::string call = content_of(thread / "syscall"); !call.empty())
        out << ", system call " << call.substr(0, call.find(' '));
    out << "\n";
    std::istringstream stack(content_of(thread / "stack"));
    for (std::string line; std::getline(stack, line);) out << "      " << line << "\n";
}

}  // namespace

std::string states_of_group(pid_t group) {
    std::ostringstream out;
    for (const auto& process : numbered_folders("/proc")) {
        if (stat_of(process).group != group) continue;
        for (const auto& thread : numbered_folders(process / "task")) describe_thread(process, thread, out);
    }
    return out.str();
}

}  // namespace npushmem::contract
