// SPDX-License-Identifier: BSD-3-Clause
#include <array>

#include "bench/perf/moe/copies.hpp"
#include "bench/perf/moe/layer_command.hpp"
#include "bench/perf/moe/moe_reports.hpp"
#include "bench/perf/moe/quantized_dispatch.hpp"
#include "core/moe/common/narrow_rows.hpp"
#include "npushmemx.h"

namespace npushmem::perf {

namespace {

class CombineRun {
public:
    // quantize: a type of quantized rows; empty: none.
    CombineRun(const Job& job, const CombineCase& c, const CombineOptions& options, const std::string& quantize)
        : job_(job), case_(c), options_(options), quantize_(quantize), steps_(job, options) {}

    Result<CombineResult> run() {
        auto layer = CombineLayer::create(case_, options_, job_.pe());
        if (!layer.ok()) return layer.status();
        layer_ = std::move(layer).value();
        for (const auto step : {&CombineRun::count, &CombineRun::verify_first, &CombineRun::time_barrier,
                                &CombineRun::time_combine, &CombineRun::verify_again, &CombineRun::count_traffic,
                                &CombineRun::time_copies, &CombineRun::time_plans, &CombineRun::time_quantized}) {
            if (Status status = (this->*step)(); !status.ok()) return status;
            if (result_.difference) break;
        }
        return result_;
    }

private:
    Status count() { return steps_.count(result_, case_, layer_->rows(), layer_->sent_rows(), layer_->plan().copy); }

    // Five calls in a row, each with its own payload, use both buffers more than twice, so a stale row of any earlier
    // call is detected.
    Status verify_first() { return verify_calls(5); }
    Status verify_again() { return verify_calls(1); }

    Status verify_calls(int calls) {
        for (int i = 0; i < calls && options_.verify && !result_.difference; ++i) {
            const std::uint64_t salt = options_.seed * 1000 + static_cast<std::uint64_t>(result_.verified_calls);
            layer_->fill(salt);
            if (Status status = layer_->combine(); !status.ok()) return status;
            if (Status status = steps_.share(result_, layer_->verify(salt)); !status.ok()) return status;
            ++result_.verified_calls;
        }
        if (!options_.verify) layer_->fill(options_.seed);
        return {};
    }

    Status time_barrier() {
        auto latency = npu_barrier_latency(job_, options_.warmup + 20, 200);
        if (!latency.ok()) return latency.status();
        result_.barrier = latency.value();
        return {};
    }

    Status time_combine() {
        return steps_.time_calls(result_, result_.combine, [&] { return layer_->combine(); });
    }

    Status count_traffic() {
        const npushmemx_moe_traffic_t own = layer_->traffic();
        const auto all = job_.allgather({static_cast<double>(own.calls), static_cast<double>(own.signals),
                                         static_cast<double>(own.tails), static_cast<double>(own.heads),
                                         static_cast<double>(own.splits), static_cast<double>(own.waits)});
        if (!all.ok()) return all.status();
        const std::array<std::uint64_t*, 6> sums{&result_.traffic.calls,  &result_.traffic.signals,
                                                 &result_.traffic.tails,  &result_.traffic.heads,
                                                 &result_.traffic.splits, &result_.traffic.waits};
        for (std::size_t i = 0; i < all.value().size(); ++i) {
            *sums[i % sums.size()] += static_cast<std::uint64_t>(all.value()[i]);
        }
        return {};
    }

    Status time_copies() { return steps_.time_copies(result_, layer_->x(), layer_->payload_bytes()); }

    // Both plans pack this PE's rows into one region per rank, with the same stores.
    Status time_plans() {
        PackPlans plans(layer_->plan(), layer_->x(), case_.row_bytes());
        Status timed = steps_.time(result_.gathering, [&] { return plans.gather(); });
        return timed.ok() ? steps_.time(result_.reordering, [&] { return plans.reorder(); }) : timed;
    }

    // Frees the layer's memory first. tests/integration/moe/quantized_rows.cpp compares the results.
    Status time_quantized() {
        if (quantize_.empty()) return {};
        layer_.reset();
        auto made = CombineLayer::create(case_, options_, job_.pe(), type_of_rows(quantize_));
        if (!made.ok()) return made.status();
        layer_ = std::move(made).value();
        layer_->fill(options_.seed);
        result_.quantized_type = quantize_;
        const moe::NarrowLayout layout(static_cast<std::size_t>(case_.workload.hidden), 0);
        result_.quantized_bytes =
            result_.payload_bytes / static_cast<double>(case_.row_bytes()) * static_cast<double>(layout.row().value());
        return steps_.time(result_.quantized, [&] { return layer_->combine(); });
    }

    const Job& job_;
    const CombineCase& case_;
    const CombineOptions& options_;
    const std::string& quantize_;
    PayloadRun steps_;
    std::unique_ptr<CombineLayer> layer_;
    CombineResult result_;
};

// Collective; the same result on every PE.
Result<CombineResult> run_combine(const Job& job, const CombineCase& c, const CombineOptions& options,
                                  const std::string& quantize) {
    return CombineRun(job, c, options, quantize).run();
}

// npushmem-perf combine

class CombineCommand final : public LayerCommand {
public:
    CombineCommand()
        : LayerCommand("combine",
                       "Combine the rows of one MoE layer; verify the result and compare the time with memcpy", 2) {}

private:
    Result<Outcome> measure(const Job& job, const CombineCase& c) override {
        const auto result = run_combine(job, c, options(), quantize());
        if (!result.ok()) return result.status();
        const CombineResult& r = result.value();
        return Outcome{r.difference,
                       combine_report(c, options(), r, npushmemx_describe_map(), npushmemx_describe_nics()),
                       combine_csv(r), combine_svg(c, r)};
    }
};

}  // namespace

std::unique_ptr<Subcommand> make_combine_command() { return std::make_unique<CombineCommand>(); }

}  // namespace npushmem::perf
