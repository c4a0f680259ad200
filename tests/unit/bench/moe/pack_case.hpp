// SPDX-License-Identifier: BSD-3-Clause
// One call of the packing sender with random tables and payload, and its expected result, computed byte by byte.
#pragma once

#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "bench/moe/pack_sender.hpp"

namespace npushmem::moe {

struct PackShape {
    std::int32_t ranks = 1;
    std::int32_t experts = 1;
    std::size_t row = 32;
    std::uint64_t seed = 1;
    std::uint32_t most = 3;       // rows of one fragment
    std::uint32_t empty = 3;      // one of so many fragments has none; 1: all, 0: none
    std::int32_t no_expert = -1;  // has no rows at all
    std::int32_t no_rank = -1;    // gets none
};

class PackCase {
public:
    static constexpr auto untouched = std::byte{0xEE};

    explicit PackCase(const PackShape& shape) : shape_(shape), random_(shape.seed) {
        for (std::int32_t expert = 0; expert < shape.experts; ++expert) {
            for (std::int32_t rank = 0; rank < shape.ranks; ++rank) add_fragment(expert, rank);
        }
        x.resize(rows * shape.row);
        for (std::byte& byte : x) byte = static_cast<std::byte>(random_());
        for (std::int32_t rank = 0; rank < shape.ranks; ++rank) capacity = std::max(capacity, rows_to(rank));
        tx.assign(arguments().tx_bytes().value() + 64, untouched);
        ordered.assign(tx.size(), untouched);
        packed.assign(static_cast<std::size_t>(shape.ranks) * PackArguments::packed_line, 0);
    }

    [[nodiscard]] PackArguments arguments() {
        PackArguments pack;
        pack.x = x.data();
        pack.tx_buffer = tx.data();
        pack.tables = {offsets.data(), lengths.data(), shape_.experts, shape_.ranks};
        pack.row = Bytes{shape_.row};
        pack.max_send_len = Rows{capacity};
        pack.ordered = ordered.data();
        pack.packed = packed.data();
        pack.call = 7;
        return pack;
    }

    // Returns "" or the first difference to a bytewise copy, including gaps and the bytes behind the buffer.
    [[nodiscard]] std::string wrong() {
        std::vector<std::byte> image(tx.size(), untouched);
        for (std::int32_t rank = 0; rank < shape_.ranks; ++rank) {
            std::size_t to = arguments().region(rank).value();
            for (std::int32_t expert = 0; expert < shape_.experts; ++expert) {
                const std::size_t at = entry(expert, rank);
                const auto bytes = static_cast<std::size_t>(lengths[at]) * shape_.row;
                const auto from = static_cast<std::size_t>(offsets[at]) * shape_.row;
                for (std::size_t i = 0; i < bytes; ++i) image[to++] = x[from + i];
            }
        }
        for (std::size_t i = 0; i < image.size(); ++i) {
            if (image[i] != tx[i]) return "byte " + std::to_string(i) + " of " + std::to_string(image.size());
        }
        for (std::size_t i = 0; i < packed.size(); ++i) {
            if (packed[i] != (i % PackArguments::packed_line == 0 ? 7 : 0)) return "flag " + std::to_string(i);
        }
        return "";
    }

    [[nodiscard]] std::size_t entry(std::int32_t expert, std::int32_t rank) const {
        return static_cast<std::size_t>(expert) * static_cast<std::size_t>(shape_.ranks) +
               static_cast<std::size_t>(rank);
    }

    std::vector<std::byte> x;
    std::vector<std::byte> tx;
    std::vector<std::byte> ordered;
    std::vector<std::uint64_t> packed;
    std::vector<std::int32_t> offsets;
    std::vector<std::int32_t> lengths;
    std::uint64_t rows = 0;
    std::uint64_t capacity = 1;

private:
    void add_fragment(std::int32_t expert, std::int32_t rank) {
        const bool none =
            expert == shape_.no_expert || rank == shape_.no_rank || (shape_.empty > 0 && random_() % shape_.empty == 0);
        const auto length = none ? 0 : 1 + static_cast<std::int32_t>(random_() % shape_.most);
        rows += random_() % 4 == 0 ? 1 : 0;  // rows of x that belong to nobody
        offsets.push_back(static_cast<std::int32_t>(rows));
        lengths.push_back(length);
        rows += static_cast<std::uint64_t>(length);
    }

    [[nodiscard]] std::uint64_t rows_to(std::int32_t rank) const {
        std::uint64_t sum = 0;
        for (std::int32_t expert = 0; expert < shape_.experts; ++expert) {
            sum += static_cast<std::uint64_t>(lengths[entry(expert, rank)]);
        }
        return sum;
    }

    PackShape shape_;
    std::mt19937_64 random_;
};

}  // namespace npushmem::moe
