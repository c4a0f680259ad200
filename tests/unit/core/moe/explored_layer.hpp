// SPDX-License-Identifier: BSD-3-Clause
// A tiny layer in a checked job: every PE dispatches its tokens, applies its experts and combines, in one kernel. So a
// PE may be in the combine while another one is still in the dispatch. Each explored schedule's output is compared with
// sums that are computed from the routing alone.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "bench/moe/dispatch_in_job.hpp"
#include "core/moe/dispatch/dispatch_kernel.hpp"
#include "core/moe/stream/row_order.hpp"
#include "core/moe/stream/stream_combine.hpp"
#include "npushmem/npu/checked_job.hpp"
#include "tests/unit/core/moe/routing_cases.hpp"

namespace npushmem::moe::explored {

using npu::Core;
using npu::Pipe;

// Rows of one copy unit of the device.
inline constexpr std::size_t columns = npu::ub_alignment / sizeof(float);
inline constexpr Bytes row{npu::ub_alignment};

// What one PE's combine works with, in any mode.
struct CombineWork {
    StreamCombine stream;  // the direct kernels use its members `send` and `receive`
    bool streams = false;
};

inline void combine(Core& core, const CombineWork& work) {
    if (work.streams) return moe_combine_stream(core, work.stream);
    moe_combine_direct_sender(core, work.stream.send);
    moe_combine_receiver(core, work.stream.receive);
}

struct LayerCase {
    CaseShape routing{2, 2, 1, 1, 1, 0};
    CombineMode mode = CombineMode::direct;
    CopyRoute route = CopyRoute::staged;
    RingPlace place = RingPlace::receiver;
    std::uint64_t ring_rows = 0;     // 0: all rows of a rank fit
    std::uint64_t chunk_tokens = 1;  // of mode chunked
    int cores = 1;
    std::uint64_t layers = 1;    // dispatches, one after the other
    std::uint64_t combines = 1;  // that follow each dispatch
    bool fixed = false;          // slots of the dispatch
    bool cached = false;         // all dispatches but the first
    bool in_place = false;       // rows are read in x
    bool alternates = false;     // those of rank 1 in odd calls only

    [[nodiscard]] std::uint64_t tokens() const { return static_cast<std::uint64_t>(routing.tokens); }
    [[nodiscard]] std::uint64_t choices() const { return tokens() * static_cast<std::uint64_t>(routing.top_k); }
    [[nodiscard]] std::uint64_t chunk() const { return mode == CombineMode::chunked ? chunk_tokens : tokens(); }
    [[nodiscard]] std::uint64_t chunks() const { return (tokens() + chunk() - 1) / chunk(); }
};

class ExploredLayer {
public:
    using Combine = std::function<void(Core&, const CombineWork&)>;

    explicit ExploredLayer(const LayerCase& layer, const char* schedule = "explore")
        : case_(layer),
          routing_(random_routing(layer.routing)),
          dispatch_layout_(
              layer.routing.ranks, layer.routing.experts,
              Rows{layer.choices() * static_cast<std::uint64_t>(layer.routing.ranks)}, row, 0,
              layer.fixed ? ExpertRows::fixed(1, static_cast<std::int64_t>(layer.choices())) : ExpertRows()),
          slot_layout_(layer.routing.ranks,
                       rows_of(Tokens{layer.chunk()}, static_cast<std::uint32_t>(layer.routing.top_k)), row),
          in_place_layout_(layer.routing.ranks, layer.routing.experts),
          ring_layout_(layer.routing.ranks, row_ring_shape(row, Rows{layer.choices()}, Rows{layer.ring_rows}),
                       layer.place) {
        npu::CheckedJobConfig config{
            .pes = layer.routing.ranks, .heap_bytes = 1 << 16, .schedule = npu::Schedule::parse(schedule).value()};
        config.device.blocks = 1;
        config.device.vector_cores = layer.cores;
        config.device.stack_bytes = 64 * 1024;
        job_ = npu::CheckedJob::create(config).value();
        allocate();
        for (int pe = 0; pe < ranks(); ++pe) fill(pe);
        job_->before_each([this] { begin_schedule(); });
    }

    npu::CheckReport run(const Combine& combine_kernel = combine) {
        npu::LaunchConfig launch(1);
        launch.name = "layer";
        npu::CheckReport report = job_->run(launch, [&](Core& core) { run_core(core, combine_kernel); });
        compare_output();
        return report;
    }

    // The first difference in the output of any schedule; "": none.
    [[nodiscard]] const std::string& wrong() const { return wrong_; }
    // The number of schedules whose output was compared.
    [[nodiscard]] std::uint64_t compared() const { return compared_; }

private:
    [[nodiscard]] int ranks() const { return case_.routing.ranks; }
    [[nodiscard]] int local_experts() const { return case_.routing.experts / ranks(); }

    static float value_in(int rank, std::uint64_t token, std::size_t column) {
        return static_cast<float>(rank * 100 + static_cast<int>(token) * 10 + static_cast<int>(column) + 1);
    }
    static float factor_of(int expert) { return static_cast<float>(expert + 2); }

    void allocate() {
        dispatch_.emplace(*job_, routing_, dispatch_layout_);
        slots_ = job_->allocate<std::byte>(slot_layout_.total().value());
        rings_ = job_->allocate<std::byte>(ring_layout_.total().value());
        if (case_.in_place) in_place_ = job_->allocate<std::byte>(in_place_layout_.total().value());
        in_ = job_->allocate<float>(case_.tokens() * columns);
    }

    void fill(int pe) {
        const std::vector<std::int32_t>& ids = routing_.expert_ids[static_cast<std::size_t>(pe)];
        for (std::uint64_t token = 0; token < case_.tokens(); ++token)
            for (std::size_t c = 0; c < columns; ++c) job_->at(pe, in_)[token * columns + c] = value_in(pe, token, c);
        orders_.push_back(row_order(ids, placement(), slot_layout_.slots(), case_.chunks()));
        if (case_.in_place) fill_in_place(pe, ids);
        out_.emplace_back(case_.tokens() * columns);
    }

    void fill_in_place(int pe, const std::vector<std::int32_t>& ids) {
        const CombinePlan plan = build_combine_plan(views_of(routing_), placement(), pe).value();
        const auto place = static_cast<std::uint64_t>(dispatch_of(pe, 1).x() - job_->at(pe, in_place_));
        const std::size_t bytes = in_place_layout_.offer_bytes().value();
        std::vector<std::byte>& offers = offers_.emplace_back(static_cast<std::size_t>(ranks()) * bytes);
        for (int rank = 0; rank < ranks(); ++rank) {
            std::byte* const offer = offers.data() + static_cast<std::size_t>(rank) * bytes;
            std::memcpy(offer, &place, sizeof place);
            for (int local = 0; local < plan.local_experts; ++local)
                std::memcpy(offer + sizeof place + static_cast<std::size_t>(local) * sizeof(std::int32_t),
                            &plan.offset_table[plan.entry(local, rank)], sizeof(std::int32_t));
        }
        std::vector<std::uint32_t> next(static_cast<std::size_t>(case_.routing.experts), 0);
        std::vector<std::uint32_t>& rows = rows_in_fragments_.emplace_back();
        for (const std::int32_t id : ids) rows.push_back(id < 0 ? 0 : next[static_cast<std::size_t>(id)]++);
    }

    // Rank 1 offers its rows in odd calls only if it alternates.
    [[nodiscard]] bool offers(int pe, std::uint64_t call) const {
        return case_.in_place && !(case_.alternates && pe == 1 && call % 2 == 0);
    }
    [[nodiscard]] InPlaceMemory in_place_of(int pe) {
        return {case_.in_place ? job_->at(pe, in_place_) : nullptr, in_place_layout_};
    }

    [[nodiscard]] ExpertPlacement placement() const { return {case_.routing.experts, ranks()}; }

    DispatchWork dispatch_of(int pe, std::uint64_t call) {
        const auto* in = reinterpret_cast<const std::byte*>(job_->at(pe, in_));
        DispatchWork work = dispatch_->work_of(pe, in, call, case_.route);
        work.cached = case_.cached && call > 1;
        return work;
    }

    // Sends the rows and slots that the dispatch has brought.
    CombineSend send_of(const DispatchWork& dispatched, int pe, std::uint64_t call) {
        CombineSend send;
        send.x = dispatched.x();
        send.offset_table = dispatched.tables.offset_table;
        send.length_table = dispatched.tables.length_table;
        // Those of the first dispatch remain where they are: no later one sends any.
        const Bytes slots = dispatched.layout.slots(dispatched.cached ? 1 : dispatched.epoch);
        send.slots = reinterpret_cast<const std::uint32_t*>(dispatched.region + slots.value());
        send.num_local_experts = local_experts();
        send.num_ranks = ranks();
        send.region = job_->at(pe, slots_);
        send.layout = slot_layout_;
        send.epoch = call;
        send.route = case_.route;
        send.in_place.memory = in_place_of(pe);
        if (offers(pe, call)) send.in_place.offers = offers_[static_cast<std::size_t>(pe)].data();
        return send;
    }

    CombineReceive receive_of(int pe, std::uint64_t call) {
        const auto at = static_cast<std::size_t>(pe);
        CombineReceive receive;
        receive.region = job_->at(pe, slots_);
        receive.layout = slot_layout_;
        receive.epoch = call;
        receive.num_ranks = ranks();
        receive.experts = routing_.expert_ids[at].data();
        receive.weights = routing_.weights[at].data();
        receive.tokens = Tokens{case_.tokens()};
        receive.top_k = case_.routing.top_k;
        receive.out = reinterpret_cast<std::byte*>(out_[at].data());
        receive.out_row = row;
        receive.reduction = {nullptr, {columns, 0}, true, ElementType::float32, ElementType::float32};
        if (!case_.in_place) return receive;
        receive.in_place = {in_place_of(pe),
                            offers(pe, call),
                            receive.experts,
                            receive.weights,
                            rows_in_fragments_[at].data(),
                            case_.routing.top_k,
                            placement(),
                            row};
        return receive;
    }

    CombineWork combine_of(const DispatchWork& dispatched, int pe, std::uint64_t call) {
        const RowOrder& order = orders_[static_cast<std::size_t>(pe)];
        return {{send_of(dispatched, pe, call),
                 receive_of(pe, call),
                 {job_->at(pe, rings_), ring_layout_},
                 order.slots.data(),
                 order.first.data(),
                 Tokens{case_.chunk()},
                 case_.chunks()},
                case_.mode != CombineMode::direct};
    }

    // Launches on a stream follow each other. `busy`: the core has done something.
    static void end_launch(Core& core, bool busy = true) {
        if (busy) core.quiet();
        core.core_barrier();
    }

    void run_core(Core& core, const Combine& combine_kernel) {
        std::uint64_t call = 0;
        for (std::uint64_t layer = 1; layer <= case_.layers; ++layer) {
            const DispatchWork dispatched = dispatch_of(core.my_pe(), layer);
            if (case_.fixed) {
                moe_dispatch_sort_and_send_fixed(core, dispatched);
                end_launch(core);
                moe_dispatch_receive_fixed(core, dispatched);
            } else {
                moe_dispatch(core, dispatched);
            }
            end_launch(core);
            for (std::uint64_t i = 0; i < case_.combines; ++i) {
                if (core.index() == 0) run_experts(core, dispatched);
                end_launch(core, core.index() == 0);
                combine_kernel(core, combine_of(dispatched, core.my_pe(), ++call));
                end_launch(core);
            }
        }
    }

    // Each expert multiplies its rows by a number of its own.
    void run_experts(Core& core, const DispatchWork& work) {
        auto* x = reinterpret_cast<float*>(work.x());
        const std::size_t mark = core.ub_used();
        for (int entry = 0; entry < local_experts() * ranks(); ++entry) {
            const int local = entry / ranks();
            const auto first = static_cast<std::size_t>(core.load(work.tables.offset_table + entry));
            const auto count = static_cast<std::size_t>(core.load(work.tables.length_table + entry)) * columns;
            if (count == 0) continue;
            const auto rows = core.ub_alloc<float>(count);
            const auto in_memory = npu::gm(x + first * columns, count);
            core.data_copy(rows, in_memory, count);
            core.set_flag<Pipe::copy_in, Pipe::vector>(0);
            core.wait_flag<Pipe::copy_in, Pipe::vector>(0);
            core.multiply_scalar(rows, rows, factor_of(placement().first_expert(core.my_pe()) + local), count);
            core.set_flag<Pipe::vector, Pipe::copy_out>(0);
            core.wait_flag<Pipe::vector, Pipe::copy_out>(0);
            core.data_copy(in_memory, rows, count);
        }
        core.pipe_barrier<Pipe::all>();
        core.ub_release(mark);
    }

    void begin_schedule() {
        if (std::exchange(begun_, true)) compare_output();
        for (std::vector<float>& out : out_) std::ranges::fill(out, std::numeric_limits<float>::quiet_NaN());
    }

    [[nodiscard]] float expected(int rank, std::uint64_t token, std::size_t column) const {
        const auto at = static_cast<std::size_t>(rank);
        float sum = 0;
        for (std::int32_t k = 0; k < case_.routing.top_k; ++k) {
            const std::size_t choice =
                token * static_cast<std::size_t>(case_.routing.top_k) + static_cast<std::size_t>(k);
            const std::int32_t expert = routing_.expert_ids[at][choice];
            if (expert < 0) continue;
            float product = routing_.weights[at][choice] * value_in(rank, token, column);
            for (std::uint64_t i = 0; i < case_.combines; ++i) product *= factor_of(expert);
            sum += product;
        }
        return sum;
    }

    void compare_output() {
        ++compared_;
        for (int rank = 0; rank < ranks(); ++rank)
            for (std::uint64_t token = 0; token < case_.tokens(); ++token)
                for (std::size_t c = 0; c < columns; ++c) {
                    const float seen = out_[static_cast<std::size_t>(rank)][token * columns + c];
                    const float wanted = expected(rank, token, c);
                    if (seen == wanted || !wrong_.empty()) continue;
                    wrong_ = fmt::format("output {} of the exploration: PE {}, token {}, column {} is {} instead of {}",
                                         compared_, rank, token, c, seen, wanted);
                }
    }

    LayerCase case_;
    Routing routing_;
    DispatchLayout dispatch_layout_;
    SlotLayout slot_layout_;
    InPlaceLayout in_place_layout_;
    RingLayout ring_layout_;
    std::unique_ptr<npu::CheckedJob> job_;
    std::optional<DispatchInJob> dispatch_;
    std::byte* slots_ = nullptr;
    std::byte* rings_ = nullptr;
    std::byte* in_place_ = nullptr;
    float* in_ = nullptr;
    std::vector<RowOrder> orders_;
    std::vector<std::vector<std::byte>> offers_;                 // by PE
    std::vector<std::vector<std::uint32_t>> rows_in_fragments_;  // by PE
    std::vector<std::vector<float>> out_;                        // by PE
    bool begun_ = false;
    std::uint64_t compared_ = 0;
    std::string wrong_;
};

}  // namespace npushmem::moe::explored
