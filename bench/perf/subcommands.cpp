// The list of subcommands. To add one: declare its maker, and name it below.
#include "bench/cases/case.hpp"
#include "bench/perf/subcommand.hpp"

namespace npushmem::perf {

std::unique_ptr<Subcommand> make_combine_command();
std::unique_ptr<Subcommand> make_dispatch_command();
std::unique_ptr<Subcommand> make_estimate_command();
std::unique_ptr<Subcommand> make_fragments_command();
std::unique_ptr<Subcommand> make_measure_command(const bench::Group& group);
std::unique_ptr<Subcommand> make_npu_barrier_command();
std::unique_ptr<Subcommand> make_npu_check_command();
std::unique_ptr<Subcommand> make_routing_command();
std::unique_ptr<Subcommand> make_simulate_barrier_command();
std::unique_ptr<Subcommand> make_soak_command();
std::unique_ptr<Subcommand> make_startup_command();
std::unique_ptr<Subcommand> make_tune_barrier_command();

std::vector<std::unique_ptr<Subcommand>> all_subcommands() {
    std::vector<std::unique_ptr<Subcommand>> all;
    all.push_back(make_combine_command());
    all.push_back(make_dispatch_command());
    all.push_back(make_fragments_command());
    all.push_back(make_estimate_command());
    all.push_back(make_soak_command());
    all.push_back(make_routing_command());
    for (const bench::Group& group : bench::all_groups()) all.push_back(make_measure_command(group));
    all.push_back(make_simulate_barrier_command());
    all.push_back(make_startup_command());
    all.push_back(make_tune_barrier_command());
    all.push_back(make_npu_barrier_command());
    all.push_back(make_npu_check_command());
    return all;
}

}  // namespace npushmem::perf
