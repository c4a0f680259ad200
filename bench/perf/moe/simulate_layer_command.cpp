// SPDX-License-Identifier: BSD-3-Clause
// npushmem-perf simulate-layer: the dispatch and the combine of an MoE layer on many PEs under a cost model.
#include <fmt/format.h>

#include "bench/engine/report.hpp"
#include "bench/perf/simulation_options.hpp"
#include "bench/perf/subcommand.hpp"
#include "bench/simulate/layer_cost.hpp"

namespace npushmem::perf {

namespace {

class SimulateLayerCommand final : public Subcommand {
public:
    CLI::App* declare(CLI::App& program) override {
        CLI::App* app = program.add_subcommand("simulate-layer",
                                               "Run the schedule of an MoE layer's dispatch and combine, one row per "
                                               "(token, rank), under the LogGP model, for up to a million PEs");
        declare_sizes(*app, options_, "Sizes of the job", "PEs per node, which map each other");
        app->add_option("--experts-per-pe", call_.experts_per_pe, "Experts that each PE holds")
            ->check(CLI::Range(1, 1 << 20))
            ->capture_default_str();
        app->add_option("--top-k", call_.top_k, "Choices of a token")->check(CLI::Range(1, 64))->capture_default_str();
        app->add_option("--tokens", call_.tokens, "Tokens of each PE")
            ->check(CLI::Range(1, 1 << 20))
            ->capture_default_str();
        app->add_option("--row-bytes", call_.dispatched_row, "Bytes of a row of the dispatch")
            ->check(CLI::Range(1, 1 << 24))
            ->capture_default_str();
        app->add_option("--returned-row-bytes", call_.returned_row, "Bytes of a row of the combine")
            ->check(CLI::Range(1, 1 << 24))
            ->capture_default_str();
        app->add_option(
               "--slots", slots_,
               "Places of the rows: contiguous, by counts that travel first, or fixed, for all tokens of each PE")
            ->check(CLI::IsMember({"packed", "fixed"}))
            ->capture_default_str();
        app->add_option("--seed", call_.seed, "Seed of the choices")->capture_default_str();
        declare_model(*app, options_);
        return app;
    }

    int run() override {
        const Status done = predict();
        return done.ok() ? EXIT_SUCCESS : fail("simulate-layer", done.message());
    }

private:
    Status predict() {
        const auto model = options_.model();
        if (!model.ok()) return model.status();
        call_.fixed_slots = slots_ == "fixed";
        bench::ResultTable table{"simulate-layer",
                                 {"pes", "pes_per_node", "us", "counts_us", "tables_us", "rows_us", "relays_us",
                                  "combine_us", "messages", "messages_to_all", "bytes", "record_bytes", "memory_bytes"},
                                 {}};
        std::string text = fmt::format("{}{} PEs per node, {} slots; messages and bytes that a PE sends\n",
                                       describe(model.value()), options_.per_node, slots_);
        text += fmt::format("{:>9} {:>10} {:>10} {:>10} {:>10} {:>10} {:>10} {:>10} {:>10} {:>10} {:>10} {:>10}\n",
                            "PEs", "us", "counts", "tables", "rows", "relays", "combine", "messages", "to all", "MB",
                            "MB records", "MB of a PE");
        for (const int members : options_.members) {
            const auto made = simulate::layer_cost(call_, {members, options_.per_node}, model.value());
            if (!made.ok()) return made.status();
            add(table, text, members, made.value());
        }
        return options_.deliver(table, text);
    }

    void add(bench::ResultTable& table, std::string& text, int members, const simulate::LayerCost& cost) const {
        std::vector<bench::ResultCell> row{std::int64_t{members}, std::int64_t{options_.per_node}};
        text += fmt::format("{:>9}", members);
        for (const double time : {cost.nanoseconds, cost.counts, cost.tables, cost.rows, cost.relays, cost.combine}) {
            row.emplace_back(time / 1e3);
            text += fmt::format(" {:>10.4g}", time / 1e3);
        }
        for (const std::uint64_t messages : {cost.messages, cost.messages_to_all}) {
            row.emplace_back(static_cast<std::int64_t>(messages));
            text += fmt::format(" {:>10}", messages);
        }
        for (const std::uint64_t bytes : {cost.bytes, cost.record_bytes, cost.memory_bytes}) {
            row.emplace_back(static_cast<std::int64_t>(bytes));
            text += fmt::format(" {:>10.4g}", static_cast<double>(bytes) / 1e6);
        }
        table.rows.push_back(std::move(row));
        text += '\n';
    }

    SimulationOptions options_;
    simulate::LayerCall call_;
    std::string slots_ = "packed";
};

}  // namespace

std::unique_ptr<Subcommand> make_simulate_layer_command() { return std::make_unique<SimulateLayerCommand>(); }

}  // namespace npushmem::perf
