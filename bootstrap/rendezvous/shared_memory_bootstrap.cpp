// SPDX-License-Identifier: BSD-3-Clause
#include "bootstrap/rendezvous/shared_memory_bootstrap.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <limits>
#include <thread>
#include <vector>

#include "bootstrap/rendezvous/settings.hpp"
#include "core/base/block_copy.hpp"
#include "core/base/liveness.hpp"
#include "core/base/parse.hpp"

namespace npushmem::rendezvous {

namespace {

// In each interval one of the ranks that wait looks for ranks that have ended. That reads /proc for every rank, so the
// interval grows with their number, and the check takes about one hundredth of it.
constexpr std::chrono::milliseconds check_interval{20};
constexpr int ranks_of_one_interval = 16;
// Ranks that have not joined the service may start seconds after each other, and a check takes their processors.
constexpr int intervals_of_start = 8;

}  // namespace

Result<std::unique_ptr<SharedMemoryBootstrap>> SharedMemoryBootstrap::open(JobMemory memory, const Identity& me,
                                                                           Milliseconds timeout) {
    if (!memory.claim(me.rank))
        return Status{Code::state, fmt::format("{} was used before in the memory of the job's start", me.text())};
    return std::unique_ptr<SharedMemoryBootstrap>(new SharedMemoryBootstrap(std::move(memory), me, timeout));
}

SharedMemoryBootstrap::SharedMemoryBootstrap(JobMemory memory, const Identity& me, Milliseconds timeout)
    : memory_(std::move(memory)), me_(me), nranks_(memory_.nranks()), timeout_(timeout) {}

// Release: partner is the acquire load in find_left. A child of fork has not joined the job.
SharedMemoryBootstrap::~SharedMemoryBootstrap() {
    if (::getpid() != me_.pid) return;
    state_of(me_.rank).left.store(1, std::memory_order_release);
    header().left.fetch_add(1, std::memory_order_release);
    memory_.announce_change();
}

Deadline SharedMemoryBootstrap::deadline() const {
    return timeout_.count() == 0 ? Deadline::never() : Deadline::after(timeout_);
}

Status SharedMemoryBootstrap::opening_barrier(Deadline deadline, const std::function<Status()>& service_failure) {
    return pass_round({Call::Kind::barrier, 0, 0}, deadline, service_failure);
}

Status SharedMemoryBootstrap::barrier() { return pass_round({Call::Kind::barrier, ++calls_, 0}, deadline()); }

// Parts that are larger than a piece travel in several rounds. The parts of a round lie one behind the other, so that
// each rank maps and copies few pages.
Status SharedMemoryBootstrap::allgather(std::span<const std::byte> send, std::span<std::byte> receive) {
    if (Status fits = check_allgather(send.size(), nranks_, receive.size()); !fits.ok()) return fits;
    const Call call{Call::Kind::allgather, ++calls_, send.size()};
    const Deadline limit = deadline();
    const std::size_t piece = JobMemory::piece_bytes(nranks_);
    std::size_t done = 0;
    do {
        // After a failed round the others may still read the buffer that is next here.
        if (Status before = memory_.failure(); !before.ok()) return before;
        const auto part = send.subspan(done, std::min(piece, send.size() - done));
        const auto parts = memory_.buffer(rounds_ % 2).first(part.size() * static_cast<std::size_t>(nranks_));
        std::ranges::copy(part, parts.begin() + me_.rank * static_cast<std::ptrdiff_t>(part.size()));
        if (Status passed = pass_round(call, limit); !passed.ok()) return passed;
        if (part.size() == send.size())
            std::ranges::copy(parts, receive.begin());
        else
            copy_blocks({receive.data() + done, send.size()}, {parts.data(), part.size()}, part.size(),
                        static_cast<std::uint64_t>(nranks_));
        done += part.size();
    } while (done < send.size());
    return {};
}

// The counter's release and acquire order the parts and the calls of all ranks before the reads of the last one to
// come; the number of rounds orders them before the reads of the others.
Status SharedMemoryBootstrap::pass_round(const Call& call, Deadline deadline,
                                         const std::function<Status()>& service_failure) {
    if (Status before = memory_.failure(); !before.ok()) return before;
    RankState& mine = state_of(me_.rank);
    mine.call = call;
    mine.entered.store(rounds_ + 1, std::memory_order_release);
    Header& shared = header();
    if (shared.arrived.fetch_add(1, std::memory_order_acq_rel) + 1 == static_cast<std::uint32_t>(nranks_)) {
        if (Status same = compare_calls(); !same.ok()) return fail(same);
        if (rounds_ == 0 && !memory_.complete()) return is_refused() ? refused() : memory_.failure();
        shared.arrived.store(0, std::memory_order_relaxed);
        shared.rounds.store(rounds_ + 1, std::memory_order_release);
        memory_.announce_change();
    } else if (Status others = await_others(call, deadline, service_failure); !others.ok()) {
        return fail(others);
    }
    ++rounds_;
    return {};
}

// A change that its checks miss has incremented `changes` since the load, so that the sleep ends at once.
Status SharedMemoryBootstrap::await_others(const Call& call, Deadline deadline,
                                           const std::function<Status()>& service_failure) {
    const bool without_service = rounds_ == 0 && !service_failure;
    const std::chrono::milliseconds interval =
        check_interval * (1 + nranks_ / ranks_of_one_interval) * (without_service ? intervals_of_start : 1);
    Header& shared = header();
    Moment next_check = Clock::now() + interval;
    for (;;) {
        const std::uint32_t changes = shared.changes.load(std::memory_order_acquire);
        // Acquire: partner is the release store of the last rank to come.
        if (shared.rounds.load(std::memory_order_acquire) != rounds_) return {};
        if (is_refused()) return refused();
        if (Status other = memory_.failure(); !other.ok()) return other;
        if (const int rank = find_left(); rank >= 0)
            return {Code::peer_dead,
                    fmt::format("{} left the job, but {} needs it during {}", name_of(rank), me_.text(), call.text())};
        if (service_failure)
            if (Status service = service_failure(); !service.ok()) return service;
        const Moment now = Clock::now();
        if (deadline.passed(now)) return without_service ? never_joined(deadline) : timed_out(call, deadline);
        if (now >= next_check) {
            if (without_service && !is_alive(header().creator))
                return {Code::peer_dead, fmt::format("the process that made the unique id (pid {}) ended while the job "
                                                     "was starting",
                                                     header().creator.pid)};
            // A rank that ended behind a complete round fails the next one.
            const int rank = shared.checks.take(now, interval) ? find_ended() : -1;
            if (rank >= 0 && shared.rounds.load(std::memory_order_acquire) == rounds_)
                return ended(rank, rounds_ == 0 ? "while the job was starting" : "during " + call.text());
            next_check = now + interval;
        }
        const int left = deadline.poll_milliseconds(now);
        const auto sleep = left < 0 ? interval : std::min(interval, std::chrono::milliseconds(left));
        os_.sleep_on(reinterpret_cast<std::uint32_t*>(&shared.changes), changes, sleep);
    }
}

Status SharedMemoryBootstrap::compare_calls() {
    const Call mine = state_of(me_.rank).call;
    for (int rank = 0; rank < nranks_; ++rank)
        if (state_of(rank).call != mine)
            return {Code::mismatch, fmt::format("{} called {}, while {} called {}", name_of(rank),
                                                state_of(rank).call.text(), me_.text(), mine.text())};
    return {};
}

// Acquire: the rank has written its process before.
bool SharedMemoryBootstrap::has_entered(int rank) const {
    return state_of(rank).entered.load(std::memory_order_acquire) > rounds_;
}

std::string SharedMemoryBootstrap::name_of(int rank) const {
    const RankState& state = state_of(rank);
    if (!memory_.has_attached(rank)) return fmt::format("rank {}", rank);
    return Identity{rank, state.process, me_.host}.text();
}

// Acquire: what the rank has entered before it left.
int SharedMemoryBootstrap::find_left() const {
    if (header().left.load(std::memory_order_acquire) == 0) return -1;
    for (int rank = 0; rank < nranks_; ++rank)
        if (state_of(rank).left.load(std::memory_order_acquire) != 0 && !has_entered(rank)) return rank;
    return -1;
}

int SharedMemoryBootstrap::find_ended() const {
    for (int rank = 0; rank < nranks_; ++rank) {
        const RankState& state = state_of(rank);
        const auto has_left = [&] { return state.left.load(std::memory_order_acquire) != 0; };
        if (!memory_.has_attached(rank) || has_left()) continue;
        if (!is_alive(memory_.process_of(rank)) && !has_left()) return rank;
    }
    return -1;
}

Status SharedMemoryBootstrap::refused() const {
    return {Code::state, fmt::format("{} has to join the rendezvous service, as another rank did", me_.text())};
}

Status SharedMemoryBootstrap::ended(int rank, const std::string& when) const {
    return {Code::peer_dead, fmt::format("the process of {} ended {} (it exited or was killed)", name_of(rank), when)};
}

std::vector<int> SharedMemoryBootstrap::missing_ranks() const {
    std::vector<int> missing;
    for (int rank = 0; rank < nranks_; ++rank)
        if (!has_entered(rank)) missing.push_back(rank);
    return missing;
}

Status SharedMemoryBootstrap::never_joined(Deadline deadline) const {
    const std::vector<int> missing = missing_ranks();
    const std::string whom = missing.empty() ? "the last rank" : rank_list(missing);
    return {Code::timeout,
            fmt::format("{} of {} never joined within {}", whom, nranks_, format_duration(deadline.span()))};
}

Status SharedMemoryBootstrap::timed_out(const Call& call, Deadline deadline) const {
    const std::vector<int> missing = missing_ranks();
    const std::string whom = missing.empty()       ? "the last rank to come, which has stopped in it,"
                             : missing.size() == 1 ? name_of(missing[0])
                                                   : rank_list(missing);
    return {Code::timeout, fmt::format("{} waited {} for {} during {}", me_.text(), format_duration(deadline.span()),
                                       whom, call.text())};
}

void SharedMemoryBootstrap::abort(const std::string& reason) {
    (void)fail({Code::aborted, fmt::format("{} aborted the job: {}", me_.text(), reason)});
}

Status SharedMemoryBootstrap::check() {
    if (Status known = memory_.failure(); !known.ok()) return known;
    const int rank = find_ended();
    return rank < 0 ? Status{} : fail(ended(rank, "while the job was running"));
}

}  // namespace npushmem::rendezvous
