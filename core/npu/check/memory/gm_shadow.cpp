// SPDX-License-Identifier: BSD-3-Clause
#include "core/npu/check/memory/gm_shadow.hpp"

#include <algorithm>

#include "npushmem/npu/copy_shape.hpp"

namespace npushmem::npu::check {
namespace {

constexpr const char* still_queued = "uses data that was announced while the copy that writes it was not complete";
constexpr const char* was_dirty = "uses data that was announced while it was dirty in the writer's cache";

// Whether the write is ordered before an access of `core` with `clock`. A core's own scalar stores need no flag: only
// whether they have left the cache matters.
bool is_ordered(const Access& write, std::uint32_t core, const Clock& clock) {
    return write.complete(clock) || (write.core() == core && write.pipe() == Pipe::scalar);
}

}  // namespace

template <template <class> class Allocator>
bool BasicGmShadow<Allocator>::still_cached(const Bytes& bytes, const Clock& clock) {
    return bytes.dirty || clock[bytes.write.agent] < bytes.flushed;
}

template <template <class> class Allocator>
UnorderedWrite BasicGmShadow<Allocator>::unordered_in_line(Address address, std::size_t bytes, std::uint32_t core,
                                                           const Clock& clock) const {
    const Address line = address / cache_line * cache_line;
    Unordered found;
    const auto check = [&](Address at, Address, const Bytes& part) {
        const Access& write = part.write;
        if (found.write.exists() || !write.exists() || write.core() == core) return;
        if (!write.complete(clock) || still_cached(part, clock)) found = {write, at};
    };
    bytes_.visit(line, address, check);
    bytes_.visit(address + bytes, line + cache_line, check);
    return found;
}

template <template <class> class Allocator>
Access BasicGmShadow<Allocator>::last_store(Address line, std::uint32_t core) const {
    Access found;
    bytes_.visit(line, line + cache_line, [&](Address, Address, const Bytes& bytes) {
        if (bytes.dirty && bytes.write.core() == core) found = bytes.write;
    });
    return found;
}

template <template <class> class Allocator>
void BasicGmShadow<Allocator>::check_neighbours(Address begin, Address end, const Access& access, const Clock& clock,
                                                const Report& report) const {
    const auto check = [&](Address at, Address, const Bytes& bytes) {
        const Access& write = bytes.write;
        if (!write.exists() || write.core() == access.core() || !still_cached(bytes, clock)) return;
        report(Hazard::lost_update, write, at, "writes into a line that another core writes back whole, unordered");
    };
    bytes_.visit(begin / cache_line * cache_line, begin, check);
    bytes_.visit(end, (end + cache_line - 1) / cache_line * cache_line, check);
}

// A copy reads what `write` may still be writing.
template <template <class> class Allocator>
void BasicGmShadow<Allocator>::check_copied(const Access& write, Address at, const Access& access, const Clock& clock,
                                            const Report& report) {
    if (write.core() == access.core())
        report(write.agent == access.agent ? Hazard::same_pipe : Hazard::missing_flag, write, at,
               "copies what an earlier command may still be writing");
    else if (write.issue_known(clock))
        report(Hazard::unpublished, write, at, still_queued);
    else
        report(Hazard::dma_race, write, at, "copies bytes that are being written, unordered");
}

template <template <class> class Allocator>
void BasicGmShadow<Allocator>::copy_read(Address begin, Address end, const Access& access, const Clock& clock,
                                         const Report& report) {
    bytes_.update(begin, end, [&](Address at, Address, Bytes& bytes) {
        const Access& write = bytes.write;
        const bool own = write.core() == access.core();
        const bool polled = access.may_poll && bytes.signal && !own && !write.complete(clock);
        for (const Access& add : bytes.adds)
            if (!add.complete(clock)) check_copied(add, at, access, clock, report);
        if (write.exists() && !write.same(access) && !polled) {
            if (!is_ordered(write, access.core(), clock)) {
                check_copied(write, at, access, clock, report);
            } else if (own ? bytes.dirty : still_cached(bytes, clock)) {
                report(
                    own ? Hazard::missing_flag : Hazard::unpublished, write, at,
                    own ? "copies bytes whose scalar store is still in the cache, which copies do not see" : was_dirty);
            } else if (bytes.landed == 0 && write.pipe() == Pipe::scalar) {
                report(Hazard::unpublished, write, at, "uses a remote write that no fence ordered before the signal");
            }
        }
        for (Access& read : bytes.reads) {
            if (read.agent != access.agent) continue;
            read = access;
            return;
        }
        bytes.reads.push_back(access);
    });
}

template <template <class> class Allocator>
void BasicGmShadow<Allocator>::check_overwrite(const Access& write, Address at, const Access& access,
                                               const Clock& clock, const Report& report) {
    if (!write.exists() || is_ordered(write, access.core(), clock)) return;
    if (write.core() == access.core())
        report(write.agent == access.agent ? Hazard::same_pipe : Hazard::missing_flag, write, at,
               "overwrites what an earlier command may still be writing");
    else
        report(Hazard::write_race, write, at, "writes bytes that another core writes, unordered");
}

template <template <class> class Allocator>
Access BasicGmShadow<Allocator>::plain_write(const Bytes& bytes) {
    return bytes.signal || bytes.write.add ? bytes.plain : bytes.write;
}

template <template <class> class Allocator>
void BasicGmShadow<Allocator>::check_write(const Bytes& bytes, Address at, const Access& access, const Clock& clock,
                                           bool signal, const Report& report) const {
    const bool may_meet = (signal && bytes.signal) || (access.add && bytes.write.add);
    check_overwrite(may_meet ? bytes.plain : bytes.write, at, access, clock, report);
    if (!access.add)
        for (const Access& add : bytes.adds) check_overwrite(add, at, access, clock, report);
    for (const Access& read : bytes.reads) {
        if (read.has_read(clock) || read.same(access)) continue;
        if (signal && read.may_poll && read.core() != access.core()) continue;
        if (read.core() != access.core())
            report(Hazard::dma_race, read, at, "writes bytes that a copy is reading, unordered");
        else if (read.agent == access.agent)
            report(Hazard::same_pipe, read, at,
                   "overwrites what the command before it in the same pipe may still read");
        else
            report(read.pipe() == Pipe::copy_out ? Hazard::staging_reuse : Hazard::missing_flag, read, at,
                   "overwrites what a copy may still be reading");
    }
}

template <template <class> class Allocator>
void BasicGmShadow<Allocator>::copy_write(Address begin, Address end, const Access& access, const Clock& clock,
                                          const Report& report) {
    bytes_.visit(begin, end, [&](Address at, Address, const Bytes& bytes) {
        check_write(bytes, at, access, clock, false, report);
    });
    check_neighbours(begin, end, access, clock, report);
    if (access.add) return assign_add(begin, end, access, clock);
    bytes_.assign(begin, end, Bytes{access, 0, false, 0, false, {}, {}});
}

template <template <class> class Allocator>
void BasicGmShadow<Allocator>::assign_add(Address begin, Address end, const Access& access, const Clock& clock) {
    bytes_.update(begin, end, [&](Address, Address, Bytes& bytes) {
        Bytes added{access, 0, false, 0, false, {}, std::move(bytes.adds), plain_write(bytes)};
        if (bytes.write.add) added.adds.push_back(bytes.write);
        std::erase_if(added.adds, [&](const Access& add) { return add.complete(clock); });
        bytes = std::move(added);
    });
}

template <template <class> class Allocator>
void BasicGmShadow<Allocator>::landed(Address begin, Address end, const Access& access, Stamp stamp) {
    bytes_.update(begin, end, [&](Address, Address, Bytes& bytes) {
        const bool added = std::ranges::any_of(bytes.adds, [&](const Access& add) { return add.same(access); });
        if (bytes.write.same(access) || added) bytes.landed = stamp;
    });
}

template <template <class> class Allocator>
void BasicGmShadow<Allocator>::store(Address begin, Address end, const Access& access, const Clock& clock,
                                     const Report& report) {
    bytes_.visit(begin, end, [&](Address at, Address, const Bytes& bytes) {
        check_write(bytes, at, access, clock, false, report);
    });
    bytes_.assign(begin, end, Bytes{access, 0, true, 0, false, {}, {}});
}

// A load of bytes that a copy may still be writing. Where nothing orders the two, it is a poll, which may see either
// value.
template <template <class> class Allocator>
void BasicGmShadow<Allocator>::check_loaded(const Access& write, Address at, std::uint32_t core, const Clock& clock,
                                            const Report& report) {
    if (write.complete(clock)) return;
    if (write.core() == core)
        report(Hazard::missing_flag, write, at, "loads what an earlier copy may still be writing");
    else if (write.issue_known(clock))
        report(Hazard::unpublished, write, at, still_queued);
}

template <template <class> class Allocator>
void BasicGmShadow<Allocator>::load(Address begin, Address end, std::uint32_t core, const Clock& clock, Stamp filled,
                                    const Report& report) const {
    bytes_.visit(begin, end, [&](Address at, Address, const Bytes& bytes) {
        const Access& write = bytes.write;
        const bool own = write.core() == core;
        for (const Access& add : bytes.adds) check_loaded(add, at, core, clock, report);
        if (!write.exists() || (own && write.pipe() == Pipe::scalar)) return;
        if (!write.complete(clock)) return check_loaded(write, at, core, clock, report);
        if (still_cached(bytes, clock))
            report(Hazard::unpublished, write, at, was_dirty);
        else if (bytes.landed == 0)
            report(Hazard::unpublished, write, at, "uses a remote write that no fence ordered before the signal");
        else if (filled != 0 && bytes.landed > filled)
            report(Hazard::stale_read, write, at, "loads from a line that was cached before this write");
    });
}

template <template <class> class Allocator>
void BasicGmShadow<Allocator>::write_back(Address begin, std::uint64_t dirty, const Access& flush, Stamp filled,
                                          Stamp stamp, const Report& report) {
    const std::uint32_t scalar = flush.agent;
    bytes_.visit(begin, begin + cache_line, [&](Address from, Address, const Bytes& bytes) {
        const bool changed_here = ((dirty >> (from - begin)) & 1) != 0;
        const bool mine = bytes.write.agent == scalar;
        if (mine || !bytes.write.exists() || bytes.landed <= filled || bytes.landed == 0) return;
        report(Hazard::lost_update, bytes.write, from,
               changed_here ? "writes back an old store over a later write"
                            : "writes back a whole line over bytes that changed since it was cached");
    });
    bytes_.update(begin, begin + cache_line, [&](Address, Address, Bytes& bytes) {
        if (bytes.write.agent != scalar || !bytes.dirty) return;
        bytes.dirty = false;
        bytes.flushed = flush.sequence;
        bytes.landed = stamp;
    });
}

// Two writers that store into one line lose one of the two words when they do it at once.
template <template <class> class Allocator>
void BasicGmShadow<Allocator>::check_line_owner(Address word, const Access& access, const Clock& clock,
                                                const Report& report) {
    LineOwner& owner = signal_lines_[word / cache_line];
    if (owner.access.exists() && owner.word != word && owner.access.core() != access.core() &&
        !owner.access.complete(clock)) {
        report(Hazard::lost_update, owner.access, word, "signals into a line into which another core signals, too");
    }
    owner = {word, access};
}

template <template <class> class Allocator>
void BasicGmShadow<Allocator>::signal(Address begin, Address end, const Access& access, const Clock& clock,
                                      bool exclusive, const Report& report) {
    if (exclusive) check_line_owner(begin, access, clock, report);
    bytes_.visit(begin, end,
                 [&](Address at, Address, const Bytes& bytes) { check_write(bytes, at, access, clock, true, report); });
    check_neighbours(begin, end, access, clock, report);
    bytes_.update(begin, end, [&](Address, Address, Bytes& bytes) {
        bytes = Bytes{access, 0, false, 0, true, {}, {}, plain_write(bytes)};
    });
}

template <template <class> class Allocator>
bool BasicGmShadow<Allocator>::written_since(Address begin, Address end, Stamp stamp) const {
    bool written = false;
    bytes_.visit(begin, end, [&](Address, Address, const Bytes& bytes) {
        written = written || (bytes.write.exists() && (bytes.landed == 0 || bytes.landed > stamp));
    });
    return written;
}

template <template <class> class Allocator>
Access BasicGmShadow<Allocator>::unordered_copy(Address address, std::uint32_t core, const Clock& clock,
                                                Stamp filled) const {
    Access found;
    bytes_.visit(address, address + 1, [&](Address, Address, const Bytes& bytes) {
        const Access& write = bytes.write;
        const bool seen = bytes.landed != 0 && (filled == 0 || bytes.landed <= filled);
        const bool copy = write.exists() && write.core() != core && write.pipe() != Pipe::scalar;
        if (seen && copy && !write.complete(clock) && !write.issue_known(clock)) found = write;
    });
    return found;
}

template <template <class> class Allocator>
Access BasicGmShadow<Allocator>::writer_of(Address address) const {
    Access writer;
    bytes_.visit(address, address + 1, [&](Address, Address, const Bytes& bytes) { writer = bytes.write; });
    return writer;
}

template <template <class> class Allocator>
void BasicGmShadow<Allocator>::clear() {
    bytes_.clear();
    signal_lines_.clear();
}

template class BasicGmShadow<std::allocator>;
template class BasicGmShadow<SharedAllocator>;

}  // namespace npushmem::npu::check
