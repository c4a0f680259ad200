// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>

#include "bench/perf/moe/layer_command.hpp"
#include "bench/perf/moe/layers.hpp"
#include "bench/perf/moe/moe_reports.hpp"
#include "bench/perf/moe/quantized_dispatch.hpp"
#include "core/moe/dispatch/dispatch_layout.hpp"
#include "npushmemx.h"

namespace npushmem::perf {

namespace {

class DispatchRun {
public:
    // quantize: a type of quantized rows; empty: none.
    DispatchRun(const Job& job, const CombineCase& c, const CombineOptions& options, const std::string& quantize)
        : job_(job), case_(c), options_(options), quantize_(quantize), steps_(job, options) {}

    Result<DispatchResult> run() {
        auto layer = RoundTripLayer::create(job_, case_, options_);
        if (!layer.ok()) return layer.status();
        layer_ = std::move(layer).value();
        for (const auto step : {&DispatchRun::count, &DispatchRun::verify_first, &DispatchRun::time_dispatch,
                                &DispatchRun::time_cached, &DispatchRun::time_layer, &DispatchRun::verify_again,
                                &DispatchRun::time_copies, &DispatchRun::time_quantized}) {
            if (Status status = (this->*step)(); !status.ok()) return status;
            if (result_.difference) break;
        }
        return result_;
    }

private:
    Status count() {
        const auto& plan = layer_->plan();
        Status counted = steps_.count(result_, case_, layer_->rows(), layer_->sent_rows(), plan.copy);
        if (!counted.ok()) return counted;
        result_.capacity = layer_->capacity();
        const auto in_place = job_.allgather({layer_->stays_in_place() ? 1.0 : 0.0});
        if (!in_place.ok()) return in_place.status();
        result_.in_place = std::ranges::count(in_place.value(), 0.0) == 0;
        const bool per_rank = options_.rows == "rank";
        const moe::DispatchLayout layout(job_.pes(), per_rank ? job_.pes() : case_.workload.experts, moe::Rows{0},
                                         moe::Bytes{1}, per_rank ? case_.workload.top_k : 0);
        constexpr double signals = 2 * sizeof(std::uint64_t);
        const double per_pair = static_cast<double>(layout.record_bytes().value()) + signals;
        const std::uint64_t per_row = sizeof(std::uint32_t) + layout.choices_per_row() * sizeof(moe::Choice);
        result_.control_bytes = per_pair * job_.pes() * job_.pes() + static_cast<double>(per_row) * result_.sent_rows;
        return {};
    }

    // Each call has its own tokens, so a stale row of any earlier call is detected.
    Status verify_first() { return verify_calls(5); }
    Status verify_again() { return verify_calls(1); }

    Status verify_calls(int calls) {
        for (int i = 0; i < calls && options_.verify && !result_.difference; ++i) {
            const std::uint64_t salt = options_.seed * 1000 + static_cast<std::uint64_t>(result_.verified_calls);
            layer_->fill(salt);
            if (Status status = layer_->dispatch(); !status.ok()) return status;
            layer_->run_experts();
            if (Status status = steps_.share(result_, layer_->verify_rows(salt)); !status.ok()) return status;
            if (Status status = layer_->combine(); !status.ok()) return status;
            if (Status status = steps_.share(result_, layer_->verify_output(salt)); !status.ok()) return status;
            ++result_.verified_calls;
        }
        return {};
    }

    Status time_dispatch() {
        return steps_.time_calls(result_, result_.dispatch, [&] { return layer_->dispatch(); });
    }

    Status time_cached() {
        return steps_.time(result_.cached, [&] { return layer_->dispatch_cached(); });
    }

    Status time_layer() {
        const Operation layer = [&] {
            const Status there = layer_->dispatch();
            return there.ok() ? layer_->combine() : there;
        };
        if (Status timed = steps_.time(result_.layer, layer); !timed.ok()) return timed;
        const auto layers = time_back_to_back(job_, options_.iterations, layer);
        if (layers.ok()) result_.layers = layers.value();
        return layers.status();
    }

    Status time_copies() { return steps_.time_copies(result_, layer_->x(), layer_->payload_bytes()); }

    // Frees the layer's memory first.
    Status time_quantized() {
        if (quantize_.empty()) return {};
        npushmemx_moe_config_t config = layer_config(case_, options_);
        config.capacity = layer_->capacity();
        const std::vector<std::byte> in = layer_->take_in();
        layer_.reset();
        result_.quantized_type = quantize_;
        for (const bool quantized : {false, true}) {
            auto made = QuantizedDispatch::create(case_, config, quantize_, in, quantized);
            if (!made.ok()) return made.status();
            result_.quantized_bytes = result_.payload_bytes / static_cast<double>(case_.row_bytes()) *
                                      static_cast<double>(made.value()->row_bytes());
            const Status timed = steps_.time(quantized ? result_.quantized : result_.quantizing,
                                             [&] { return made.value()->dispatch(); });
            if (!timed.ok()) return timed;
            if (!quantized) continue;
            const Status alone = steps_.time(result_.quantization, [&] { return made.value()->quantize(); });
            if (!alone.ok()) return alone;
        }
        return {};
    }

    const Job& job_;
    const CombineCase& case_;
    const CombineOptions& options_;
    const std::string& quantize_;
    PayloadRun steps_;
    std::unique_ptr<RoundTripLayer> layer_;
    DispatchResult result_;
};

// npushmem-perf dispatch

class DispatchCommand final : public LayerCommand {
public:
    // The combine's two buffers, and x and the experts' rows with the size of the hottest PE.
    DispatchCommand()
        : LayerCommand("dispatch",
                       "Dispatch the tokens of one MoE layer and combine them; verify the result and compare the time "
                       "with memcpy",
                       6) {}

    CLI::App* declare(CLI::App& program) override {
        CLI::App* app = LayerCommand::declare(program);
        declare_slots(*app);
        return app;
    }

private:
    Result<Outcome> measure(const Job& job, const CombineCase& c) override {
        const auto result = DispatchRun(job, c, options(), quantize()).run();
        if (!result.ok()) return result.status();
        const DispatchResult& r = result.value();
        return Outcome{r.difference,
                       dispatch_report(c, options(), r, npushmemx_describe_map(), npushmemx_describe_nics()),
                       dispatch_csv(r), dispatch_svg(c, r)};
    }
};

}  // namespace

std::unique_ptr<Subcommand> make_dispatch_command() { return std::make_unique<DispatchCommand>(); }

}  // namespace npushmem::perf
