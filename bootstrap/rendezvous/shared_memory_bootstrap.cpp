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
#include "core/base/liveness.hpp"
#include "core/base/parse.hpp"

namespace npushmem::rendezvous {

namespace {

constexpr std::size_t cache_line = 64;
constexpr std::size_t max_piece_bytes = 1024;
constexpr std::size_t min_piece_bytes = 64;
constexpr std::size_t max_buffer_bytes = 4 << 20;
// The more ranks wait, the less often each looks for ranks that have ended.
constexpr std::chrono::milliseconds check_interval{20};
constexpr int ranks_of_one_interval = 16;
constexpr int checks_per_interval = 16;
constexpr std::uint64_t layout_magic = 0x6e70'7368'6d65'6d31;  // changes with Header and RankState

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
    // Values of `failed`; a rank that writes the failure stores its number behind first_writer.
    enum State : std::uint32_t { none, written, writer_ended, first_writer };

    std::uint64_t magic;
    std::int32_t nranks;
    alignas(cache_line) std::atomic<std::uint32_t> arrived;
    alignas(cache_line) std::atomic<std::uint32_t> rounds;  // passed
    std::atomic<std::uint32_t> changes;                     // of anything that ranks wait for; they sleep on it
    alignas(cache_line) std::atomic<std::uint32_t> left;    // ranks
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

std::uint64_t SharedMemoryBootstrap::memory_bytes(int nranks) {
    return rounded_up(buffers_offset(nranks) + 2 * static_cast<std::size_t>(nranks) * piece_bytes(nranks),
                      page_bytes());
}

Result<SharedSegment> SharedMemoryBootstrap::create_memory(int nranks) {
    const std::uint64_t bytes = memory_bytes(nranks);
    auto made = SharedSegment::create(bytes, "");
    if (!made.ok()) return made;
    if (Status committed = made.value().commit(0, bytes); !committed.ok()) return committed;
    Header& header = *reinterpret_cast<Header*>(made.value().base());
    header.magic = layout_magic;
    header.nranks = nranks;
    return made;
}

Result<std::unique_ptr<SharedMemoryBootstrap>> SharedMemoryBootstrap::open(SharedSegment memory, const Identity& me,
                                                                           int nranks, Milliseconds timeout) {
    const auto* const header = reinterpret_cast<const Header*>(memory.base());
    if (memory.bytes() != memory_bytes(nranks) || header->magic != layout_magic || header->nranks != nranks)
        return Status{Code::protocol,
                      fmt::format("{} got memory of {} from rank 0 that is not that of {} ranks; start all ranks with "
                                  "the same library",
                                  me.text(), format_size(memory.bytes()), nranks)};
    return std::unique_ptr<SharedMemoryBootstrap>(new SharedMemoryBootstrap(std::move(memory), me, nranks, timeout));
}

SharedMemoryBootstrap::SharedMemoryBootstrap(SharedSegment memory, const Identity& me, int nranks, Milliseconds timeout)
    : memory_(std::move(memory)), me_(me), nranks_(nranks), timeout_(timeout) {
    const ProcessId process = this_process();
    state_of(me.rank).process = process.pid;
    state_of(me.rank).process_start = process.start;
}

// Release: partner is the acquire load in find_left. A child of fork has not joined the job.
SharedMemoryBootstrap::~SharedMemoryBootstrap() {
    if (::getpid() != me_.pid) return;
    state_of(me_.rank).left.store(1, std::memory_order_release);
    header().left.fetch_add(1, std::memory_order_release);
    announce_change();
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
        announce_change();
    } else if (Status others = await_others(call, deadline, service_failure); !others.ok()) {
        return fail(others);
    }
    ++rounds_;
    return {};
}

// A change that its checks miss has incremented `changes` since the load, so that the sleep ends at once.
Status SharedMemoryBootstrap::await_others(const Call& call, Deadline deadline,
                                           const std::function<Status()>& service_failure) {
    const std::chrono::milliseconds interval = check_interval * (1 + nranks_ / ranks_of_one_interval);
    Header& shared = header();
    Moment next_check = Clock::now() + interval;
    int first_checked = me_.rank;  // so that ranks that wait together check different ones
    for (;;) {
        const std::uint32_t changes = shared.changes.load(std::memory_order_acquire);
        // Acquire: partner is the release store of the last rank to come.
        if (shared.rounds.load(std::memory_order_acquire) != rounds_) return {};
        if (Status other = failure(); !other.ok()) return other;
        if (const int rank = find_left(); rank >= 0)
            return {Code::peer_dead,
                    fmt::format("{} left the job, but {} needs it during {}", name_of(rank), me_.text(), call.text())};
        if (service_failure)
            if (Status service = service_failure(); !service.ok()) return service;
        const Moment now = Clock::now();
        if (deadline.passed(now)) return timed_out(call, deadline);
        if (now >= next_check) {
            // A rank that ended behind a complete round fails the next one.
            const int rank = find_ended(first_checked, checks_per_interval);
            if (rank >= 0 && shared.rounds.load(std::memory_order_acquire) == rounds_)
                return ended(rank, "during " + call.text());
            first_checked = (first_checked + checks_per_interval) % nranks_;
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
    if (state.entered.load(std::memory_order_acquire) == 0) return fmt::format("rank {}", rank);
    return Identity{rank, state.process, me_.host}.text();
}

// Acquire: what the rank has entered before it left.
int SharedMemoryBootstrap::find_left() const {
    if (header().left.load(std::memory_order_acquire) == 0) return -1;
    for (int rank = 0; rank < nranks_; ++rank)
        if (state_of(rank).left.load(std::memory_order_acquire) != 0 && !has_entered(rank)) return rank;
    return -1;
}

// The service watches the ranks until all have attached.
int SharedMemoryBootstrap::find_ended(int first, int count) const {
    // Acquire: all ranks have written their processes before the first round ended.
    if (header().rounds.load(std::memory_order_acquire) == 0) return -1;
    for (int i = 0; i < nranks_; ++i) {
        const int rank = (first + i) % nranks_;
        const RankState& state = state_of(rank);
        const auto has_left = [&] { return state.left.load(std::memory_order_acquire) != 0; };
        if (has_left()) continue;
        const bool runs = i < count ? is_alive({state.process, state.process_start}) : kernel_knows(state.process);
        if (!runs && !has_left()) return rank;
    }
    return -1;
}

Status SharedMemoryBootstrap::ended(int rank, const std::string& when) const {
    return {Code::peer_dead, fmt::format("the process of {} ended {} (it exited or was killed)", name_of(rank), when)};
}

Status SharedMemoryBootstrap::timed_out(const Call& call, Deadline deadline) const {
    std::vector<int> missing;
    for (int rank = 0; rank < nranks_; ++rank)
        if (!has_entered(rank)) missing.push_back(rank);
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
    if (Status known = failure(); !known.ok()) return known;
    const int rank = find_ended(0, nranks_);
    return rank < 0 ? Status{} : fail(ended(rank, "while the job was running"));
}

// Release and acquire: the text is complete when the state says so.
Status SharedMemoryBootstrap::fail(const Status& cause) {
    Header& shared = header();
    auto expected = static_cast<std::uint32_t>(Header::none);
    const std::uint32_t writer = Header::first_writer + static_cast<std::uint32_t>(me_.rank);
    if (shared.failed.compare_exchange_strong(expected, writer, std::memory_order_acquire)) {
        shared.code = static_cast<std::int32_t>(cause.code());
        const std::size_t length = cause.message().copy(shared.text, limits::abort_text_bytes);
        shared.text[length] = '\0';
        shared.failed.store(Header::written, std::memory_order_release);
        announce_change();
    }
    return failure();
}

Status SharedMemoryBootstrap::failure() const {
    std::atomic<std::uint32_t>& state = header().failed;
    std::uint32_t now = state.load(std::memory_order_acquire);
    for (int polls = 0; now >= Header::first_writer; now = state.load(std::memory_order_acquire)) {
        constexpr int polls_per_check = 100;
        const RankState& writer = state_of(static_cast<int>(now - Header::first_writer));
        if (++polls % polls_per_check == 0 && !is_alive({writer.process, writer.process_start}))
            (void)state.compare_exchange_strong(now, Header::writer_ended, std::memory_order_acq_rel);
        std::this_thread::yield();
    }
    if (now == Header::none) return {};
    if (now == Header::writer_ended) return {Code::peer_dead, "a rank failed and was killed before it reported why"};
    return {static_cast<Code>(header().code), header().text};
}

// Release: the change comes before.
void SharedMemoryBootstrap::announce_change() const {
    Header& shared = header();
    shared.changes.fetch_add(1, std::memory_order_release);
    (void)wake_sleepers_on(reinterpret_cast<std::uint32_t*>(&shared.changes),
                           std::numeric_limits<std::uint32_t>::max());
}

}  // namespace npushmem::rendezvous
