// SPDX-License-Identifier: BSD-3-Clause
#include "tests/integration/api/plain_world.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <cstdlib>

#include "core/tools/run/job_preparation.hpp"
#include "core/tools/run/processes.hpp"

namespace npushmem::api_test {
namespace {

constexpr int deadline_ms = 240'000;

struct Pipe {
    FileDescriptor read;
    FileDescriptor write;
};

Pipe make_pipe() {
    std::array<int, 2> ends{};
    EXPECT_EQ(::pipe2(ends.data(), O_CLOEXEC), 0);
    return {FileDescriptor(ends[0]), FileDescriptor(ends[1])};
}

bool readable(int fd) {
    pollfd entry{fd, POLLIN, 0};
    return ::poll(&entry, 1, deadline_ms) == 1;
}

std::string contents(const FileDescriptor& file) {
    std::string out;
    std::array<char, 4096> bytes{};
    ssize_t count = 0;
    while ((count = ::pread(file.get(), bytes.data(), bytes.size(), static_cast<off_t>(out.size()))) > 0)
        out.append(bytes.data(), static_cast<std::size_t>(count));
    return out;
}

// A copy that stays open across exec; returns its number as text.
std::string inherited(int fd) { return std::to_string(::dup(fd)); }

}  // namespace

PlainWorld::PlainWorld(int nranks, const std::vector<std::string>& steps, const WorldSettings& settings) {
    Pipe reports = make_pipe();
    Pipe ids = make_pipe();
    Pipe go = make_pipe();
    for (int number = 0; number < nranks; ++number) {
        Rank& rank = ranks_.emplace_back();
        rank.output = FileDescriptor(::memfd_create("output", MFD_CLOEXEC));
        rank.errors = FileDescriptor(::memfd_create("errors", MFD_CLOEXEC));
        rank.pid = ::fork();
        if (rank.pid == 0)
            become(number, nranks, steps, settings, reports.write.get(), ids.read.get(), ids.write.get(),
                   go.read.get());
    }
    reports_ = std::move(reports.read);
    go_ = std::move(go.write);
}

PlainWorld::~PlainWorld() {
    release();
    for (Rank& rank : ranks_) {
        if (rank.status >= 0) continue;
        ::kill(rank.pid, SIGKILL);
        ::waitpid(rank.pid, nullptr, 0);
    }
}

void PlainWorld::become(int number, int nranks, const std::vector<std::string>& steps, const WorldSettings& settings,
                        int report_to, int ids_read, int ids_write, int go_read) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    const FileDescriptor null(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    ::dup2(null.get(), 0);
    ::dup2(ranks_.back().output.get(), 1);
    ::dup2(ranks_.back().errors.get(), 2);
    (void)::close_range(3, ~0U, CLOSE_RANGE_CLOEXEC);
    auto environment = run::EnvironmentBlock::copy_of(environ);
    environment.set("SCENARIO_RANK", std::to_string(number));
    environment.set("SCENARIO_NRANKS", std::to_string(nranks));
    environment.set("RUN_TEST_REPORT", inherited(report_to));
    environment.set("SCENARIO_IDS_READ", inherited(ids_read));
    if (number == 0) environment.set("SCENARIO_IDS", inherited(ids_write));
    environment.set("SCENARIO_GO", inherited(go_read));
    const auto set = [&](const std::string& entry) {
        environment.set(entry.substr(0, entry.find('=')), entry.substr(entry.find('=') + 1));
    };
    for (const auto& entry : settings.environment) set(entry);
    if (settings.environment_of)
        for (const auto& entry : settings.environment_of(number)) set(entry);
    std::vector<std::string> words = steps;
    words.insert(words.begin(), "scenario");
    std::vector<char*> pointers;
    for (auto& word : words) pointers.push_back(word.data());
    pointers.push_back(nullptr);
    if (settings.before_exec && !settings.before_exec()) std::_Exit(94);
    ::execve(API_TEST_FOLDER "/api_scenario", pointers.data(), environment.pointers().data());
    std::_Exit(93);
}

void PlainWorld::wait_for_reports(int count) {
    while (reported_ < count) {
        std::array<char, 4096> bytes{};
        if (!readable(reports_.get())) {
            ADD_FAILURE() << "only " << reported_ << " of " << count << " reports came";
            return;
        }
        const ssize_t got = ::read(reports_.get(), bytes.data(), bytes.size());
        if (got <= 0) {
            ADD_FAILURE() << "all ranks ended after " << reported_ << " of " << count << " reports";
            for (int rank = 0; rank < nranks(); ++rank) ADD_FAILURE() << "rank " << rank << ": " << errors(rank);
            return;
        }
        reported_ += static_cast<int>(std::count(bytes.begin(), bytes.begin() + got, '\n'));
    }
}

void PlainWorld::kill(int rank, int signal) const {
    EXPECT_EQ(::kill(ranks_[static_cast<std::size_t>(rank)].pid, signal), 0);
}

int PlainWorld::status(int number) {
    Rank& rank = ranks_[static_cast<std::size_t>(number)];
    if (rank.status >= 0) return rank.status;
    const FileDescriptor process = open_pidfd(rank.pid);
    if (!readable(process.get())) {
        ADD_FAILURE() << "rank " << number << " did not end; it said: " << errors(number);
        ::kill(rank.pid, SIGKILL);
    }
    int status = 0;
    EXPECT_EQ(::waitpid(rank.pid, &status, 0), rank.pid);
    rank.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    return rank.status;
}

void PlainWorld::expect_success() {
    for (int rank = 0; rank < nranks(); ++rank)
        EXPECT_EQ(status(rank), 0) << "rank " << rank << " said: " << errors(rank);
}

std::string PlainWorld::output(int rank) const { return contents(ranks_[static_cast<std::size_t>(rank)].output); }
std::string PlainWorld::errors(int rank) const { return contents(ranks_[static_cast<std::size_t>(rank)].errors); }

}  // namespace npushmem::api_test
