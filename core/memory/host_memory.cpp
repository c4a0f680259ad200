// SPDX-License-Identifier: BSD-3-Clause
#include "core/memory/host_memory.hpp"

#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>

#include "core/base/host_facts.hpp"
#include "core/base/parse.hpp"

namespace npushmem {

namespace {

std::uint64_t stride_of(std::uint64_t slice_bytes) {
    return rounded_up(slice_bytes, HostMemory::slice_alignment(slice_bytes));
}

// Two segments of this size fit into the 47-bit address space of every supported machine.
constexpr std::uint64_t address_space = 1ULL << 46;

constexpr std::uint64_t no_departure = std::numeric_limits<std::uint64_t>::max();

Result<std::uint64_t> segment_bytes(std::uint64_t slice_bytes, int local_pes) {
    const auto pes = static_cast<std::uint64_t>(local_pes);
    if (slice_bytes > address_space || stride_of(slice_bytes) > address_space / pes)
        return Status{Code::memory,
                      fmt::format("a symmetric heap of {} on each of {} PEs exceeds the address space of {}; lower "
                                  "NPUSHMEM_SYMMETRIC_SIZE",
                                  format_size(slice_bytes), local_pes, format_size(address_space))};
    return HostMemory::header_bytes + stride_of(slice_bytes) * pes;
}

}  // namespace

std::uint64_t HostMemory::slice_alignment(std::uint64_t slice_bytes) {
    return std::bit_ceil(std::clamp(slice_bytes, huge_page_bytes, SharedSegment::alignment));
}

std::uint64_t HostMemoryLayout::control_offset(int local_pe) const {
    return HostMemory::header_bytes + static_cast<std::uint64_t>(local_pe) * stride;
}

Result<std::optional<HostMemoryLayout>> read_host_memory_layout(int descriptor) {
    HostMemory::Header header{};
    struct stat facts {};
    if (fstat(descriptor, &facts) != 0 || pread(descriptor, &header, sizeof header, 0) != sizeof header ||
        header.magic != control_magic)
        return std::optional<HostMemoryLayout>{};
    if (header.version != control_version)
        return Status{Code::protocol, fmt::format("its layout has version {}; this program reads version {}",
                                                  header.version, control_version)};
    constexpr std::uint32_t max_pes = 1U << 20;
    const auto local_pes = static_cast<int>(std::min(header.local_pes, max_pes));
    const auto bytes = segment_bytes(header.slice_bytes, std::max(local_pes, 1));
    if (header.local_pes == 0 || header.local_pes > max_pes || header.slice_bytes < control_bytes || !bytes.ok() ||
        header.stride != stride_of(header.slice_bytes) || static_cast<std::uint64_t>(facts.st_size) < bytes.value())
        return Status{Code::protocol, fmt::format("its header describes {} PEs of {}, but it has {}", header.local_pes,
                                                  format_size(header.slice_bytes),
                                                  format_size(static_cast<std::uint64_t>(facts.st_size)))};
    return std::optional(HostMemoryLayout{local_pes, header.stride});
}

Result<HostMemory> HostMemory::create(std::uint64_t slice_bytes, int local_pes, const std::string& folder) {
    auto bytes = segment_bytes(slice_bytes, local_pes);
    if (!bytes.ok()) return bytes.status();
    auto segment = SharedSegment::create(bytes.value(), folder);
    if (!segment.ok()) return segment.status();
    HostMemory memory(std::move(segment).value(), stride_of(slice_bytes));
    if (Status committed = memory.segment_.commit(0, sizeof(Header)); !committed.ok()) return committed;
    // Plain stores: the bootstrap, which carries the handle, orders them.
    Header& header = memory.header();
    header.version = control_version;
    header.local_pes = static_cast<std::uint32_t>(local_pes);
    header.slice_bytes = slice_bytes;
    header.stride = memory.stride_;
    header.first_departure = no_departure;
    header.published_end = sizeof(Header);  // the other members are zero
    // Last, for read_host_memory_layout. Release: its reader sees the sizes.
    std::atomic_ref(header.magic).store(control_magic, std::memory_order_release);
    memory.segment_.share_allowance(memory.header().commit_allowance);
    // Now, before the PEs commit all at once, one check allows their first commits.
    if (Status allowed = memory.segment_.commit(0, sizeof(Header)); !allowed.ok()) return allowed;
    return memory;
}

Result<HostMemory> HostMemory::join(Result<SharedSegment> attached, const SegmentHandle& handle,
                                    std::uint64_t slice_bytes, int local_pes) {
    if (!attached.ok()) return attached.status();
    HostMemory memory(std::move(attached).value(), stride_of(slice_bytes));
    const Header& header = memory.header();
    if (header.magic != control_magic || header.version != control_version ||
        header.local_pes != static_cast<std::uint32_t>(local_pes) || header.slice_bytes != slice_bytes)
        return Status{
            Code::protocol,
            fmt::format(
                "the shared memory of process {} has layout version {} for {} PEs of {}; expected version {} for "
                "{} PEs of {}",
                handle.process, header.version, header.local_pes, format_size(header.slice_bytes), control_version,
                local_pes, format_size(slice_bytes))};
    memory.segment_.share_allowance(memory.header().commit_allowance);
    return memory;
}

Status HostMemory::publish(Publication what, std::span<const std::byte> data) {
    if (Status room = reserve(what, data.size()); !room.ok()) return room;
    std::ranges::copy(data, reserved(what).begin());
    return {};
}

Status HostMemory::reserve(Publication what, std::uint64_t bytes) {
    const std::uint64_t offset = rounded_up(header().published_end, 64);
    if (bytes > buffers_offset - offset)
        return {Code::range, fmt::format("data of {} for the PEs of this host exceeds {}", format_size(bytes),
                                         format_size(buffers_offset - offset))};
    if (Status committed = segment_.commit(offset, bytes); !committed.ok()) return committed;
    header().published[static_cast<std::size_t>(what)] = {offset, bytes};
    header().published_end = offset + bytes;
    return {};
}

std::span<std::byte> HostMemory::reserved(Publication what) const {
    const Range& range = header().published[static_cast<std::size_t>(what)];
    return {segment_.base() + range.offset, range.bytes};
}

std::span<const std::byte> HostMemory::published(Publication what) const { return reserved(what); }

void HostMemory::discard(Publication what) {
    Range& range = header().published[static_cast<std::size_t>(what)];
    if (range.bytes != 0) segment_.decommit(range.offset, range.bytes);
    range = {};
}

void HostMemory::record_departure(std::uint64_t last_barrier) {
    const auto first = first_departure();
    std::uint64_t known = first.load(std::memory_order_relaxed);
    while (last_barrier < known && !first.compare_exchange_weak(known, last_barrier, std::memory_order_release)) {
    }
}

Status HostMemory::publish_buffer(int local_pe, const BufferFile& file) {
    const std::uint64_t at = buffer_offset(local_pe);
    if (at > header_bytes - sizeof file)
        return {Code::range, fmt::format("PE {} of this host cannot register buffers: only the first {} can", local_pe,
                                         (header_bytes - buffers_offset) / sizeof file)};
    if (Status committed = segment_.commit(at, sizeof file); !committed.ok()) return committed;
    std::memcpy(segment_.base() + at, &file, sizeof file);
    return {};
}

BufferFile HostMemory::published_buffer(int local_pe) const {
    BufferFile file;
    std::memcpy(&file, segment_.base() + buffer_offset(local_pe), sizeof file);
    return file;
}

Status HostMemory::commit(int local_pe, std::uint64_t offset, std::uint64_t bytes) {
    return segment_.commit(file_offset(local_pe) + offset, bytes);
}

void HostMemory::decommit(int local_pe, std::uint64_t offset, std::uint64_t bytes) {
    segment_.decommit(file_offset(local_pe) + offset, bytes);
}

npushmem_memory HostMemory::describe_slice(int local_pe, std::uint64_t slice_bytes) const {
    npushmem_memory memory{};
    memory.struct_size = sizeof memory;
    memory.fd = segment_.descriptor();
    memory.fd_offset = file_offset(local_pe);
    memory.base = slice(local_pe);
    memory.bytes = slice_bytes;
    memory.mapping = segment_.base();
    memory.mapping_offset = 0;
    memory.mapping_bytes = segment_.bytes();
    return memory;
}

}  // namespace npushmem
