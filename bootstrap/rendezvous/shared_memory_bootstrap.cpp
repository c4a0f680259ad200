// SPDX-License-Identifier: BSD-3-Clause
#include "bootstrap/rendezvous/shared_memory_bootstrap.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <thread>
#include <vector>

#include "bootstrap/rendezvous/settings.hpp"
#include "core/base/parse.hpp"

namespace npushmem::rendezvous {

namespace {

constexpr std::size_t cache_line = 64;
constexpr std::size_t max_piece_bytes = 1024;
constexpr std::size_t min_piece_bytes = 64;
constexpr std::size_t max_buffer_bytes = 4 << 20;
constexpr int checked_at_once = 4;
constexpr int checked_by_check = 64;
constexpr std::chrono::milliseconds check_interval{20};
constexpr int ranks_of_one_interval = 16;

}  // namespace

// One rank's line. Its rank writes it; the others read it.
struct alignas(cache_line) SharedMemoryBootstrap::RankState {
    Call call;
    std::atomic<std::uint32_t> entered;  // rounds; 0: has not attached
    std::atomic<std::uint32_t> left;
    std::uint64_t process_start;
    std::int32_t process;
};

struct SharedMemoryBootstrap::Header {
    enum State : std::uint32_t { none, being_written, written };
    alignas(cache_line) std::atomic<std::uint32_t> arrived;
    alignas(cache_line) std::atomic<std::uint32_t> rounds;  // passed; ranks sleep on it
    alignas(cache_line) std::atomic<std::uint32_t> failed;
    std::int32_t code;
    char text[limits::abort_text_bytes + 1];
};

std::size_t SharedMemoryBootstrap::piece_bytes(int nranks) {
    return std::clamp(max_buffer_bytes / static_cast<std::size_t>(nranks) / cache_line * cache_line, min_piece_bytes,
                      max_piece_bytes);
}

std::size_t SharedMemoryBootstrap::buffers_offset(int nranks) {
    return sizeof(Header) + static_cast<std::size_t>(nranks) * sizeof(RankState);
}

Result<SharedSegment> SharedMemoryBootstrap::create_memory(int nranks) {
    const std::uint64_t bytes =
        rounded_up(buffers_offset(nranks) + 2 * static_cast<std::size_t>(nranks) * piece_bytes(nranks), page_bytes());
    auto made = SharedSegment::create(bytes, "");
    if (!made.ok()) return made;
    const Status committed = made.value().commit(0, bytes);
    return committed.ok() ? std::move(made) : Result<SharedSegment>(committed);
}

SharedMemoryBootstrap::SharedMemoryBootstrap(SharedSegment memory, const Identity& me, int nranks, Milliseconds timeout)
    : memory_(std::move(memory)), me_(me), nranks_(nranks), timeout_(timeout), next_checked_(me.rank) {
    const ProcessId process = this_process();
    state_of(me.rank).process = process.pid;
    state_of(me.rank).process_start = process.start;
}

// Release: partner is the acquire load in find_left. A child of fork has not joined the job.
SharedMemoryBootstrap::~SharedMemoryBootstrap() {
    if (::getpid() != me_.pid) return;
    state_of(me_.rank).left.store(1, std::memory_order_release);
    if (header().arrived.load(std::memory_order_relaxed) != 0) wake_all();
}

SharedMemoryBootstrap::Header& SharedMemoryBootstrap::header() const {
    return *reinterpret_cast<Header*>(memory_.base());
}

SharedMemoryBootstrap::RankState& SharedMemoryBootstrap::state_of(int rank) const {
    return reinterpret_cast<RankState*>(memory_.base() + sizeof(Header))[rank];
}

std::span<std::byte> SharedMemoryBootstrap::buffer() const {
    const std::size_t bytes = static_cast<std::size_t>(nranks_) * piece_bytes(nranks_);
    return {memory_.base() + buffers_offset(nranks_) + (rounds_ % 2) * bytes, bytes};
}

Deadline SharedMemoryBootstrap::deadline() const {
    return timeout_.count() == 0 ? Deadline::never() : Deadline::after(timeout_);
}

Status SharedMemoryBootstrap::opening_barrier(Deadline deadline, const std::function<Status()>& service_failure) {
    return pass_round({Call::Kind::barrier, 0, 0}, deadline, service_failure);
}

Status SharedMemoryBootstrap::barrier() { return pass_round({Call::Kind::barrier, ++calls_, 0}, deadline()); }

// Parts that are larger than a piece travel in several rounds.
Status SharedMemoryBootstrap::allgather(std::span<const std::byte> send, std::span<std::byte> receive) {
    if (Status fits = check_allgather(send.size(), nranks_, receive.size()); !fits.ok()) return fits;
    const Call call{Call::Kind::allgather, ++calls_, send.size()};
    const Deadline limit = deadline();
    const std::size_t piece = piece_bytes(nranks_);
    std::size_t done = 0;
    do {
        const auto part = send.subspan(done, std::min(piece, send.size() - done));
        const auto parts = buffer();
        const auto place_of = [&](int rank) { return parts.subspan(static_cast<std::size_t>(rank) * piece).data(); };
        if (!part.empty()) std::memcpy(place_of(me_.rank), part.data(), part.size());
        if (Status passed = pass_round(call, limit); !passed.ok()) return passed;
        for (int rank = 0; rank < nranks_ && !part.empty(); ++rank)
            std::memcpy(receive.subspan(static_cast<std::size_t>(rank) * send.size() + done).data(), place_of(rank),
                        part.size());
        done += part.size();
    } while (done < send.size());
    return {};
}

// The counter's release and acquire order the parts and the calls of all ranks before the reads of the last one to
// come; the number of rounds orders them before the reads of the others.
Status SharedMemoryBootstrap::pass_round(const Call& call, Deadline deadline,
                                         const std::function<Status()>& service_failure) {
    if (Status before = failure(); !before.ok()) return before;
    RankState& mine = state_of(me_.rank);
    mine.call = call;
    mine.entered.store(rounds_ + 1, std::memory_order_release);
    Header& shared = header();
    if (shared.arrived.fetch_add(1, std::memory_order_acq_rel) + 1 == static_cast<std::uint32_t>(nranks_)) {
        if (Status same = compare_calls(); !same.ok()) return fail(same);
        shared.arrived.store(0, std::memory_order_relaxed);
        shared.rounds.store(rounds_ + 1, std::memory_order_release);
        wake_all();
    } else if (Status others = await_others(call, deadline, service_failure); !others.ok()) {
        return fail(others);
    }
    ++rounds_;
    return {};
}

Status SharedMemoryBootstrap::await_others(const Call& call, Deadline deadline,
                                           const std::function<Status()>& service_failure) {
    const std::chrono::milliseconds interval = check_interval * (1 + nranks_ / ranks_of_one_interval);
    const std::chrono::milliseconds longest = service_failure ? check_interval : interval;
    Header& shared = header();
    Moment next_check = Clock::now() + interval;
    for (;;) {
        // Acquire: partner is the release store of the last rank to come.
        if (shared.rounds.load(std::memory_order_acquire) != rounds_) return {};
        if (Status other = failure(); !other.ok()) return other;
        if (const int rank = find_left(); rank >= 0)
            return {Code::peer_dead, fmt::format("{} left the job, but {} needs it during {}", identity_of(rank).text(),
                                                 me_.text(), call.text())};
        if (service_failure)
            if (Status service = service_failure(); !service.ok()) return service;
        const Moment now = Clock::now();
        if (deadline.passed(now)) return timed_out(call, deadline);
        if (now >= next_check) {
            if (const int rank = find_ended(checked_at_once); rank >= 0) return ended(rank, "during " + call.text());
            next_check = now + interval;
        }
        const int left = deadline.poll_milliseconds(now);
        const auto sleep = left < 0 ? longest : std::min(longest, std::chrono::milliseconds(left));
        os_.sleep_on(reinterpret_cast<std::uint32_t*>(&shared.rounds), rounds_, sleep);
    }
}

Status SharedMemoryBootstrap::compare_calls() {
    const Call mine = state_of(me_.rank).call;
    for (int rank = 0; rank < nranks_; ++rank)
        if (state_of(rank).call != mine)
            return {Code::mismatch, fmt::format("{} called {}, while {} called {}", identity_of(rank).text(),
                                                state_of(rank).call.text(), me_.text(), mine.text())};
    return {};
}

// Acquire: the rank has written its process before.
bool SharedMemoryBootstrap::has_entered(int rank) const {
    return state_of(rank).entered.load(std::memory_order_acquire) > rounds_;
}

Identity SharedMemoryBootstrap::identity_of(int rank) const { return {rank, state_of(rank).process, me_.host}; }

// Acquire: what the rank has entered before it left.
int SharedMemoryBootstrap::find_left() const {
    for (int rank = 0; rank < nranks_; ++rank)
        if (state_of(rank).left.load(std::memory_order_acquire) != 0 && !has_entered(rank)) return rank;
    return -1;
}

// The service watches ranks that have not attached.
int SharedMemoryBootstrap::find_ended(int max_checks) {
    for (int i = 0, checks = 0; i < nranks_; ++i) {
        const int rank = (next_checked_ + i) % nranks_;
        const RankState& other = state_of(rank);
        if (has_entered(rank) || other.entered.load(std::memory_order_acquire) == 0) continue;
        if (checks++ == max_checks) {
            next_checked_ = rank;
            return -1;
        }
        // Again: it may have entered or left, and ended, since.
        const bool ended = !is_alive({other.process, other.process_start});
        if (ended && !has_entered(rank) && other.left.load(std::memory_order_acquire) == 0) return rank;
    }
    return -1;
}

Status SharedMemoryBootstrap::ended(int rank, const std::string& when) const {
    return {Code::peer_dead,
            fmt::format("the process of {} ended {} (it exited or was killed)", identity_of(rank).text(), when)};
}

Status SharedMemoryBootstrap::timed_out(const Call& call, Deadline deadline) const {
    std::vector<int> missing;
    for (int rank = 0; rank < nranks_; ++rank)
        if (!has_entered(rank)) missing.push_back(rank);
    if (missing.empty()) missing.push_back(me_.rank);
    return {Code::timeout,
            fmt::format("{} waited {} for {} during {}", me_.text(), format_duration(deadline.span()),
                        missing.size() == 1 ? identity_of(missing[0]).text() : rank_list(missing), call.text())};
}

void SharedMemoryBootstrap::abort(const std::string& reason) {
    (void)fail({Code::aborted, fmt::format("{} aborted the job: {}", me_.text(), reason)});
}

Status SharedMemoryBootstrap::check() {
    if (Status known = failure(); !known.ok()) return known;
    const int rank = find_ended(checked_by_check);
    return rank < 0 ? Status{} : fail(ended(rank, fmt::format("after collective #{}", calls_)));
}

// Release and acquire: the text is complete when the state says so.
Status SharedMemoryBootstrap::fail(const Status& cause) {
    Header& shared = header();
    auto expected = static_cast<std::uint32_t>(Header::none);
    if (shared.failed.compare_exchange_strong(expected, Header::being_written, std::memory_order_acquire)) {
        shared.code = static_cast<std::int32_t>(cause.code());
        const std::size_t length = cause.message().copy(shared.text, limits::abort_text_bytes);
        shared.text[length] = '\0';
        shared.failed.store(Header::written, std::memory_order_release);
        wake_all();
    }
    return failure();
}

Status SharedMemoryBootstrap::failure() const {
    const Header& shared = header();
    for (int polls = 0; shared.failed.load(std::memory_order_acquire) != Header::written; ++polls) {
        constexpr int max_polls = 1000;  // its writer may have been killed
        if (shared.failed.load(std::memory_order_relaxed) == Header::none) return {};
        if (polls == max_polls) return {Code::aborted, "another rank failed and was killed before it reported why"};
        std::this_thread::yield();
    }
    return {static_cast<Code>(shared.code), shared.text};
}

void SharedMemoryBootstrap::wake_all() const {
    (void)wake_sleepers_on(reinterpret_cast<std::uint32_t*>(&header().rounds),
                           std::numeric_limits<std::uint32_t>::max());
}

}  // namespace npushmem::rendezvous
