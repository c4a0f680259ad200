// SPDX-License-Identifier: BSD-3-Clause
// A PE for the launcher's tests: does what its arguments say, in order, and reports on the descriptor that
// RUN_TEST_REPORT names. Every process of a job holds that descriptor, so its reader sees the end of file when none of
// them is left.
//
//   [<pe>:]<action>[=<value>]      with <pe>, only that PE does it
//     report=WORD     one line "<pe> WORD <pid>"          exit=STATUS     die=SIGNAL
//     pause           until killed                         ignore=SIGNAL
//     expect=SIGNAL   blocks it                            await=SIGNAL    takes it, reports "signal-N"
//     child=WORD      a child that reports WORD and waits  session=WORD    the same in a session of its own
//     env=NAME        reports NAME=value                   stdin           reports all of it, | for newlines
//     cpus            reports the number of CPUs           fds             reports descriptors that nobody meant it to
//     have mask            reports whether signals are blocked  print=TEXT      to standard output, with a newline
//     error=TEXT      to standard error, with a newline    partial=TEXT    to standard output, without one
//     lines=COUNT     that many lines to standard output, each in two writes
#include <dirent.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <set>
#include <string>

#include "tests/integration/run/helper/reporting.hpp"

namespace {

using run_test::report;
using run_test::variable;
using run_test::write_all;

sigset_t only(int signal) {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, signal);
    return set;
}

void await(int signal) {
    const sigset_t set = only(signal);
    int got = 0;
    if (sigwait(&set, &got) == 0) report("signal-" + std::to_string(got));
}

[[noreturn]] void wait_for_ever() {
    for (;;) ::pause();
}

// Returns once the child has reported: a job that ends at once would kill it before.
void child(const std::string& word, bool own_session) {
    int ends[2];
    if (::pipe(ends) != 0) std::_Exit(97);
    const bool parent = ::fork() != 0;
    ::close(ends[parent ? 1 : 0]);
    char byte = 0;
    if (parent) {
        (void)!::read(ends[0], &byte, 1);
        ::close(ends[0]);
        return;
    }
    if (own_session) ::setsid();
    report(word);
    ::close(ends[1]);
    wait_for_ever();
}

void expect(int signal) {
    const sigset_t set = only(signal);
    sigprocmask(SIG_BLOCK, &set, nullptr);
}

void read_input() {
    std::string all;
    char bytes[4096];
    for (ssize_t count; (count = ::read(0, bytes, sizeof bytes)) > 0;)
        all.append(bytes, static_cast<std::size_t>(count));
    std::replace(all.begin(), all.end(), '\n', '|');  // a report is one line
    report("stdin[" + all + "]");
}

void count_cpus() {
    cpu_set_t set;
    CPU_ZERO(&set);
    if (sched_getaffinity(0, sizeof set, &set) == 0) report("cpus-" + std::to_string(CPU_COUNT(&set)));
}

int number(const char* name) { return std::atoi(variable(name).c_str()); }

// The second descriptor of "pipe:device:inode,log:device:inode,...".
int launchers_log() {
    const std::string text = variable("NPUSHMEM_LAUNCHER_FD");
    return std::atoi(text.c_str() + text.find(',') + 1);
}

void list_descriptors() {
    std::string found = "fds";
    DIR* directory = ::opendir("/proc/self/fd");
    if (directory == nullptr) return;
    const std::set<int> expected{
        0, 1, 2, ::dirfd(directory), number("RUN_TEST_REPORT"), number("NPUSHMEM_LAUNCHER_FD"), launchers_log()};
    while (const dirent* entry = ::readdir(directory)) {
        const int fd = std::atoi(entry->d_name);
        if (expected.count(fd) == 0 && std::isdigit(entry->d_name[0]) != 0) found += "-" + std::to_string(fd);
    }
    ::closedir(directory);
    report(found);
}

void show_mask() {
    sigset_t set;
    sigprocmask(SIG_BLOCK, nullptr, &set);
    std::string blocked = "mask";
    for (int signal = 1; signal < SIGRTMIN; ++signal)
        if (sigismember(&set, signal) == 1) blocked += "-" + std::to_string(signal);
    report(blocked);
}

void die(int signal) {
    std::signal(signal, SIG_DFL);
    ::raise(signal);
}

void lines(int count) {
    for (int i = 0; i < count; ++i) {
        write_all(1, "line " + std::to_string(i));
        write_all(1, " of " + variable("NPUSHMEM_PE") + "\n");
    }
}

using Action = std::function<void(const std::string& value)>;

const std::map<std::string, Action>& actions() {
    static const std::map<std::string, Action> all{
        {"report", [](const std::string& value) { report(value); }},
        {"exit", [](const std::string& value) { std::_Exit(std::atoi(value.c_str())); }},
        {"die", [](const std::string& value) { die(std::atoi(value.c_str())); }},
        {"pause", [](const std::string&) { wait_for_ever(); }},
        {"ignore", [](const std::string& value) { std::signal(std::atoi(value.c_str()), SIG_IGN); }},
        {"expect", [](const std::string& value) { expect(std::atoi(value.c_str())); }},
        {"await", [](const std::string& value) { await(std::atoi(value.c_str())); }},
        {"child", [](const std::string& value) { child(value, false); }},
        {"session", [](const std::string& value) { child(value, true); }},
        {"env", [](const std::string& value) { report(value + "=" + variable(value.c_str())); }},
        {"stdin", [](const std::string&) { read_input(); }},
        {"cpus", [](const std::string&) { count_cpus(); }},
        {"fds", [](const std::string&) { list_descriptors(); }},
        {"mask", [](const std::string&) { show_mask(); }},
        {"print", [](const std::string& value) { write_all(1, value + "\n"); }},
        {"error", [](const std::string& value) { write_all(2, value + "\n"); }},
        {"partial", [](const std::string& value) { write_all(1, value); }},
        {"lines", [](const std::string& value) { lines(std::atoi(value.c_str())); }},
    };
    return all;
}

void perform(std::string step) {
    const auto colon = step.find(':');
    const auto equals = step.find('=');
    if (colon != std::string::npos && (equals == std::string::npos || colon < equals)) {
        if (step.substr(0, colon) != variable("NPUSHMEM_PE")) return;
        step.erase(0, colon + 1);
    }
    const auto split = step.find('=');
    const auto found = actions().find(step.substr(0, split));
    if (found == actions().end()) std::_Exit(98);
    found->second(split == std::string::npos ? "" : step.substr(split + 1));
}

}  // namespace

int main(int argc, char** argv) {
    for (int i = 1; i < argc; ++i) perform(argv[i]);
    return 0;
}
