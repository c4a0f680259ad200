// SPDX-License-Identifier: BSD-3-Clause
// npushmem-perf simulate-collectives: runs the real collectives under a cost model, by each method.
#include <fmt/format.h>

#include <algorithm>

#include "bench/engine/report.hpp"
#include "bench/perf/simulation_options.hpp"
#include "bench/perf/subcommand.hpp"
#include "bench/simulate/collective_cost.hpp"

namespace npushmem::perf {

namespace {

using simulate::CollectiveCall;
using simulate::CollectiveCost;

// The collectives that are not barriers.
const std::vector<std::string> collectives(coll::collective_names.begin() + 1, coll::collective_names.end());

std::uint32_t number_of(const std::string& collective) {
    return static_cast<std::uint32_t>(std::ranges::find(coll::collective_names, collective) -
                                      coll::collective_names.begin());
}

// The built-in choice, and each method that does not need mapped memory or few members.
std::vector<coll::Method> simulated_methods(std::uint32_t collective) {
    using coll::Method;
    const bool publishes = collective == NPUSHMEM_COLL_FCOLLECT || collective == NPUSHMEM_COLL_REDUCE;
    std::vector<Method> methods{Method::automatic};
    for (const Method method : coll::methods_of(collective))
        if (method != Method::lines && method != Method::ring && (method != Method::published || publishes))
            methods.push_back(method);
    return methods;
}

struct Row {
    std::string collective;
    std::uint64_t bytes;
    int members;
    coll::Method method;
    CollectiveCost cost;
};

class SimulateCollectivesCommand final : public Subcommand {
public:
    CLI::App* declare(CLI::App& program) override {
        CLI::App* app = program.add_subcommand(
            "simulate-collectives",
            "Run the real collectives of several nodes under the LogGP model, by each method, for up to a million PEs");
        declare_sizes(*app, options_, "Sizes of the team, more than --pes-per-node", "PEs per node");
        app->add_option("--collectives", only_, "Only these, several with commas")
            ->delimiter(',')
            ->check(CLI::IsMember(collectives))
            ->capture_default_str();
        app->add_option("--bytes", bytes_, "Bytes of each PE, several with commas; of reductions multiples of 4")
            ->delimiter(',')
            ->check(CLI::Range(4, 1 << 26))
            ->capture_default_str();
        declare_model(*app, options_);
        return app;
    }

    int run() override {
        const Status done = predict();
        return done.ok() ? EXIT_SUCCESS : fail("simulate-collectives", done.message());
    }

private:
    Status predict() {
        const auto model = options_.model();
        if (!model.ok()) return model.status();
        std::vector<Row> rows;
        for (const std::string& collective : only_)
            for (const std::uint64_t bytes : bytes_)
                for (const int members : options_.members)
                    for (const coll::Method method : simulated_methods(number_of(collective))) {
                        const auto cost = simulate::cost_of({number_of(collective), bytes, method},
                                                            {members, options_.per_node}, model.value());
                        if (cost.status().code() == Code::unsupported) continue;
                        if (!cost.ok()) return cost.status();
                        rows.push_back({collective, bytes, members, method, cost.value()});
                    }
        return options_.deliver(table_of(rows), describe(model.value()) + text_of(rows));
    }

    static bench::ResultTable table_of(const std::vector<Row>& rows) {
        bench::ResultTable table{
            "simulate-collectives",
            {"collective", "bytes", "pes", "method", "us", "barrier_us", "barriers", "messages", "network_bytes"},
            {}};
        for (const Row& row : rows)
            table.rows.push_back({row.collective, static_cast<std::int64_t>(row.bytes), std::int64_t{row.members},
                                  std::string(name_of(row.method)), row.cost.nanoseconds / 1000,
                                  row.cost.barrier_nanoseconds / 1000, std::int64_t{row.cost.barriers},
                                  row.cost.messages, row.cost.network_bytes});
        return table;
    }

    // One line for each size and number of PEs: the times of all methods in microseconds.
    static std::string text_of(const std::vector<Row>& rows) {
        std::string text;
        for (std::size_t i = 0; i < rows.size(); ++i) {
            const Row& row = rows[i];
            const bool is_new = i == 0 || rows[i - 1].collective != row.collective || rows[i - 1].bytes != row.bytes;
            if (is_new)
                text += fmt::format("\n{} of {} bytes, in us (of these in barriers)", row.collective, row.bytes);
            if (row.method == coll::Method::automatic) text += fmt::format("\n{:>9}", row.members);
            text += fmt::format("  {} {:.4g} ({:.3g})", name_of(row.method), row.cost.nanoseconds / 1000,
                                row.cost.barrier_nanoseconds / 1000);
        }
        return text + "\n";
    }

    SimulationOptions options_;
    std::vector<std::string> only_{"broadcast", "alltoall"};
    std::vector<std::uint64_t> bytes_{8, 65536};
};

}  // namespace

std::unique_ptr<Subcommand> make_simulate_collectives_command() {
    return std::make_unique<SimulateCollectivesCommand>();
}

}  // namespace npushmem::perf
