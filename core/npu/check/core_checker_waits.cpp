// Waits: where others run, loops that poll, and what happens between cores.
#include <fmt/format.h>

#include <cstring>

#include "core/npu/check/core_checker.hpp"

namespace npushmem::npu::check {
namespace {

// A core that has made so many calls without a wait lets others run: what it polls for may be their work.
constexpr std::uint64_t calls_per_turn = 4096;
// After so many such turns, commands and signals that were put off happen, too.
constexpr std::uint64_t turns_per_release = 16;
// Stands for what a yield is about.
constexpr std::uintptr_t yielded = 1;

}  // namespace

void CoreChecker::enter(Where where) {
    place_->at.store(where, std::memory_order_relaxed);
    domain_->running(*place_);
    if (++calls_ >= calls_per_turn) preempt(where);
}

void CoreChecker::give_way(Where where) {
    calls_ = 0;
    context_->runner->reschedule(*context_, where);
}

void CoreChecker::preempt(Where where) {
    calls_ = 0;
    hurry();
    if (++turns_ % turns_per_release == 0) {
        run_all();
        domain_->deliver_from(core_);
        static_cast<void>(domain_->progress());
    }
    domain_->control().long_turn();
    context_->runner->preempt(*context_, where);
}

// In a wait loop the first round has offered this place already.
void CoreChecker::point() {
    if (!loop_.repeats() && domain_->control().give_way()) give_way(place_->at.load(std::memory_order_relaxed));
}

void CoreChecker::hurry() {
    if (!domain_->control().impatient()) return;
    run_all();
    domain_->deliver_from(core_);
}

void CoreChecker::observe(Address what, const void* address, std::uint64_t value, Where where) {
    last_read_ = {address, value, where};
    if (loop_.read(what, value, domain_->changes())) wait_for_change(last_read_);
}

void CoreChecker::wait_for_change(const LastRead& read) {
    hurry();
    if (loop_.just_recognised()) polling_ = {};
    calls_ = 0;
    context_->polled = read.address;
    context_->polled_value = read.value;
    context_->runner->poll_unchanged(*context_, polling_, read.where);
    context_->polled = nullptr;
}

bool CoreChecker::poll(std::uint64_t round, Where where) {
    if (round != 0) return true;  // a dcci: the reads of the loop count
    enter(where);
    if (!loop_.read(yielded, 0, domain_->changes()))
        give_way(where);
    else
        wait_for_change(last_read_.address != nullptr ? last_read_ : LastRead{nullptr, 0, where});
    last_read_ = {};
    return true;
}

bool CoreChecker::stale_poll(Address at, std::size_t bytes, CacheLine& line, const Access& access) {
    if (!differs(at, bytes, line)) return false;
    std::uint64_t seen = 0;
    std::uint64_t there = 0;
    std::memcpy(&seen, line.bytes.data() + at % cache_line, bytes);
    refresh(at / cache_line * cache_line, line);
    line.filled = domain_->version();
    outside_.filled(line);
    domain_->acquire_word(at / 8 * 8, now());
    std::memcpy(&there, line.bytes.data() + at % cache_line, bytes);
    Access writer = domain_->memory().writer_of(at);
    if (writer.exists() && writer.core() == core_) writer = {};  // a PE of another process wrote later
    domain_->report(Hazard::stale_read, side(Pipe::scalar, access.name, access.where), writer, place_of(at, true),
                    fmt::format("polls a line that it never reads again from memory: sees {:#x}, the memory has {:#x}",
                                seen, there));
    return true;
}

bool CoreChecker::read_earlier(Address at, CacheLine& line) {
    const Address word = at / 8 * 8;
    const Domain::Earlier earlier = domain_->earlier(word, core_, now());
    if (earlier.release == 0 || std::exchange(earlier_[word], earlier.release) == earlier.release) return false;
    std::memcpy(line.bytes.data() + word % cache_line, &earlier.value, sizeof earlier.value);
    line.filled = 1;  // before everything
    return true;
}

void CoreChecker::after_wait(const void* address, std::uint64_t seen, Where where) {
    enter(where);
    const Address at = number_of(address);
    const int owner = domain_->names().pe_of(at);
    if (owner >= 0 && owner != pe_) ++domain_->traffic().waits;
    clean_line(at, where);
    touch(at);
    outside_.acquired();
    domain_->acquire_word(at, now(), seen, true);
    observe(at, address, seen, where);
}

void CoreChecker::enter_core_barrier(Where where) {
    enter(where);
    point();
    hurry();
    CoreMeeting& meeting = domain_->meeting(pe_);
    const FindingSide here = side(Pipe::scalar, "core_barrier", where);
    if (meeting.arrived == 0) {
        meeting.first = here;
        meeting.gathering = {};
    } else if (meeting.first.where.line() != where.line() ||
               std::strcmp(meeting.first.where.file_name(), where.file_name()) != 0) {
        domain_->report(Hazard::core_barrier, here, meeting.first, "", "cores meet at different places of the kernel");
    }
    if (meeting.ended > 0) {
        domain_->report(
            Hazard::core_barrier, here, FindingSide{}, "",
            fmt::format("core_barrier was reached after {} of {} cores ended the kernel", meeting.ended, cores_));
    }
    meeting.gathering.join(now());
    if (++meeting.arrived < cores_) return;
    meeting.arrived = 0;
    meeting.passed = meeting.gathering;
    domain_->changed();
}

void CoreChecker::leave_core_barrier() {
    outside_.acquired();
    now().join(domain_->meeting(pe_).passed);
}

void CoreChecker::barrier_begin(const BarrierDescriptor& call, Where where) {
    domain_->compare(call, side(Pipe::scalar, call.variant, where), cores_);
}

void CoreChecker::barrier_observed(std::uint64_t seen, const BarrierDescriptor& call, int peer, Where where) {
    if (seen - call.generation <= 1) return;
    domain_->report(Hazard::generation, side(Pipe::scalar, call.variant, where), FindingSide{},
                    domain_->names().name_of(number_of(call.state)),
                    fmt::format("PE {} is in generation {} while this PE is in {}; a member leads by one at most", peer,
                                seen, call.generation));
}

}  // namespace npushmem::npu::check
