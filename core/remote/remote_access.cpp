// SPDX-License-Identifier: BSD-3-Clause
#include "core/remote/remote_access.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

namespace npushmem {

namespace {

constexpr std::uint64_t staging_bytes = std::uint64_t{64} << 10;
// Gaps up to these sizes are read rather than split into requests: the bytes that a network moves in the time of one
// request, or that a copy moves where requests complete when posted.
constexpr std::uint64_t max_read_gap = 4096;
constexpr std::uint64_t max_copied_gap = 128;
// Longer blocks are put one by one: few of them fit into one put_strided, which copies them.
constexpr std::uint64_t max_strided_block = NPUSHMEM_PUT_STRIDED_MAX / 8;

}  // namespace

std::uint64_t* FetchResults::acquire() {
    // Acquire. Partner: the release in release(), whose caller has read the word before.
    if (std::uint64_t* const spare = spare_.exchange(nullptr, std::memory_order_acquire)) return spare;
    const std::lock_guard guard(lock_);
    if (free_.empty()) return &words_.emplace_back();
    std::uint64_t* const word = free_.back();
    free_.pop_back();
    return word;
}

void FetchResults::release(std::uint64_t* word) {
    std::uint64_t* none = nullptr;
    // Release. Partner: the acquire in acquire().
    if (spare_.compare_exchange_strong(none, word, std::memory_order_release, std::memory_order_relaxed)) return;
    const std::lock_guard guard(lock_);
    free_.push_back(word);
}

Status RemoteAccess::put(int pe, std::uint64_t offset, const void* source, std::uint64_t bytes, Completion completion,
                         const WaitFunction* waiter) {
    // One structure serves both directions; a put does not write to `local`.
    npushmem_rma op{pe, 0, 0, offset, const_cast<void*>(source), bytes};
    return context_.post(pe, "a put", completion, waiter,
                         [&](RemoteQueue& to, std::uint64_t* token) { return to.put(op, token); });
}

Status RemoteAccess::get(int pe, std::uint64_t offset, void* dest, std::uint64_t bytes, Completion completion,
                         const WaitFunction* waiter) {
    npushmem_rma op{pe, 0, 0, offset, dest, bytes};
    return context_.post(pe, "a get", completion, waiter,
                         [&](RemoteQueue& to, std::uint64_t* token) { return to.get(op, token); });
}

Status RemoteAccess::retain_staging(Status done, std::vector<std::byte> staging) {
    if (done.ok()) return done;
    const std::lock_guard guard(staging_lock_);
    abandoned_staging_.push_back(std::move(staging));
    return done;
}

Status RemoteAccess::put_gathered(int pe, const StridedBlocks& blocks, const std::byte* from) {
    const std::uint64_t at_once = staging_bytes / blocks.bytes;
    std::vector<std::byte> staging(std::min(at_once, blocks.count) * blocks.bytes);
    Status done;
    for (std::uint64_t first = 0; first < blocks.count && done.ok(); first += at_once) {
        const std::uint64_t many = std::min(at_once, blocks.count - first);
        copy_blocks({staging.data(), blocks.bytes}, {from + first * blocks.local_stride, blocks.local_stride},
                    blocks.bytes, many);
        done = put(pe, blocks.offset + first * blocks.bytes, staging.data(), many * blocks.bytes, Completion::local);
    }
    return retain_staging(std::move(done), std::move(staging));
}

Status RemoteAccess::put_strided(int pe, const StridedBlocks& blocks, const std::byte* from) {
    const std::uint64_t at_once = NPUSHMEM_PUT_STRIDED_MAX / blocks.bytes;
    const std::uint64_t calls = (blocks.count + at_once - 1) / at_once;
    return context_.post_each(pe, "a put", calls, [&](RemoteQueue& to, std::uint64_t i, std::uint64_t* token) {
        const std::uint64_t first = i * at_once;
        npushmem_put_strided op{{pe, 0, 0, blocks.offset + first * blocks.remote_stride,
                                 const_cast<std::byte*>(from + first * blocks.local_stride), blocks.bytes},
                                std::min(at_once, blocks.count - first),
                                blocks.remote_stride,
                                blocks.local_stride};
        return to.put_strided(op, token);
    });
}

Status RemoteAccess::put_blocks(int pe, const StridedBlocks& blocks, const void* source) {
    const auto* from = static_cast<const std::byte*>(source);
    if (blocks.remote_stride == blocks.bytes && blocks.bytes <= staging_bytes / 2)
        return put_gathered(pe, blocks, from);
    if (blocks.count > 1 && blocks.bytes <= max_strided_block && peers_.reach(pe).has(NPUSHMEM_CAP_PUT_STRIDED))
        return put_strided(pe, blocks, from);
    return context_.post_each(pe, "a put", blocks.count, [&](RemoteQueue& to, std::uint64_t i, std::uint64_t* token) {
        npushmem_rma op{pe,
                        0,
                        0,
                        blocks.offset + i * blocks.remote_stride,
                        const_cast<std::byte*>(from + i * blocks.local_stride),
                        blocks.bytes};
        return to.put(op, token);
    });
}

Status RemoteAccess::get_with_gaps(int pe, const StridedBlocks& blocks, std::byte* to) {
    const std::uint64_t at_once = staging_bytes / blocks.remote_stride;
    std::vector<std::byte> staging(std::min(at_once, blocks.count) * blocks.remote_stride);
    Status done;
    for (std::uint64_t first = 0; first < blocks.count && done.ok(); first += at_once) {
        const std::uint64_t many = std::min(at_once, blocks.count - first);
        // Excludes the gap after the last block, which may be outside the PE's memory.
        done = get(pe, blocks.offset + first * blocks.remote_stride, staging.data(),
                   (many - 1) * blocks.remote_stride + blocks.bytes, Completion::local);
        if (done.ok())
            copy_blocks({to + first * blocks.local_stride, blocks.local_stride}, {staging.data(), blocks.remote_stride},
                        blocks.bytes, many);
    }
    return retain_staging(std::move(done), std::move(staging));
}

Status RemoteAccess::get_blocks(int pe, const StridedBlocks& blocks, void* dest) {
    auto* to = static_cast<std::byte*>(dest);
    const std::uint64_t gap = blocks.remote_stride - blocks.bytes;
    const bool near = blocks.count > 1 && gap <= max_read_gap && blocks.remote_stride <= staging_bytes / 2;
    if (near && gap <= max_copied_gap) return get_with_gaps(pe, blocks, to);
    bool complete = true;
    const auto get_one = [&](RemoteQueue& from, std::uint64_t i, std::uint64_t* token) {
        npushmem_rma op{pe, 0, 0, blocks.offset + i * blocks.remote_stride, to + i * blocks.local_stride, blocks.bytes};
        const Code code = from.get(op, token);
        complete = complete && *token == 0;
        return code;
    };
    // The first request shows whether requests complete when posted.
    Status done = context_.post_each(pe, "a get", near ? 1 : blocks.count, get_one);
    if (!near || !done.ok()) return done;
    const StridedBlocks rest{blocks.offset + blocks.remote_stride, blocks.remote_stride, blocks.local_stride,
                             blocks.bytes, blocks.count - 1};
    if (!complete) return get_with_gaps(pe, rest, to + blocks.local_stride);
    return context_.post_each(pe, "a get", rest.count, [&](RemoteQueue& from, std::uint64_t i, std::uint64_t* token) {
        return get_one(from, i + 1, token);
    });
}

Status RemoteAccess::atomic(npushmem_atomic op, Completion completion, const WaitFunction* waiter) {
    if (Status able = peers_.supports(op); !able.ok()) return able;
    void* const result = completion != Completion::deferred ? std::exchange(op.result, nullptr) : nullptr;
    std::uint64_t* word = nullptr;
    Status done = context_.post(op.pe, "an atomic", completion, waiter, [&](RemoteQueue& to, std::uint64_t* token) {
        if (result != nullptr && word == nullptr) op.result = word = fetch_results_.acquire();
        return to.atomic(op, token);
    });
    if (word == nullptr || !done.ok()) return done;
    std::memcpy(result, word, op.width);
    fetch_results_.release(word);
    return {};
}

Status RemoteAccess::put_signal(int pe, std::uint64_t offset, const void* source, std::uint64_t bytes,
                                std::uint64_t signal_offset, std::uint64_t signal, std::uint32_t operation,
                                Completion completion, const WaitFunction* waiter) {
    npushmem_put_signal op{
        {pe, 0, 0, offset, const_cast<void*>(source), bytes}, 0, signal_offset, signal, operation, 0};
    RemoteQueue::PutSignalProgress progress;
    if (completion != Completion::deferred && !peers_.reach(pe).has(NPUSHMEM_CAP_PUT_SIGNAL)) {
        // The signal must not follow a put that fails, and the source must be free when this returns.
        Status put = context_.post(pe, "a put with signal", completion, waiter,
                                   [&](RemoteQueue& to, std::uint64_t* token) { return to.put(op.data, token); });
        if (!put.ok()) return put;
        progress.is_data_posted = true;
    }
    return context_.post(pe, "a put with signal", completion, waiter,
                         [&](RemoteQueue& to, std::uint64_t* token) { return to.put_signal(op, progress, token); });
}

}  // namespace npushmem
