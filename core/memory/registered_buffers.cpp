// SPDX-License-Identifier: BSD-3-Clause
#include "core/memory/registered_buffers.hpp"

#include <fmt/core.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "core/base/host_facts.hpp"
#include "core/base/parse.hpp"

namespace npushmem {

namespace {

// Files of huge pages need the alignment of huge pages.
std::uint64_t alignment_of(std::uint64_t bytes) {
    return bytes % huge_page_bytes == 0 ? huge_page_bytes : page_bytes();
}

}  // namespace

RegisteredBuffers::~RegisteredBuffers() {
    for (const auto& [offset, buffer] : buffers_) (void)move_back(offset, buffer);
}

Status RegisteredBuffers::check_arguments(const void* address, std::uint64_t bytes, int flags) const {
    const auto begin = reinterpret_cast<std::uintptr_t>(address);
    const std::uint64_t page = page_bytes();
    if (flags != 0) return {Code::argument, fmt::format("flags are {:#x}; no flags are defined, pass 0", flags)};
    if (address == nullptr || bytes == 0)
        return {Code::argument, fmt::format("a buffer of {} bytes at {} has no memory", bytes, address)};
    if (begin % page != 0 || bytes % page != 0)
        return {Code::argument,
                fmt::format("a buffer of {} bytes at {} does not consist of whole pages of {} bytes; allocate it by "
                            "mmap or aligned_alloc, and round its size up",
                            bytes, address, page)};
    if (bytes > ~begin) return {Code::range, fmt::format("{} bytes at {} exceed the address space", bytes, address)};
    for (const auto& [offset, other] : buffers_) {
        const auto there = reinterpret_cast<std::uintptr_t>(other.address);
        if (begin < there + other.bytes && there < begin + bytes)
            return {Code::argument,
                    fmt::format("a buffer of {} bytes at {} overlaps the one of {} bytes at {} that is registered "
                                "already, with the symmetric address {}",
                                bytes, address, other.bytes, static_cast<void*>(other.address),
                                static_cast<void*>(heap_.at(offset)))};
    }
    return {};
}

Result<RegisteredBuffers::Buffer> RegisteredBuffers::examine(void* address, std::uint64_t bytes, int flags) const {
    if (Status fine = check_arguments(address, bytes, flags); !fine.ok()) return fine;
    const auto found = uniform_mapping(address, bytes);
    if (!found.ok()) return found.status();
    const AddressMapping& memory = found.value();
    const auto here = reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0));
    if (memory.path == "[stack]" || (here >= memory.begin && here < memory.end))
        return Status{Code::argument, fmt::format("a buffer of {} bytes at {} is on a stack", bytes, address)};
    if (is_heap(memory)) return Status{Code::argument, fmt::format("{} is symmetric memory already", address)};
    Buffer buffer{static_cast<std::byte*>(address), bytes, {}, memory.offset, {}, AddressClaim::take(address, bytes)};
    if (!buffer.claim)
        return Status{Code::argument,
                      fmt::format("{} bytes at {} are symmetric already, in another world of this process; end that "
                                  "by npushmemx_buffer_unregister_symmetric or npushmemx_world_destroy first",
                                  bytes, address)};
    if (!memory.shared) return buffer;
    if (heap_.retains_pages())
        return Status{Code::unsupported,
                      fmt::format("{} is memory of the file '{}', which cannot be symmetric with a transport whose NIC "
                                  "pins the heap's pages (verbs); register private memory",
                                  address, memory.path)};
    if (!opens_files_)
        return Status{Code::unsupported,
                      fmt::format("{} is memory of the file '{}', which PEs of this host in other containers (PID "
                                  "namespaces) cannot open; register private memory",
                                  address, memory.path)};
    auto file = open_mapped_file(memory);
    if (!file.ok()) return file.status();
    struct stat facts {};
    if (fstat(file.value().get(), &facts) != 0 || static_cast<std::uint64_t>(facts.st_size) < memory.offset + bytes)
        return Status{Code::range,
                      fmt::format("{} bytes at {} reach beyond the end of their file '{}', which has {} bytes; the "
                                  "buffer ends at byte {} of it",
                                  bytes, address, memory.path, facts.st_size, memory.offset + bytes)};
    buffer.file = std::move(file).value();
    return buffer;
}

bool RegisteredBuffers::is_heap(const AddressMapping& mapping) const {
    const SegmentHandle segment = memory_.handle();
    return mapping.shared && mapping.inode == segment.inode && mapping.device == segment.device;
}

Status RegisteredBuffers::publish(std::uint64_t call, const Buffer& mine) {
    BufferFile published;
    published.call = call;
    if (mine.file.valid()) {
        struct stat facts {};
        fstat(mine.file.get(), &facts);
        published.file = {getpid(), mine.file.get(), facts.st_dev, facts.st_ino, mine.file_offset + mine.bytes};
        published.offset = mine.file_offset;
    }
    return memory_.publish_buffer(local_pe_, published);
}

Result<void*> RegisteredBuffers::add(void* address, std::uint64_t bytes, int flags) {
    auto buffer = examine(address, bytes, flags);
    const std::uint64_t call = collective_.next_call();
    const Status ready = buffer.ok() ? publish(call, buffer.value()) : buffer.status();
    HeapRecord record{};
    record.call = static_cast<std::uint32_t>(HeapCall::register_buffer);
    record.bytes = bytes;
    const auto offset = collective_.place(record, [&]() -> Result<std::uint64_t> {
        if (!ready.ok()) return ready;
        return heap_.allocate(bytes, alignment_of(bytes), buffer.value().file.valid() ? 0 : bytes);
    });
    if (!offset.ok()) return offset.status();
    const Status agreed = collective_.agree(record, map(call, offset.value(), buffer.value()));
    if (!agreed.ok()) {
        if (unmap(offset.value(), buffer.value()).ok()) (void)heap_.free(offset.value());
        return agreed;
    }
    collective_.set_buffer(offset.value(), true);
    const std::lock_guard guard(lock_);
    buffers_.emplace(offset.value(), std::move(buffer).value());
    return static_cast<void*>(heap_.at(offset.value()));
}

// A PE's own file is mapped like those of the others, so that its slice has the same pages in all processes.
Status RegisteredBuffers::map_file_of(int local_pe, std::uint64_t call, std::uint64_t offset, Buffer& buffer) {
    const BufferFile part = memory_.published_buffer(local_pe);
    if (part.file.descriptor < 0 || part.call != call) return {};
    const auto file = open_shared_file(part.file);
    if (!file.ok()) return file.status();
    Status mapped = map_over(memory_.slice(local_pe) + offset, buffer.bytes, file.value().get(), part.offset);
    if (mapped.ok()) buffer.covered.push_back(local_pe);
    return mapped;
}

Status RegisteredBuffers::map(std::uint64_t call, std::uint64_t offset, Buffer& buffer) {
    for (int pe = 0; pe < local_pes_; ++pe)
        if (Status mapped = map_file_of(pe, call, offset, buffer); !mapped.ok()) return mapped;
    return buffer.file.valid() ? Status{} : move_to_heap(offset, buffer);
}

Status RegisteredBuffers::move_to_heap(std::uint64_t offset, const Buffer& buffer) {
    std::memcpy(heap_.at(offset), buffer.address, buffer.bytes);
    return memory_.map_slice(local_pe_, offset, buffer.bytes, buffer.address);
}

// Only pages that are still the heap's are replaced: the program may have unmapped its buffer, or mapped other memory
// there. By mmap, which UCX watches for the sake of its cache of registrations; of mremap its hook loses the new
// address.
Status RegisteredBuffers::move_back(std::uint64_t offset, const Buffer& buffer) {
    if (buffer.file.valid()) return {};
    const auto mappings = mappings_at(buffer.address, buffer.bytes);
    if (!mappings.ok()) return mappings.status();
    const auto begin = reinterpret_cast<std::uintptr_t>(buffer.address);
    for (const AddressMapping& each : mappings.value()) {
        const std::uint64_t first = std::max(each.begin, begin) - begin;
        const std::uint64_t bytes = std::min(each.end, begin + buffer.bytes) - begin - first;
        const std::uint64_t in_file = memory_.file_offset(local_pe_) + offset + first;
        if (!is_heap(each) || each.offset + begin + first - each.begin != in_file) continue;
        std::byte* const at = buffer.address + first;
        if (mmap(at, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED) {
            const int error = errno;
            (void)memory_.map_slice(local_pe_, offset + first, bytes, at);  // a failed mmap may have unmapped the pages
            return {Code::memory, fmt::format("no private memory for {} of the buffer at {}: {}", format_size(bytes),
                                              static_cast<void*>(buffer.address), std::strerror(error))};
        }
        std::memcpy(at, heap_.at(offset + first), bytes);
    }
    return {};
}

Status RegisteredBuffers::unmap(std::uint64_t offset, const Buffer& buffer) {
    Status first = move_back(offset, buffer);
    for (const int pe : buffer.covered)
        if (Status done = memory_.map_slice(pe, offset, buffer.bytes, memory_.slice(pe) + offset); first.ok())
            first = done;
    return first;
}

Result<std::uint64_t> RegisteredBuffers::find(const void* symmetric, std::uint64_t bytes) const {
    const auto offset = heap_.offset_of(symmetric);
    const auto found = offset.ok() ? buffers_.find(offset.value()) : buffers_.end();
    if (found == buffers_.end())
        return Status{Code::argument,
                      fmt::format("{} is not the symmetric address of a registered buffer; pass the address that "
                                  "npushmemx_buffer_register_symmetric returned",
                                  symmetric)};
    if (found->second.bytes == bytes) return found->first;
    return Status{Code::argument, fmt::format("the buffer at {} was registered with {} bytes, not {}", symmetric,
                                              found->second.bytes, bytes)};
}

Status RegisteredBuffers::remove(void* symmetric, std::uint64_t bytes) {
    const auto offset = find(symmetric, bytes);
    HeapRecord record{};
    record.call = static_cast<std::uint32_t>(HeapCall::unregister_buffer);
    record.bytes = bytes;
    record.offset = offset.ok() ? offset.value() : 0;
    record.address = offset.ok() ? 0 : reinterpret_cast<std::uintptr_t>(symmetric);
    // No PE accesses the buffer after this barrier, and no PE allocates its memory again before the next one.
    Status agreed = collective_.agree(record, offset.status());
    if (!agreed.ok()) return agreed;
    const Status restored = unmap(offset.value(), buffers_.at(offset.value()));
    {
        const std::lock_guard guard(lock_);
        buffers_.erase(offset.value());
    }
    // After a failure some pages are still mapped at two addresses: the heap must not use them for other objects.
    agreed = collective_.agree(record, restored);
    if (!agreed.ok()) return agreed;
    collective_.set_buffer(offset.value(), false);
    return heap_.free(offset.value());
}

void* RegisteredBuffers::symmetric_address(const void* object) const {
    const std::lock_guard guard(lock_);
    for (const auto& [offset, buffer] : buffers_) {
        const auto at = reinterpret_cast<std::uintptr_t>(object) - reinterpret_cast<std::uintptr_t>(buffer.address);
        if (at < buffer.bytes) return heap_.at(offset + at);
    }
    return nullptr;
}

}  // namespace npushmem
