// SPDX-License-Identifier: BSD-3-Clause
// npushmem-perf simulate-startup: the exchange of data at the start of large jobs under a cost model.
#include <fmt/format.h>

#include "bench/engine/report.hpp"
#include "bench/perf/simulation_options.hpp"
#include "bench/perf/subcommand.hpp"
#include "bench/simulate/start_cost.hpp"

namespace npushmem::perf {

namespace {

class SimulateStartupCommand final : public Subcommand {
public:
    CLI::App* declare(CLI::App& program) override {
        CLI::App* app = program.add_subcommand(
            "simulate-startup",
            "Run the schedule of a start's join and collectives under the LogGP model, for up to a million PEs");
        declare_sizes(*app, options_, "Sizes of the job", "PEs per node; if more than --pes, all are on one node");
        declare_model(*app, options_);
        return app;
    }

    int run() override {
        const Status done = predict();
        return done.ok() ? EXIT_SUCCESS : fail("simulate-startup", done.message());
    }

private:
    Status predict() {
        const auto model = options_.model();
        if (!model.ok()) return model.status();
        bench::ResultTable table{"simulate-startup",
                                 {"pes", "pes_per_node", "ms", "join_ms", "connect_ms", "exchange_ms", "messages",
                                  "received_bytes_per_pe", "memory_bytes_per_pe"},
                                 {}};
        std::string text = fmt::format("{}{} PEs per node\n{:>9} {:>10} {:>10} {:>10} {:>10} {:>10} {:>12} {:>12}\n",
                                       describe(model.value()), options_.per_node, "PEs", "ms", "join", "connect",
                                       "exchange", "messages", "MB received", "MB of a PE");
        for (const int members : options_.members) {
            const auto made = simulate::start_cost({members, options_.per_node}, model.value());
            if (!made.ok()) return made.status();
            const simulate::StartCost& cost = made.value();
            const auto ms = [](double nanoseconds) { return nanoseconds / 1e6; };
            table.rows.push_back({std::int64_t{members}, std::int64_t{options_.per_node}, ms(cost.nanoseconds),
                                  ms(cost.join), ms(cost.connect), ms(cost.exchange), cost.messages,
                                  cost.received_bytes, cost.memory_bytes});
            text += fmt::format("{:>9} {:>10.4g} {:>10.4g} {:>10.4g} {:>10.4g} {:>10.4g} {:>12.4g} {:>12.4g}\n",
                                members, ms(cost.nanoseconds), ms(cost.join), ms(cost.connect), ms(cost.exchange),
                                cost.messages, cost.received_bytes / 1e6, cost.memory_bytes / 1e6);
        }
        return options_.deliver(table, text);
    }

    SimulationOptions options_;
};

}  // namespace

std::unique_ptr<Subcommand> make_simulate_startup_command() { return std::make_unique<SimulateStartupCommand>(); }

}  // namespace npushmem::perf
