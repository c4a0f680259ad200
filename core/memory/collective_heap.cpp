// SPDX-License-Identifier: BSD-3-Clause
#include "core/memory/collective_heap.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>
#include <vector>

#include "core/base/hash.hpp"

namespace npushmem {

namespace {

std::string_view name_of(HeapCall call) {
    constexpr std::string_view names[] = {"no call",
                                          "malloc",
                                          "calloc",
                                          "align",
                                          "realloc",
                                          "free",
                                          "buffer_register_symmetric",
                                          "buffer_unregister_symmetric"};
    return names[static_cast<std::size_t>(call)];
}

std::string object_of(const HeapRecord& record) {
    if (record.address == 0) return fmt::format("the object at offset {:#x}", record.offset);
    return fmt::format("{:#x}, which is not the beginning of a symmetric object there", record.address);
}

std::string text_of(const HeapRecord& record) {
    const auto call = static_cast<HeapCall>(record.call);
    if (call == HeapCall::free) return fmt::format("free of {}", object_of(record));
    std::string text = fmt::format("{} of {} bytes", name_of(call), record.bytes);
    if (call == HeapCall::unregister_buffer) text += fmt::format(" for {}", object_of(record));
    if (call == HeapCall::align || record.alignment > Allocator::default_alignment)
        text += fmt::format(" aligned to {}", record.alignment);
    if (call == HeapCall::realloc) text += fmt::format(" for {}", object_of(record));
    return text;
}

// Describes the given object of a call.
HeapRecord record_for(HeapCall call, std::uint64_t bytes, const void* object, const Result<std::uint64_t>& offset) {
    HeapRecord record{};
    record.call = static_cast<std::uint32_t>(call);
    record.bytes = bytes;
    record.offset = offset.ok() ? offset.value() : 0;
    record.address = offset.ok() ? 0 : reinterpret_cast<std::uintptr_t>(object);
    return record;
}

// Of all that the PEs compare. Mixed, because the differences between hashes of similar records could cancel in a sum.
std::uint64_t digest_of(const HeapRecord& record) {
    return mixed(fnv1a<std::uint64_t>(
        std::array<std::uint64_t, 7>{record.sequence, record.call, static_cast<std::uint32_t>(record.code),
                                     record.bytes, record.alignment, record.offset, record.result}));
}

bool same_call(const HeapRecord& a, const HeapRecord& b) {
    return a.call == b.call && a.bytes == b.bytes && a.alignment == b.alignment && a.offset == b.offset;
}

}  // namespace

Status CollectiveHeap::compare(const HeapRecord& mine) {
    Status failure;
    const PeRange pes = peers_.pes();
    for (int i = 0; i < pes.count; ++i) {
        const int pe = pes.at(i);
        auto fetched = peers_.record_of(pe, mine.sequence % 2);
        if (!fetched.ok()) return fetched.status();
        const HeapRecord& theirs = fetched.value();
        if (theirs.sequence != mine.sequence)
            return {
                Code::mismatch,
                fmt::format("PE {} calls {} where PE {} makes no symmetric heap call; these calls must be made by all "
                            "PEs, in the same order with respect to barriers",
                            peers_.my_pe(), text_of(mine), pe)};
        if (!same_call(theirs, mine))
            return {Code::mismatch, fmt::format("PE {} calls {}, PE {} calls {}; all PEs must give the same arguments",
                                                peers_.my_pe(), text_of(mine), pe, text_of(theirs))};
        if (theirs.code != NPUSHMEM_OK && failure.ok())
            failure = {static_cast<Code>(theirs.code),
                       fmt::format("{} failed on PE {} ({}), so it is undone on all", text_of(mine), pe,
                                   npushmem::name_of(static_cast<Code>(theirs.code)))};
        if (theirs.code == NPUSHMEM_OK && mine.code == NPUSHMEM_OK && theirs.result != mine.result)
            return {Code::mismatch,
                    fmt::format(
                        "{} gave offset {:#x} on PE {} and {:#x} on PE {}: the heaps differ, because earlier calls did",
                        text_of(mine), mine.result, peers_.my_pe(), theirs.result, pe)};
    }
    return failure;
}

std::optional<std::uint64_t> CollectiveHeap::largest_size(const HeapRecord& mine) {
    std::uint64_t largest = mine.bytes;
    bool differ = false;
    const PeRange pes = peers_.pes();
    for (int i = 0; i < pes.count; ++i) {
        const auto fetched = peers_.record_of(pes.at(i), mine.sequence % 2);
        if (!fetched.ok()) return std::nullopt;
        HeapRecord theirs = fetched.value();
        const std::uint64_t bytes = std::exchange(theirs.bytes, mine.bytes);
        if (theirs.sequence != mine.sequence || !same_call(theirs, mine)) return std::nullopt;
        differ = differ || bytes != mine.bytes;
        largest = std::max(largest, bytes);
    }
    return differ ? std::optional(largest) : std::nullopt;
}

Status CollectiveHeap::agree(HeapRecord& record, const Status& own) {
    record.sequence = peers_.next_barrier();
    record.code = static_cast<std::int32_t>(own.code());
    const unsigned parity = record.sequence % 2;
    heap_.control().heap[parity] = record;
    CallSums* const sums = peers_.sums();
    const std::uint64_t digest = sums != nullptr ? digest_of(record) : 0;
    if (sums != nullptr) sums->add(parity, digest);
    if (Status done = peers_.heap_barrier(); !done.ok()) return done;
    if (sums != nullptr && sums->show_equal(parity, digest)) return own;
    Status compared = compare(record);
    // The PE that failed knows the cause better than its code states. A difference from the other PEs explains most
    // failures, but not a pointer that names no object.
    const bool explained = compared.code() == Code::mismatch && record.address == 0;
    return own.ok() || explained ? compared : own;
}

Result<std::uint64_t> CollectiveHeap::prepare(HeapCall call, std::uint64_t bytes, std::uint64_t alignment) {
    auto offset = heap_.allocate(bytes, alignment);
    // Before the barrier: another PE may put into the object as soon as it leaves the call.
    if (offset.ok() && call == HeapCall::calloc) std::memset(heap_.at(offset.value()), 0, bytes);
    return offset;
}

std::optional<std::uint64_t> CollectiveHeap::highest_result(const HeapRecord& mine) {
    std::uint64_t highest = mine.result;
    bool differ = false;
    const PeRange pes = peers_.pes();
    for (int i = 0; i < pes.count; ++i) {
        const auto fetched = peers_.record_of(pes.at(i), mine.sequence % 2);
        if (!fetched.ok()) return std::nullopt;
        const HeapRecord& theirs = fetched.value();
        if (theirs.sequence != mine.sequence || !same_call(theirs, mine) || theirs.code != NPUSHMEM_OK)
            return std::nullopt;
        differ = differ || theirs.result != mine.result;
        highest = std::max(highest, theirs.result);
    }
    return differ ? std::optional(highest) : std::nullopt;
}

// Where the heaps differ, a place that is free on this PE may be in use on another. All then look for a place from the
// highest one on; the last free range of the heap is free on all.
Result<std::uint64_t> CollectiveHeap::place(HeapRecord& record,
                                            const std::function<Result<std::uint64_t>()>& allocate) {
    auto offset = allocate();
    std::vector<std::uint64_t> lower;  // taken meanwhile
    Status agreed;
    for (;;) {
        record.result = offset.ok() ? offset.value() : 0;
        agreed = agree(record, offset.status());
        const bool differs = agreed.code() == Code::mismatch && peers_.heaps_may_differ();
        const auto highest = differs ? highest_result(record) : std::nullopt;
        if (!highest) break;
        while (offset.ok() && offset.value() < *highest) {
            // Takes what is below the place, so that the object can begin there.
            (void)heap_.free(offset.value());
            const auto taken = heap_.allocate(std::min(record.bytes, *highest - offset.value()), Allocator::granule);
            if (taken.ok()) lower.push_back(taken.value());
            offset = taken.ok() ? allocate() : taken;
        }
    }
    for (const std::uint64_t below : lower) (void)heap_.free(below);
    if (agreed.ok()) return offset;
    if (offset.ok()) (void)heap_.free(offset.value());
    return agreed;
}

Result<void*> CollectiveHeap::allocate(HeapCall call, std::uint64_t bytes, std::uint64_t alignment, Sizes sizes) {
    if (bytes == 0) return nullptr;
    HeapRecord record{};
    record.call = static_cast<std::uint32_t>(call);
    record.bytes = bytes;
    record.alignment = alignment;
    const auto placed = place(record, [&] { return prepare(call, bytes, alignment); });
    if (placed.ok()) return heap_.at(placed.value());
    if (placed.status().code() != Code::mismatch || sizes == Sizes::alike) return placed.status();
    const auto largest = largest_size(record);
    return largest ? allocate(call, *largest, alignment) : Result<void*>(placed.status());
}

void CollectiveHeap::set_buffer(std::uint64_t offset, bool is_buffer) {
    if (is_buffer)
        buffers_.insert(offset);
    else
        buffers_.erase(offset);
}

Result<std::uint64_t> CollectiveHeap::known_object(const void* object) const {
    auto offset = heap_.offset_of(object);
    if (!offset.ok()) return offset;
    if (offset.value() == 0) return Status{Code::argument, fmt::format("{} is the runtime's own memory", object)};
    if (buffers_.contains(offset.value()))
        return Status{Code::argument, fmt::format("{} is a registered buffer; pass it to "
                                                  "npushmemx_buffer_unregister_symmetric",
                                                  object)};
    const auto size = heap_.size_of(offset.value());
    if (size.ok()) return offset;
    return Status{Code::argument, fmt::format("{} is not the beginning of an object from npushmem_malloc: {}", object,
                                              size.status().message())};
}

Result<std::uint64_t> CollectiveHeap::resize_or_move(std::uint64_t offset, std::uint64_t bytes) {
    const auto stayed = heap_.resize(offset, bytes);
    if (!stayed.ok()) return stayed.status();
    if (stayed.value()) return offset;
    auto fresh = heap_.allocate(bytes, Allocator::default_alignment);
    // Only a growing object can move.
    if (fresh.ok()) std::memcpy(heap_.at(fresh.value()), heap_.at(offset), heap_.size_of(offset).value());
    return fresh;
}

// Takes two barriers. Before the first, another PE may still put into the object, so it cannot be copied or shrunk yet.
// The second reports whether all PEs had room.
Result<void*> CollectiveHeap::reallocate(void* object, std::uint64_t bytes) {
    const auto old = known_object(object);
    HeapRecord record = record_for(HeapCall::realloc, bytes, object, old);
    if (Status same = agree(record, old.status()); !same.ok()) return same;

    const std::uint64_t old_bytes = heap_.size_of(old.value()).value();
    const auto now = resize_or_move(old.value(), bytes);
    record.result = now.ok() ? now.value() : 0;
    Status agreed = agree(record, now.status());
    const bool moved = now.ok() && now.value() != old.value();
    if (moved) (void)heap_.free(agreed.ok() ? old.value() : now.value());
    if (now.ok() && !moved && !agreed.ok()) (void)heap_.resize(old.value(), old_bytes);
    return agreed.ok() ? Result<void*>(heap_.at(now.value())) : Result<void*>(agreed);
}

Status CollectiveHeap::free(void* object) {
    const auto offset = known_object(object);
    HeapRecord record = record_for(HeapCall::free, 0, object, offset);
    Status agreed = agree(record, offset.status());
    return agreed.ok() ? heap_.free(offset.value()) : agreed;
}

void CollectiveHeap::free_here(void* object) {
    if (const auto offset = known_object(object); offset.ok()) (void)heap_.free(offset.value());
}

}  // namespace npushmem
