// SPDX-License-Identifier: BSD-3-Clause
#include "core/moe/direct/rows_in_place.hpp"

#include <array>

namespace npushmem::moe {
namespace {

using npu::Core;
using npu::Pipe;

const std::byte* offer_of(const ReadInPlace& in_place, std::int32_t rank) {
    return in_place.memory.block + in_place.memory.layout.offer(rank).value();
}

std::uint64_t place_of_x(Core& core, const ReadInPlace& in_place, std::int32_t rank) {
    return core.load(reinterpret_cast<const std::uint64_t*>(offer_of(in_place, rank)));
}

}  // namespace

void put_offer(Core& core, const OfferInPlace& offer, std::int32_t rank) {
    static constexpr std::array<std::byte, sizeof(std::uint64_t)> nowhere{};
    const InPlaceLayout& layout = offer.memory.layout;
    std::byte* const target = offer.memory.block + layout.offer(core.my_pe()).value();
    if (offer.any()) {
        core.put(target, offer.offers + layout.offer(rank).value(), layout.offer_bytes().value(), rank);
    } else {
        core.put(target, nowhere.data(), nowhere.size(), rank);
    }
    core.set_flag<Pipe::copy_out, Pipe::scalar>(0);
    core.wait_flag<Pipe::copy_out, Pipe::scalar>(0);
}

void fetch_offers(Core& core, const ReadInPlace& in_place) {
    core.dcci(in_place.memory.block, in_place.memory.layout.read(0).value());
}

bool is_offered(Core& core, const ReadInPlace& in_place, std::int32_t rank) {
    return in_place.memory.any() && place_of_x(core, in_place, rank) != 0;
}

namespace {

const std::byte* offered_row(Core& core, const ReadInPlace& in_place, std::uint64_t choice) {
    const std::int32_t expert = in_place.experts[choice];
    const std::int32_t rank = in_place.placement.rank_of(expert);
    const auto* const first_rows =
        reinterpret_cast<const std::int32_t*>(offer_of(in_place, rank) + sizeof(std::uint64_t));
    const std::int32_t first = core.load(first_rows + (expert - in_place.placement.first_expert(rank)));
    const std::uint64_t row = static_cast<std::uint64_t>(first) + in_place.number[choice];
    std::byte* const x = core.remote(in_place.memory.block + place_of_x(core, in_place, rank), rank);
    return x + bytes_of(Rows{row}, in_place.row).value();
}

}  // namespace

void add_offered(Core& core, const ReadInPlace& in_place, std::uint64_t slot, std::uint64_t width, std::int32_t id,
                 WeightedRows& rows) {
    if (!in_place.per_rank) return rows.add(offered_row(core, in_place, slot), in_place.weights[slot]);
    const auto top_k = static_cast<std::uint64_t>(in_place.top_k);
    const std::uint64_t first = slot / width * top_k;
    for (std::uint64_t choice = first; choice < first + top_k; ++choice) {
        const std::int32_t expert = in_place.experts[choice];
        if (expert >= 0 && in_place.placement.rank_of(expert) == id)
            rows.add(offered_row(core, in_place, choice), in_place.weights[choice]);
    }
}

}  // namespace npushmem::moe
