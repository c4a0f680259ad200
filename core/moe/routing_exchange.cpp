#include "core/moe/routing_exchange.hpp"

#include <cstring>

namespace npushmem::moe {
namespace {

constexpr std::uint64_t header = 128;

}  // namespace

Bytes RoutingExchange::size(const CombineConfig& config) {
    return aligned_up(Bytes{header} + bytes_of(config.slots(), Bytes{sizeof(std::int32_t)}), header);
}

void RoutingExchange::publish(const RankRouting& own) {
    const std::uint64_t count = own.experts.size();
    std::memcpy(block_, &count, sizeof count);
    if (count > 0) std::memcpy(block_ + header, own.experts.data(), own.experts.size_bytes());
}

Status RoutingExchange::collect() {
    ids_.assign(static_cast<std::size_t>(memory_.n_pes()), {});
    views_.clear();
    for (int rank = 0; rank < memory_.n_pes(); ++rank) {
        if (Status status = collect_from(rank); !status.ok()) return status;
    }
    return {};
}

Status RoutingExchange::collect_from(int rank) {
    std::uint64_t count = 0;
    if (Status status = memory_.fetch(&count, block_, Bytes{sizeof count}, rank); !status.ok()) return status;
    std::vector<std::int32_t>& ids = ids_[static_cast<std::size_t>(rank)];
    ids.resize(count);
    views_.push_back({ids, {}});
    if (count == 0) return {};
    return memory_.fetch(ids.data(), block_ + header, Bytes{count * sizeof(std::int32_t)}, rank);
}

}  // namespace npushmem::moe
