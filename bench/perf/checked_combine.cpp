#include "bench/perf/checked_combine.hpp"

#include "core/moe/reduce.hpp"
#include "core/moe/routing_generator.hpp"

namespace npushmem::perf {
namespace {

moe::Bytes row_of(const CheckedCombineShape& shape) { return moe::Bytes{shape.columns * 2}; }

// x of one PE holds at most every row of all PEs.
std::size_t max_rows(const CheckedCombineShape& shape) {
    return static_cast<std::size_t>(shape.pes) * static_cast<std::size_t>(shape.tokens) *
           static_cast<std::size_t>(shape.top_k);
}

}  // namespace

moe::SlotLayout CheckedCombine::layout_of(const CheckedCombineShape& shape) {
    const auto slots =
        moe::rows_of(moe::Tokens{static_cast<std::uint64_t>(shape.tokens)}, static_cast<std::uint32_t>(shape.top_k));
    return {shape.pes, slots, row_of(shape)};
}

std::size_t CheckedCombine::heap_bytes(const CheckedCombineShape& shape) {
    const std::size_t row = row_of(shape).value();
    return layout_of(shape).total().value() + (max_rows(shape) + static_cast<std::size_t>(shape.tokens)) * row + 4096;
}

Result<std::unique_ptr<CheckedCombine>> CheckedCombine::create(const CheckedCombineShape& shape, bool check) {
    auto routing = moe::generate_routing(
        {.experts = shape.experts, .top_k = shape.top_k, .ranks = shape.pes, .tokens = shape.tokens, .zipf = 1});
    if (!routing.ok()) return routing.status();
    auto job = npu::CheckedJob::create({.pes = shape.pes, .heap_bytes = heap_bytes(shape), .check = check});
    if (!job.ok()) return job.status();
    std::unique_ptr<CheckedCombine> combine(
        new CheckedCombine(shape, std::move(routing).value(), std::move(job).value()));
    if (Status s = combine->plan_all(); !s.ok()) return s;
    return combine;
}

CheckedCombine::CheckedCombine(const CheckedCombineShape& shape, moe::Routing routing,
                               std::unique_ptr<npu::CheckedJob> job)
    : shape_(shape), routing_(std::move(routing)), job_(std::move(job)), layout_(layout_of(shape)) {
    const std::size_t row = row_of(shape).value();
    region_ = job_->allocate<std::byte>(layout_.total().value());
    x_ = job_->allocate<std::byte>(max_rows(shape) * row);
    out_ = job_->allocate<std::byte>(static_cast<std::size_t>(shape.tokens) * row);
}

Status CheckedCombine::plan_all() {
    std::vector<moe::RankRouting> ranks;
    for (std::size_t pe = 0; pe < static_cast<std::size_t>(shape_.pes); ++pe) ranks.push_back(routing_.rank(pe));
    for (int pe = 0; pe < shape_.pes; ++pe) {
        auto plan = moe::build_combine_plan(ranks, {shape_.experts, shape_.pes}, pe);
        if (!plan.ok()) return plan.status();
        plans_.push_back(std::move(plan).value());
    }
    return {};
}

moe::CombineSend CheckedCombine::send_of(int pe) const {
    moe::CombineSend send = moe::send_from(plans_[static_cast<std::size_t>(pe)], layout_);
    send.x = job_->at(pe, x_);
    send.region = job_->at(pe, region_);
    send.epoch = epoch_;
    send.route = moe::CopyRoute::staged;
    return send;
}

moe::CombineReceive CheckedCombine::receive_of(int pe) const {
    const moe::RankRouting routing = routing_.rank(static_cast<std::size_t>(pe));
    moe::CombineReceive receive;
    receive.region = job_->at(pe, region_);
    receive.layout = layout_;
    receive.epoch = epoch_;
    receive.num_ranks = shape_.pes;
    receive.experts = routing.experts.data();
    receive.weights = routing.weights.data();
    receive.tokens = moe::Tokens{static_cast<std::uint64_t>(shape_.tokens)};
    receive.top_k = shape_.top_k;
    receive.out = job_->at(pe, out_);
    receive.columns = moe::Elements{shape_.columns};
    receive.out_row = row_of(shape_);
    receive.reduce = moe::best_reduce(moe::ElementType::bfloat16, moe::ElementType::bfloat16);
    return receive;
}

npu::CheckReport CheckedCombine::run() {
    ++epoch_;
    npu::LaunchConfig launch(1);
    launch.name = "combine";
    return job_->run(launch, [&](npu::Core& core) {
        moe::moe_combine_direct_sender(core, send_of(core.my_pe()));
        moe::moe_combine_receiver(core, receive_of(core.my_pe()));
    });
}

}  // namespace npushmem::perf
