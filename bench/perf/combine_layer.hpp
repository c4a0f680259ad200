// One MoE layer's combine with its buffers, its payload, and the proof of its result.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "bench/perf/combine_case.hpp"
#include "npushmem/moe.h"
#include "npushmem/plugin/status.hpp"

namespace npushmem::perf {

// The first element that is not what the reference says.
struct Difference {
    std::int64_t token = 0;
    std::int64_t column = 0;
    float expected = 0;
    float seen = 0;
};

class CombineLayer {
public:
    // Collective. `c` must outlive the layer.
    static Result<std::unique_ptr<CombineLayer>> create(const CombineCase& c, const CombineOptions& options, int pe);
    CombineLayer(const CombineLayer&) = delete;
    CombineLayer& operator=(const CombineLayer&) = delete;
    ~CombineLayer();  // collective

    // Writes into every row of x what belongs there for this salt (rank, token, choice, expert and column decide), and
    // something else into out.
    void fill(std::uint64_t salt);
    Status combine();
    // out against the scalar reference: same order of additions, same rounding, every bit. No communication: this PE
    // computes all rows of its tokens itself.
    [[nodiscard]] std::optional<Difference> verify(std::uint64_t salt) const;

    // Of all calls so far.
    [[nodiscard]] npushmemx_moe_traffic_t traffic() const;
    [[nodiscard]] std::int64_t rows() const { return plan_.rows; }
    [[nodiscard]] std::size_t payload_bytes() const;
    [[nodiscard]] const std::byte* x() const { return x_.data(); }
    [[nodiscard]] const npushmemx_moe_plan_t& plan() const { return plan_; }

private:
    CombineLayer(const CombineCase& c, int pe) : case_(c), pe_(pe) {}
    Status open(const CombineOptions& options);
    Status failure() const;

    const CombineCase& case_;
    int pe_;
    npushmemx_moe_t* handle_ = nullptr;
    npushmemx_moe_plan_t plan_{};
    std::vector<std::byte> x_;
    std::vector<std::byte> out_;
};

}  // namespace npushmem::perf
