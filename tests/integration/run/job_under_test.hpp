// SPDX-License-Identifier: BSD-3-Clause
// One run of npushmem-run as a child of the test: its reports, its output, its end, and the proof that nothing is left.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "core/base/poller.hpp"

namespace npushmem::run {

struct Report {
    int pe = -1;  // -1 for a process that no launcher started
    std::string word;
    int pid = -1;
};

struct JobSettings {
    // A terminal's slave side, which becomes standard input and the controlling terminal.
    int terminal = -1;
    // The terminal's foreground belongs to another process, which reports "foreground" and gives it to the launcher
    // when it gets SIGUSR1.
    bool in_background = false;
    int input = -1;                        // standard input of the launcher; -1: an empty one
    int output = -1;                       // standard output; -1: collected
    int max_files = 0;                     // limit of open files, which the launcher cannot raise; 0: as it is
    bool own_group = false;                // the launcher leads a process group of its own
    bool children_ignored = false;         // the launcher starts with SIGCHLD ignored
    bool with_bootstrap = false;           // meet by the uid plugin; otherwise no plugin is needed
    std::vector<std::string> environment;  // NAME=value, besides the test's own
};

// The calling process becomes a subreaper, so that it inherits and detects every process that a job leaves behind.
// Waiting fails the test after a deadline far above the time of a healthy run.
class JobUnderTest {
public:
    explicit JobUnderTest(const std::vector<std::string>& arguments, const JobSettings& settings = {});
    JobUnderTest(const JobUnderTest&) = delete;
    JobUnderTest& operator=(const JobUnderTest&) = delete;
    ~JobUnderTest();

    [[nodiscard]] int launcher() const { return launcher_; }
    // The launcher's only child.
    [[nodiscard]] int supervisor() const;
    void signal(int number) const;

    // The next `count` reports, in the order of their arrival.
    std::vector<Report> reports(int count);
    // Waits for the launcher's end, then for the end of every process of the job. Exit status, or 128 + signal.
    int end();
    // The same while another job of this test runs, whose processes are not to be waited for.
    int end_alone();
    // Waits until the launcher has been stopped by a signal.
    void wait_until_stopped() const;

    // After end().
    [[nodiscard]] std::string output() const;
    [[nodiscard]] std::string errors() const;

private:
    [[noreturn]] void become_launcher(const std::vector<std::string>& arguments, const JobSettings& settings,
                                      int report_to);
    bool read_more();
    void expect_no_holder();
    static void expect_no_orphan();

    int launcher_ = -1;
    bool ended_ = false;
    FileDescriptor reports_;
    FileDescriptor output_;
    FileDescriptor errors_;
    std::string unread_;
};

// The launcher's command line for the helper: options, then the helper's path, then its steps.
std::vector<std::string> helper_job(std::vector<std::string> options, const std::vector<std::string>& steps);

// Looks until the condition holds; false after the deadline. For states of which the system gives no notice.
bool eventually(const std::function<bool()>& condition);

// State letter of a process as in /proc/<pid>/stat, or '-' when there is none.
char state_of(int pid);

// Looks until `state_of(pid) == state`; false after the deadline.
bool wait_for_state(int pid, char state);

// Copies of a process's sockets; none where the system does not allow it.
std::vector<FileDescriptor> sockets_of(int pid);

// Does the process wait for others in the start of the job: with a connection, or with memory that it shares with them?
bool has_joined(int pid);

// The pids of `reports` in order of PE.
std::vector<int> pids_by_pe(const std::vector<Report>& reports);

}  // namespace npushmem::run
