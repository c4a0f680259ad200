// The PEs of the job as the engine's worker group. PE 0 is the leader.
#pragma once

#include <cstdint>

#include "bench/engine/worker_group.hpp"

namespace npushmem::bench {

class JobWorkerGroup final : public WorkerGroup {
public:
    // `command_word`: a symmetric word, zero.
    explicit JobWorkerGroup(std::uint64_t* command_word);

    [[nodiscard]] bool is_leader() const override { return pe_ == 0; }
    void broadcast(const BatchCommand& command) override;
    BatchCommand receive() override;

private:
    std::uint64_t* command_word_;
    int pe_;
    int pes_;
};

}  // namespace npushmem::bench
