// SPDX-License-Identifier: BSD-3-Clause
// Collectives mine: the interface to npushmem.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "mine_connections.hpp"
#include "mine_exchange.hpp"
#include "npushmem/plugin/collectives.hpp"

namespace mine_plugin {

class MineCollectives final : public npushmem::Collectives {
public:
    static Result<std::unique_ptr<npushmem::Collectives>> open(const npushmem::Host& host,
                                                               const npushmem_collectives_params& params);

    [[nodiscard]] const std::string& description() const override { return description_; }
    [[nodiscard]] std::uint64_t supports(std::uint32_t collective, std::uint32_t operation) const override;
    Result<std::uint64_t> create_team(const npushmem_coll_team& team) override;
    void destroy_team(std::uint64_t id) override;
    Status start(std::uint64_t team, const npushmem_coll_call& call, std::uint64_t& request) override;
    Status test(std::uint64_t request) override;
    void abandon(std::uint64_t request) override;

private:
    struct Team {
        Connections connections;
        std::optional<Exchange> call;  // in progress
    };

    // One thread at a time uses a team, so that the lock protects the map alone.
    Team& team_of(std::uint64_t id);

    std::string description_ = "mine 1.0";
    std::mutex lock_;
    std::uint64_t last_id_ = 0;
    std::map<std::uint64_t, std::unique_ptr<Team>> teams_;
};

}  // namespace mine_plugin
