#include "core/runtime/exchange.hpp"

#include <algorithm>

namespace npushmem {

Result<GatheredBytes> GatheredBytes::gather(Bootstrap& bootstrap, std::span<const std::byte> mine) {
    auto lengths = npushmem::gather(bootstrap, static_cast<std::uint32_t>(mine.size()));
    if (!lengths.ok()) return lengths.status();
    GatheredBytes all;
    all.lengths_ = std::move(lengths).value();
    all.stride_ = *std::max_element(all.lengths_.begin(), all.lengths_.end());
    all.bytes_.resize(all.stride_ * all.lengths_.size());
    Bytes padded(mine.begin(), mine.end());
    padded.resize(all.stride_);
    Status gathered = bootstrap.allgather(padded, all.bytes_);
    if (!gathered.ok()) return gathered;
    return all;
}

}  // namespace npushmem
