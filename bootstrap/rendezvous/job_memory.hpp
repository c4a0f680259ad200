// SPDX-License-Identifier: BSD-3-Clause
// The memory through which the ranks of a job on one host start and exchange data.
//
// Rank 0 creates it and offers it to the rendezvous service, which gives its handle to all ranks if they are on one
// host. Or the process of the service creates it with the unique id, which then contains its handle: ranks that attach
// to it do not need the service. If one rank joins the service instead, for example because it runs on another host,
// the service refuses the memory, and all ranks join the service.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "bootstrap/rendezvous/collectives.hpp"
#include "bootstrap/rendezvous/messages.hpp"
#include "bootstrap/rendezvous/settings.hpp"
#include "core/base/liveness.hpp"
#include "core/base/shared_segment.hpp"
#include "core/base/version.hpp"

namespace npushmem::rendezvous {

// The failure of a start whose missing rank's process has ended; `how` describes the end.
Status ended_without_joining(const std::string& how);

class JobMemory {
public:
    // Creates the memory of `nranks` ranks on `host`, that of this process.
    static Result<JobMemory> create(int nranks, const npushmem_host_id& host);
    // For a rank. Only the process, descriptor, device and inode of `handle` count. Code::mismatch if the memory
    // belongs to another host, version or number of ranks; Code::protocol if it has another layout.
    static Result<JobMemory> attach(const SegmentHandle& handle, int nranks, const npushmem_host_id& host);

    [[nodiscard]] SegmentHandle handle() const { return segment_.handle(); }
    [[nodiscard]] int nranks() const { return header().nranks; }

    // forming: ranks attach. complete: all have attached. refused: they join the rendezvous service instead. failed:
    // the start has failed. Only `forming` changes.
    enum class State : std::uint32_t { forming, complete, refused, failed };
    [[nodiscard]] State state() const;
    // Returns whether the memory is complete now.
    [[nodiscard]] bool complete();
    // A rank joins the service. The memory is refused if it is forming; or it fails, if an ended process of that rank
    // had attached: the rank means the next start.
    void refuse(int rank);
    // The process of a rank has ended; `how` describes the end. Fails a start that is forming.
    void rank_ended(int rank, const std::string& how);

    // Makes `rank` the calling process's. False: it was another's before, or an earlier start's.
    [[nodiscard]] bool claim(int rank);

    // Makes `cause` the job's failure, unless there is one already, or the memory is refused. Returns the job's
    // failure. `writer`: the rank.
    Status fail(int writer, const Status& cause);
    // The job's failure; OK if there is none.
    [[nodiscard]] Status failure() const;
    // Wakes the ranks that sleep, to check again.
    void announce_change() const;

    static constexpr std::size_t cache_line = 64;

    // One rank's line. Its rank writes it; the others read it.
    struct alignas(cache_line) RankState {
        CollectiveCall call;
        std::atomic<std::uint32_t> entered;  // rounds; 0: has not attached
        std::atomic<std::uint32_t> left;
        std::uint64_t process_start;
        std::int32_t process;
        std::atomic<std::uint32_t> claimed;
    };

    struct Header {
        std::uint64_t magic;
        Version version;
        std::int32_t nranks;
        npushmem_host_id host;
        ProcessId creator;
        alignas(cache_line) std::atomic<std::uint32_t> arrived;
        alignas(cache_line) std::atomic<std::uint32_t> rounds;  // passed
        std::atomic<std::uint32_t> changes;                     // of anything that ranks wait for; they sleep on it
        std::atomic<State> state;
        alignas(cache_line) SharedTurn checks;                  // for ranks that have ended
        alignas(cache_line) std::atomic<std::uint32_t> left;    // ranks
        alignas(cache_line) std::atomic<std::uint32_t> failed;  // a FailureState, or its writer
        std::int32_t code;
        char text[limits::abort_text_bytes + 1];
    };

    [[nodiscard]] Header& header() const { return *reinterpret_cast<Header*>(segment_.base()); }
    [[nodiscard]] RankState& state_of(int rank) const;
    // Has the rank entered its first round? Then its process is known.
    [[nodiscard]] bool has_attached(int rank) const;
    [[nodiscard]] ProcessId process_of(int rank) const;
    // Returns one of the two buffers. It has room for piece_bytes() of each rank.
    [[nodiscard]] std::span<std::byte> buffer(std::uint32_t number) const;
    [[nodiscard]] static std::size_t piece_bytes(int nranks);

private:
    explicit JobMemory(SharedSegment segment) : segment_(std::move(segment)) {}

    [[nodiscard]] static std::uint64_t bytes(int nranks);
    State leave_forming(State next) const;
    Status fail_as(std::uint32_t writer, const Status& cause);

    SharedSegment segment_;
};

}  // namespace npushmem::rendezvous
