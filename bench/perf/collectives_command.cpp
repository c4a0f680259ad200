// SPDX-License-Identifier: BSD-3-Clause
// npushmem-perf collectives: npushmem's collectives beside those of the library of NPUSHMEM_COLL_LIBRARY, call by call
// in the same run, and rules for the decision file.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <iostream>

#include "bench/engine/progress_line.hpp"
#include "bench/engine/report.hpp"
#include "bench/engine/statistics.hpp"
#include "bench/perf/job.hpp"
#include "bench/perf/measure_command.hpp"
#include "bench/perf/subcommand.hpp"
#include "npushmem.h"
#include "npushmemx.h"

namespace npushmem::perf {

namespace {

// A collective of `bytes` bytes of each PE; returns the library's code.
struct MeasuredCollective {
    const char* name;
    std::function<int(void* dest, const void* source, std::size_t bytes)> call;
};

int reduce_floats(void* dest, const void* source, std::size_t bytes) {
    return npushmem_float_sum_reduce(NPUSHMEM_TEAM_WORLD, static_cast<float*>(dest), static_cast<const float*>(source),
                                     bytes / sizeof(float));
}
int scatter_floats(void* dest, const void* source, std::size_t bytes) {
    return npushmemx_float_sum_reducescatter(NPUSHMEM_TEAM_WORLD, static_cast<float*>(dest),
                                             static_cast<const float*>(source), bytes / sizeof(float));
}

std::vector<MeasuredCollective> measured_collectives() {
    npushmem_team_t world = NPUSHMEM_TEAM_WORLD;
    using Memory = void*;
    using Given = const void*;
    return {{"barrier", [=](Memory, Given, std::size_t) { return npushmem_team_sync(world); }},
            {"broadcast", [=](Memory to, Given from,
                              std::size_t bytes) { return npushmem_broadcastmem(world, to, from, bytes, 0); }},
            {"collect",
             [=](Memory to, Given from, std::size_t bytes) { return npushmem_collectmem(world, to, from, bytes); }},
            {"fcollect",
             [=](Memory to, Given from, std::size_t bytes) { return npushmem_fcollectmem(world, to, from, bytes); }},
            {"alltoall",
             [=](Memory to, Given from, std::size_t bytes) { return npushmem_alltoallmem(world, to, from, bytes); }},
            {"reduce", reduce_floats},
            {"reducescatter", scatter_floats}};
}

// One collective with one size: the microseconds of a call in each round, of ours and of the library's.
struct Measured {
    std::string collective;
    std::size_t bytes;
    std::vector<double> own_us;
    std::vector<double> library_us;

    [[nodiscard]] double ratio() const { return bench::summarise(bench::paired_ratios(own_us, library_us)).median; }
    [[nodiscard]] bool library_wins() const { return ratio() > 1; }
};

class CollectivesCommand final : public Subcommand {
public:
    CLI::App* declare(CLI::App& program) override {
        CLI::App* app = program.add_subcommand(
            "collectives",
            "Time npushmem's collectives beside those of NPUSHMEM_COLL_LIBRARY; the faster ones become rules for "
            "NPUSHMEM_COLL_TUNING_FILE");
        app->add_option("--library", library_, "Name of the library; default: NPUSHMEM_COLL_LIBRARY");
        app->add_option("--bytes", bytes_, "Bytes of each PE, several with commas, multiples of 4")
            ->delimiter(',')
            ->check(CLI::Range(4, 1 << 26))
            ->capture_default_str();
        app->add_option("--output", output_, "Append the rules to this file; default: print them")->type_name("FILE");
        app->add_option("--rounds", rounds_, "Timings of each call")->check(positive())->capture_default_str();
        app->add_option("--calls", calls_, "Back-to-back calls per round")->check(positive())->capture_default_str();
        declare_json(*app, json_);
        return app;
    }

    int run() override {
        if (const char* selected = std::getenv("NPUSHMEM_COLL_LIBRARY"); library_.empty() && selected != nullptr)
            library_ = selected;
        if (library_.empty() || library_ == "npushmem")
            return fail("collectives",
                        "there is no library to compare with: set NPUSHMEM_COLL_LIBRARY, for example to "
                        "mpi");
        return run_in_job("collectives", [this](const Job& job) { return measure(job); });
    }

private:
    Status measure(const Job& job) {
        std::ranges::sort(bytes_);
        const auto pes = static_cast<std::size_t>(job.pes());
        auto dest = make_symmetric<std::byte>(bytes_.back() * pes);
        auto source = make_symmetric<std::byte>(bytes_.back() * pes);
        if (!dest.ok() || !source.ok()) return dest.ok() ? source.status() : dest.status();
        std::vector<Measured> all;
        bench::TerminalProgress progress(job.is_reporter());
        const auto collectives = measured_collectives();
        std::size_t step = 0;
        for (const MeasuredCollective& one : collectives)
            for (const std::size_t bytes :
                 std::string_view(one.name) == "barrier" ? std::vector<std::size_t>{0} : bytes_) {
                progress.line().begin_step(fmt::format("timing {}", one.name), step++,
                                           collectives.size() * bytes_.size());
                Measured& measured = all.emplace_back(Measured{one.name, bytes, {}, {}});
                const auto call = [&] { return one.call(dest.value().get(), source.value().get(), bytes); };
                // Both run in each round, so that disturbances of the machine affect both alike.
                for (int round = 0; round < rounds_; ++round)
                    if (Status done = time_both(call, measured); !done.ok()) return done.within(one.name);
            }
        progress.line().clear();
        return job.is_reporter() ? deliver(all, job.pes()) : Status{};
    }

    Status time_both(const std::function<int()>& call, Measured& measured) const {
        Status done = time("npushmem", call, measured.own_us);
        return done.ok() ? time(library_, call, measured.library_us) : done;
    }

    Status time(const std::string& library, const std::function<int()>& call, std::vector<double>& into) const {
        using Clock = std::chrono::steady_clock;
        int code = npushmemx_team_set_collectives(NPUSHMEM_TEAM_WORLD, library.c_str());
        if (code == 0) code = call();
        Job::barrier();
        const auto begin = Clock::now();
        for (int i = 0; i < calls_ && code == 0; ++i) code = call();
        into.push_back(std::chrono::duration<double, std::micro>(Clock::now() - begin).count() / calls_);
        return code == 0 ? Status{} : library_failure();
    }

    [[nodiscard]] bench::ResultTable table_of(const std::vector<Measured>& all, int pes) const {
        bench::ResultTable table{
            "collectives", {"collective", "bytes", "pes", "npushmem_us", "library", "library_us", "ratio"}, {}};
        for (const Measured& one : all)
            table.rows.push_back({one.collective, static_cast<std::int64_t>(one.bytes), std::int64_t{pes},
                                  bench::summarise(one.own_us).median, library_,
                                  bench::summarise(one.library_us).median, one.ratio()});
        return table;
    }

    [[nodiscard]] std::string text_of(const std::vector<Measured>& all, int pes) const {
        std::string text = fmt::format(
            "# {} PEs; medians of {} rounds of {} calls, in us; ratio above 1: {} is faster\n"
            "# {:<14} {:>9} {:>12} {:>12} {:>7}\n",
            pes, rounds_, calls_, library_, "collective", "bytes", "npushmem", library_, "ratio");
        for (const Measured& one : all)
            text +=
                fmt::format("# {:<14} {:>9} {:>12.3f} {:>12.3f} {:>7.3f}\n", one.collective, one.bytes,
                            bench::summarise(one.own_us).median, bench::summarise(one.library_us).median, one.ratio());
        return text;
    }

    // A size decides for the sizes up to the next measured one.
    [[nodiscard]] std::string rules_of(const std::vector<Measured>& all, int pes) const {
        int per_node = 0;
        double per_core = 0;
        (void)npushmemx_get_pe_density(&per_node, &per_core);
        std::string rules;
        for (std::size_t i = 0; i < all.size();) {
            std::size_t end = i + 1;
            const bool library_wins = all[i].library_wins();
            const auto continues = [&](const Measured& next) {
                return next.collective == all[i].collective && next.library_wins() == library_wins;
            };
            while (end < all.size() && continues(all[end])) ++end;
            const bool is_first = i == 0 || all[i - 1].collective != all[i].collective;
            const bool is_last = end == all.size() || all[end].collective != all[i].collective;
            const std::string bytes = fmt::format("{}-{}", is_first ? 0 : all[i].bytes,
                                                  is_last ? std::string() : fmt::to_string(all[end].bytes - 1));
            rules += fmt::format("{} {} {} {:.4g}-{:.4g} {} {}\n", all[i].collective, pes, per_node, per_core * 0.99,
                                 per_core * 1.01, bytes, library_wins ? library_ : "npushmem");
            i = end;
        }
        return rules;
    }

    [[nodiscard]] Status deliver(const std::vector<Measured>& all, int pes) const {
        const std::string text = text_of(all, pes) + rules_of(all, pes);
        if (Status written = write_json(json_, json_report(table_of(all, pes))); !written.ok()) return written;
        if (output_.empty()) {
            if (!is_standard_output(json_)) std::cout << text;
            return {};
        }
        std::ofstream file(output_, std::ios::app);
        file << text;
        file.close();
        return file ? Status{} : Status{Code::system, fmt::format("cannot write \"{}\"", output_)};
    }

    std::string library_;
    std::vector<std::size_t> bytes_{8, 1024, 32768, 1048576};
    std::string output_;
    std::string json_;
    int rounds_ = 11;
    int calls_ = 50;
};

}  // namespace

std::unique_ptr<Subcommand> make_collectives_command() { return std::make_unique<CollectivesCommand>(); }

}  // namespace npushmem::perf
