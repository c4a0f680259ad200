#include "bench/perf/combine_run.hpp"

#include <numeric>

#include "bench/perf/copy_baseline.hpp"
#include "bench/perf/measure.hpp"

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
        for (const auto step : {&CombineRun::count, &CombineRun::prove_often, &CombineRun::time_barrier,
                                &CombineRun::time_combine, &CombineRun::prove_once, &CombineRun::time_copies}) {
            if (Status status = (this->*step)(); !status.ok()) return status;
            if (result_.difference) break;
        }
        return result_;
    }

private:
    Status count() {
        auto all = job_.all({static_cast<double>(layer_->rows()), static_cast<double>(case_.own_tokens())});
        if (!all.ok()) return all.status();
        for (std::size_t i = 0; i < all.value().size(); i += 2) {
            result_.rows.push_back(all.value()[i]);
            result_.tokens += all.value()[i + 1];
        }
        result_.pes = job_.pes();
        result_.copy = layer_->plan().copy;
        const double rows = std::accumulate(result_.rows.begin(), result_.rows.end(), 0.0);
        result_.payload_bytes = rows * static_cast<double>(case_.row_bytes());
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

    // Every PE learns of the first PE's difference, so that all stop and fail alike.
    Status share(const std::optional<Difference>& own) {
        const Difference d = own.value_or(Difference{});
        auto all = job_.all(
            {own ? 1.0 : 0.0, static_cast<double>(d.token), static_cast<double>(d.column), d.expected, d.seen});
        if (!all.ok()) return all.status();
        for (int pe = 0; pe < job_.pes() && !result_.difference; ++pe) {
            const double* v = all.value().data() + static_cast<std::ptrdiff_t>(pe) * 5;
            if (v[0] == 0) continue;
            const Difference found{static_cast<std::int64_t>(v[1]), static_cast<std::int64_t>(v[2]),
                                   static_cast<float>(v[3]), static_cast<float>(v[4])};
            result_.difference = PeDifference{pe, found};
        }
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
