// SPDX-License-Identifier: BSD-3-Clause
// MoE layers with their buffers, their payload, and the check of their results.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "bench/perf/job.hpp"
#include "bench/perf/moe/combine_case.hpp"
#include "npushmem/moe.h"
#include "npushmem/plugin/status.hpp"

namespace npushmem::perf {

// The configuration of a layer without dispatch.
npushmemx_moe_config_t layer_config(const CombineCase& c, const CombineOptions& options);

// The first element that differs from the reference.
struct Difference {
    std::int64_t token = 0;
    std::int64_t column = 0;
    float expected = 0;
    float seen = 0;
};

// One MoE layer's combine.
class CombineLayer {
public:
    // Collective. `c` must outlive the layer. combine_type: of the rows that return (npushmemx_moe_config_t).
    static Result<std::unique_ptr<CombineLayer>> create(const CombineCase& c, const CombineOptions& options, int pe,
                                                        std::int32_t combine_type = 0);
    CombineLayer(const CombineLayer&) = delete;
    CombineLayer& operator=(const CombineLayer&) = delete;
    ~CombineLayer();  // collective

    // Fills every row of x with the values for this salt (a function of rank, token, choice, expert and column), and
    // out with other values.
    void fill(std::uint64_t salt);
    Status combine();
    // Compares every bit of out with the scalar reference, which uses the same order of additions and the same
    // rounding. No communication: this PE computes all rows of its tokens itself.
    [[nodiscard]] std::optional<Difference> verify(std::uint64_t salt) const;

    // Traffic of all calls so far.
    [[nodiscard]] npushmemx_moe_traffic_t traffic() const;
    [[nodiscard]] std::int64_t rows() const { return plan_.rows; }
    // Rows that this PE returns in a call.
    [[nodiscard]] std::int64_t sent_rows() const { return sent_rows_; }
    [[nodiscard]] std::size_t payload_bytes() const;
    [[nodiscard]] const std::byte* x() const { return x_.data(); }
    [[nodiscard]] const npushmemx_moe_plan_t& plan() const { return plan_; }

private:
    CombineLayer(const CombineCase& c, int pe) : case_(c), pe_(pe) {}
    Status open(const npushmemx_moe_config_t& config);
    Status failure() const;

    const CombineCase& case_;
    int pe_;
    bool per_rank_ = false;
    npushmemx_moe_t* handle_ = nullptr;
    npushmemx_moe_plan_t plan_{};
    std::int64_t sent_rows_ = 0;
    std::vector<std::byte> x_;
    std::vector<std::byte> out_;
};

// One MoE layer whose experts return their input: the dispatch sends the tokens, and the combine returns the rows.

class RoundTripLayer {
public:
    // Collective. `c` must outlive the layer; its routing may change between calls. `capacity`: maximum number of rows
    // of a PE; 0: the rows of the hottest PE in this routing.
    static Result<std::unique_ptr<RoundTripLayer>> create(const Job& job, const CombineCase& c,
                                                          const CombineOptions& options, std::int64_t capacity = 0);
    RoundTripLayer(const RoundTripLayer&) = delete;
    RoundTripLayer& operator=(const RoundTripLayer&) = delete;
    ~RoundTripLayer();  // collective

    // Fills this PE's tokens with a function of rank, token, column and salt.
    void fill(std::uint64_t salt);
    Status dispatch();
    // By the layout of the last dispatch, with the same results.
    Status dispatch_cached();
    // With one row per rank: makes the experts' rows, copies of the received rows. Call it between a dispatch and its
    // combine, when rows or routing have changed.
    void run_experts();
    // Combines the experts' rows.
    Status combine();
    // verify_rows compares every row of the experts with the row that its token's PE has sent (`token` of a difference
    // is then the row of x); verify_output compares the output with the scalar reference. No communication.
    [[nodiscard]] std::optional<Difference> verify_rows(std::uint64_t salt) const;
    [[nodiscard]] std::optional<Difference> verify_output(std::uint64_t salt) const;

    // Values of the last dispatch.
    [[nodiscard]] const npushmemx_moe_plan_t& plan() const { return plan_; }
    [[nodiscard]] const std::byte* x() const { return per_rank_ ? y_.get() : static_cast<const std::byte*>(x_); }
    // Rows of the experts, without gaps.
    [[nodiscard]] std::int64_t rows() const;
    [[nodiscard]] std::int64_t sent_rows() const;
    [[nodiscard]] std::size_t payload_bytes() const { return static_cast<std::size_t>(rows() * case_.row_bytes()); }
    [[nodiscard]] std::int64_t capacity() const { return capacity_; }
    // True if the combine leaves this PE's rows in place.
    [[nodiscard]] bool stays_in_place() const;
    // This PE's tokens, moved out: the last call on the layer.
    [[nodiscard]] std::vector<std::byte> take_in() { return std::move(in_); }

private:
    RoundTripLayer(const CombineCase& c, int pe) : case_(c), pe_(pe) {}
    Status open(const CombineOptions& options);
    Status failure() const;
    [[nodiscard]] std::optional<Difference> verify_fragment(int rank, std::int64_t first, std::int64_t count,
                                                            std::uint64_t salt) const;

    const CombineCase& case_;
    int pe_;
    std::int64_t capacity_ = 0;
    std::int64_t max_rows_ = 0;  // of the experts of a PE
    bool per_rank_ = false;
    bool may_stay_ = false;  // the configuration allows rows to stay in place
    npushmemx_moe_t* handle_ = nullptr;
    npushmemx_moe_plan_t plan_{};
    npushmemx_moe_received_t received_{};
    void* x_ = nullptr;
    Symmetric<std::byte> y_;  // one row per rank: the experts' rows
    std::vector<std::byte> in_;
    std::vector<std::byte> out_;
};

}  // namespace npushmem::perf
