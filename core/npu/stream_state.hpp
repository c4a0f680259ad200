// What a stream is behind its handle. Guarded by the executor's mutex, except for what never changes.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>

#include "core/npu/queued_launch.hpp"

namespace npushmem::npu::detail {

class Executor;

class StreamState {
public:
    // Either a launch, or "wait until `awaited` has completed its entry number `sequence`".
    struct Entry {
        std::unique_ptr<QueuedLaunch> job;
        std::shared_ptr<StreamState> awaited;
        std::uint64_t sequence = 0;

        [[nodiscard]] bool satisfied() const { return awaited->completed >= sequence; }
    };

    explicit StreamState(std::shared_ptr<Executor> owner) : executor(std::move(owner)) {}

    // Whether a thread could take a launch from it.
    [[nodiscard]] bool claimable() const { return !busy && !entries.empty() && entries.front().job != nullptr; }

    const std::shared_ptr<Executor> executor;
    std::deque<Entry> entries;
    std::uint64_t queued = 0;     // entries ever queued: the sequence number of the last one
    std::uint64_t completed = 0;  // entries that have ended, in order
    bool busy = false;            // a launch of this stream runs
    bool listed = false;          // among the executor's active streams
    bool closed = false;
    Status failure;  // the first since the last synchronize
};

}  // namespace npushmem::npu::detail
