#include "bench/perf/fragments_run.hpp"

#include <algorithm>

#include "bench/perf/copy_baseline.hpp"
#include "bench/perf/pack_plans.hpp"
#include "bench/perf/page_memory.hpp"
#include "npushmem/moe.h"

namespace npushmem::perf {
namespace {

constexpr std::int32_t ranks = 8;

// Tables of experts that each have one fragment for every rank.
class Tables {
public:
    Tables(const FragmentKind& kind, std::int64_t bytes) {
        const std::int64_t of_expert = kind.row_bytes * kind.rows * ranks;
        experts_ = static_cast<std::int32_t>(std::max<std::int64_t>(bytes / of_expert, 1));
        for (std::int32_t i = 0; i < experts_ * ranks; ++i) offsets_.push_back(i * kind.rows);
        lengths_.assign(offsets_.size(), kind.rows);
    }

    [[nodiscard]] std::int64_t rows() const { return static_cast<std::int64_t>(offsets_.size()) * lengths_.front(); }
    [[nodiscard]] npushmemx_moe_plan_t plan(std::int32_t copy) const {
        npushmemx_moe_plan_t plan{};
        plan.local_experts = experts_;
        plan.ranks = ranks;
        plan.copy = copy;
        plan.rows = rows();
        plan.offset_table = offsets_.data();
        plan.length_table = lengths_.data();
        return plan;
    }

private:
    std::int32_t experts_;
    std::vector<std::int32_t> offsets_;
    std::vector<std::int32_t> lengths_;
};

struct Timed {
    std::vector<double>* seconds;
    Operation operation;
};

// Calls of each in turn, and again, so that whatever disturbs the machine disturbs all alike. The first of two calls is
// not timed: what the caches hold when the second begins is what its own kind of stores has left there, not another's.
Status time_in_turn(const Job& job, const Repeat& repeat, const std::vector<Timed>& all) {
    for (int round = -repeat.warmup; round < repeat.iterations; ++round) {
        for (const Timed& timed : all) {
            const auto seconds = time_each(job, {1, 1}, timed.operation);
            if (!seconds.ok()) return seconds.status();
            if (round >= 0) timed.seconds->push_back(seconds.value().front());
        }
    }
    return {};
}

}  // namespace

const std::vector<FragmentKind>& fragment_kinds() {
    static const std::vector<FragmentKind> kinds{
        {"1 MiB", 16384, 64, 0.95},     {"128 KiB", 16384, 8, 0.85},  {"56 KiB", 14336, 4, 0.75},
        {"14 KB rows", 14336, 1, 0.60}, {"4 KB rows", 4096, 1, 0.35},
    };
    return kinds;
}

Result<FragmentTimes> time_fragments(const Job& job, const FragmentKind& kind, std::int64_t bytes,
                                     const Repeat& repeat) {
    const Tables tables(kind, bytes);
    const auto of_pe = static_cast<std::size_t>(tables.rows() * kind.row_bytes);
    const PageMemory x = page_memory(of_pe, std::byte{0x35});
    FragmentTimes times;
    times.bytes = static_cast<double>(of_pe) * job.pes();
    CopyBaseline copy(x.get(), of_pe);
    PackPlans ordinary(tables.plan(NPUSHMEMX_MOE_COPY_ORDINARY), x.get(), kind.row_bytes);
    PackPlans streaming(tables.plan(NPUSHMEMX_MOE_COPY_STREAMING), x.get(), kind.row_bytes);
    const Status timed = time_in_turn(job, repeat,
                                      {{&times.memcpy_ordinary, [&] { return copy.ordinary(); }},
                                       {&times.memcpy_streaming, [&] { return copy.streaming(); }},
                                       {&times.gather_ordinary, [&] { return ordinary.gather(); }},
                                       {&times.gather_streaming, [&] { return streaming.gather(); }},
                                       {&times.reorder_ordinary, [&] { return ordinary.reorder(); }},
                                       {&times.reorder_streaming, [&] { return streaming.reorder(); }}});
    if (!timed.ok()) return timed;
    return times;
}

}  // namespace npushmem::perf
