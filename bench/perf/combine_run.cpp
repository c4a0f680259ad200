#include "bench/perf/combine_run.hpp"

#include "bench/perf/copy_baseline.hpp"
#include "bench/perf/measure.hpp"
#include "bench/perf/pack_plans.hpp"

namespace npushmem::perf {
namespace {

class CombineRun {
public:
    CombineRun(const Job& job, const CombineCase& c, const CombineOptions& options)
        : job_(job), case_(c), options_(options), repeat_{options.warmup, options.iterations} {}

    Result<CombineResult> run() {
        auto layer = Layer::create(case_, options_, job_.pe());
        if (!layer.ok()) return layer.status();
        layer_ = std::move(layer).value();
        for (const auto step :
             {&CombineRun::count, &CombineRun::prove_often, &CombineRun::time_barrier, &CombineRun::time_combine,
              &CombineRun::prove_once, &CombineRun::time_copies, &CombineRun::time_plans}) {
            if (Status status = (this->*step)(); !status.ok()) return status;
            if (result_.difference) break;
        }
        return result_;
    }

private:
    Status count() {
        auto facts = gather_facts(job_, case_, layer_->rows());
        if (!facts.ok()) return facts.status();
        static_cast<PayloadFacts&>(result_) = std::move(facts).value();
        result_.copy = layer_->plan().copy;
        return {};
    }

    // Five calls in a row, each with a payload of its own: both buffers used more than twice, so that a row left over
    // from any earlier call would show.
    Status prove_often() { return prove(5); }
    Status prove_once() { return prove(1); }

    Status prove(int calls) {
        for (int i = 0; i < calls && options_.verify && !result_.difference; ++i) {
            const std::uint64_t salt = options_.seed * 1000 + static_cast<std::uint64_t>(result_.verified_calls);
            layer_->fill(salt);
            if (Status status = layer_->combine(); !status.ok()) return status;
            if (Status status = share(layer_->verify(salt)); !status.ok()) return status;
            ++result_.verified_calls;
        }
        if (!options_.verify) layer_->fill(options_.seed);
        return {};
    }

    Status share(const std::optional<Difference>& own) {
        auto found = first_of_all(job_, own);
        if (!found.ok()) return found.status();
        if (!result_.difference) result_.difference = found.value();
        return {};
    }

    Status time_barrier() {
        auto latency = npu_barrier_latency(job_, options_.warmup + 20, 200);
        if (!latency.ok()) return latency.status();
        result_.barrier = latency.value();
        return {};
    }

    Status time_combine() {
        const auto combine = [&] { return layer_->combine(); };
        auto each = time_each(job_, repeat_, combine);
        if (!each.ok()) return each.status();
        result_.combine = std::move(each).value();
        auto in_a_row = time_in_a_row(job_, options_.iterations, combine);
        if (!in_a_row.ok()) return in_a_row.status();
        result_.in_a_row = in_a_row.value();
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

    // Both plans pack what this PE sends into one region per rank, with the same stores.
    Status time_plans() {
        PackPlans plans(layer_->plan(), layer_->x(), case_.row_bytes());
        auto gathering = time_each(job_, repeat_, [&] { return plans.gather(); });
        if (!gathering.ok()) return gathering.status();
        result_.gathering = std::move(gathering).value();
        auto reordering = time_each(job_, repeat_, [&] { return plans.reorder(); });
        if (!reordering.ok()) return reordering.status();
        result_.reordering = std::move(reordering).value();
        return {};
    }

    const Job& job_;
    const CombineCase& case_;
    const CombineOptions& options_;
    Repeat repeat_;
    std::unique_ptr<Layer> layer_;
    CombineResult result_;
};

}  // namespace

Result<CombineResult> run_combine(const Job& job, const CombineCase& c, const CombineOptions& options) {
    return CombineRun(job, c, options).run();
}

}  // namespace npushmem::perf
