#include "bootstrap/rendezvous/random.hpp"

#include <fmt/format.h>
#include <sys/random.h>

#include <cerrno>
#include <cstring>

namespace npushmem::rendezvous {

Status fill_random(std::span<std::byte> out) {
    while (!out.empty()) {
        const ssize_t got = ::getrandom(out.data(), out.size(), 0);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return {Code::system, fmt::format("cannot get random bytes: {}", std::strerror(errno))};
        out = out.subspan(static_cast<std::size_t>(got));
    }
    return {};
}

}  // namespace npushmem::rendezvous
