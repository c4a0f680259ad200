// What a core asks the proxy to do.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>

#include "core/proxy/asker.hpp"
#include "npushmem/plugin/transport.h"

namespace npushmem::proxy {

struct Request {
    enum class Kind : unsigned char { put, get, put_signal, atomic, fence, quiet };
    // A source of at most so many bytes travels with the request, and may be changed as soon as that was handed over.
    static constexpr std::size_t most_carried = 64;

    [[nodiscard]] int pe() const { return kind == Kind::atomic ? atomic.pe : transfer.data.pe; }
    // Not for larger ones.
    void carry(const void* source) {
        if (transfer.data.bytes > 0) std::memcpy(carried.data(), source, transfer.data.bytes);
        carries = true;
    }

    Kind kind = Kind::quiet;
    bool carries = false;      // the source is `carried`
    std::uint64_t number = 0;  // the asker's, who waits for the answer; 0: nobody waits
    std::shared_ptr<Asker> asker;
    npushmem_put_signal transfer{};  // put, get (its `data` only), put_signal; the remote regions are filled in later
    npushmem_atomic atomic{};        // no `result`: that comes with the answer
    std::array<std::byte, most_carried> carried{};
};

}  // namespace npushmem::proxy
