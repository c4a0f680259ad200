// SPDX-License-Identifier: BSD-3-Clause
#include "core/remote/remote_queue.hpp"

namespace npushmem {

Code RemoteQueue::put_signal(npushmem_put_signal& op, PutSignalProgress& progress, std::uint64_t* token) {
    op.data.remote = op.signal_remote = link_.remote;
    if (!has_put_signal_) return put_then_signal(op, progress, token);
    return record(transport_.put_signal(link_.queue, op, token), true, token);
}

// The fence orders the data before the signal. The token of the data counts once the signal is posted, so that a caller
// may drop an operation that is posted in part.
Code RemoteQueue::put_then_signal(npushmem_put_signal& op, PutSignalProgress& progress, std::uint64_t* token) {
    if (!progress.is_data_posted) {
        std::uint64_t* const wanted = token != nullptr ? &progress.data_token : nullptr;
        const Code posted = record(transport_.put(link_.queue, op.data, wanted), true, nullptr);
        if (posted != Code::ok) return posted;
        progress.is_data_posted = true;
    }
    if (const Code fenced = fence(); fenced != Code::ok) return fenced;
    const auto operation =
        static_cast<std::uint8_t>(op.operation == NPUSHMEM_SIGNAL_ADD ? NPUSHMEM_ATOMIC_ADD : NPUSHMEM_ATOMIC_SET);
    const npushmem_atomic signal{link_.pe, operation, 8, 0, op.signal_remote, op.signal_offset, op.signal, 0, nullptr};
    const Code posted = transport_.atomic(link_.queue, signal, nullptr);
    if (posted == Code::ok && token != nullptr) *token = progress.data_token;
    return record(posted, true, token);
}

Code RemoteQueue::fence() {
    const Code code = unfenced_ ? transport_.fence(link_.queue) : Code::ok;
    if (code == Code::ok) unfenced_ = false;
    return code;
}

Code RemoteQueue::test(std::uint64_t token) {
    const Code code = transport_.test(link_.queue, token);
    if (code != Code::again) --awaited_tokens_;
    return code;
}

// The transport's quiet collects the failures of all operations that it finds complete, so it runs only when no caller
// still has to poll its own token.
Code RemoteQueue::quiet() {
    if (awaited_tokens_ > 0) return Code::again;
    const Code code = transport_.quiet(link_.queue);
    if (code == Code::ok) outstanding_ = awaited_ = unfenced_ = false;
    return code;
}

}  // namespace npushmem
