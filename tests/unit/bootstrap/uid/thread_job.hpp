// SPDX-License-Identifier: BSD-3-Clause
// A job whose ranks are threads of the test, and a matcher of its statuses.
#pragma once

#include <gmock/gmock.h>

#include <array>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include "bootstrap/rendezvous/unique_id.hpp"
#include "bootstrap/uid/uid_bootstrap.hpp"
#include "npushmem/testing/fake_host.hpp"

namespace npushmem::uid {

// EXPECT_THAT(status, Succeeded()) prints the message of a failure.
MATCHER(Succeeded, "") {
    *result_listener << arg.message();
    return arg.ok();
}

// A job whose ranks are threads of the test.

using namespace rendezvous;

// What became of one rank: the first failure of its open or of its body.
using Outcome = Status;

class ThreadJob {
public:
    using Body = std::function<Status(Bootstrap&)>;
    using Variables = std::map<std::string, std::string>;

    // Everything stays on the loopback interface, unless `variables` say otherwise.
    explicit ThreadJob(const Variables& variables = {}) {
        set_variables(variables);
        made_ = UidBootstrap::get_uniqueid(host_, id_);
    }

    // A job whose id another process serves. Starts no thread.
    ThreadJob(const UniqueIdBytes& id, const Variables& variables) : id_(id) { set_variables(variables); }

    [[nodiscard]] const Status& made() const { return made_; }
    ThreadJob(const ThreadJob&) = delete;
    ThreadJob& operator=(const ThreadJob&) = delete;

    [[nodiscard]] const UniqueIdBytes& bytes() const { return id_; }
    [[nodiscard]] UniqueId id() const { return UniqueId::decode(id_).value(); }
    // Another id than the one that was made for this job.
    void use(const UniqueId& id) { id_ = id.encode(); }

    // One rank in the calling thread.
    Status run_rank(int rank, int nranks, const Body& body) const {
        auto opened = open(rank, nranks);
        return opened.ok() ? body(*opened.value()) : opened.status();
    }

    [[nodiscard]] Status rank_ended(int rank, int nranks, const std::string& how) const {
        return UidBootstrap::rank_ended(host_, id_, rank, nranks, how);
    }

    [[nodiscard]] Result<std::unique_ptr<Bootstrap>> open(int rank, int nranks) const {
        npushmem_bootstrap_params params{};
        params.struct_size = sizeof params;
        params.rank = rank;
        params.nranks = nranks;
        params.uniqueid = id_.data();
        return UidBootstrap::open(host_, params);
    }

    // Threads for the given ranks of a job of `nranks`; outcomes in the order of `ranks`.
    std::vector<Outcome> run(const std::vector<int>& ranks, int nranks, const Body& body) const {
        std::vector<Outcome> outcomes(ranks.size());
        std::vector<std::thread> threads;
        for (std::size_t i = 0; i < ranks.size(); ++i)
            threads.emplace_back([&, i] { outcomes[i] = run_rank(ranks[i], nranks, body); });
        for (std::thread& each : threads) each.join();
        return outcomes;
    }

    std::vector<Outcome> run(int nranks, const Body& body) const { return run(all_ranks(nranks), nranks, body); }

    static std::vector<int> all_ranks(int nranks) {
        std::vector<int> ranks;
        for (int rank = 0; rank < nranks; ++rank) ranks.push_back(rank);
        return ranks;
    }

private:
    void set_variables(const Variables& variables) {
        fake_.set("BOOTSTRAP_UID_SOCK_IFNAME", "=lo");
        for (const auto& [name, value] : variables) fake_.set(name, value);
    }

    fakes::FakeHost fake_;
    Host host_{&fake_.table(), "uid"};
    UniqueIdBytes id_{};
    Status made_;
};

inline Status one_barrier(Bootstrap& job) { return job.barrier(); }

// The ways in which the ranks of a host start and exchange data: over TCP; through memory of rank 0, whose handle they
// get from the service; through memory of the unique id, without the service.
enum class Exchange { tcp, memory, memory_of_id };

// A test that runs with all of them. Parameters: a number of ranks, and the way.
class ExchangeTest : public ::testing::TestWithParam<std::tuple<int, Exchange>> {
protected:
    static int ranks_in_job() { return std::get<0>(GetParam()); }
    static bool shares_memory() { return std::get<1>(GetParam()) != Exchange::tcp; }
    // The variables of a job of `ranks`.
    static ThreadJob::Variables exchange(int ranks) {
        ThreadJob::Variables out{{"BOOTSTRAP_SHARED_MEMORY", shares_memory() ? "1" : "0"}};
        if (std::get<1>(GetParam()) == Exchange::memory_of_id) out["NPES"] = std::to_string(ranks);
        return out;
    }
};

inline auto all_exchanges(const std::vector<int>& numbers) {
    return ::testing::Combine(::testing::ValuesIn(numbers),
                              ::testing::Values(Exchange::tcp, Exchange::memory, Exchange::memory_of_id));
}

inline std::string exchange_name(const ::testing::TestParamInfo<std::tuple<int, Exchange>>& info) {
    constexpr std::array names{"_tcp", "_memory", "_memory_of_id"};
    return std::to_string(std::get<0>(info.param)) + names.at(static_cast<std::size_t>(std::get<1>(info.param)));
}

}  // namespace npushmem::uid
