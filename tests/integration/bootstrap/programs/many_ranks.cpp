// SPDX-License-Identifier: BSD-3-Clause
// A job of very many ranks, which are processes: how long joining and one large allgather take, and how much memory of
// its own rank 0 needs for them. What is gathered lies in memory that all ranks share, so that it exists once.
//     many_ranks <ranks> <bytes per rank> <most KiB that rank 0 may need besides the gathered bytes>
#include <fmt/format.h>
#include <sys/mman.h>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iostream>

#include "core/plugin/loader.hpp"
#include "core/plugin/opened_plugin.hpp"
#include "core/plugin/plugin_finder.hpp"
#include "tests/contract/bootstrap/ranks.hpp"

namespace npushmem::contract {
namespace {

using Seconds = std::chrono::duration<double>;
using Clock = std::chrono::steady_clock;

struct Plan {
    int ranks;
    std::size_t bytes;
    long max_kib;
    std::span<std::byte> gathered;  // shared by all ranks
};

// Anonymous memory of this process that is resident: the gathered bytes are not among it.
long private_kib() {
    std::ifstream status("/proc/self/status");
    for (std::string word; status >> word;) {
        long kib = 0;
        if (word == "RssAnon:" && status >> kib) return kib;
    }
    return 0;
}

std::byte expected(int rank) { return static_cast<std::byte>(rank * 7 + 1); }

int complain(int rank, const std::string& what) {
    std::cerr << fmt::format("rank {}: {}\n", rank, what);
    return 1;
}

// Every rank's part by its first and last byte.
bool complete(const Plan& plan) {
    for (int rank = 0; rank < plan.ranks; ++rank) {
        const auto part = plan.gathered.subspan(static_cast<std::size_t>(rank) * plan.bytes, plan.bytes);
        if (part.front() != expected(rank) || part.back() != expected(rank)) return false;
    }
    return true;
}

int run_rank(Rank& rank, const Plan& plan) {
    (void)rank.id();  // starts the service of rank 0, whose own memory does not depend on the number of ranks
    const long before = private_kib();
    const auto begin = Clock::now();
    auto opened = rank.open();
    if (!opened.ok()) return complain(-1, opened.status().message());
    Bootstrap& job = *opened.value();
    const auto joined = Clock::now();
    const std::vector<std::byte> mine(plan.bytes, expected(job.rank()));
    const Status gathered = job.allgather(mine, plan.gathered);
    const auto done = Clock::now();
    if (!gathered.ok()) return complain(job.rank(), gathered.message());
    if (!complete(plan)) return complain(job.rank(), "a part is missing");
    const long grown = private_kib() - before;
    if (job.rank() == 0)
        std::cout << fmt::format(
            "{} ranks: joined in {:.2f} s, gathered {} bytes of each in {:.2f} s, rank 0 grew by "
            "{} KiB\n",
            plan.ranks, Seconds(joined - begin).count(), plan.bytes, Seconds(done - joined).count(), grown);
    const Status synchronised = job.barrier();
    if (!synchronised.ok()) return complain(job.rank(), synchronised.message());
    return job.rank() == 0 && grown > plan.max_kib ? complain(0, "rank 0 needs too much memory") : 0;
}

int run(Plan plan) {
    const std::size_t total = plan.bytes * static_cast<std::size_t>(plan.ranks);
    void* const memory = ::mmap(nullptr, total, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return complain(-1, "no memory");
    plan.gathered = {static_cast<std::byte*>(memory), total};
    auto loaded = load_bootstrap(PluginFinder(plugin_search_path("")), "uid");
    if (!loaded.ok()) return complain(-1, loaded.status().message());
    BootstrapSubject subject;
    subject.name = "uid";
    subject.config["BOOTSTRAP_UID_SOCK_IFNAME"] = "lo";
    subject.config["BOOTSTRAP_TIMEOUT"] = "300s";
    subject.open = [plugin = loaded.value()](
                       const npushmem_host& host,
                       const npushmem_bootstrap_params& params) -> Result<std::unique_ptr<Bootstrap>> {
        auto opened = open_bootstrap(plugin, host, params);
        if (!opened.ok()) return opened.status();
        return std::unique_ptr<Bootstrap>(std::move(opened).value());
    };
    subject.get_uniqueid = [plugin = loaded.value()](const npushmem_host& host,
                                                     std::span<std::byte, NPUSHMEM_UNIQUEID_BYTES> id) {
        return make_uniqueid(*plugin, host, id);
    };
    const auto begin = Clock::now();
    const RanksResult result = run_ranks(subject, plan.ranks, std::chrono::seconds(570), RankOutput::passed_on,
                                         [&](Rank& rank) { return run_rank(rank, plan); });
    if (!result.report.empty()) std::cerr << result.report;
    const int failed = result.failed;
    std::cout << fmt::format("all in {:.2f} s; {} failed\n", Seconds(Clock::now() - begin).count(), failed);
    return failed == 0 ? 0 : 1;
}

}  // namespace
}  // namespace npushmem::contract

int main(int argc, char** argv) {
    if (argc != 4) return 2;
    return npushmem::contract::run(
        {std::atoi(argv[1]), static_cast<std::size_t>(std::atol(argv[2])), std::atol(argv[3]), {}});
}
