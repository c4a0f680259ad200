#include "bench/perf/dispatch_run.hpp"

#include <numeric>

#include "bench/perf/copy_baseline.hpp"
#include "bench/perf/measure.hpp"
#include "bench/perf/token_layer.hpp"
#include "core/moe/dispatch/dispatch_layout.hpp"

namespace npushmem::perf {
namespace {

class DispatchRun {
public:
    DispatchRun(const Job& job, const CombineCase& c, const CombineOptions& options)
        : job_(job), case_(c), options_(options), repeat_{options.warmup, options.iterations} {}

    Result<DispatchResult> run() {
        auto layer = TokenLayer::create(job_, case_, options_);
        if (!layer.ok()) return layer.status();
        layer_ = std::move(layer).value();
        for (const auto step : {&DispatchRun::count, &DispatchRun::prove_often, &DispatchRun::time_dispatch,
                                &DispatchRun::time_layer, &DispatchRun::prove_once, &DispatchRun::time_copies}) {
            if (Status status = (this->*step)(); !status.ok()) return status;
            if (result_.difference) break;
        }
        return result_;
    }

private:
    Status count() {
        auto facts = gather_facts(job_, case_, layer_->plan().rows);
        if (!facts.ok()) return facts.status();
        static_cast<PayloadFacts&>(result_) = std::move(facts).value();
        result_.copy = layer_->plan().copy;
        result_.capacity = layer_->capacity();
        const moe::DispatchLayout layout(job_.pes(), case_.workload.experts, moe::Rows{0}, moe::Bytes{1});
        constexpr double signals = 2 * sizeof(std::uint64_t);
        const double per_pair = static_cast<double>(layout.card_bytes().value()) + signals;
        result_.control_bytes = per_pair * job_.pes() * job_.pes() +
                                sizeof(std::uint32_t) * std::accumulate(result_.rows.begin(), result_.rows.end(), 0.0);
        return {};
    }

    // Calls in a row, each with tokens of its own, so that a row left over from any earlier call would show.
    Status prove_often() { return prove(5); }
    Status prove_once() { return prove(1); }

    Status prove(int calls) {
        for (int i = 0; i < calls && options_.verify && !result_.difference; ++i) {
            const std::uint64_t salt = options_.seed * 1000 + static_cast<std::uint64_t>(result_.verified_calls);
            layer_->fill(salt);
            if (Status status = layer_->dispatch(); !status.ok()) return status;
            if (Status status = share(layer_->verify_rows(salt)); !status.ok()) return status;
            if (Status status = layer_->combine(); !status.ok()) return status;
            if (Status status = share(layer_->verify_output(salt)); !status.ok()) return status;
            ++result_.verified_calls;
        }
        return {};
    }

    Status share(const std::optional<Difference>& own) {
        auto found = first_of_all(job_, own);
        if (!found.ok()) return found.status();
        if (!result_.difference) result_.difference = found.value();
        return {};
    }

    Status time_dispatch() {
        const auto dispatch = [&] { return layer_->dispatch(); };
        auto each = time_each(job_, repeat_, dispatch);
        if (!each.ok()) return each.status();
        result_.dispatch = std::move(each).value();
        auto in_a_row = time_in_a_row(job_, options_.iterations, dispatch);
        if (!in_a_row.ok()) return in_a_row.status();
        result_.in_a_row = in_a_row.value();
        return {};
    }

    Status time_layer() {
        auto layer = time_each(job_, repeat_, [&] {
            const Status there = layer_->dispatch();
            return there.ok() ? layer_->combine() : there;
        });
        if (!layer.ok()) return layer.status();
        result_.layer = std::move(layer).value();
        return {};
    }

    Status time_copies() {
        CopyBaseline copy(layer_->x(), layer_->payload_bytes());
        auto ordinary = time_each(job_, repeat_, [&] { return copy.ordinary(); });
        if (!ordinary.ok()) return ordinary.status();
        result_.ordinary = std::move(ordinary).value();
        auto streaming = time_each(job_, repeat_, [&] { return copy.streaming(); });
        if (!streaming.ok()) return streaming.status();
        result_.streaming = std::move(streaming).value();
        return {};
    }

    const Job& job_;
    const CombineCase& case_;
    const CombineOptions& options_;
    Repeat repeat_;
    std::unique_ptr<TokenLayer> layer_;
    DispatchResult result_;
};

}  // namespace

Result<DispatchResult> run_dispatch(const Job& job, const CombineCase& c, const CombineOptions& options) {
    return DispatchRun(job, c, options).run();
}

}  // namespace npushmem::perf
