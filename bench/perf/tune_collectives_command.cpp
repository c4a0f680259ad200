// SPDX-License-Identifier: BSD-3-Clause
// npushmem-perf tune-collectives: npushmem's methods for each collective, and the library of NPUSHMEM_COLL_LIBRARY, in
// the same run, and rules for the decision file.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <functional>

#include "bench/engine/progress_line.hpp"
#include "bench/engine/report.hpp"
#include "bench/engine/statistics.hpp"
#include "bench/perf/job.hpp"
#include "bench/perf/measure_command.hpp"
#include "bench/perf/subcommand.hpp"
#include "core/coll/cache_line_exchange.hpp"
#include "core/coll/group.hpp"
#include "core/coll/leader_exchange.hpp"
#include "core/coll/methods.hpp"
#include "npushmem.h"
#include "npushmemx.h"

namespace npushmem::perf {

namespace {

// A collective of `bytes` bytes of each PE; returns the library's code.
struct MeasuredCollective {
    std::uint32_t number;  // NPUSHMEM_COLL_BARRIER ...
    std::string name;
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
    return {
        {NPUSHMEM_COLL_BARRIER, "barrier", [=](Memory, Given, std::size_t) { return npushmem_team_sync(world); }},
        {NPUSHMEM_COLL_BROADCAST, "broadcast",
         [=](Memory to, Given from, std::size_t bytes) { return npushmem_broadcastmem(world, to, from, bytes, 0); }},
        {NPUSHMEM_COLL_COLLECT, "collect",
         [=](Memory to, Given from, std::size_t bytes) { return npushmem_collectmem(world, to, from, bytes); }},
        {NPUSHMEM_COLL_FCOLLECT, "fcollect",
         [=](Memory to, Given from, std::size_t bytes) { return npushmem_fcollectmem(world, to, from, bytes); }},
        {NPUSHMEM_COLL_ALLTOALL, "alltoall",
         [=](Memory to, Given from, std::size_t bytes) { return npushmem_alltoallmem(world, to, from, bytes); }},
        {NPUSHMEM_COLL_REDUCE, "reduce", reduce_floats},
        {NPUSHMEM_COLL_REDUCESCATTER, "reducescatter", scatter_floats}};
}

// One way to run a collective, as npushmemx_team_set_collectives names it: the microseconds of a call in each round.
struct Choice {
    std::string name;
    std::vector<double> rounds_us = {};

    [[nodiscard]] double median() const { return bench::summarise(rounds_us).median; }
};

// One collective with one size.
struct Measured {
    std::string collective;
    std::size_t bytes;
    std::vector<Choice> choices;

    // The choice whose typical call is the fastest; where the medians are equal, the first.
    [[nodiscard]] const Choice& best() const {
        return *std::ranges::min_element(choices, {}, [](const Choice& choice) { return choice.median(); });
    }
};

// What the PEs of the job map of each other.
struct Mapping {
    bool all = false;        // every PE maps every PE
    bool hosts = false;      // several hosts with the same number of PEs, which map each other
    bool each_host = false;  // every PE maps those of its host
    bool library = false;    // a library is loaded
};

// Whether the method itself serves calls of `bytes` of each of `pes` PEs, and not the built-in choice in its place.
bool serves(coll::Method method, const MeasuredCollective& collective, std::size_t bytes, int pes,
            const Mapping& mapping) {
    using coll::Method;
    const bool each = collective.number == NPUSHMEM_COLL_ALLTOALL || collective.number == NPUSHMEM_COLL_REDUCESCATTER;
    const bool by_host_lines =
        mapping.each_host && pes <= coll::LeaderExchange::max_members &&
        bytes <= (each ? coll::LeaderExchange::block_bytes(pes) : coll::LeaderExchange::payload_bytes(pes));
    switch (method) {
        case Method::lines:
            if (!mapping.all) return by_host_lines;
            return pes > 1 && pes <= coll::CacheLineExchange::max_members &&
                   bytes <= coll::CacheLineExchange::payload_bytes;
        case Method::ring:
            if (!mapping.all)
                return mapping.each_host && pes <= coll::LeaderExchange::max_members &&
                       bytes <= coll::LeaderExchange::broadcast_bytes;
            return pes > 1 && pes <= coll::BroadcastRing::max_members && bytes <= coll::BroadcastRing::payload_bytes;
        case Method::published:
            if (collective.number == NPUSHMEM_COLL_COLLECT && (!mapping.all || mapping.library)) return false;
            if (collective.number == NPUSHMEM_COLL_ALLTOALL) bytes *= static_cast<std::size_t>(pes);
            return bytes <= coll::Workspace::contribution_bytes;
        case Method::hosts: return mapping.hosts;
        default: return true;
    }
}

class TuneCollectivesCommand final : public Subcommand {
public:
    CLI::App* declare(CLI::App& program) override {
        CLI::App* app = program.add_subcommand(
            "tune-collectives",
            "Time npushmem's methods for each collective, and the library of NPUSHMEM_COLL_LIBRARY; the fastest become "
            "rules for NPUSHMEM_COLL_TUNING_FILE");
        app->add_option("--library", library_, "Name of the library; default: NPUSHMEM_COLL_LIBRARY, if it is set");
        app->add_option("--collectives", only_, "Only these, several with commas")
            ->delimiter(',')
            ->check(
                CLI::IsMember(std::vector<std::string>(coll::collective_names.begin(), coll::collective_names.end())));
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
        if (library_ == "npushmem") library_.clear();
        return run_in_job("tune-collectives", [this](const Job& job) { return measure(job); });
    }

private:
    Status measure(const Job& job) {
        std::ranges::sort(bytes_);
        bytes_.erase(std::ranges::unique(bytes_).begin(), bytes_.end());
        const auto pes = static_cast<std::size_t>(job.pes());
        auto dest = make_symmetric<std::byte>(bytes_.back() * pes);
        auto source = make_symmetric<std::byte>(bytes_.back() * pes);
        if (!dest.ok() || !source.ok()) return dest.ok() ? source.status() : dest.status();
        Mapping mapping = mapping_of(job, dest.value().get());
        mapping.library = !library_.empty();
        std::vector<Measured> all;
        bench::TerminalProgress progress(job.is_reporter());
        std::size_t step = 0;
        const auto collectives = selected_collectives();
        if (collectives.empty())
            return {Code::argument, "without a library there is nothing to choose for barriers; use tune-barrier"};
        for (const MeasuredCollective& one : collectives)
            for (const std::size_t bytes : sizes_of(one)) {
                progress.line().begin_step(fmt::format("timing {}", one.name), step++,
                                           collectives.size() * bytes_.size());
                Measured& measured =
                    all.emplace_back(Measured{one.name, bytes, choices_of(one, bytes, job.pes(), mapping)});
                const auto call = [&] { return one.call(dest.value().get(), source.value().get(), bytes); };
                // All run in each round, so that disturbances of the machine affect all alike.
                for (int round = 0; round < rounds_; ++round)
                    for (Choice& choice : measured.choices)
                        if (Status done = time(call, choice); !done.ok())
                            return done.within(fmt::format("{} by {}", one.name, choice.name));
            }
        progress.line().clear();
        return job.is_reporter() ? deliver(all, job.pes()) : Status{};
    }

    // The same on all PEs.
    static Mapping mapping_of(const Job& job, std::byte* object) {
        // The PEs of this host if this PE maps them, otherwise 0: the least number and the greatest.
        const int local = npushmem_team_n_pes(NPUSHMEMX_TEAM_NODE);
        int mapped = 0;
        for (int pe = 0; pe < job.pes(); ++pe) mapped += npushmem_ptr(object, pe) == nullptr ? 0 : 1;
        std::array<int*, 2> number{reinterpret_cast<int*>(object), reinterpret_cast<int*>(object) + 1};
        *number[0] = *number[1] = mapped >= local ? local : 0;
        Mapping mapping;
        mapping.all = agreed(mapped == job.pes(), number[1] + 1);
        const bool done = npushmem_int_min_reduce(NPUSHMEM_TEAM_WORLD, number[0], number[0], 1) == 0 &&
                          npushmem_int_max_reduce(NPUSHMEM_TEAM_WORLD, number[1], number[1], 1) == 0;
        mapping.hosts = done && *number[0] == *number[1] && *number[0] > 0 && *number[0] < job.pes();
        mapping.each_host = done && *number[0] > 0;
        return mapping;
    }

    static bool agreed(bool own, int* object) {
        *object = own ? 1 : 0;
        return npushmem_int_min_reduce(NPUSHMEM_TEAM_WORLD, object, object, 1) == 0 && *object == 1;
    }

    // Without a library there is nothing to choose for barriers: tune-barrier times their algorithms.
    [[nodiscard]] std::vector<MeasuredCollective> selected_collectives() const {
        auto all = measured_collectives();
        std::erase_if(all, [this](const MeasuredCollective& one) {
            const bool wanted = only_.empty() || std::ranges::find(only_, one.name) != only_.end();
            return !wanted || (library_.empty() && one.number == NPUSHMEM_COLL_BARRIER);
        });
        return all;
    }

    [[nodiscard]] std::vector<std::size_t> sizes_of(const MeasuredCollective& one) const {
        return one.number == NPUSHMEM_COLL_BARRIER ? std::vector<std::size_t>{0} : bytes_;
    }

    [[nodiscard]] std::vector<Choice> choices_of(const MeasuredCollective& one, std::size_t bytes, int pes,
                                                 const Mapping& mapping) const {
        std::vector<Choice> choices;
        for (const coll::Method method : coll::methods_of(one.number))
            if (serves(method, one, bytes, pes, mapping))
                choices.push_back({fmt::format("npushmem:{}", name_of(method))});
        if (choices.empty()) choices.push_back({"npushmem"});
        if (!library_.empty()) choices.push_back({library_});
        return choices;
    }

    Status time(const std::function<int()>& call, Choice& choice) const {
        using Clock = std::chrono::steady_clock;
        int code = npushmemx_team_set_collectives(NPUSHMEM_TEAM_WORLD, choice.name.c_str());
        if (code == 0) code = call();
        Job::barrier();
        const auto begin = Clock::now();
        for (int i = 0; i < calls_ && code == 0; ++i) code = call();
        Job::barrier();  // a root may return before the others have its data
        choice.rounds_us.push_back(std::chrono::duration<double, std::micro>(Clock::now() - begin).count() / calls_);
        return code == 0 ? Status{} : library_failure();
    }

    [[nodiscard]] static bench::ResultTable table_of(const std::vector<Measured>& all, int pes) {
        bench::ResultTable table{"tune-collectives", {"collective", "bytes", "pes", "choice", "median_us"}, {}};
        for (const Measured& one : all)
            for (const Choice& choice : one.choices)
                table.rows.push_back({one.collective, static_cast<std::int64_t>(one.bytes), std::int64_t{pes},
                                      choice.name, choice.median()});
        return table;
    }

    [[nodiscard]] std::string text_of(const std::vector<Measured>& all, int pes) const {
        std::string text = fmt::format("# {} PEs; medians of {} rounds of {} calls, in us\n", pes, rounds_, calls_);
        for (const Measured& one : all) {
            text += fmt::format("# {:<14} {:>9}", one.collective, one.bytes);
            for (const Choice& choice : one.choices) text += fmt::format("  {} {:.3f}", choice.name, choice.median());
            text += '\n';
        }
        return text;
    }

    // A size decides for the sizes up to the next measured one.
    [[nodiscard]] static std::string rules_of(const std::vector<Measured>& all, int pes) {
        int per_node = 0;
        double per_core = 0;
        (void)npushmemx_get_pe_density(&per_node, &per_core);
        std::string rules;
        for (std::size_t i = 0; i < all.size();) {
            std::size_t end = i + 1;
            const std::string& best = all[i].best().name;
            const auto continues = [&](const Measured& next) {
                return next.collective == all[i].collective && next.best().name == best;
            };
            while (end < all.size() && continues(all[end])) ++end;
            const bool is_first = i == 0 || all[i - 1].collective != all[i].collective;
            const bool is_last = end == all.size() || all[end].collective != all[i].collective;
            const std::string bytes = fmt::format("{}-{}", is_first ? 0 : all[i].bytes,
                                                  is_last ? std::string() : fmt::to_string(all[end].bytes - 1));
            rules += fmt::format("{} {} {} {:.4g}-{:.4g} {} {}\n", all[i].collective, pes, per_node, per_core * 0.99,
                                 per_core * 1.01, bytes, best);
            i = end;
        }
        return rules;
    }

    [[nodiscard]] Status deliver(const std::vector<Measured>& all, int pes) const {
        const std::string text = text_of(all, pes) + rules_of(all, pes);
        if (Status written = write_json(json_, json_report(table_of(all, pes))); !written.ok()) return written;
        return deliver_rules(text, output_, json_);
    }

    std::string library_;
    std::vector<std::string> only_;
    std::vector<std::size_t> bytes_{8, 64, 512, 2048, 8192, 32768, 131072, 524288, 2097152};
    std::string output_;
    std::string json_;
    int rounds_ = 11;
    int calls_ = 20;
};

}  // namespace

std::unique_ptr<Subcommand> make_tune_collectives_command() { return std::make_unique<TuneCollectivesCommand>(); }

}  // namespace npushmem::perf
