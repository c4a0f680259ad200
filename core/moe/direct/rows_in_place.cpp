// SPDX-License-Identifier: BSD-3-Clause
#include "core/moe/direct/rows_in_place.hpp"

#include <array>

namespace npushmem::moe {

using npu::Core;
using npu::Pipe;

void put_offer(Core& core, const OfferInPlace& offer, std::uint64_t epoch, std::int32_t rank) {
    static constexpr std::array<std::byte, sizeof(std::uint64_t)> not_offered{};
    const InPlaceLayout& layout = offer.memory.layout;
    std::byte* const target = offer.memory.block + layout.offer(epoch, core.my_pe()).value();
    if (offer.is_offered()) {
        const std::byte* const source =
            offer.offers + (layout.offer_bytes() * static_cast<std::uint64_t>(rank)).value();
        core.put(target, source, layout.offer_bytes().value(), rank);
    } else {
        core.put(target, not_offered.data(), not_offered.size(), rank);
    }
    core.set_flag<Pipe::copy_out, Pipe::scalar>(0);
    core.wait_flag<Pipe::copy_out, Pipe::scalar>(0);
}

Offers::Offers(Core& core, const ReadInPlace& in_place, std::uint64_t epoch)
    : core_(core), in_place_(in_place), epoch_(epoch) {
    if (in_place.memory.exists()) core.dcci(in_place.memory.block, in_place.memory.layout.offers().value());
}

std::uint64_t Offers::place_of_x(std::int32_t rank) const {
    return core_.load(reinterpret_cast<const std::uint64_t*>(offer_of(rank)));
}

bool Offers::any(std::int32_t ranks) const {
    bool any = false;
    for (std::int32_t rank = 0; rank < ranks; ++rank) any |= has(rank);
    return any;
}

const std::byte* Offers::row(std::uint64_t choice) const {
    const std::int32_t expert = in_place_.experts[choice];
    const std::int32_t rank = in_place_.placement.rank_of(expert);
    const auto* const first_rows = reinterpret_cast<const std::int32_t*>(offer_of(rank) + sizeof(std::uint64_t));
    const std::int32_t first = core_.load(first_rows + (expert - in_place_.placement.first_expert(rank)));
    const std::uint64_t row = static_cast<std::uint64_t>(first) + in_place_.row_in_fragment[choice];
    const std::byte* const x = core_.remote(in_place_.memory.block + place_of_x(rank), rank);
    return x + bytes_of(Rows{row}, in_place_.row).value();
}

void Offers::add_rows(std::uint64_t token, std::int32_t rank, WeightedRows& rows) const {
    const auto top_k = static_cast<std::uint64_t>(in_place_.top_k);
    for (std::uint64_t choice = token * top_k; choice < (token + 1) * top_k; ++choice) {
        const std::int32_t expert = in_place_.experts[choice];
        if (expert >= 0 && in_place_.placement.rank_of(expert) == rank)
            rows.add(row(choice), in_place_.weights[choice]);
    }
}

}  // namespace npushmem::moe
