// One MoE layer whose experts give back what they get: tokens out by the dispatch, rows back by the combine, and the
// proof of both.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "bench/perf/combine_case.hpp"
#include "bench/perf/combine_layer.hpp"
#include "bench/perf/job.hpp"
#include "npushmem/moe.h"

namespace npushmem::perf {

class RoundTripLayer {
public:
    // Collective. `c` must outlive the layer; its routing may change between calls. `capacity`: most rows of a PE; 0:
    // as come to the hottest PE by this routing.
    static Result<std::unique_ptr<RoundTripLayer>> create(const Job& job, const CombineCase& c,
                                                          const CombineOptions& options, std::int64_t capacity = 0);
    RoundTripLayer(const RoundTripLayer&) = delete;
    RoundTripLayer& operator=(const RoundTripLayer&) = delete;
    ~RoundTripLayer();  // collective

    // Writes this PE's tokens: rank, token and column decide, and the salt.
    void fill(std::uint64_t salt);
    Status dispatch();
    // With what the last dispatch brought.
    Status combine();
    // Every row of x against what its token's PE has sent (`token` of a difference is then the row of x), and every
    // row of the output against the scalar reference. No communication.
    [[nodiscard]] std::optional<Difference> verify_rows(std::uint64_t salt) const;
    [[nodiscard]] std::optional<Difference> verify_output(std::uint64_t salt) const;

    // Of the last dispatch.
    [[nodiscard]] const npushmemx_moe_plan_t& plan() const { return plan_; }
    [[nodiscard]] const std::byte* x() const { return static_cast<const std::byte*>(x_); }
    [[nodiscard]] std::size_t payload_bytes() const { return static_cast<std::size_t>(plan_.rows * case_.row_bytes()); }
    [[nodiscard]] std::int64_t capacity() const { return capacity_; }

private:
    RoundTripLayer(const CombineCase& c, int pe) : case_(c), pe_(pe) {}
    Status open(const CombineOptions& options);
    Status failure() const;
    [[nodiscard]] std::optional<Difference> verify_fragment(int rank, std::int64_t first, std::int64_t count,
                                                            std::uint64_t salt) const;

    const CombineCase& case_;
    int pe_;
    std::int64_t capacity_ = 0;
    npushmemx_moe_t* handle_ = nullptr;
    npushmemx_moe_plan_t plan_{};
    void* x_ = nullptr;
    std::vector<std::byte> in_;
    std::vector<std::byte> out_;
};

}  // namespace npushmem::perf
