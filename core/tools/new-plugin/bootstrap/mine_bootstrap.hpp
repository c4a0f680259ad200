// SPDX-License-Identifier: BSD-3-Clause
// Bootstrap mine: the ranks of one host meet at a Unix socket whose name follows from the job's id or session.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "mine_channel.hpp"
#include "mine_hub.hpp"
#include "npushmem/plugin/bootstrap.hpp"

namespace mine_plugin {

class MineBootstrap final : public npushmem::Bootstrap {
public:
    static constexpr npushmem_config_row config_rows[] = {
        {"MINE_SESSION", "", "string", "name of the job, equal on all ranks and on this host unique to the job"},
        {"BOOTSTRAP_TIMEOUT", "60s", "duration", "time limit of a rank's wait for the others"},
    };

    static npushmem::Result<std::unique_ptr<npushmem::Bootstrap>> open(const npushmem::Host& host,
                                                                       const npushmem_bootstrap_params& params);
    static npushmem::Status get_uniqueid(const npushmem::Host& host, std::span<std::byte, NPUSHMEM_UNIQUEID_BYTES> id);
    static int recognise(const npushmem::Host& host, const npushmem_bootstrap_params& params, std::string& why);
    // Leaves without waiting for others.
    ~MineBootstrap() override;

    [[nodiscard]] int rank() const override { return rank_; }
    [[nodiscard]] int nranks() const override { return nranks_; }
    npushmem::Status allgather(std::span<const std::byte> send, std::span<std::byte> receive) override;
    npushmem::Status barrier() override;
    void abort(const std::string& reason) override;
    npushmem::Status check() override;

private:
    MineBootstrap(int rank, int nranks, Milliseconds timeout) : rank_(rank), nranks_(nranks), timeout_(timeout) {}

    Status join(const std::string& name);
    Status join_once(const std::string& name, Clock::time_point deadline);
    Status call(Kind kind, std::span<const std::byte> part, Message& answer);
    Status receive_answer(Kind kind, Message& answer, Clock::time_point deadline);
    // Keeps the first failure: a job that has failed stays failed.
    Status failed(Code code, const std::string& message);
    Status failed_by(const Message& message);

    const int rank_;
    const int nranks_;
    const Milliseconds timeout_;
    Channel channel_;           // to the hub; closed before the hub is destroyed
    std::unique_ptr<Hub> hub_;  // rank 0
    bool hub_left_ = false;     // rank 0 has left in an orderly manner
    Status failure_;
};

}  // namespace mine_plugin
