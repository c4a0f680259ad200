// The processes that measure together. One is the leader: it decides what runs how often; the others execute its
// commands.
#pragma once

#include <cstdint>

namespace npushmem::bench {

struct BatchCommand {
    static constexpr std::uint32_t stop = ~std::uint32_t{0};

    std::uint32_t variant = stop;
    std::uint32_t iterations = 0;

    bool operator==(const BatchCommand&) const = default;
};

class WorkerGroup {
public:
    WorkerGroup() = default;
    WorkerGroup(const WorkerGroup&) = delete;
    WorkerGroup& operator=(const WorkerGroup&) = delete;
    virtual ~WorkerGroup() = default;

    // True for exactly one worker.
    [[nodiscard]] virtual bool is_leader() const = 0;
    // Sends the command to all workers; on return each has it or is about to receive it.
    virtual void broadcast(const BatchCommand& command) = 0;
    // The leader's next command; stop also when there will be no more.
    virtual BatchCommand receive() = 0;
};

// A process on its own.
class SoloWorkerGroup final : public WorkerGroup {
public:
    [[nodiscard]] bool is_leader() const override { return true; }
    void broadcast(const BatchCommand& /*command*/) override {}
    BatchCommand receive() override { return {}; }
};

}  // namespace npushmem::bench
