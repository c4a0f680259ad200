// What wires tell each other over a connection, beside the transport's messages: the keys of chunks of memory.
#pragma once

#include <array>
#include <cstdint>

namespace npushmem::verbs {

struct KeyRequest {
    static constexpr std::uint32_t kind = 1;
    std::uint64_t region = 0;  // the owner's number
    std::uint64_t chunk = 0;
    std::uint64_t key = 0;  // the asker's number
};

struct KeyReply {
    static constexpr std::uint32_t kind = 2;
    std::uint64_t key = 0;
    std::uint64_t chunk = 0;
    std::uint32_t rkey = 0;
    std::int32_t code = 0;  // not ok: there is no key, and `why` says why
    std::array<char, 480> why{};
};

}  // namespace npushmem::verbs
