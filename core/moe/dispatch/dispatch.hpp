// One MoE layer's dispatch on one PE: memory, and the launch per call. It brings every token's row to the ranks of its
// experts and makes, on the way, the plan by which the combine brings the experts' rows back.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "core/moe/combine_config.hpp"
#include "core/moe/combine_plan.hpp"
#include "core/moe/dispatch/dispatch_work.hpp"
#include "core/moe/published_failures.hpp"
#include "core/moe/symmetric_memory.hpp"
#include "npushmem/npu/device.hpp"
#include "npushmem/npu/launch.hpp"

namespace npushmem::moe {

// All members but the accessors are collective: every PE calls them in the same order. Not thread-safe.
//
// A call that is refused, by whichever rank, is refused on all, before a row moves and with the same code, that of the
// lowest rank that refuses; the next may follow at once. A call that fails (a rank that does not come) leaves the ranks
// out of step; until reset() the object then only says so.
class Dispatch {
public:
    // `config` is agreed on and has a capacity; the others must outlive the object.
    static Result<std::unique_ptr<Dispatch>> create(const CombineConfig& config, SymmetricMemory& memory,
                                                    npu::Device& device, PublishedFailures& failures);

    Dispatch(const Dispatch&) = delete;
    Dispatch& operator=(const Dispatch&) = delete;
    ~Dispatch() = default;

    // in: [tokens of `own`, hidden] of the input type; may be reused on return. `local_status`: what the caller itself
    // found wrong. What x() held before is given up with the call, unless it is refused.
    Status run(const std::byte* in, const RankRouting& own, const Status& local_status = {});
    // The same in two parts: start() waits for no other rank; finish(), if it went well, must be the next call. What
    // `in` and `own` point to stays unchanged until then.
    Status start(const std::byte* in, const RankRouting& own, const Status& local_status = {});
    Status finish();
    // Not collective: after a failure was published. Nobody waits for this rank any more.
    void signal_abort();
    // The ranks are in step again, as after create, once the failures are cleared.
    Status reset();

    // Of the last call that was accepted: the rows of this PE's experts, as plan() says; until the next call.
    [[nodiscard]] std::byte* x() const { return region_.data() + layout_.x().value(); }
    // To be taken once per accepted call.
    [[nodiscard]] CombinePlan take_plan() { return std::move(plan_); }

private:
    Dispatch(const CombineConfig& config, SymmetricMemory& memory, npu::Device& device, PublishedFailures& failures);

    Status allocate();
    Status check(const std::byte* in, const RankRouting& own) const;
    void fill_record(const Status& own_status);
    void clear_plan();
    [[nodiscard]] DispatchWork work_of(const std::byte* in, const RankRouting& own);
    Status begin_launches();
    Status end_launches();
    Status launch(const char* name, void (*kernel)(npu::Core&, const DispatchWork&), const DispatchWork& work);
    [[nodiscard]] Status refusal(const Status& own) const;
    [[nodiscard]] Status capacity_error(std::int32_t holder) const;
    void adopt();
    [[nodiscard]] std::uint32_t* slots() const;
    Status audit() const;
    Status abort_call(const Status& cause);
    [[nodiscard]] std::optional<int> aborted_peer() const;

    CombineConfig config_;
    SymmetricMemory& memory_;
    npu::Device& device_;
    PublishedFailures& failures_;
    ExpertPlacement placement_;
    DispatchLayout layout_;
    SymmetricBlock region_;
    npu::Stream stream_;
    std::vector<std::uint8_t> host_served_;  // per rank, 1: not mapped here; empty: all are mapped

    // DispatchTables
    std::vector<std::byte> record_;
    std::vector<std::uint32_t> order_;
    std::vector<std::uint64_t> begins_;
    std::vector<std::uint64_t> starts_;
    std::vector<std::uint64_t> totals_;
    std::uint64_t accepted_ = 0;
    DispatchWork work_;  // of the call under way
    Status own_status_;  // of this rank on it
    CombinePlan plan_;

    std::uint64_t epoch_ = 0;
};

}  // namespace npushmem::moe
