// SPDX-License-Identifier: BSD-3-Clause
// A test program as authors of plugins write it. Its transport reaches no PE, and misbehaves as MISBEHAVIOUR says,
// which runner_test.cpp sets. Options of its own: --own=VALUE, which it prints at the start of each process.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

#include "npushmem/testing/contract.hpp"

namespace {

using npushmem::Bytes;
using npushmem::Code;
using npushmem::Result;
using npushmem::Status;

std::string variable(const char* name) {
    const char* value = std::getenv(name);
    return value == nullptr ? "" : value;
}

void end_by(int number) {
    (void)::signal(number, SIG_DFL);  // a sanitizer's handler would end the process in another way
    (void)::raise(number);
}

// Stands for a process that a transport starts and loses: it holds the output of the case open.
void leave_a_process_behind() {
    if (::fork() != 0) return;
    for (;;) ::pause();
}

void reap_all(int) {
    const int error = errno;
    while (::waitpid(-1, nullptr, WNOHANG) > 0) {
    }
    errno = error;
}

// In the program that starts the cases, and in theirs.
void misbehave_as_a_parent() {
    const std::string how = variable("MISBEHAVIOUR");
    if (how.find("ignore_ends") != std::string::npos) (void)::signal(SIGCHLD, SIG_IGN);
    if (how.find("reap_all") != std::string::npos) (void)::signal(SIGCHLD, reap_all);
}

void misbehave() {
    const std::string how = variable("MISBEHAVIOUR");
    if (how.find("print") != std::string::npos) std::printf("a word without a newline");
    if (how.find("leave") != std::string::npos) leave_a_process_behind();
    if (how.find("segmentation") != std::string::npos) end_by(SIGSEGV);
    if (how.find("exit") != std::string::npos) ::_exit(7);
    if (how.find("late") != std::string::npos) (void)std::atexit([] { ::_exit(9); });
    while (how.find("hang") != std::string::npos) ::pause();
}

class Misbehaving final : public npushmem::Transport {
public:
    static Result<std::unique_ptr<npushmem::Transport>> open(const npushmem::Host& host,
                                                             const npushmem_transport_params& params) {
        host.log(npushmem::LogLevel::info, "opened with depth " + host.config("MISBEHAVING_DEPTH", "unknown"));
        return std::unique_ptr<npushmem::Transport>(new Misbehaving(params.pe));
    }

    // Called by the case devices_are_named.
    Result<std::vector<npushmem_device>> devices() override {
        misbehave();
        if (variable("MISBEHAVIOUR").find("fail") != std::string::npos) return Status{Code::range, "no such port"};
        return std::vector<npushmem_device>{};
    }
    Result<Bytes> address() override {
        if (variable("MISBEHAVIOUR") == "pe" && pe_ == 1) end_by(SIGSEGV);
        if (variable("MISBEHAVIOUR") == "no_address" && pe_ == 1) return Status{Code::system, "it has no port"};
        return Bytes{};
    }
    npushmem::Reach reach(const npushmem_peer&) override { return {0, 0, 0, "it reaches no PE"}; }
    Result<npushmem::RegisteredMemory> register_memory(const npushmem_memory&) override {
        return npushmem::RegisteredMemory{1, Bytes(8)};
    }
    Code deregister_memory(std::uint64_t) override { return Code::ok; }
    Result<std::uint64_t> import_memory(int, std::span<const std::byte>) override {
        return Status{Code::unreachable, "it reaches no PE"};
    }
    Code release_memory(std::uint64_t) override { return Code::ok; }
    Result<std::uint64_t> create_queue() override { return std::uint64_t{1}; }
    Code destroy_queue(std::uint64_t) override { return Code::ok; }
    Code fence(std::uint64_t) override { return Code::ok; }
    Code quiet(std::uint64_t) override { return Code::ok; }

private:
    explicit Misbehaving(int pe) : pe_(pe) {}
    int pe_;
};

std::chrono::seconds deadline() {
    const std::string given = variable("MISBEHAVING_DEADLINE");
    return std::chrono::seconds(given.empty() ? 120 : std::stoi(given));
}

NPUSHMEM_TRANSPORT_CONTRACT(Misbehaving, .config = {{"MISBEHAVING_DEPTH", "4"}}, .deadline = deadline());
NPUSHMEM_TRANSPORT_CONTRACT(Misbehaving, .name = "a:name-with*marks");

}  // namespace

int main(int argc, char** argv) {
    misbehave_as_a_parent();
    ::testing::InitGoogleTest(&argc, argv);
    for (int i = 1; i < argc; ++i)
        if (std::string_view(argv[i]).starts_with("--own=")) std::printf("own option %s\n", argv[i] + 6);
    return RUN_ALL_TESTS();
}
