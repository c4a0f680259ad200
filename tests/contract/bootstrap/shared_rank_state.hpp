// SPDX-License-Identifier: BSD-3-Clause
// Memory that the forked ranks of a case and their supervisor share: stages that ranks have reached, ends of ranks, and
// ids of jobs. The ranks order their steps by it, so that no case depends on time.
#pragma once

#include <sys/types.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

#include "npushmem/plugin/bootstrap.h"
#include "npushmem/plugin/status.hpp"

namespace npushmem::contract {

using JobId = std::array<std::byte, NPUSHMEM_UNIQUEID_BYTES>;

// All members may be called by every process that has inherited the memory. Waits end when the awaited event happens or
// can no longer happen; the supervisor's deadline ends them otherwise.
class SharedRankState {
public:
    // Throws std::system_error if the system has no memory.
    explicit SharedRankState(int ranks);
    SharedRankState(const SharedRankState&) = delete;
    SharedRankState& operator=(const SharedRankState&) = delete;
    ~SharedRankState();

    [[nodiscard]] int ranks() const { return ranks_; }

    // Each rank has one stage, a number that only grows; 0 at the start.
    void reach(int rank, int stage);
    [[nodiscard]] int stage_of(int rank) const;
    // Waits until the rank has reached the stage. Returns false if it ended before.
    bool await(int rank, int stage);

    // The process of a rank; its end, recorded by the supervisor; and whether a case kills it.
    void started(int rank, pid_t process);
    [[nodiscard]] pid_t process_of(int rank);
    void ended(int rank);
    [[nodiscard]] bool has_ended(int rank) const;
    void await_end(int rank);
    // The rank has completed the case and makes no further call.
    void finished(int rank);
    [[nodiscard]] bool has_finished(int rank) const;
    void await_finish(int rank);  // or the end
    void expect_kill(int rank);
    [[nodiscard]] bool is_kill_expected(int rank) const;

    // Ids of jobs, by number: 0 is the id of the ranks' own job. A failed Status is published in place of an id.
    static constexpr int max_ids = 3;
    void publish_id(int number, const Status& made, const JobId& id);
    [[nodiscard]] bool has_id(int number) const;
    // Waits for the id that `maker` publishes.
    Result<JobId> await_id(int number, int maker);

    // The reason why a rank skipped the case; the first one is kept.
    void set_skip_reason(const std::string& reason);
    [[nodiscard]] std::string skip_reason() const;

private:
    struct Shared;
    struct PerRank;

    void changed();
    void await(const std::function<bool()>& happened);
    [[nodiscard]] PerRank& of(int rank) const;

    int ranks_;
    std::size_t bytes_;
    Shared* shared_;
};

}  // namespace npushmem::contract
