// Typed collectives over the bootstrap, for start-up.
#pragma once

#include <cstring>
#include <span>
#include <type_traits>
#include <vector>

#include "npushmem/plugin/bootstrap.hpp"
#include "npushmem/plugin/transport.hpp"

namespace npushmem {

// Every PE's value, in order of PE.
template <class Plain>
requires std::is_trivially_copyable_v<Plain> Result<std::vector<Plain>> gather(Bootstrap& bootstrap,
                                                                               const Plain& mine) {
    std::vector<Plain> all(static_cast<std::size_t>(bootstrap.nranks()));
    Status gathered = bootstrap.allgather(std::as_bytes(std::span(&mine, 1)), std::as_writable_bytes(std::span(all)));
    if (!gathered.ok()) return gathered;
    return all;
}

// Every PE's bytes, of any lengths: padded to the longest, which costs one more round to learn.
class GatheredBytes {
public:
    static Result<GatheredBytes> gather(Bootstrap& bootstrap, std::span<const std::byte> mine);
    [[nodiscard]] std::span<const std::byte> of(int pe) const {
        return std::span(bytes_).subspan(static_cast<std::size_t>(pe) * stride_,
                                         lengths_[static_cast<std::size_t>(pe)]);
    }

private:
    std::size_t stride_ = 0;
    std::vector<std::uint32_t> lengths_;
    Bytes bytes_;
};

}  // namespace npushmem
