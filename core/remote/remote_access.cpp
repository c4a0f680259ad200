#include "core/remote/remote_access.hpp"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cstring>

namespace npushmem {

namespace {

constexpr std::uint64_t staging_bytes = std::uint64_t{64} << 10;
// Gaps up to these sizes are read rather than split into requests: the bytes that a network moves in the time of one
// request, or that a copy moves where requests complete when posted.
constexpr std::uint64_t max_read_gap = 4096;
constexpr std::uint64_t max_copied_gap = 128;

}  // namespace

RemoteAccess::~RemoteAccess() {
    for (const Link& link : links_) peers_.close(link);
}

Result<RemoteAccess::Link*> RemoteAccess::link(int pe) {
    const std::lock_guard guard(lock_);
    if (Link* const existing = find_link(pe)) return existing;
    const auto opened = peers_.open(pe);
    if (!opened.ok()) return opened.status();
    transports_ |= std::uint64_t{1} << opened.value().transport;
    const auto index = static_cast<std::size_t>(pe);
    if (index >= by_pe_.size()) by_pe_.resize(index + 1);
    return by_pe_[index] = &links_.emplace_back(Link{opened.value()});
}

RemoteAccess::Links RemoteAccess::outstanding() {
    const std::lock_guard guard(lock_);
    return outstanding_;
}

void RemoteAccess::mark_posted(Link& link) {
    if (!std::exchange(link.outstanding, true)) outstanding_.push_back(&link);
}

template <class Ready>
Status RemoteAccess::wait(Ready&& ready, const WaitFor& what, const WaitFunction* waiter) const {
    if (waiter != nullptr) return (*waiter)(std::ref(ready), what);
    WaitFailure failure;
    const Code waited = peers_.waiter().until(ready, what, &failure);
    return waited == Code::ok ? Status{} : Status{waited, describe(what, failure)};
}

// Calls `step` until it no longer returns again; drives progress between the calls. Holds the lock for each step only,
// so that other threads proceed while this one waits.
template <class Step>
Status RemoteAccess::repeat(const Link& link, const char* what, const WaitFunction* waiter, Step&& step) {
    Code code = Code::again;
    Status waited = wait(
        [&] {
            {
                const std::lock_guard guard(lock_);
                code = step();
            }
            if (code == Code::again) peers_.progress_transports();
            return code != Code::again;
        },
        {what, PeRange::one(link.pe), peers_.timeout()}, waiter);
    if (!waited.ok()) return waited.within(fmt::format("transport {}", peers_.named(link.transport).name));
    return code == Code::ok ? Status{} : peers_.failure_of(link, what, code);
}

template <class Post>
Code RemoteAccess::post_counted(Link& link, const std::uint64_t& token, Post&& post_once) {
    const Code code = post_once();
    if (code != Code::ok) return code;
    mark_posted(link);
    if (token != 0) ++link.awaited;
    return code;
}

Code RemoteAccess::test(Link& link, std::uint64_t token) {
    const Code code = transport_of(link).test(link.queue, token);
    if (code != Code::again) --link.awaited;
    return code;
}

Status RemoteAccess::await(Link& link, const char* what, const WaitFunction* waiter, std::uint64_t token) {
    Code code = Code::again;
    Status done = repeat(link, what, waiter, [&] { return code = test(link, token); });
    if (code != Code::again) return done;
    const std::lock_guard guard(lock_);
    --link.awaited;
    return done;
}

template <class Post>
Status RemoteAccess::post(int pe, const char* what, Completion completion, const WaitFunction* waiter,
                          Post&& post_once) {
    std::uint64_t token = 0;
    std::uint64_t* const wanted = completion == Completion::local ? &token : nullptr;
    const auto step = [&](Link& to) { return post_counted(to, token, [&] { return post_once(to, wanted); }); };
    Link* to = nullptr;
    Code code = Code::again;
    {
        const std::lock_guard guard(lock_);
        to = find_link(pe);
        if (to != nullptr) code = step(*to);
        if (code == Code::ok && token != 0) code = test(*to, token);
    }
    if (code == Code::ok) [[likely]]
        return {};
    if (code != Code::again) return peers_.failure_of(*to, what, code);
    if (token != 0) return await(*to, what, waiter, token);
    if (to != nullptr) {
        peers_.progress_transports();
    } else {
        const auto found = link(pe);
        if (!found.ok()) return found.status();
        to = found.value();
    }
    Status posted = repeat(*to, what, waiter, [&] { return code = step(*to); });
    if (code != Code::ok || token == 0) return posted;
    if (posted.ok()) return await(*to, what, waiter, token);
    // Posted, but the wait failed: no caller waits for it.
    const std::lock_guard guard(lock_);
    --to->awaited;
    return posted;
}

Status RemoteAccess::put_or_get(Code (Transport::*how)(std::uint64_t, const npushmem_rma&, std::uint64_t*),
                                const char* what, npushmem_rma op, Completion completion, const WaitFunction* waiter) {
    return post(op.pe, what, completion, waiter, [&](const Link& link, std::uint64_t* token) {
        op.remote = link.remote;
        return (transport_of(link).*how)(link.queue, op, token);
    });
}

Status RemoteAccess::put(int pe, std::uint64_t offset, const void* source, std::uint64_t bytes, Completion completion,
                         const WaitFunction* waiter) {
    // One structure serves both directions; a put does not write to `local`.
    const npushmem_rma op{pe, 0, 0, offset, const_cast<void*>(source), bytes};
    return put_or_get(&Transport::put, "a put", op, completion, waiter);
}

Status RemoteAccess::get(int pe, std::uint64_t offset, void* dest, std::uint64_t bytes, Completion completion,
                         const WaitFunction* waiter) {
    return put_or_get(&Transport::get, "a get", {pe, 0, 0, offset, dest, bytes}, completion, waiter);
}

// Posts the blocks one by one, a window of them at a time. Waits for all posted ones, even after a failure.
template <class Post>
Status RemoteAccess::post_each(Link& link, const char* what, std::uint64_t count, Post&& post_once) {
    std::array<std::uint64_t, 64> tokens{};
    Status done;
    for (std::uint64_t first = 0; first < count && done.ok(); first += tokens.size()) {
        const std::uint64_t many = std::min<std::uint64_t>(count - first, tokens.size());
        std::uint64_t posted = 0;
        for (; posted < many && done.ok(); ++posted) {
            tokens[posted] = 0;
            done = repeat(link, what, nullptr, [&] {
                return post_counted(link, tokens[posted], [&] { return post_once(first + posted, &tokens[posted]); });
            });
        }
        for (std::uint64_t i = 0; i < posted; ++i) {
            if (tokens[i] == 0) continue;
            Status over = await(link, what, nullptr, tokens[i]);
            if (done.ok()) done = std::move(over);
        }
    }
    return done;
}

Status RemoteAccess::retain_staging(Status done, std::vector<std::byte> staging) {
    if (done.ok()) return done;
    const std::lock_guard guard(lock_);
    abandoned_staging_.push_back(std::move(staging));
    return done;
}

Status RemoteAccess::put_blocks(int pe, const StridedBlocks& blocks, const void* source) {
    const auto* from = static_cast<const std::byte*>(source);
    if (blocks.remote_stride == blocks.bytes && blocks.bytes <= staging_bytes / 2) {
        const std::uint64_t at_once = staging_bytes / blocks.bytes;
        std::vector<std::byte> staging(std::min(at_once, blocks.count) * blocks.bytes);
        Status done;
        for (std::uint64_t first = 0; first < blocks.count && done.ok(); first += at_once) {
            const std::uint64_t many = std::min(at_once, blocks.count - first);
            copy_blocks({staging.data(), blocks.bytes}, {from + first * blocks.local_stride, blocks.local_stride},
                        blocks.bytes, many);
            done =
                put(pe, blocks.offset + first * blocks.bytes, staging.data(), many * blocks.bytes, Completion::local);
        }
        return retain_staging(std::move(done), std::move(staging));
    }
    const auto found = link(pe);
    if (!found.ok()) return found.status();
    Link& link = *found.value();
    return post_each(link, "a put", blocks.count, [&](std::uint64_t i, std::uint64_t* token) {
        const npushmem_rma op{pe,
                              0,
                              link.remote,
                              blocks.offset + i * blocks.remote_stride,
                              const_cast<std::byte*>(from + i * blocks.local_stride),
                              blocks.bytes};
        return transport_of(link).put(link.queue, op, token);
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
    const auto found = link(pe);
    if (!found.ok()) return found.status();
    Link& link = *found.value();
    bool complete = true;
    const auto get_one = [&](std::uint64_t i, std::uint64_t* token) {
        const npushmem_rma op{
            pe, 0, link.remote, blocks.offset + i * blocks.remote_stride, to + i * blocks.local_stride, blocks.bytes};
        const Code code = transport_of(link).get(link.queue, op, token);
        complete = complete && *token == 0;
        return code;
    };
    // The first request shows whether requests complete when posted.
    Status done = post_each(link, "a get", near ? 1 : blocks.count, get_one);
    if (!near || !done.ok()) return done;
    const StridedBlocks rest{blocks.offset + blocks.remote_stride, blocks.remote_stride, blocks.local_stride,
                             blocks.bytes, blocks.count - 1};
    if (!complete) return get_with_gaps(pe, rest, to + blocks.local_stride);
    return post_each(link, "a get", rest.count,
                     [&](std::uint64_t i, std::uint64_t* token) { return get_one(i + 1, token); });
}

Status RemoteAccess::atomic(npushmem_atomic op, Completion completion, const WaitFunction* waiter) {
    if (Status able = peers_.supports(op); !able.ok()) return able;
    void* const result = completion == Completion::local ? std::exchange(op.result, nullptr) : nullptr;
    std::uint64_t* word = nullptr;
    Status done = post(op.pe, "an atomic", completion, waiter, [&](const Link& link, std::uint64_t* token) {
        if (result != nullptr && word == nullptr) op.result = word = acquire_fetch_result();
        op.remote = link.remote;
        return transport_of(link).atomic(link.queue, op, token);
    });
    if (word == nullptr || !done.ok()) return done;
    std::memcpy(result, word, op.width);
    release_fetch_result(word);
    return {};
}

std::uint64_t* RemoteAccess::acquire_fetch_result() {
    // Acquire. Partner: the release in release_fetch_result, whose caller has read the word before.
    if (std::uint64_t* const spare = spare_fetch_result_.exchange(nullptr, std::memory_order_acquire)) return spare;
    if (free_fetch_results_.empty()) return &fetch_results_.emplace_back();
    std::uint64_t* const word = free_fetch_results_.back();
    free_fetch_results_.pop_back();
    return word;
}

void RemoteAccess::release_fetch_result(std::uint64_t* word) {
    std::uint64_t* none = nullptr;
    if (spare_fetch_result_.compare_exchange_strong(none, word, std::memory_order_release, std::memory_order_relaxed))
        return;
    const std::lock_guard guard(lock_);
    free_fetch_results_.push_back(word);
}

Status RemoteAccess::put_signal(int pe, std::uint64_t offset, const void* source, std::uint64_t bytes,
                                std::uint64_t signal_offset, std::uint64_t signal, std::uint32_t operation,
                                Completion completion, const WaitFunction* waiter) {
    npushmem_put_signal op{
        {pe, 0, 0, offset, const_cast<void*>(source), bytes}, 0, signal_offset, signal, operation, 0};
    if (!peers_.reach(pe).has(NPUSHMEM_CAP_PUT_SIGNAL)) return put_then_signal(op, completion, waiter);
    return post(pe, "a put with signal", completion, waiter, [&](const Link& link, std::uint64_t* token) {
        op.data.remote = op.signal_remote = link.remote;
        return transport_of(link).put_signal(link.queue, op, token);
    });
}

// For transports without put_signal: the fence orders the data before the signal.
Status RemoteAccess::put_then_signal(const npushmem_put_signal& op, Completion completion, const WaitFunction* waiter) {
    Status put = put_or_get(&Transport::put, "a put with signal", op.data, completion, waiter);
    if (!put.ok()) return put;
    if (Status fenced = fence(op.data.pe, waiter); !fenced.ok()) return fenced;
    const auto operation =
        static_cast<std::uint8_t>(op.operation == NPUSHMEM_SIGNAL_ADD ? NPUSHMEM_ATOMIC_ADD : NPUSHMEM_ATOMIC_SET);
    npushmem_atomic update{op.data.pe, operation, 8, 0, 0, op.signal_offset, op.signal, 0, nullptr};
    return post(op.data.pe, "a signal", completion, waiter, [&](const Link& link, std::uint64_t* token) {
        update.remote = link.remote;
        return transport_of(link).atomic(link.queue, update, token);
    });
}

// Returns the first asynchronous error of the transports that this context has used.
Status RemoteAccess::events() {
    std::uint64_t used = 0;
    {
        const std::lock_guard guard(lock_);
        used = transports_;
    }
    Status first;
    for (int transport = 0; used >> transport != 0 && first.ok(); ++transport)
        if ((used >> transport & 1U) != 0) first = peers_.event_of(transport);
    return first;
}

// A link without posts since its last quiet needs no fence.
Status RemoteAccess::fence(const WaitFunction* waiter) {
    Status first;
    for (const Link* link : outstanding()) {
        Status done = repeat(*link, "a fence", waiter, [&] { return transport_of(*link).fence(link->queue); });
        if (first.ok()) first = std::move(done);
    }
    Status event = events();
    return first.ok() ? event : first;
}

Status RemoteAccess::fence(int pe, const WaitFunction* waiter) {
    const Link* posted = nullptr;
    {
        const std::lock_guard guard(lock_);
        posted = find_link(pe);
        if (posted == nullptr || !posted->outstanding) return {};
    }
    return repeat(*posted, "a fence", waiter, [&] { return transport_of(*posted).fence(posted->queue); });
}

Status RemoteAccess::quiet(const WaitFunction* waiter) {
    Links pending;
    Status first;
    {
        const std::lock_guard guard(lock_);
        std::erase_if(outstanding_, [&](Link* link) {
            const Code code = poll_quiet(*link, first);
            if (code == Code::again) pending.push_back(link);
            return code == Code::ok;
        });
    }
    return finish_quiet(std::move(pending), std::move(first), waiter);
}

Status RemoteAccess::quiet(std::span<const int> pes, const WaitFunction* waiter) {
    Links chosen;
    {
        const std::lock_guard guard(lock_);
        for (const int pe : pes) {
            Link* const used = find_link(pe);
            if (used != nullptr && used->outstanding) chosen.push_back(used);
        }
    }
    return finish_quiet(std::move(chosen), {}, waiter);
}

// Polls all PEs together, so that many PEs take no longer than the slowest. A PE is complete once its queue has been:
// operations that other threads post meanwhile do not count.
Status RemoteAccess::finish_quiet(Links pending, Status first, const WaitFunction* waiter) {
    const auto completed = [&] {
        {
            const std::lock_guard guard(lock_);
            poll_quiets(pending, first);
        }
        if (!pending.empty()) peers_.progress_transports();
        return pending.empty();
    };
    const PeRange needed = pending.size() == 1 ? PeRange::one(pending[0]->pe) : PeRange{};
    const Status waited = pending.empty() ? Status{} : wait(completed, {"quiet", needed, peers_.timeout()}, waiter);
    if (!waited.ok() && first.ok()) first = pending.empty() ? waited : not_complete(pending, waited);
    Status event = events();
    return first.ok() ? event : first;
}

Status RemoteAccess::not_complete(const Links& pending, const Status& waited) const {
    std::vector<int> open;
    for (const Link* link : pending) open.push_back(link->pe);
    return Status{waited.code(), fmt::format("{}; not complete: PE {}", waited.message(), fmt::join(open, ", "))}
        .within(fmt::format("transport {}", peers_.named(pending[0]->transport).name));
}

// Removes complete and failed links from `pending`. A quiet collects the failures of all operations that it finds
// complete, so it runs only when no caller still has to poll its own token.
void RemoteAccess::poll_quiets(Links& pending, Status& first) {
    std::erase_if(pending, [&](Link* link) { return poll_quiet(*link, first) != Code::again; });
    std::erase_if(outstanding_, [](const Link* link) { return !link->outstanding; });
}

Code RemoteAccess::poll_quiet(Link& link, Status& first) {
    if (link.awaited > 0) return Code::again;
    const Code code = transport_of(link).quiet(link.queue);
    if (code == Code::ok) link.outstanding = false;
    if (code != Code::ok && code != Code::again && first.ok()) first = peers_.failure_of(link, "quiet", code);
    return code;
}

}  // namespace npushmem
