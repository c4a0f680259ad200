// SPDX-License-Identifier: BSD-3-Clause
// Requests for tests of the proxy.
#pragma once

#include "core/remote/request.hpp"

namespace npushmem::proxy {

inline Request request_of(Request::Kind kind, const std::shared_ptr<RequesterState>& requester,
                          std::uint64_t number = 0) {
    Request request;
    request.kind = kind;
    request.requester = requester;
    request.number = number;
    return request;
}

// `number` 0: nobody waits.
inline Request put_of(const std::shared_ptr<RequesterState>& requester, int pe, std::uint64_t offset, void* source,
                      std::uint64_t bytes, std::uint64_t number = 0) {
    Request request = request_of(Request::Kind::put, requester, number);
    request.transfer.data = {pe, 0, 0, offset, source, bytes};
    return request;
}

inline Request get_of(const std::shared_ptr<RequesterState>& requester, int pe, std::uint64_t offset, void* target,
                      std::uint64_t bytes, std::uint64_t number) {
    Request request = put_of(requester, pe, offset, target, bytes, number);
    request.kind = Request::Kind::get;
    return request;
}

inline Request atomic_of(const std::shared_ptr<RequesterState>& requester, int pe, std::uint8_t operation,
                         std::uint64_t offset, std::uint64_t operand, std::uint64_t number = 0) {
    Request request = request_of(Request::Kind::atomic, requester, number);
    request.atomic = {pe, operation, 8, 0, 0, offset, operand, 0, nullptr};
    return request;
}

inline Request put_signal_of(const std::shared_ptr<RequesterState>& requester, int pe, std::uint64_t offset,
                             void* source, std::uint64_t bytes, std::uint64_t signal_offset, std::uint64_t signal) {
    Request request = put_of(requester, pe, offset, source, bytes);
    request.kind = Request::Kind::put_signal;
    request.transfer.signal_offset = signal_offset;
    request.transfer.signal = signal;
    return request;
}

}  // namespace npushmem::proxy
