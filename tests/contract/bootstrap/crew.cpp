#include "tests/contract/bootstrap/crew.hpp"

#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "core/plugin/opened_bootstrap.hpp"

namespace npushmem::contract {
namespace {

using Id = std::array<std::byte, NPUSHMEM_UNIQUEID_BYTES>;

// An id for every rank but the first, on its way through a pipe: rank 0 writes them all, each of the others takes one.
struct IdPipe {
    int read_end = -1;
    int write_end = -1;

    IdPipe() {
        std::array<int, 2> ends{};
        if (::pipe(ends.data()) != 0) std::abort();
        read_end = ends[0];
        write_end = ends[1];
    }
    IdPipe(const IdPipe&) = delete;
    IdPipe& operator=(const IdPipe&) = delete;
    ~IdPipe() {
        ::close(read_end);
        ::close(write_end);
    }
};

std::string hex(const Id& id) {
    std::string out;
    for (const std::byte byte : id) out += fmt::format("{:02x}", static_cast<unsigned>(byte));
    return out;
}

// Made in the rank's own process and after the fork, because making an id starts a thread.
bool exchange_id(const LoadedBootstrap& plugin, const fakes::FakeHost& host, int rank, int ranks, const IdPipe& pipe,
                 Id& id) {
    if (rank != 0) return ::read(pipe.read_end, id.data(), id.size()) == static_cast<ssize_t>(id.size());
    const Status made = make_uniqueid(plugin, host.table(), id);
    if (!made.ok()) std::fprintf(stderr, "%s\n", made.message().c_str());
    for (int other = 1; other < ranks && made.ok(); ++other)
        if (::write(pipe.write_end, id.data(), id.size()) != static_cast<ssize_t>(id.size())) return false;
    return made.ok();
}

int be_rank(const LoadedBootstrap& plugin, fakes::FakeHost& host, int rank, int ranks, const IdPipe& pipe,
            const std::function<int()>& body) {
    host.set("PE", std::to_string(rank));
    host.set("NPES", std::to_string(ranks));
    Id id{};
    if (ranks > 1 && !exchange_id(plugin, host, rank, ranks, pipe, id)) return 2;
    if (ranks > 1) host.set("UNIQUEID", hex(id));
    return body();
}

bool ended_well(pid_t process, int rank) {
    int status = 0;
    if (::waitpid(process, &status, 0) != process) return false;
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return true;
    std::fprintf(stderr, "rank %d %s %d\n", rank, WIFSIGNALED(status) ? "was ended by signal" : "failed with status",
                 WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
    return false;
}

}  // namespace

int run_crew(const LoadedBootstrap& plugin, fakes::FakeHost& host, int ranks, const std::function<int()>& body) {
    const IdPipe pipe;
    std::vector<pid_t> processes;
    for (int rank = 0; rank < ranks; ++rank) {
        const pid_t process = ::fork();
        if (process == 0) std::exit(be_rank(plugin, host, rank, ranks, pipe, body));
        if (process < 0) std::perror("fork");
        if (process > 0) processes.push_back(process);
    }
    int failed = ranks - static_cast<int>(processes.size());
    for (std::size_t i = 0; i < processes.size(); ++i) failed += ended_well(processes[i], static_cast<int>(i)) ? 0 : 1;
    return failed;
}

}  // namespace npushmem::contract
