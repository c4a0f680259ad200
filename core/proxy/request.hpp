// What a core asks the proxy to do.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>

#include "core/proxy/requester.hpp"
#include "npushmem/plugin/transport.h"

namespace npushmem::proxy {

struct Request {
    enum class Kind : unsigned char { put, get, put_signal, atomic, fence, quiet };
    // A source of at most so many bytes travels with the request, and may be changed as soon as that was handed over.
    static constexpr std::size_t max_inline_bytes = 64;

    [[nodiscard]] int pe() const { return kind == Kind::atomic ? atomic.pe : transfer.data.pe; }
    // Not for larger ones.
    void copy_inline(const void* source) {
        if (transfer.data.bytes > 0) std::memcpy(inline_data.data(), source, transfer.data.bytes);
        has_inline_data = true;
    }

    Kind kind = Kind::quiet;
    bool has_inline_data = false;  // the source is `inline_data`
    std::uint64_t number = 0;      // the requester's, who waits for the answer; 0: nobody waits
    std::shared_ptr<RequesterState> requester;
    npushmem_put_signal transfer{};  // put, get (its `data` only), put_signal; the remote regions are filled in later
    npushmem_atomic atomic{};        // no `result`: that comes with the answer
    std::array<std::byte, max_inline_bytes> inline_data{};
};

}  // namespace npushmem::proxy
