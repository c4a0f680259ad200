// SPDX-License-Identifier: BSD-3-Clause
#include "core/moe/ring/ring_errors.hpp"

#include <fmt/format.h>

#include "core/moe/common/rank_agreement.hpp"

namespace npushmem::moe {
namespace {

double seconds(std::chrono::nanoseconds time) { return std::chrono::duration<double>(time).count(); }

Status peer_aborted(const RingRanks& ranks) {
    return {Code::aborted,
            fmt::format("ring between ranks {} and {}: rank {} has aborted; its own error names the cause", ranks.own,
                        ranks.peer, ranks.peer)};
}

Status impossible_position(const RingRanks& ranks, const char* word, std::uint64_t seen, std::uint64_t least,
                           std::uint64_t most) {
    return {Code::protocol,
            fmt::format("ring between ranks {} and {}: rank {} wrote {} as its {}, possible are multiples of {} from "
                        "{} to {}; both must make the same calls on a handle, or its memory was overwritten",
                        ranks.own, ranks.peer, ranks.peer, seen, word, RingShape::unit, least, most)};
}

bool possible(std::uint64_t seen, std::uint64_t least, std::uint64_t most) {
    return seen >= least && seen <= most && seen % RingShape::unit == 0;
}

}  // namespace

Status ring_full_status(const RingRanks& ranks, const RingShape& shape, const RingPositions& known, Bytes wanted,
                        std::chrono::nanoseconds waited, const Status& cause) {
    return {cause.code(),
            fmt::format("rank {} waits for room for {} bytes in its ring at rank {}: head {}, tail {}, {} of {} bytes "
                        "not yet taken, for {:.3f} s: {}",
                        ranks.own, wanted.value(), ranks.peer, known.head, known.tail, known.tail - known.head,
                        shape.size.value(), seconds(waited), cause.message())};
}

Status ring_empty_status(const RingRanks& ranks, const RingPositions& known, std::chrono::nanoseconds waited,
                         const Status& cause) {
    return {cause.code(), fmt::format("rank {} waits for data in its ring from rank {}: head {}, tail {}, for {:.3f} "
                                      "s: {}",
                                      ranks.own, ranks.peer, known.head, known.tail, seconds(waited), cause.message())};
}

Status batch_size_status(const RingRanks& ranks, const RingShape& shape, Bytes bytes) {
    return {Code::argument,
            fmt::format("rank {} would send {} bytes at once to rank {}, must be a multiple of {} up to "
                        "the batch of {}",
                        ranks.own, bytes.value(), ranks.peer, RingShape::unit, shape.batch.value())};
}

Status check_head(const RingRanks& ranks, const RingPositions& known, std::uint64_t seen) {
    const std::uint64_t head = without_abort_bit(seen);
    if (is_aborted(seen) && head == known.head) return peer_aborted(ranks);
    if (possible(head, known.head, known.tail)) return {};
    return impossible_position(ranks, "head", head, known.head, known.tail);
}

Status check_tail(const RingRanks& ranks, const RingShape& shape, const RingPositions& known, std::uint64_t seen) {
    const std::uint64_t tail = without_abort_bit(seen);
    if (is_aborted(seen) && tail == known.tail) return peer_aborted(ranks);
    const std::uint64_t most = known.head + shape.size.value();
    if (possible(tail, known.tail, most)) return {};
    return impossible_position(ranks, "tail", tail, known.tail, most);
}

}  // namespace npushmem::moe
