// Scalar accesses, signals, and what happens between cores.
#include <fmt/format.h>

#include <cstring>

#include "core/npu/check/core_checker.hpp"

namespace npushmem::npu::check {
namespace {

std::uint64_t value_of(const void* bytes, std::size_t count) {
    std::uint64_t value = 0;
    std::memcpy(&value, bytes, count);
    return value;
}

// As one machine access: peers in other processes may access the same word.
void read_memory(const void* from, void* to, std::size_t bytes) {
    switch (bytes) {
        case 1:
            __atomic_load(static_cast<const std::uint8_t*>(from), static_cast<std::uint8_t*>(to), __ATOMIC_RELAXED);
            return;
        case 2:
            __atomic_load(static_cast<const std::uint16_t*>(from), static_cast<std::uint16_t*>(to), __ATOMIC_RELAXED);
            return;
        case 4:
            __atomic_load(static_cast<const std::uint32_t*>(from), static_cast<std::uint32_t*>(to), __ATOMIC_RELAXED);
            return;
        default:
            __atomic_load(static_cast<const std::uint64_t*>(from), static_cast<std::uint64_t*>(to), __ATOMIC_RELAXED);
    }
}

void write_memory(void* to, const void* from, std::size_t bytes) {
    switch (bytes) {
        case 1:
            __atomic_store_n(static_cast<std::uint8_t*>(to), static_cast<std::uint8_t>(value_of(from, 1)),
                             __ATOMIC_RELAXED);
            return;
        case 2:
            __atomic_store_n(static_cast<std::uint16_t*>(to), static_cast<std::uint16_t>(value_of(from, 2)),
                             __ATOMIC_RELAXED);
            return;
        case 4:
            __atomic_store_n(static_cast<std::uint32_t*>(to), static_cast<std::uint32_t>(value_of(from, 4)),
                             __ATOMIC_RELAXED);
            return;
        default: __atomic_store_n(static_cast<std::uint64_t*>(to), value_of(from, 8), __ATOMIC_RELAXED);
    }
}

}  // namespace

void CoreChecker::touch(Address address) {
    idle_ = false;
    untouched_.erase(address / cache_line);
}

CacheLine& CoreChecker::fill(Address address) {
    CacheLine& line = cache_.fill(address, domain_->version());
    outside_.filled(line);
    return line;
}

void CoreChecker::load(const void* address, void* value, std::size_t bytes, Where where) {
    const Address at = number_of(address);
    const Access access = scalar_access("load", where);
    if (in_ub(at)) {
        ub_shadow_.read(at, at + bytes, access, now(), reporter(access, false));
        return read_memory(address, value, bytes);
    }
    refuse_address(at, bytes, access);
    touch(at);
    CacheLine* line = domain_->names().cached(at) ? cache_.find(at) : nullptr;
    const Stamp filled = line != nullptr ? line->filled : 0;
    if (line == nullptr && domain_->names().cached(at)) line = &fill(at);
    if (line != nullptr)
        std::memcpy(value, line->bytes.data() + at % cache_line, bytes);
    else
        read_memory(address, value, bytes);
    bool known = false;
    domain_->memory().load(
        at, at + bytes, core_, now(), filled,
        [&](Hazard hazard, const Access& other, Address part, const char* detail) {
            known = true;
            std::uint64_t there = 0;
            read_memory(address, &there, bytes);
            domain_->report(hazard, side(Pipe::scalar, "load", where), other, place_of(part, true),
                            fmt::format("{}: sees {:#x}, the memory has {:#x}", detail, value_of(value, bytes), there));
        });
    if (!known && filled != 0 && domain_->names().shared() && outside_.stale(at, bytes, *line)) {
        report_outside(Hazard::stale_read, access, at,
                       "loads from a line that was cached before a wait, and that a PE of another process wrote since");
    }
    // Afterwards: a load may be a poll for what its word announces.
    if (filled == 0) domain_->acquire_word(at / 8 * 8, now());
}

void CoreChecker::store_uncached(Address at, const void* value, std::size_t bytes, const Access& access) {
    domain_->memory().copy_write(at, at + bytes, access, now(), reporter(access, true));
    write_memory(reinterpret_cast<void*>(at), value, bytes);
    domain_->memory().landed(at, at + bytes, access, domain_->changed());
    domain_->release_word(at / 8 * 8, now(), false);
}

void CoreChecker::store(void* address, const void* value, std::size_t bytes, Where where) {
    const Address at = number_of(address);
    const Access access = scalar_access("store", where);
    if (in_ub(at)) {
        ub_shadow_.write(at, at + bytes, access, now(), false, reporter(access, false));
        return write_memory(address, value, bytes);
    }
    refuse_address(at, bytes, access);
    touch(at);
    if (!domain_->names().cached(at)) return store_uncached(at, value, bytes, access);
    CacheLine* line = cache_.find(at);
    if (line == nullptr) line = &fill(at);
    std::memcpy(line->bytes.data() + at % cache_line, value, bytes);
    line->dirty |= ((std::uint64_t{1} << bytes) - 1) << (at % cache_line);
    domain_->memory().store(at, at + bytes, access, now(), reporter(access, true));
}

void CoreChecker::flushed(Address begin, const CacheLine& line, const std::source_location& where) {
    const Access access = scalar_access("write back", where);
    bool known = false;
    const GmShadow::Report report = reporter(access, true);
    domain_->memory().write_back(begin, line.dirty, access, line.filled, domain_->changed(),
                                 [&](Hazard hazard, const Access& other, Address at, const char* detail) {
                                     known = true;
                                     report(hazard, other, at, detail);
                                 });
    const Address lost = !known && domain_->names().shared() ? Outside::lost(begin, line) : 0;
    if (lost != 0) {
        report_outside(Hazard::lost_update, access, lost,
                       "writes back a whole line over bytes that a PE of another process wrote since it was cached");
    }
    for (Address word = 0; word < cache_line; word += 8) {
        if (((line.dirty >> word) & 0xff) != 0) domain_->release_word(begin + word, now(), false);
    }
}

bool CoreChecker::clean_line(Address address, const std::source_location& where) {
    return cache_.drop(address, [&](Address begin, const CacheLine& line) { flushed(begin, line, where); });
}

void CoreChecker::clean_cache(const std::source_location& where) {
    cache_.drop_all([&](Address begin, const CacheLine& line) { flushed(begin, line, where); });
}

void CoreChecker::dcci(const void* address, std::size_t bytes, Where where) {
    point();
    hurry();
    idle_ = false;
    const Address first = number_of(address) / cache_line;
    const Address last = (number_of(address) + (bytes == 0 ? 0 : bytes - 1)) / cache_line;
    bool useful = false;
    for (Address line = first; line <= last; ++line) {
        const bool held = clean_line(line * cache_line, where);
        useful = untouched_.insert(line).second || held || useful;
    }
    if (useful) return;
    domain_->report(Hazard::redundant, side(Pipe::scalar, "dcci", where), FindingSide{},
                    domain_->names().name_of(number_of(address)), "no line was used since its last dcci");
}

void CoreChecker::signal(const Signal& signal, Where where) {
    point();
    const Address at = number_of(signal.word);
    const Access access = scalar_access(signal.add ? "signal_add" : "signal_set", where);
    refuse_address(at, sizeof *signal.word, access);
    clean_line(at, where);
    touch(at);
    domain_->memory().signal(at, at + sizeof *signal.word, access, now(), !signal.add, reporter(access, true));
    Domain::Message message{core_, signal, access, now()};
    const int target = domain_->names().pe_of(at);
    if (target >= 0 && target != pe_) {
        ++domain_->traffic().signals;
        domain_->overtaken().signalled(target, access, now());
    }
    if (target == pe_) domain_->overtaken().announced(Overtaken::any_pe, now());
    if (target < 0 || target == pe_ || domain_->control().deliver_signal())
        domain_->arrive(message);
    else
        domain_->send(std::move(message));
    point();
}

void CoreChecker::before_atomic(const void* address, std::size_t bytes, Where where) {
    point();
    const Address at = number_of(address);
    atomic_access_ = scalar_access("atomic", where);
    refuse_address(at, bytes, atomic_access_);
    clean_line(at, where);
    touch(at);
    domain_->acquire_word(at / 8 * 8, now());
    const int target = domain_->names().pe_of(at);
    if (target >= 0) domain_->overtaken().announced(target == pe_ ? Overtaken::any_pe : target, now());
    domain_->memory().signal(at, at + bytes, atomic_access_, now(), false, reporter(atomic_access_, true));
    domain_->release_word(at / 8 * 8, now(), true);
}

void CoreChecker::after_atomic(const void* address) {
    domain_->memory().landed(number_of(address) / 8 * 8, number_of(address) / 8 * 8 + 8, atomic_access_,
                             domain_->changed());
}

void CoreChecker::after_wait(const void* address, std::uint64_t, Where where) {
    const Address at = number_of(address);
    const int owner = domain_->names().pe_of(at);
    if (owner >= 0 && owner != pe_) ++domain_->traffic().waits;
    clean_line(at, where);
    touch(at);
    outside_.acquired();
    domain_->acquire_word(at, now());
}

void CoreChecker::arrive_cores(Where where) {
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

void CoreChecker::leave_cores() {
    outside_.acquired();
    now().join(domain_->meeting(pe_).passed);
}

void CoreChecker::barrier_begins(const BarrierCall& call, Where where) {
    domain_->compare(call, side(Pipe::scalar, call.variant, where), cores_);
}

void CoreChecker::barrier_saw(std::uint64_t seen, const BarrierCall& call, int peer, Where where) {
    if (seen - call.generation <= 1) return;
    domain_->report(Hazard::generation, side(Pipe::scalar, call.variant, where), FindingSide{},
                    domain_->names().name_of(number_of(call.state)),
                    fmt::format("PE {} is in generation {} while this PE is in {}; a member leads by one at most", peer,
                                seen, call.generation));
}

}  // namespace npushmem::npu::check
