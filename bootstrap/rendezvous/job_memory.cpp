// SPDX-License-Identifier: BSD-3-Clause
#include "bootstrap/rendezvous/job_memory.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <thread>

#include "core/base/host_facts.hpp"
#include "core/base/parking.hpp"
#include "npushmem/plugin/transport.hpp"

namespace npushmem::rendezvous {

namespace {

constexpr std::size_t max_piece_bytes = 1024;
constexpr std::size_t min_piece_bytes = 64;
constexpr std::size_t max_buffer_bytes = 4 << 20;
constexpr std::uint64_t layout_magic = 0x6e70'7368'6d65'6d34;  // changes with Header, RankState and the buffers

// Values of Header::failed. The writer of the failure stores its number while it writes: the creator's, or from
// first_rank on a rank's.
enum FailureState : std::uint32_t { none, written, writer_ended, creator, first_rank };

std::size_t buffers_offset(int nranks) {
    return sizeof(JobMemory::Header) + static_cast<std::size_t>(nranks) * sizeof(JobMemory::RankState);
}

}  // namespace

std::size_t JobMemory::piece_bytes(int nranks) {
    return std::clamp(max_buffer_bytes / static_cast<std::size_t>(nranks) / cache_line * cache_line, min_piece_bytes,
                      max_piece_bytes);
}

std::uint64_t JobMemory::bytes(int nranks) {
    return rounded_up(buffers_offset(nranks) + 2 * static_cast<std::size_t>(nranks) * piece_bytes(nranks),
                      page_bytes());
}

Result<JobMemory> JobMemory::create(int nranks, const npushmem_host_id& host) {
    auto made = SharedSegment::create(bytes(nranks), "");
    if (!made.ok()) return made.status();
    if (Status committed = made.value().commit(0, bytes(nranks)); !committed.ok()) return committed;
    JobMemory memory(std::move(made).value());
    Header& header = memory.header();
    header.magic = layout_magic;
    header.version = library_version;
    header.nranks = nranks;
    header.host = host;
    header.creator = this_process();
    return memory;
}

Result<JobMemory> JobMemory::attach(const SegmentHandle& handle, int nranks, const npushmem_host_id& host) {
    SegmentHandle whole = handle;
    whole.bytes = bytes(nranks);
    auto attached = SharedSegment::attach(whole);
    if (!attached.ok()) return attached.status();
    JobMemory memory(std::move(attached).value());
    const Header& header = memory.header();
    if (header.magic != layout_magic)
        return Status{Code::protocol,
                      "the memory for the start of the job has another layout; start all ranks with the same library"};
    if (!is_same_host(header.host, host) || header.host.user != host.user)
        return Status{Code::mismatch, "the memory for the start of the job is another host's or another user's"};
    if (header.nranks != nranks || header.version != library_version)
        return Status{
            Code::mismatch,
            fmt::format("the memory for the start of the job is that of {} ranks of npushmem {}, not of {} ranks of {}",
                        header.nranks, text_of(header.version), nranks, text_of(library_version))};
    return memory;
}

Status ended_without_joining(const std::string& how) {
    return {Code::peer_dead, how +
                                 " without calling npushmem_init, in which the others wait for it; every PE must call "
                                 "it, so start only as many PEs as do"};
}

JobMemory::RankState& JobMemory::state_of(int rank) const {
    return reinterpret_cast<RankState*>(segment_.base() + sizeof(Header))[rank];
}

std::span<std::byte> JobMemory::buffer(std::uint32_t number) const {
    const std::size_t bytes = static_cast<std::size_t>(nranks()) * piece_bytes(nranks());
    return {segment_.base() + buffers_offset(nranks()) + number * bytes, bytes};
}

ProcessId JobMemory::process_of(int rank) const {
    const RankState& state = state_of(rank);
    return {state.process, state.process_start};
}

// Acquire: what the ranks wrote before the memory was complete.
JobMemory::State JobMemory::state() const { return header().state.load(std::memory_order_acquire); }

// Returns the state, which is `next` now if it was forming.
JobMemory::State JobMemory::leave_forming(State next) const {
    auto before = State::forming;
    return header().state.compare_exchange_strong(before, next, std::memory_order_acq_rel) ? next : before;
}

bool JobMemory::complete() { return leave_forming(State::complete) == State::complete; }

// Acquire: the rank has written its process.
bool JobMemory::has_attached(int rank) const { return state_of(rank).entered.load(std::memory_order_acquire) != 0; }

void JobMemory::refuse(int rank) {
    const bool has_process = rank >= 0 && rank < nranks() && has_attached(rank);
    if (has_process && state() == State::forming && !is_alive(process_of(rank)))
        (void)fail_as(creator, {Code::peer_dead, fmt::format("the process of rank {} (pid {}) ended while the job was "
                                                             "starting",
                                                             rank, process_of(rank).pid)});
    if (leave_forming(State::refused) == State::refused) announce_change();
}

void JobMemory::rank_ended(int rank, const std::string& how) {
    if (rank < 0 || rank >= nranks() || state() != State::forming) return;
    (void)fail_as(creator, has_attached(rank) ? Status{Code::peer_dead, how + " while the job was starting"}
                                              : ended_without_joining(how));
}

// The process is published by the release store to `entered`.
bool JobMemory::claim(int rank) {
    RankState& state = state_of(rank);
    if (state.claimed.exchange(1, std::memory_order_acq_rel) != 0) return false;
    const ProcessId process = this_process();
    state.process = process.pid;
    state.process_start = process.start;
    return true;
}

Status JobMemory::fail(int writer, const Status& cause) {
    return fail_as(first_rank + static_cast<std::uint32_t>(writer), cause);
}

// Release and acquire: the text is complete when `failed` says so.
Status JobMemory::fail_as(std::uint32_t writer, const Status& cause) {
    if (leave_forming(State::failed) == State::refused) return cause;
    Header& shared = header();
    auto expected = static_cast<std::uint32_t>(none);
    if (shared.failed.compare_exchange_strong(expected, writer, std::memory_order_acquire)) {
        shared.code = static_cast<std::int32_t>(cause.code());
        const std::size_t length = cause.message().copy(shared.text, limits::abort_text_bytes);
        shared.text[length] = '\0';
        shared.failed.store(written, std::memory_order_release);
        announce_change();
    }
    return failure();
}

Status JobMemory::failure() const {
    std::atomic<std::uint32_t>& state = header().failed;
    std::uint32_t now = state.load(std::memory_order_acquire);
    for (int polls = 0; now >= creator; now = state.load(std::memory_order_acquire)) {
        constexpr int polls_per_check = 100;
        const auto process = [&]() -> ProcessId {
            return now == creator ? header().creator : process_of(static_cast<int>(now - first_rank));
        };
        if (++polls % polls_per_check == 0 && !is_alive(process()))
            (void)state.compare_exchange_strong(now, writer_ended, std::memory_order_acq_rel);
        std::this_thread::yield();
    }
    if (now == none) return {};
    if (now == writer_ended) return {Code::peer_dead, "a rank failed and was killed before it reported why"};
    return {static_cast<Code>(header().code), header().text};
}

// Release: the change comes before.
void JobMemory::announce_change() const {
    Header& shared = header();
    shared.changes.fetch_add(1, std::memory_order_release);
    (void)wake_sleepers_on(reinterpret_cast<std::uint32_t*>(&shared.changes),
                           std::numeric_limits<std::uint32_t>::max());
}

}  // namespace npushmem::rendezvous
