// SPDX-License-Identifier: BSD-3-Clause
// Several processes of the scenario program, started without a launcher, as for a program like DeepEP.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "core/base/poller.hpp"

namespace npushmem::api_test {

struct WorldSettings {
    std::vector<std::string> environment;                              // NAME=value, of every rank
    std::function<std::vector<std::string>(int rank)> environment_of;  // additional, of one rank
    std::function<bool()> before_exec;                                 // in the child; false: it ends with status 94
};

// Ranks 0..nranks-1, all with the same steps. The destructor kills ranks that still run.
class PlainWorld {
public:
    PlainWorld(int nranks, const std::vector<std::string>& steps, const WorldSettings& settings = {});
    PlainWorld(const PlainWorld&) = delete;
    PlainWorld& operator=(const PlainWorld&) = delete;
    ~PlainWorld();

    // Waits until the ranks together have reported this many lines by the step "report".
    void wait_for_reports(int count);
    // Ends the step "hold" in all ranks, now and later.
    void release() { go_.reset(); }
    void kill(int rank, int signal) const;

    // Waits for the rank's end and returns its exit status, or 128 + signal. Fails the test at a generous deadline.
    int status(int rank);
    // Expects that every rank ends with 0, and shows the output of the others.
    void expect_success();
    // All output so far.
    [[nodiscard]] std::string output(int rank) const;
    [[nodiscard]] std::string errors(int rank) const;
    [[nodiscard]] int nranks() const { return static_cast<int>(ranks_.size()); }

private:
    struct Rank {
        int pid = -1;
        int status = -1;  // -1 while it runs
        FileDescriptor output;
        FileDescriptor errors;
    };
    [[noreturn]] void become(int number, int nranks, const std::vector<std::string>& steps,
                             const WorldSettings& settings, int report_to, int ids_read, int ids_write, int go_read);

    std::vector<Rank> ranks_;
    FileDescriptor reports_;
    FileDescriptor go_;
    int reported_ = 0;
};

}  // namespace npushmem::api_test
