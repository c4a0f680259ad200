// SPDX-License-Identifier: BSD-3-Clause
// npushmem-perf fragments: compares the sender's gathering with memcpy and with plan 1, by the length of the fragments
// (rows that are contiguous in x and go to one rank).
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <iostream>
#include <string>
#include <vector>

#include "bench/engine/progress_line.hpp"
#include "bench/engine/report.hpp"
#include "bench/perf/job.hpp"
#include "bench/perf/measure_command.hpp"
#include "bench/perf/moe/copies.hpp"
#include "bench/perf/moe/report_text.hpp"
#include "bench/perf/subcommand.hpp"
#include "npushmem/moe.h"

namespace npushmem::perf {

// Rows of one fragment, and the minimum target of its ratio to memcpy.
struct FragmentKind {
    const char* name;
    std::int64_t row_bytes;
    std::int32_t rows;
    double target;
};

const std::vector<FragmentKind>& fragment_kinds();

// Seconds of each repetition, from the start of the first PE to the end of the last.
struct FragmentTimes {
    double bytes = 0;  // of all PEs
    std::vector<double> memcpy_ordinary;
    std::vector<double> memcpy_streaming;
    std::vector<double> gather_ordinary;  // plan 2
    std::vector<double> gather_streaming;
    std::vector<double> reorder_ordinary;  // plan 1
    std::vector<double> reorder_streaming;
};

// Collective; the same result on every PE. `bytes`: approximate bytes of each PE.
Result<FragmentTimes> time_fragments(const Job& job, const FragmentKind& kind, std::int64_t bytes, const Repeat& repeat,
                                     bench::ProgressLine& progress);

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

// Runs all variants in turn in every round, so that disturbances affect all alike. Only the second of two calls is
// timed: it finds the caches as its own kind of stores left them.
Status time_in_turn(const Job& job, const Repeat& repeat, const std::vector<Timed>& all,
                    bench::ProgressLine& progress) {
    for (int round = -repeat.warmup; round < repeat.iterations; ++round) {
        progress.advance(static_cast<std::size_t>(round + repeat.warmup),
                         static_cast<std::size_t>(repeat.warmup + repeat.iterations));
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

Result<FragmentTimes> time_fragments(const Job& job, const FragmentKind& kind, std::int64_t bytes, const Repeat& repeat,
                                     bench::ProgressLine& progress) {
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
                                       {&times.reorder_streaming, [&] { return streaming.reorder(); }}},
                                      progress);
    if (!timed.ok()) return timed;
    return times;
}

namespace {

double median_of(const std::vector<double>& seconds) { return bench::summarise(seconds).median; }

// Median of the ratios of the first to the second, repetition by repetition: longer disturbances affect both.
double paired_ratio(const std::vector<double>& seconds, const std::vector<double>& of) {
    std::vector<double> ratios;
    for (std::size_t i = 0; i < of.size(); ++i) ratios.push_back(seconds[i] / of[i]);
    return median_of(ratios);
}

// One line of the report. Rates are in GB/s of payload.
struct FragmentRow {
    const FragmentKind* kind;
    double memcpy_ordinary;
    double memcpy_streaming;
    double gather_ordinary;
    double gather_streaming;
    bool streams;    // gathering is faster with streaming stores
    double to_copy;  // ratio of the faster gathering to the faster memcpy
    double to_plan_1;
};

FragmentRow fragment_row(const FragmentKind& kind, const FragmentTimes& t) {
    const bool streams = median_of(t.gather_streaming) < median_of(t.gather_ordinary);
    const auto& gather = streams ? t.gather_streaming : t.gather_ordinary;
    const auto& reorder = streams ? t.reorder_streaming : t.reorder_ordinary;
    const double to_copy = std::min(paired_ratio(t.memcpy_ordinary, gather), paired_ratio(t.memcpy_streaming, gather));
    const auto rate = [&t](const std::vector<double>& seconds) { return t.bytes / median_of(seconds) / 1e9; };
    return {&kind,
            rate(t.memcpy_ordinary),
            rate(t.memcpy_streaming),
            rate(t.gather_ordinary),
            rate(t.gather_streaming),
            streams,
            to_copy,
            paired_ratio(reorder, gather)};
}

std::string line_of(const FragmentRow& row) {
    return fmt::format("  {:<11} {:>7.2f} {:>7.2f} {:>8.2f} {:>8.2f}   {:<9} {:>6.2f} {:>7.2f} {:>14.2f}\n",
                       row.kind->name, row.memcpy_ordinary, row.memcpy_streaming, row.gather_ordinary,
                       row.gather_streaming, row.streams ? "streaming" : "ordinary", row.to_copy, row.kind->target,
                       row.to_plan_1);
}

bench::ResultTable fragment_table(const std::vector<FragmentRow>& rows) {
    bench::ResultTable table{"fragments",
                             {"fragments", "row_bytes", "rows", "memcpy_ordinary_gb_per_s", "memcpy_streaming_gb_per_s",
                              "gather_ordinary_gb_per_s", "gather_streaming_gb_per_s", "faster_stores",
                              "ratio_to_memcpy", "target", "ratio_to_plan_1"},
                             {}};
    for (const FragmentRow& row : rows)
        table.rows.push_back({std::string(row.kind->name), row.kind->row_bytes, std::int64_t{row.kind->rows},
                              row.memcpy_ordinary, row.memcpy_streaming, row.gather_ordinary, row.gather_streaming,
                              std::string(row.streams ? "streaming" : "ordinary"), row.to_copy, row.kind->target,
                              row.to_plan_1});
    return table;
}

class FragmentsCommand final : public Subcommand {
public:
    CLI::App* declare(CLI::App& program) override {
        CLI::App* app = program.add_subcommand(
            "fragments", "Gather rows for eight ranks, by fragment length, and compare with memcpy and plan 1");
        app->add_option("--bytes", bytes_, "Bytes that each PE gathers")
            ->check(CLI::Range(std::int64_t{1} << 16, std::int64_t{1} << 34))
            ->capture_default_str();
        app->add_option("--iterations", repeat_.iterations, "Timed calls")
            ->check(CLI::Range(1, 100000))
            ->capture_default_str();
        app->add_option("--warmup", repeat_.warmup, "Untimed calls before the timed ones")
            ->check(CLI::Range(0, 100000))
            ->capture_default_str();
        declare_json(*app, json_);
        return app;
    }

    int run() override {
        return run_in_job("fragments", [this](const Job& job) { return measure(job); });
    }

private:
    Status measure(const Job& job) const {
        bench::TerminalProgress progress(job.is_reporter());
        const bool prints = job.is_reporter() && !is_standard_output(json_);
        if (prints) std::cout << head(job) << std::flush;
        std::vector<FragmentRow> rows;
        for (const FragmentKind& kind : fragment_kinds()) {
            progress.line().begin_step(fmt::format("gathering {}", kind.name), rows.size(), fragment_kinds().size());
            const auto times = time_fragments(job, kind, bytes_, repeat_, progress.line());
            if (!times.ok()) return times.status();
            rows.push_back(fragment_row(kind, times.value()));
            progress.line().clear();
            if (prints) std::cout << line_of(rows.back()) << std::flush;
        }
        if (prints) std::cout << cache_section("source and target", 2 * static_cast<double>(bytes_));
        return job.is_reporter() ? write_json(json_, json_report(fragment_table(rows))) : Status{};
    }

    [[nodiscard]] std::string head(const Job& job) const {
        return fmt::format(
            "npushmem-perf fragments: {} sending cores (PEs), {} each, {} calls; GB/s of payload, medians\n\n"
            "  {:<11} {:>15} {:>17}   {:<9} {:>6} {:>7} {:>14}\n  {:<11} {:>7} {:>7} {:>8} {:>8}   {:<9} {:>6} {:>7} "
            "{:>14}\n",
            job.pes(), bytes_text(static_cast<double>(bytes_)), repeat_.iterations, "", "memcpy", "gathering",
            "the faster", "ratio", "", "plan 2 to", "fragments", "ordin.", "stream.", "ordin.", "stream.", "stores",
            "to it", "target", "plan 1");
    }

    std::int64_t bytes_ = std::int64_t{256} << 20;
    Repeat repeat_{2, 9};
    std::string json_;
};

}  // namespace

std::unique_ptr<Subcommand> make_fragments_command() { return std::make_unique<FragmentsCommand>(); }

}  // namespace npushmem::perf
