// SPDX-License-Identifier: BSD-3-Clause
// npushmem-perf simulate-startup: the exchange of data at the start of large jobs under a cost model.
#include <fmt/format.h>

#include <iostream>

#include "bench/engine/report.hpp"
#include "bench/perf/measure_command.hpp"
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
        app->add_option("--pes", members_, "Sizes of the job")
            ->delimiter(',')
            ->check(CLI::Range(2, 1'000'000))
            ->capture_default_str();
        app->add_option("--pes-per-node", per_node_, "PEs per node; if more than --pes, all are on one node")
            ->check(CLI::Range(1, 1'000'000))
            ->capture_default_str();
        app->add_option("--parameters", parameters_, "File with the model's parameters; see bench/simulate/model.hpp");
        declare_json(*app, json_);
        return app;
    }

    int run() override {
        const Status done = predict();
        return done.ok() ? EXIT_SUCCESS : fail("simulate-startup", done.message());
    }

private:
    Status predict() {
        simulate::Model model = simulate::default_model();
        if (Status read = simulate::read_model_file(parameters_, model); !read.ok()) return read;
        bench::ResultTable table{"simulate-startup",
                                 {"pes", "pes_per_node", "ms", "join_ms", "connect_ms", "exchange_ms", "messages",
                                  "received_bytes_per_pe", "memory_bytes_per_pe"},
                                 {}};
        std::string text =
            fmt::format("{}{} PEs per node\n{:>9} {:>10} {:>10} {:>10} {:>10} {:>10} {:>12} {:>12}\n", describe(model),
                        per_node_, "PEs", "ms", "join", "connect", "exchange", "messages", "MB received", "MB of a PE");
        for (const int members : members_) {
            const auto made = simulate::start_cost({members, per_node_}, model);
            if (!made.ok()) return made.status();
            const simulate::StartCost& cost = made.value();
            const auto ms = [](double nanoseconds) { return nanoseconds / 1e6; };
            table.rows.push_back({std::int64_t{members}, std::int64_t{per_node_}, ms(cost.nanoseconds), ms(cost.join),
                                  ms(cost.connect), ms(cost.exchange), cost.messages, cost.received_bytes,
                                  cost.memory_bytes});
            text += fmt::format("{:>9} {:>10.4g} {:>10.4g} {:>10.4g} {:>10.4g} {:>10.4g} {:>12.4g} {:>12.4g}\n",
                                members, ms(cost.nanoseconds), ms(cost.join), ms(cost.connect), ms(cost.exchange),
                                cost.messages, cost.received_bytes / 1e6, cost.memory_bytes / 1e6);
        }
        if (Status written = write_json(json_, json_report(table)); !written.ok()) return written;
        if (!is_standard_output(json_)) std::cout << text;
        return {};
    }

    std::vector<int> members_{100, 1000, 10'000, 100'000, 1'000'000};
    int per_node_ = 8;
    std::string parameters_;
    std::string json_;
};

}  // namespace

std::unique_ptr<Subcommand> make_simulate_startup_command() { return std::make_unique<SimulateStartupCommand>(); }

}  // namespace npushmem::perf
