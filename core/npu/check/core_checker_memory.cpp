// Scalar accesses, signals and atomics.
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

// The aligned word there, as the line has it.
std::uint64_t word_of(const CacheLine& line, std::uintptr_t address) {
    return value_of(line.bytes.data() + address % cache_line / 8 * 8, 8);
}

// Whether the memory has other bytes once the line is written back.
bool changes_memory(std::uintptr_t begin, const CacheLine& line) {
    for (std::size_t word = 0; word < cache_line; word += 8)
        if (value_of(line.bytes.data() + word, 8) != word_in_memory(begin + word)) return true;
    return false;
}

}  // namespace

void CoreChecker::touch(Address address) {
    idle_ = false;
    untouched_.erase(address / cache_line);
}

CacheLine& CoreChecker::fill(Address address, std::size_t own_bytes) {
    CacheLine& line = cache_.fill(address, domain_->version());
    outside_.filled(line);
    const GmShadow::Unordered other = domain_->memory().unordered_in_line(address, own_bytes, core_, now());
    line.neighbour = other.write;
    line.neighbour_at = other.at;
    return line;
}

void CoreChecker::load(const void* address, void* value, std::size_t bytes, Where where) {
    enter(where);
    const Address at = number_of(address);
    const Access access = scalar_access("load", where);
    if (in_ub(at)) {
        ub_shadow_.read(at, at + bytes, access, now(), reporter(access, false));
        read_memory(address, value, bytes);
        return observe(at, address, value_of(value, bytes), where);
    }
    refuse_address(at, bytes, access);
    const bool refreshed = untouched_.contains(at / cache_line);
    touch(at);
    CacheLine* line = domain_->names().cached(at) ? cache_.find(at) : nullptr;
    Stamp filled = line != nullptr ? line->filled : 0;
    if (line == nullptr && domain_->names().cached(at)) {
        line = &fill(at, bytes);
        if (!refreshed && read_earlier(at, *line)) filled = line->filled;
    }
    load_checked(access, value, bytes, line, filled, address);
    last_read_ = {address, value_of(value, bytes), where};
    if (!loop_.read(at, last_read_.value, domain_->changes())) return;
    if (filled != 0 && stale_poll(at, bytes, *line, access)) return loop_.changed();
    wait_for_change(last_read_);
}

// `filled`: when the line was cached; 0: by this load, or there is no line.
void CoreChecker::load_checked(const Access& access, void* value, std::size_t bytes, const CacheLine* line,
                               Stamp filled, const void* address) {
    const Address at = number_of(address);
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
            domain_->report(hazard, side(Pipe::scalar, "load", access.where), other, place_of(part, true),
                            fmt::format("{}: sees {:#x}, the memory has {:#x}", detail, value_of(value, bytes), there));
        });
    if (!known && filled != 0 && domain_->names().shared() && outside_.stale(at, bytes, *line)) {
        report_outside(Hazard::stale_read, access, at,
                       "loads from a line that was cached before a wait, and that a PE of another process wrote since");
    }
    // Afterwards: a load may be a poll for what its word announces.
    if (filled != 0) return;
    domain_->acquire_word(at / 8 * 8, now(),
                          line != nullptr ? std::optional(word_of(*line, at)) : std::optional<std::uint64_t>());
}

void CoreChecker::store_uncached(Address at, const void* value, std::size_t bytes, const Access& access) {
    domain_->memory().copy_write(at, at + bytes, access, now(), reporter(access, true));
    const auto records = domain_->lock_records();
    const std::uint64_t before = word_in_memory(at / 8 * 8);
    write_memory(reinterpret_cast<void*>(at), value, bytes);
    domain_->memory().landed(at, at + bytes, access, domain_->changed(word_in_memory(at / 8 * 8) != before));
    domain_->release_word(at / 8 * 8, passed_on(at, now()), false, access, before);
}

void CoreChecker::store(void* address, const void* value, std::size_t bytes, Where where) {
    enter(where);
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
    if (line == nullptr) line = &fill(at, bytes);
    if (std::memcmp(line->bytes.data() + at % cache_line, value, bytes) != 0) loop_.changed();
    std::memcpy(line->bytes.data() + at % cache_line, value, bytes);
    line->dirty |= ((std::uint64_t{1} << bytes) - 1) << (at % cache_line);
    domain_->memory().store(at, at + bytes, access, now(), reporter(access, true));
}

void CoreChecker::flushed(Address begin, const CacheLine& line, const SourceLocation& where) {
    const Access access = scalar_access("write back", where);
    bool known = false;
    const GmShadow::Report report = reporter(access, true);
    domain_->memory().write_back(begin, line.dirty, access, now(), line.filled,
                                 domain_->changed(changes_memory(begin, line)),
                                 [&](Hazard hazard, const Access& other, Address at, const char* detail) {
                                     known = true;
                                     report(hazard, other, at, detail);
                                 });
    if (!known && line.neighbour.exists()) {
        known = true;
        report(Hazard::lost_update, line.neighbour, line.neighbour_at,
               "writes back a whole line into which another core writes, unordered");
    }
    const Address lost = !known && domain_->names().shared() ? Outside::lost(begin, line) : 0;
    if (lost != 0) {
        report_outside(Hazard::lost_update, access, lost,
                       "writes back a whole line over bytes that a PE of another process wrote since it was cached");
    }
    for (Address word = 0; word < cache_line; word += 8) {
        if (((line.dirty >> word) & 0xff) != 0)
            domain_->release_word(begin + word, passed_on(begin, now()), false, access, word_in_memory(begin + word),
                                  word_of(line, word));
    }
    if (domain_->names().shared()) domain_->overtaken().written_back(begin, access);
}

bool CoreChecker::clean_line(Address address, const SourceLocation& where) {
    return cache_.drop(address, [&](Address begin, const CacheLine& line) { flushed(begin, line, where); });
}

void CoreChecker::clean_cache(const SourceLocation& where) {
    cache_.drop_all([&](Address begin, const CacheLine& line) { flushed(begin, line, where); });
}

void CoreChecker::dcci(const void* address, std::size_t bytes, Where where) {
    enter(where);
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
    enter(where);
    point();
    const Address at = number_of(signal.word);
    const Access access = scalar_access(signal.add ? "signal_add" : "signal_set", where);
    refuse_address(at, sizeof *signal.word, access);
    clean_line(at, where);
    touch(at);
    domain_->memory().signal(at, at + sizeof *signal.word, access, now(), !signal.add, reporter(access, true));
    Domain::Message message{core_, signal, access, passed_on(at, now())};
    const int target = domain_->names().pe_of(at);
    if (target >= 0 && target != pe_) {
        ++domain_->traffic().signals;
        domain_->overtaken().signalled(target, access, now());
        note_unflushed(target, access);
    }
    if (target == pe_) domain_->overtaken().announced(Overtaken::any_pe, now());
    if (target < 0 || target == pe_ || domain_->control().deliver_signal())
        domain_->arrive(message);
    else
        domain_->send(std::move(message));
    point();
}

void CoreChecker::note_unflushed(int target, const Access& signal) {
    if (!domain_->names().shared()) return;
    cache_.for_each_dirty([&](Address begin) {
        if (domain_->names().pe_of(begin) != target) return;
        const Access store = domain_->memory().last_store(begin, core_);
        if (store.exists()) domain_->overtaken().unflushed(target, begin, store, signal);
    });
}

void CoreChecker::before_atomic(const void* address, std::size_t bytes, Where where) {
    enter(where);
    point();
    const Address at = number_of(address);
    atomic_access_ = scalar_access("atomic", where);
    refuse_address(at, bytes, atomic_access_);
    clean_line(at, where);
    touch(at);
    const int target = domain_->names().pe_of(at);
    if (target >= 0) domain_->overtaken().announced(target == pe_ ? Overtaken::any_pe : target, now());
    if (!synthetic_address::is(at)) atomic_records_ = domain_->lock_records();
}

// An atomic that finds the word and leaves it as it is reads it only.
void CoreChecker::after_atomic(const AtomicResult& result, Where where) {
    record_atomic(result);
    atomic_records_.reset();
    if (!result.changed) observe(number_of(result.address), result.address, result.before, where);
}

void CoreChecker::record_atomic(const AtomicResult& result) {
    const Address at = number_of(result.address);
    const Address word = at / 8 * 8;
    const bool whole = result.bytes == 8;
    const auto write = [&] {
        domain_->memory().signal(at, at + result.bytes, atomic_access_, now(), false, reporter(atomic_access_, true));
    };
    // What an addition finds does not decide whether it is made: the word itself orders nothing before it.
    if (result.add && result.changed) write();
    domain_->acquire_word(word, now(), whole ? std::optional(result.before) : std::nullopt, whole);
    if (!result.changed) return;
    if (!result.add) write();
    // Of a narrower word nobody knows the rest any more.
    const std::uint64_t before = whole ? result.before : word_in_memory(word);
    domain_->release_word(word, passed_on(word, now()), true, atomic_access_, before);
    domain_->memory().landed(at, at + result.bytes, atomic_access_, domain_->changed());
}

}  // namespace npushmem::npu::check
