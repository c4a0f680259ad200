// SPDX-License-Identifier: BSD-3-Clause
// A layer with one row per (token, rank), run through the C API and compared bit by bit with a scalar reference of the
// documented tree, which shares no code with the library.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

#include "npushmem.h"
#include "npushmemx.h"
#include "tests/integration/api/programs/checker.hpp"

namespace npushmem::api_test {

template <class Random, class... Values>
auto drawn(Random& random, Values... values) {
    const std::array all{values...};
    return all[random() % all.size()];
}

// A half by its definition: 10 bits of fraction, from 2^-14 on; 2^-24 is the smallest number.
inline std::uint32_t encoded_half(float value) {
    if (std::isnan(value)) return 0x7E00;
    const std::uint32_t sign = std::signbit(value) ? 0x8000 : 0;
    const double magnitude = std::abs(value);
    if (magnitude >= 65520) return sign | 0x7C00;
    const int exponent = magnitude < 0x1p-14 ? -14 : std::ilogb(magnitude);
    const auto steps = static_cast<std::uint32_t>(std::nearbyint(std::ldexp(magnitude, 10 - exponent)));
    return sign | ((static_cast<std::uint32_t>(exponent + 14) << 10) + steps);
}
inline float decoded_half(std::uint32_t element) {
    const int exponent = static_cast<int>(element >> 10 & 31);
    const auto fraction = static_cast<float>(element & 1023);
    const float magnitude = exponent == 31  ? (fraction == 0 ? HUGE_VALF : std::nanf(""))
                            : exponent == 0 ? std::ldexp(fraction, -24)
                                            : std::ldexp(1024 + fraction, exponent - 25);
    return (element & 0x8000) != 0 ? -magnitude : magnitude;
}

// An element of the row type, as the program stores it, in 32 bits.
inline std::uint32_t encoded(std::int32_t type, float value) {
    const auto bits = std::bit_cast<std::uint32_t>(value);
    if (type == NPUSHMEMX_MOE_FLOAT) return bits;
    if (type == NPUSHMEMX_MOE_HALF) return encoded_half(value);
    if (std::isnan(value)) return 0x7FC0;
    const std::uint32_t below = bits & 0xFFFFU;
    const std::uint32_t kept = bits >> 16;
    const bool up = below > 0x8000U || (below == 0x8000U && (kept & 1U) != 0);
    return kept + (up ? 1 : 0);
}
inline float decoded(std::int32_t type, std::uint32_t element) {
    if (type == NPUSHMEMX_MOE_HALF) return decoded_half(element);
    return std::bit_cast<float>(type == NPUSHMEMX_MOE_FLOAT ? element : element << 16);
}
inline float rounded(std::int32_t type, float value) { return decoded(type, encoded(type, value)); }

inline std::size_t bytes_of(std::int32_t type) { return type == NPUSHMEMX_MOE_FLOAT ? 4 : 2; }
inline void store(std::int32_t type, std::byte* row, std::int64_t column, float value) {
    const std::uint32_t element = encoded(type, value);
    std::memcpy(row + static_cast<std::size_t>(column) * bytes_of(type), &element, bytes_of(type));
}
inline float load(std::int32_t type, const std::byte* row, std::int64_t column) {
    std::uint32_t element = 0;
    std::memcpy(&element, row + static_cast<std::size_t>(column) * bytes_of(type), bytes_of(type));
    return decoded(type, element);
}
// Equal bits; NaNs may differ in sign and payload.
inline bool same(float a, float b) {
    return std::bit_cast<std::uint32_t>(a) == std::bit_cast<std::uint32_t>(b) || (std::isnan(a) && std::isnan(b));
}

inline std::uint64_t hashed(std::uint64_t x) {
    x = (x ^ (x >> 31)) * 0x9E3779B97F4A7C15ULL;
    x = (x ^ (x >> 29)) * 0xBF58476D1CE4E5B9ULL;
    return x ^ (x >> 32);
}

// A layer's sizes and everything that its ranks know: each rank can compute the tokens and choices of all.
struct Case {
    npushmemx_moe_config_t config = NPUSHMEMX_MOE_CONFIG_INITIALIZER;
    std::uint64_t seed = 1;
    int ranks = 1;
    double absent = 0.1;
    bool crowded = false;  // all choices but the absent ones go to one expert
    bool special = false;  // infinities, NaNs and denormals among the elements

    [[nodiscard]] int rank_of(int expert) const {
        for (int rank = 0, first = 0; rank < ranks; ++rank) {
            first += config.experts / ranks + (rank < config.experts % ranks ? 1 : 0);
            if (expert < first) return rank;
        }
        return -1;
    }
    [[nodiscard]] int tokens_of(int rank) const {
        return static_cast<int>(hashed(seed * 77 + static_cast<std::uint64_t>(rank)) %
                                static_cast<std::uint64_t>(config.max_tokens + 1));
    }
    [[nodiscard]] std::uint64_t hash(std::uint64_t what, int rank, int token, std::int64_t place) const {
        return hashed(hashed(hashed(seed * 8 + what) + static_cast<std::uint64_t>(rank * 1000 + token)) +
                      static_cast<std::uint64_t>(place));
    }
    [[nodiscard]] int expert(int rank, int token, int k) const {
        const std::uint64_t h = hash(1, rank, token, k);
        if (static_cast<double>(h % 1000) < 1000 * absent) return -1;
        if (crowded) return config.experts / 2;
        return static_cast<int>((h >> 20) % static_cast<std::uint64_t>(config.experts));
    }
    [[nodiscard]] float weight(int rank, int token, int k) const {
        return static_cast<float>(static_cast<int>(hash(2, rank, token, k) % 2000) - 1000) / 777.0F;
    }
    [[nodiscard]] float input(int rank, int token, std::int64_t column) const {
        const std::uint64_t h = hash(3, rank, token, column);
        if (special && h % 31 == 0) {
            constexpr std::array<float, 4> values{std::numeric_limits<float>::infinity(),
                                                  -std::numeric_limits<float>::infinity(),
                                                  std::numeric_limits<float>::quiet_NaN(), 0x1p-130F};
            return rounded(config.input_type, values[(h >> 8) % values.size()]);
        }
        return rounded(config.input_type, static_cast<float>(static_cast<int>((h >> 16) % 4001) - 2000) / 331.0F);
    }
    [[nodiscard]] float computed(int expert_id, float in) const {
        return rounded(config.input_type, in * static_cast<float>(1 + expert_id % 3) + static_cast<float>(expert_id));
    }
    [[nodiscard]] float output(int rank, int token, std::int64_t column) const;
};

// The documented tree of one row per rank, of a case or of a class derived from it: row(k) and weight(k) are those of
// the choice k.
template <class SomeCase, class Row, class Weight>
float sum_by_ranks(const SomeCase& c, int rank, int token, const Row& row, const Weight& weight) {
    float sum = 0;
    for (int holder = 0; holder < c.ranks; ++holder) {
        float of_holder = 0;
        bool any = false;
        for (int k = 0; k < c.config.top_k; ++k) {
            const int id = c.expert(rank, token, k);
            if (id < 0 || c.rank_of(id) != holder) continue;
            const float product = weight(k) * row(k);
            of_holder = of_holder + product;
            any = true;
        }
        if (any) sum = sum + rounded(c.config.input_type, of_holder);
    }
    return rounded(c.config.output_type, sum);
}

inline float Case::output(int rank, int token, std::int64_t column) const {
    const float in = input(rank, token, column);
    return sum_by_ranks(
        *this, rank, token, [&](int k) { return computed(expert(rank, token, k), in); },
        [&](int k) { return weight(rank, token, k); });
}

// The PEs of a job in two teams, which are those of even and of odd number; the one of this PE. Collective.
inline npushmem_team_t team_of_parity(const Job& job) {
    npushmem_team_t own = NPUSHMEM_TEAM_INVALID;
    for (int first = 0; first < 2; ++first) {
        npushmem_team_t team = NPUSHMEM_TEAM_INVALID;
        npushmem_team_split_strided(NPUSHMEM_TEAM_WORLD, first, 2, job.npes / 2, nullptr, 0, &team);
        if (team != NPUSHMEM_TEAM_INVALID) own = team;
    }
    return own;
}

// Symmetric memory for the rows of a case's experts. Creation and destruction are collective.
class SymmetricRows {
public:
    // Enough for gaps before each fragment and each expert.
    explicit SymmetricRows(const Case& c) {
        const npushmemx_moe_config_t& config = c.config;
        const std::int64_t gaps = config.experts * (c.ranks + std::max(config.expert_alignment, 1));
        const std::int64_t rows = c.ranks * config.max_tokens * config.top_k + gaps;
        memory_ = npushmem_malloc(static_cast<std::size_t>(rows * config.hidden) * bytes_of(config.input_type));
    }
    SymmetricRows(const SymmetricRows&) = delete;
    SymmetricRows& operator=(const SymmetricRows&) = delete;
    ~SymmetricRows() { npushmem_free(memory_); }

    [[nodiscard]] std::byte* copy_of(const void* rows, std::size_t bytes) {
        std::copy_n(static_cast<const std::byte*>(rows), bytes, static_cast<std::byte*>(memory_));
        return static_cast<std::byte*>(memory_);
    }

private:
    void* memory_;
};

// Ways to run a layer: the experts work on copies in place, or read the received rows by index; with calls that return
// at once; with rows that came by other means; with tables of the program's own.
enum class Way { copies, index, nbi, routing, tables };
constexpr std::array<Way, 5> ways{Way::copies, Way::index, Way::nbi, Way::routing, Way::tables};

class RankLayer {
public:
    RankLayer(Checker& check, const Case& c, int me) : check_(check), case_(c), me_(me), tokens_(c.tokens_of(me)) {
        for (int token = 0; token < tokens_; ++token) {
            for (int k = 0; k < c.config.top_k; ++k) {
                ids_.push_back(c.expert(me, token, k));
                weights_.push_back(c.weight(me, token, k));
            }
        }
        in_.resize(static_cast<std::size_t>(tokens_) * row_bytes());
        for (int token = 0; token < tokens_; ++token) {
            for (std::int64_t column = 0; column < c.config.hidden; ++column) {
                store(c.config.input_type, in_.data() + static_cast<std::size_t>(token) * row_bytes(), column,
                      c.input(me, token, column));
            }
        }
    }
    RankLayer(const RankLayer&) = delete;
    RankLayer& operator=(const RankLayer&) = delete;
    ~RankLayer() { npushmemx_moe_destroy(handle_); }

    bool open() { return check_.equal("create", 0, npushmemx_moe_create(&case_.config, &handle_)); }
    [[nodiscard]] npushmemx_moe_t* handle() { return handle_; }
    // Rows are copied there before a combine. `rows` must outlive the object.
    void keep_rows_in(SymmetricRows& rows) { symmetric_ = &rows; }

    void run(Way way) {
        if (!prepare(way)) return;
        if (symmetric_ != nullptr)
            rows_ = symmetric_->copy_of(rows_, static_cast<std::size_t>(plan_.rows) * row_bytes());
        out_.assign(static_cast<std::size_t>(tokens_ * case_.config.hidden) * bytes_of(case_.config.output_type),
                    std::byte{0xA5});
        const bool waits = way == Way::nbi;
        const int code = waits ? npushmemx_moe_combine_nbi(handle_, rows_, out_.data())
                               : npushmemx_moe_combine(handle_, rows_, out_.data());
        check_.equal("combine", 0, code);
        if (waits) check_.equal("wait for the combine", 0, npushmemx_moe_wait(handle_));
        check_output();
    }

private:
    [[nodiscard]] std::size_t row_bytes() const {
        return static_cast<std::size_t>(case_.config.hidden) * bytes_of(case_.config.input_type);
    }

    // Until the experts' rows are complete.
    bool prepare(Way way) {
        if (way == Way::routing || way == Way::tables) {
            if (!check_.equal("set_routing", 0,
                              npushmemx_moe_set_routing(handle_, tokens_, ids_.data(), weights_.data())) ||
                !check_.equal("get_plan", 0, npushmemx_moe_get_plan(handle_, &plan_)) ||
                (way == Way::tables && !set_tables()))
                return false;
            return make_rows(), check_received(false);
        }
        void* x = nullptr;
        if (!check_.equal("dispatch", 0, dispatch(way, &x)) ||
            !check_.equal("get_plan", 0, npushmemx_moe_get_plan(handle_, &plan_)) || !check_received(true))
            return false;
        if (way == Way::index) return compute_by_index();
        rows_ = static_cast<std::byte*>(x);
        return compute(rows_);
    }

    int dispatch(Way way, void** x) {
        if (way == Way::copies)
            return npushmemx_moe_dispatch(handle_, tokens_, in_.data(), ids_.data(), weights_.data(), x);
        if (way == Way::index)
            return npushmemx_moe_dispatch(handle_, tokens_, in_.data(), ids_.data(), weights_.data(), nullptr);
        const int started = npushmemx_moe_dispatch_nbi(handle_, tokens_, in_.data(), ids_.data(), weights_.data(), x);
        return started == 0 ? npushmemx_moe_wait(handle_) : started;
    }

    // Calls visit(row, local expert, rank, slot) for each row of the experts.
    template <class Visit>
    void for_each_row(const Visit& visit) const {
        for (std::int32_t entry = 0; entry < plan_.local_experts * plan_.ranks; ++entry) {
            for (std::int32_t i = 0; i < plan_.length_table[entry]; ++i) {
                const std::int32_t row = plan_.offset_table[entry] + i;
                visit(row, plan_.first_expert + entry / plan_.ranks, entry % plan_.ranks,
                      static_cast<int>(plan_.slots[row]));
            }
        }
    }

    // The expert's output for a token, computed from nothing but the case.
    void write_row(std::byte* row, int id, int rank, int token) const {
        for (std::int64_t column = 0; column < case_.config.hidden; ++column) {
            store(case_.config.input_type, row, column, case_.computed(id, case_.input(rank, token, column)));
        }
    }
    void make_rows() {
        own_rows_.assign(static_cast<std::size_t>(plan_.rows) * row_bytes(), std::byte{0x5A});
        for_each_row([&](std::int32_t row, int id, int rank, int slot) {
            write_row(own_rows_.data() + static_cast<std::size_t>(row) * row_bytes(), id, rank,
                      slot / case_.config.top_k);
        });
        rows_ = own_rows_.data();
    }

    // The experts' computation, from the row that has arrived.
    void compute_row(const std::byte* from, std::byte* to, int id) const {
        for (std::int64_t column = 0; column < case_.config.hidden; ++column) {
            store(case_.config.input_type, to, column, case_.computed(id, load(case_.config.input_type, from, column)));
        }
    }
    bool compute(std::byte* rows) {
        for_each_row([&](std::int32_t row, int id, int, int) {
            std::byte* at = rows + static_cast<std::size_t>(row) * row_bytes();
            compute_row(at, at, id);
        });
        return true;
    }
    bool compute_by_index() {
        own_rows_.assign(static_cast<std::size_t>(plan_.rows) * row_bytes(), std::byte{0x5A});
        rows_ = own_rows_.data();
        for_each_row([&](std::int32_t row, int id, int, int) {
            const auto* x = static_cast<const std::byte*>(received_.x);
            compute_row(x + static_cast<std::size_t>(received_.row_index[row]) * row_bytes(),
                        rows_ + static_cast<std::size_t>(row) * row_bytes(), id);
        });
        return true;
    }

    // Each fragment in reverse order of the experts, with a gap of one row before it, and its rows reversed.
    bool set_tables() {
        const std::size_t entries =
            static_cast<std::size_t>(plan_.local_experts) * static_cast<std::size_t>(plan_.ranks);
        // One more than needed, so that the tables of a PE without experts have addresses.
        std::vector<std::int32_t> offsets(entries + 1);
        std::vector<std::int32_t> lengths(plan_.length_table, plan_.length_table + entries);
        lengths.push_back(0);
        std::vector<std::uint32_t> slots;
        for (std::size_t entry = entries; entry-- > 0;) {
            slots.push_back(0xFFFFFFFFU);
            offsets[entry] = static_cast<std::int32_t>(slots.size());
            for (std::int32_t i = lengths[entry]; i-- > 0;) slots.push_back(plan_.slots[plan_.offset_table[entry] + i]);
        }
        const int code = npushmemx_moe_set_plan(handle_, offsets.data(), lengths.data(), slots.data(),
                                                static_cast<std::int64_t>(slots.size()));
        return check_.equal("set_plan", 0, code) &&
               check_.equal("get_plan", 0, npushmemx_moe_get_plan(handle_, &plan_));
    }

    // One row for each token with an expert here, by rank, then by token; and where each row of the experts comes from.
    bool check_received(bool arrived) {
        if (!check_.equal("get_received", 0, npushmemx_moe_get_received(handle_, &received_))) return false;
        std::vector<std::vector<int>> row_of(static_cast<std::size_t>(case_.ranks));
        int rows = 0;
        for (int rank = 0; rank < case_.ranks; ++rank) {
            for (int token = 0; token < case_.tokens_of(rank); ++token) {
                bool here = false;
                for (int k = 0; k < case_.config.top_k; ++k) {
                    const int id = case_.expert(rank, token, k);
                    here = here || (id >= 0 && case_.rank_of(id) == me_);
                }
                row_of[static_cast<std::size_t>(rank)].push_back(here ? rows : -1);
                if (here && arrived) check_row(rows, rank, token);
                rows += here ? 1 : 0;
            }
        }
        for_each_row([&](std::int32_t row, int id, int rank, int slot) {
            const int token = slot / case_.config.top_k;
            const int k = slot % case_.config.top_k;
            check_.equal("expert", case_.expert(rank, token, k), id);
            check_.equal("row_index", row_of[static_cast<std::size_t>(rank)][static_cast<std::size_t>(token)],
                         received_.row_index[row]);
            check_.equal("weights", case_.weight(rank, token, k), received_.weights[row]);
        });
        return check_.equal("received rows", static_cast<std::int64_t>(rows), received_.rows);
    }
    void check_row(int row, int rank, int token) {
        const auto* at = static_cast<const std::byte*>(received_.x) + static_cast<std::size_t>(row) * row_bytes();
        for (std::int64_t column = 0; column < case_.config.hidden; ++column) {
            const float expected = case_.input(rank, token, column);
            const float seen = load(case_.config.input_type, at, column);
            if (same(expected, seen)) continue;
            check_.fail(fmt::format("seed {}, received row {} of rank {}, token {}, column {}: expected {}, saw {}",
                                    case_.seed, row, rank, token, column, expected, seen));
            return;
        }
    }

    void check_output() {
        const std::size_t row = static_cast<std::size_t>(case_.config.hidden) * bytes_of(case_.config.output_type);
        for (int token = 0; token < tokens_; ++token) {
            for (std::int64_t column = 0; column < case_.config.hidden; ++column) {
                const float expected = case_.output(me_, token, column);
                const float seen =
                    load(case_.config.output_type, out_.data() + static_cast<std::size_t>(token) * row, column);
                if (same(expected, seen)) continue;
                check_.fail(fmt::format("seed {}, mode {}, copy {}, token {}, column {}: expected {}, saw {}",
                                        case_.seed, case_.config.mode, case_.config.copy, token, column, expected,
                                        seen));
                return;
            }
        }
    }

    Checker& check_;
    Case case_;
    int me_;
    int tokens_;
    std::vector<std::int32_t> ids_;
    std::vector<float> weights_;
    std::vector<std::byte> in_;
    std::vector<std::byte> out_;
    std::vector<std::byte> own_rows_;
    std::byte* rows_ = nullptr;  // of the experts
    SymmetricRows* symmetric_ = nullptr;
    npushmemx_moe_t* handle_ = nullptr;
    npushmemx_moe_plan_t plan_{};
    npushmemx_moe_received_t received_{};
};

}  // namespace npushmem::api_test
