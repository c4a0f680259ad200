// A combine in mode direct, its rows copied through UB, on PEs that are all in this process and thread: to be run once
// fast and once checked.
#pragma once

#include <memory>
#include <vector>

#include "core/moe/combine_plan.hpp"
#include "core/moe/combine_receiver.hpp"
#include "core/moe/combine_sender.hpp"
#include "core/moe/routing.hpp"
#include "npushmem/npu/checked_job.hpp"

namespace npushmem::perf {

struct CheckedCombineShape {
    int pes = 2;
    int experts = 32;
    int top_k = 8;
    int tokens = 32;  // of each PE
    std::uint64_t columns = 7168;
};

class CheckedCombine {
public:
    static Result<std::unique_ptr<CheckedCombine>> create(const CheckedCombineShape& shape, bool check);

    // One call on all PEs; the report says how long it took and what was found.
    npu::CheckReport run();

private:
    CheckedCombine(const CheckedCombineShape& shape, moe::Routing routing, std::unique_ptr<npu::CheckedJob> job);

    [[nodiscard]] static moe::SlotLayout layout_of(const CheckedCombineShape& shape);
    [[nodiscard]] static std::size_t heap_bytes(const CheckedCombineShape& shape);
    Status plan_all();
    [[nodiscard]] moe::CombineSend send_of(int pe) const;
    [[nodiscard]] moe::CombineReceive receive_of(int pe) const;

    CheckedCombineShape shape_;
    moe::Routing routing_;
    std::unique_ptr<npu::CheckedJob> job_;
    moe::SlotLayout layout_;
    std::vector<moe::CombinePlan> plans_;
    std::byte* region_ = nullptr;
    std::byte* x_ = nullptr;
    std::byte* out_ = nullptr;
    std::uint64_t epoch_ = 0;
};

}  // namespace npushmem::perf
