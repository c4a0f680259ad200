// SPDX-License-Identifier: BSD-3-Clause
#include "transports/network/target_handler.hpp"

#include <atomic>
#include <cstring>

#include "core/base/block_copy.hpp"
#include "npushmem/plugin/local_atomic.hpp"

namespace npushmem::network {

Answer TargetHandler::answer(std::uint64_t ticket, Code code, std::uint64_t value) const {
    Answer out;
    out.head.kind = MessageKind::answer;
    out.head.origin = my_pe_;
    out.ticket = ticket;
    out.code = static_cast<std::int32_t>(code);
    out.value = value;
    return out;
}

void TargetHandler::keep_failure(int origin, std::uint32_t queue, Code code) {
    if (code == Code::ok) return;
    Failures& failures = failed_[origin];
    if (failures.size() < max_failures) failures.try_emplace(queue, code);
}

Code TargetHandler::take_failure(int origin, std::uint32_t queue) {
    const auto of_origin = failed_.find(origin);
    if (of_origin == failed_.end()) return Code::ok;
    Failures& failures = of_origin->second;
    const bool full = failures.size() == max_failures;
    const auto found = failures.find(queue);
    if (full) return found == failures.end() ? failures.begin()->second : found->second;
    if (found == failures.end()) return Code::ok;
    const Code code = found->second;
    failures.erase(found);
    return code;
}

void TargetHandler::forget(int origin) { failed_.erase(origin); }

bool TargetHandler::is_complete(const MessageHeader& head, std::span<const std::byte> message) {
    switch (head.kind) {
        case MessageKind::atomic: return message.size() >= sizeof(AtomicRequest);
        case MessageKind::put: return message.size() >= sizeof(PutRequest);
        case MessageKind::put_strided: return message.size() >= sizeof(PutStridedRequest);
        case MessageKind::put_signal: return message.size() >= sizeof(PutSignalRequest);
        case MessageKind::flush: return message.size() >= sizeof(FlushRequest);
        default: return true;
    }
}

std::optional<Answer> TargetHandler::handle(const MessageHeader& head, std::span<const std::byte> message) {
    if (!is_complete(head, message)) return std::nullopt;
    if (head.kind == MessageKind::flush) {
        const FlushRequest request = *message_as<FlushRequest>(message);
        return answer(request.ticket, take_failure(head.origin, request.queue));
    }
    if (head.kind == MessageKind::atomic) {
        const AtomicRequest request = *message_as<AtomicRequest>(message);
        const Answer done = handle_atomic(request);
        if (done.ticket != 0) return done;
        keep_failure(head.origin, request.queue, static_cast<Code>(done.code));
    }
    if (head.kind == MessageKind::put) {
        const PutRequest request = *message_as<PutRequest>(message);
        keep_failure(head.origin, request.queue, handle_put(request, message.subspan(sizeof request)));
    }
    if (head.kind == MessageKind::put_strided) {
        const PutStridedRequest request = *message_as<PutStridedRequest>(message);
        keep_failure(head.origin, request.queue, handle_put_strided(request, message.subspan(sizeof request)));
    }
    if (head.kind == MessageKind::put_signal) {
        const PutSignalRequest request = *message_as<PutSignalRequest>(message);
        keep_failure(head.origin, request.queue, handle_put_signal(request, message.subspan(sizeof request)));
    }
    return std::nullopt;
}

Answer TargetHandler::handle_atomic(const AtomicRequest& request) const {
    std::byte* const place = regions_.place(request.region, request.offset, request.width);
    if (place == nullptr) return answer(request.ticket, Code::range);
    std::uint64_t old = 0;  // a 4-byte value is at its start, as the origin expects
    npushmem_atomic op{};
    op.operation = request.operation;
    op.width = request.width;
    op.operand = request.operand;
    op.compare = request.compare;
    op.result = &old;
    const Code done = apply_atomic(place, op);
    return answer(request.ticket, done, old);
}

Code TargetHandler::handle_put(const PutRequest& request, std::span<const std::byte> data) const {
    if (data.size() < request.bytes) return Code::protocol;
    std::byte* const place = regions_.place(request.region, request.offset, request.bytes);
    if (place == nullptr) return Code::range;
    // Partner: the acquire load of the reader of these bytes, who then also sees all earlier writes.
    std::atomic_thread_fence(std::memory_order_release);
    std::memcpy(place, data.data(), request.bytes);
    return Code::ok;
}

Code TargetHandler::handle_put_strided(const PutStridedRequest& request, std::span<const std::byte> data) const {
    if (data.size() < std::size_t{request.bytes} * request.count) return Code::protocol;
    npushmem_put_strided op{};
    op.block.bytes = request.bytes;
    op.count = request.count;
    op.remote_stride = request.stride;
    std::byte* const place = regions_.place(request.region, request.offset, extent_of(op));
    if (place == nullptr) return Code::range;
    if (request.bytes == 0) return Code::ok;  // the places of empty blocks may not exist
    // Partner: as for a put.
    std::atomic_thread_fence(std::memory_order_release);
    copy_blocks({place, request.stride}, {data.data(), request.bytes}, request.bytes, request.count);
    return Code::ok;
}

Code TargetHandler::handle_put_signal(const PutSignalRequest& request, std::span<const std::byte> data) const {
    if (data.size() < request.bytes) return Code::protocol;
    std::byte* const signal = regions_.place(request.signal_region, request.signal_offset, sizeof request.signal);
    std::byte* const place = regions_.place(request.region, request.offset, request.bytes);
    if (signal == nullptr || place == nullptr) return Code::range;
    if (request.bytes > 0) std::memcpy(place, data.data(), request.bytes);
    return apply_signal(signal, request.signal, request.operation);
}

}  // namespace npushmem::network
