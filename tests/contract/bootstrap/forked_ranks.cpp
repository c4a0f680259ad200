// SPDX-License-Identifier: BSD-3-Clause
#include "tests/contract/bootstrap/forked_ranks.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <limits.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "core/plugin/opened_plugin.hpp"

namespace npushmem::contract {
namespace {

using Id = std::array<std::byte, NPUSHMEM_UNIQUEID_BYTES>;

// Message of rank 0 to each other rank: a mark followed by an id.
struct IdMessage {
    enum class Mark : unsigned char { id = 1, none = 2, failed = 3 };

    Mark mark = Mark::failed;
    Id id{};
};
static_assert(sizeof(IdMessage) <= PIPE_BUF, "a message is read whole or not at all");

// The pipe for these messages. Each process closes the end that it does not use, so that the other ranks stop waiting
// if rank 0 exits.
class IdPipe {
public:
    IdPipe() {
        if (::pipe2(ends_.data(), O_CLOEXEC) != 0) std::abort();
    }
    IdPipe(const IdPipe&) = delete;
    IdPipe& operator=(const IdPipe&) = delete;
    ~IdPipe() {
        close_reading();
        close_writing();
    }

    void close_reading() { close(ends_[0]); }
    void close_writing() { close(ends_[1]); }
    [[nodiscard]] bool write(const IdMessage& message) const {
        return ::write(ends_[1], &message, sizeof message) == static_cast<ssize_t>(sizeof message);
    }
    [[nodiscard]] bool read(IdMessage& message) const {
        return ::read(ends_[0], &message, sizeof message) == static_cast<ssize_t>(sizeof message);
    }

private:
    static void close(int& fd) {
        if (fd >= 0) ::close(fd);
        fd = -1;
    }

    std::array<int, 2> ends_{-1, -1};
};

std::string hex(const Id& id) {
    std::string out;
    for (const std::byte byte : id) out += fmt::format("{:02x}", static_cast<unsigned>(byte));
    return out;
}

// A plugin without ids may not need them: its configuration connects its ranks.
IdMessage made_id(const LoadedBootstrap& plugin, const fakes::FakeHost& host) {
    IdMessage message;
    const Status made = make_uniqueid(plugin, host.table(), message.id);
    if (made.ok()) message.mark = IdMessage::Mark::id;
    if (made.code() == Code::unsupported) message.mark = IdMessage::Mark::none;
    if (message.mark == IdMessage::Mark::failed) std::fprintf(stderr, "%s\n", made.message().c_str());
    return message;
}

// Rank 0 makes the id in its own process, after the fork, because this starts a thread.
IdMessage exchange_id(const LoadedBootstrap& plugin, const fakes::FakeHost& host, int rank, int ranks, IdPipe& pipe) {
    IdMessage message;
    if (rank != 0) {
        pipe.close_writing();
        return pipe.read(message) ? message : IdMessage{};
    }
    pipe.close_reading();
    message = made_id(plugin, host);
    for (int other = 1; other < ranks; ++other)
        if (!pipe.write(message)) return {};
    return message;
}

int run_rank(const LoadedBootstrap& plugin, fakes::FakeHost& host, int rank, int ranks, IdPipe& pipe,
             const std::function<int()>& body) {
    ::alarm(rank_timeout_seconds);
    (void)std::signal(SIGPIPE, SIG_DFL);  // a plugin that causes it must fail visibly
    host.set("PE", std::to_string(rank));
    host.set("NPES", std::to_string(ranks));
    const IdMessage given =
        ranks > 1 ? exchange_id(plugin, host, rank, ranks, pipe) : IdMessage{IdMessage::Mark::none, {}};
    if (given.mark == IdMessage::Mark::failed) return 2;
    if (given.mark == IdMessage::Mark::id) host.set("UNIQUEID", hex(given.id));
    return body();
}

bool exited_cleanly(pid_t process, int rank) {
    int status = 0;
    if (::waitpid(process, &status, 0) != process) return false;
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return true;
    std::fprintf(stderr, "rank %d %s %d\n", rank, WIFSIGNALED(status) ? "was ended by signal" : "failed with status",
                 WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
    return false;
}

}  // namespace

int run_forked_ranks(const LoadedBootstrap& plugin, fakes::FakeHost& host, int ranks,
                     const std::function<int()>& body) {
    IdPipe pipe;
    std::vector<pid_t> processes;
    for (int rank = 0; rank < ranks; ++rank) {
        const pid_t process = ::fork();
        if (process == 0) std::exit(run_rank(plugin, host, rank, ranks, pipe, body));
        if (process < 0) std::perror("fork");
        if (process > 0) processes.push_back(process);
    }
    pipe.close_reading();
    pipe.close_writing();
    int failed = ranks - static_cast<int>(processes.size());
    for (std::size_t i = 0; i < processes.size(); ++i)
        failed += exited_cleanly(processes[i], static_cast<int>(i)) ? 0 : 1;
    return failed;
}

}  // namespace npushmem::contract
