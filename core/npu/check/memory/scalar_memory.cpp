// SPDX-License-Identifier: BSD-3-Clause
#include "core/npu/check/memory/scalar_memory.hpp"

#include <fmt/format.h>

#include <cstring>
#include <memory>
#include <utility>

#include "npushmem/npu/copy_shape.hpp"

namespace npushmem::npu::check {

std::uint64_t value_of(const void* bytes, std::size_t count) {
    std::uint64_t value = 0;
    std::memcpy(&value, bytes, count);
    return value;
}

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

namespace {

std::uint64_t* words_of(std::uintptr_t address) { return reinterpret_cast<std::uint64_t*>(address); }

// The aligned word at the address, as the line has it.
std::uint64_t word_of(const CacheLine& line, std::uintptr_t address) {
    return value_of(line.bytes.data() + address % cache_line / 8 * 8, 8);
}

// Whether the memory has other bytes once the line is written back.
bool changes_memory(std::uintptr_t begin, const CacheLine& line) {
    for (std::size_t word = 0; word < cache_line; word += 8)
        if (value_of(line.bytes.data() + word, 8) != word_in_memory(begin + word)) return true;
    return false;
}

bool dirty(const CacheLine& line, std::size_t index) { return (line.dirty >> index & 1) != 0; }

// Whether bytes that the core of the line did not store differ from memory.
bool differs(std::uintptr_t at, std::size_t bytes, const CacheLine& line) {
    for (std::size_t i = 0; i < bytes; ++i) {
        const std::size_t index = at % cache_line + i;
        if (!dirty(line, index) && byte_in_memory(at + i) != line.bytes[index]) return true;
    }
    return false;
}

// Reads them again.
void refresh(std::uintptr_t line_begin, CacheLine& line) {
    for (std::size_t index = 0; index < cache_line; ++index)
        if (!dirty(line, index)) line.bytes[index] = byte_in_memory(line_begin + index);
}

}  // namespace

// Word by word and relaxed: PEs of other processes may write at the same time.
CacheLine& ScalarCache::fill(Address address, Stamp now) {
    CacheLine& line = lines_[address / 64];
    std::uint64_t words[8];
    for (int i = 0; i < 8; ++i) words[i] = __atomic_load_n(words_of(address / 64 * 64) + i, __ATOMIC_RELAXED);
    static_assert(sizeof words == sizeof line.bytes);
    __builtin_memcpy(line.bytes.data(), words, sizeof words);
    line.filled = now;
    return line;
}

void ScalarCache::to_memory(Address begin, const CacheLine& line) {
    std::uint64_t words[8];
    __builtin_memcpy(words, line.bytes.data(), sizeof words);
    for (int i = 0; i < 8; ++i) __atomic_store_n(words_of(begin) + i, words[i], __ATOMIC_RELAXED);
}

bool ExternalEffects::is_stale(Address at, std::size_t bytes, const CacheLine& line) const {
    return line.acquires != acquires_ && differs(at, bytes, line);
}

ExternalEffects::Address ExternalEffects::lost(Address line_begin, const CacheLine& line) {
    for (std::size_t index = 0; index < cache_line; ++index)
        if (!dirty(line, index) && byte_in_memory(line_begin + index) != line.bytes[index]) return line_begin + index;
    return 0;
}

CacheLine& ScalarMemory::fill(Address address, std::size_t own_bytes) {
    const Address begin = address / cache_line * cache_line;
    domain_.steps.read(begin, begin + cache_line);
    domain_.steps.read_records(begin, begin + cache_line);
    CacheLine& line = cache_.fill(address, domain_.version.last());
    external_.filled(line);
    const UnorderedWrite other = domain_.memory.unordered_in_line(address, own_bytes, core_.number, clocks_.now());
    line.neighbour = other.write;
    line.neighbour_at = other.at;
    return line;
}

bool ScalarMemory::load(const Access& access, const void* address, void* value, std::size_t bytes) {
    const Address at = number_of(address);
    domain_.steps.read(at, at + bytes);
    domain_.steps.read_records(at, at + bytes);
    const bool refreshed = untouched_.erase(at / cache_line) != 0;
    CacheLine* line = domain_.names.cached(at) ? cache_.find(at) : nullptr;
    Stamp filled = line != nullptr ? line->filled : 0;
    if (line == nullptr && domain_.names.cached(at)) {
        line = &fill(at, bytes);
        if (!refreshed && read_earlier(at, *line)) filled = line->filled;
    }
    check_load(access, value, bytes, line, filled, address);
    return filled != 0;
}

void ScalarMemory::check_load(const Access& access, void* value, std::size_t bytes, const CacheLine* line, Stamp filled,
                              const void* address) {
    const Address at = number_of(address);
    if (line != nullptr)
        std::memcpy(value, line->bytes.data() + at % cache_line, bytes);
    else
        read_memory(address, value, bytes);
    bool known = false;
    domain_.memory.load(
        at, at + bytes, core_.number, clocks_.now(), filled,
        [&](Hazard hazard, const Access& other, Address part, const char* detail) {
            known = true;
            std::uint64_t there = 0;
            read_memory(address, &there, bytes);
            domain_.findings.report(
                hazard, core_.side(Pipe::scalar, "load", access.where), other, domain_.names.name_of(part),
                fmt::format("{}: sees {:#x}, the memory has {:#x}", detail, value_of(value, bytes), there));
        });
    known = known || check_polled_copy(access, at, filled);
    if (!known && filled != 0 && domain_.names.shared() && external_.is_stale(at, bytes, *line)) {
        domain_.findings.report_external(
            Hazard::stale_read, access, at,
            "loads from a line that was cached before a wait, and that a PE of another process wrote since");
    }
    // Afterwards: the load may be a poll, and its word may pass on a clock.
    if (filled != 0) return;
    domain_.words.acquire(at / 8 * 8, clocks_.now(),
                          line != nullptr ? std::optional(word_of(*line, at)) : std::optional<std::uint64_t>());
}

bool ScalarMemory::check_polled_copy(const Access& access, Address at, Stamp filled) {
    const Access copy = domain_.memory.unordered_copy(at, core_.number, clocks_.now(), filled);
    if (!copy.exists()) return false;
    const auto [found, first] = polled_.try_emplace({copy.agent, copy.sequence}, PolledCopy{access.where, {}});
    PolledCopy& polled = found->second;
    if (first || polled.where.line() == access.where.line()) polled.lines.insert(at / cache_line);
    if (polled.lines.contains(at / cache_line)) return false;
    domain_.findings.report(Hazard::unpublished, core_.side(Pipe::scalar, "load", access.where), copy,
                            domain_.names.name_of(at),
                            "uses one line of a copy because a poll saw another one; the lines arrive in any order");
    return true;
}

bool ScalarMemory::refresh_stale_poll(const Access& access, Address at, std::size_t bytes) {
    CacheLine& line = *cache_.find(at);
    if (!differs(at, bytes, line)) return false;
    std::uint64_t seen = 0;
    std::uint64_t there = 0;
    std::memcpy(&seen, line.bytes.data() + at % cache_line, bytes);
    refresh(at / cache_line * cache_line, line);
    line.filled = domain_.version.last();
    external_.filled(line);
    domain_.words.acquire(at / 8 * 8, clocks_.now());
    std::memcpy(&there, line.bytes.data() + at % cache_line, bytes);
    Access writer = domain_.memory.writer_of(at);
    if (writer.exists() && writer.core() == core_.number) writer = {};  // a PE of another process wrote later
    domain_.findings.report(
        Hazard::stale_read, core_.side(Pipe::scalar, access.name, access.where), writer, domain_.names.name_of(at),
        fmt::format("polls a line that it never reads again from memory: sees {:#x}, the memory has {:#x}", seen,
                    there));
    return true;
}

bool ScalarMemory::read_earlier(Address at, CacheLine& line) {
    const Address word = at / 8 * 8;
    const WordReleases::Earlier earlier = domain_.words.earlier(word, core_.number, clocks_.now());
    if (earlier.release == 0 || std::exchange(earlier_[word], earlier.release) == earlier.release) return false;
    std::memcpy(line.bytes.data() + word % cache_line, &earlier.value, sizeof earlier.value);
    line.filled = 1;  // before everything
    return true;
}

void ScalarMemory::store_uncached(Address at, const void* value, std::size_t bytes, const Access& access) {
    domain_.steps.write(at, at + bytes);
    domain_.memory.copy_write(at, at + bytes, access, clocks_.now(), domain_.findings.reporter(access));
    const auto records = domain_.lock();
    const std::uint64_t before = word_in_memory(at / 8 * 8);
    write_memory(reinterpret_cast<void*>(at), value, bytes);
    domain_.memory.landed(at, at + bytes, access, domain_.version.changed(word_in_memory(at / 8 * 8) != before));
    domain_.words.release(at / 8 * 8, domain_.passed_on(at, clocks_.now(), core_.pe), false, access, before);
}

bool ScalarMemory::store(const Access& access, void* address, const void* value, std::size_t bytes) {
    const Address at = number_of(address);
    untouched_.erase(at / cache_line);
    domain_.steps.write_records(at, at + bytes);
    if (!domain_.names.cached(at)) {
        store_uncached(at, value, bytes, access);
        return false;
    }
    CacheLine* line = cache_.find(at);
    if (line == nullptr) line = &fill(at, bytes);
    const bool changes = std::memcmp(line->bytes.data() + at % cache_line, value, bytes) != 0;
    std::memcpy(line->bytes.data() + at % cache_line, value, bytes);
    line->dirty |= ((std::uint64_t{1} << bytes) - 1) << (at % cache_line);
    domain_.memory.store(at, at + bytes, access, clocks_.now(), domain_.findings.reporter(access));
    return changes;
}

void ScalarMemory::check_write_back(Address begin, const CacheLine& line, const Access& access) {
    bool known = false;
    const FindingLog::Report report = domain_.findings.reporter(access);
    domain_.memory.write_back(begin, line.dirty, access, clocks_.now(), line.filled,
                              domain_.version.changed(changes_memory(begin, line)),
                              [&](Hazard hazard, const Access& other, Address at, const char* detail) {
                                  known = true;
                                  report(hazard, other, at, detail);
                              });
    if (!known && line.neighbour.exists()) {
        known = true;
        report(Hazard::lost_update, line.neighbour, line.neighbour_at,
               "writes back a whole line into which another core writes, unordered");
    }
    const Address lost = !known && domain_.names.shared() ? ExternalEffects::lost(begin, line) : 0;
    if (lost == 0) return;
    domain_.findings.report_external(
        Hazard::lost_update, access, lost,
        "writes back a whole line over bytes that a PE of another process wrote since it was cached");
}

void ScalarMemory::write_back(Address begin, const CacheLine& line, const SourceLocation& where) {
    const Access access = clocks_.scalar_access("write back", where);
    domain_.steps.write(begin, begin + cache_line);
    domain_.steps.write_records(begin, begin + cache_line);
    check_write_back(begin, line, access);
    const auto released = std::make_shared<const Clock>(domain_.passed_on(begin, clocks_.now(), core_.pe));
    for (Address word = 0; word < cache_line; word += 8) {
        if (((line.dirty >> word) & 0xff) != 0)
            domain_.words.release(begin + word, released, false, access, word_in_memory(begin + word),
                                  word_of(line, word));
    }
    if (domain_.names.shared()) domain_.overtaken.line_written_back(begin, access);
}

bool ScalarMemory::drop_line(Address address, const SourceLocation& where) {
    return cache_.drop(address, [&](Address begin, const CacheLine& line) { write_back(begin, line, where); });
}

void ScalarMemory::clean(const SourceLocation& where) {
    cache_.drop_all([&](Address begin, const CacheLine& line) { write_back(begin, line, where); });
}

void ScalarMemory::bypass(Address address, const SourceLocation& where) {
    drop_line(address, where);
    untouched_.erase(address / cache_line);
}

void ScalarMemory::dcci(const void* address, std::size_t bytes, const SourceLocation& where) {
    const Address first = number_of(address) / cache_line;
    const Address last = (number_of(address) + (bytes == 0 ? 0 : bytes - 1)) / cache_line;
    bool useful = false;
    for (Address line = first; line <= last; ++line) {
        const bool held = drop_line(line * cache_line, where);
        useful = untouched_.insert(line).second || held || useful;
    }
    if (useful) return;
    domain_.findings.report(Hazard::redundant, core_.side(Pipe::scalar, "dcci", where), FindingSide{},
                            domain_.names.name_of(number_of(address)), "no line was used since its last dcci");
}

bool ScalarMemory::writes_back(const void* address, std::size_t bytes) const {
    const Address end = number_of(address) + std::max<std::size_t>(bytes, 1);
    for (Address line = number_of(address) / cache_line * cache_line; line < end; line += cache_line)
        if (domain_.memory.last_store(line, core_.number).exists()) return true;
    return false;
}

void ScalarMemory::record_unflushed(int target, const Access& signal) {
    if (!domain_.names.shared()) return;
    cache_.for_each_dirty([&](Address begin) {
        if (domain_.names.pe_of(begin) != target) return;
        const Access store = domain_.memory.last_store(begin, core_.number);
        if (store.exists()) domain_.overtaken.add_unflushed(target, begin, store, signal);
    });
}

void ScalarAtomics::begin(const Access& access, std::uintptr_t address) {
    access_ = access;
    const int target = domain_.names.pe_of(address);
    if (target >= 0) domain_.overtaken.published(target == core_.pe ? OvertakenCopies::any_pe : target, clocks_.now());
    if (!synthetic_address::is(address)) records_ = domain_.lock();
}

void ScalarAtomics::end(const AtomicResult& result) {
    record(result);
    records_.reset();
}

void ScalarAtomics::record(const AtomicResult& result) {
    const std::uintptr_t at = number_of(result.address);
    const std::uintptr_t word = at / 8 * 8;
    const bool whole = result.bytes == 8;
    const auto write = [&] {
        domain_.memory.signal(at, at + result.bytes, access_, clocks_.now(), false, domain_.findings.reporter(access_));
    };
    // The value that an addition finds does not decide whether it happens: the word itself orders nothing before it.
    if (result.add && result.changed) write();
    domain_.words.acquire(word, clocks_.now(), whole ? std::optional(result.before) : std::nullopt, whole);
    if (!result.changed) return;
    if (!result.add) write();
    // The former rest of a narrower word is unknown.
    const std::uint64_t before = whole ? result.before : word_in_memory(word);
    domain_.words.release(word, domain_.passed_on(word, clocks_.now(), core_.pe), true, access_, before);
    domain_.memory.landed(at, at + result.bytes, access_, domain_.version.changed());
}

}  // namespace npushmem::npu::check
