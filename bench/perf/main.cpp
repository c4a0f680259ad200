// SPDX-License-Identifier: BSD-3-Clause
// npushmem-perf: measurements, each beside its baseline in the same run.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <utility>
#include <vector>

#include "bench/cases/case.hpp"
#include "bench/perf/subcommand.hpp"
#include "core/base/parse.hpp"
#include "core/base/streams.hpp"
#include "core/base/version.hpp"
#include "core/tools/common/cli_documents.hpp"

namespace {

using npushmem::perf::Subcommand;

int run_chosen(const std::vector<std::pair<CLI::App*, Subcommand*>>& commands) {
    for (const auto& [app, command] : commands) {
        if (app->parsed()) return command->run();
    }
    return EXIT_FAILURE;
}

// The error for an unknown subcommand, with a suggestion. CLI11 itself would only report an unexpected argument.
std::string unknown_subcommand(const std::vector<std::pair<CLI::App*, Subcommand*>>& commands, const char* word) {
    std::vector<std::string> names;
    for (const auto& [app, command] : commands) names.push_back(app->get_name());
    if (word == nullptr || *word == '-' || std::find(names.begin(), names.end(), word) != names.end()) return {};
    const std::string similar = npushmem::nearest(word, names);
    return fmt::format("there is no subcommand '{}'{}", word,
                       similar.empty() ? "" : fmt::format("; did you mean '{}'?", similar));
}

int refuse(const std::string& why) {
    constexpr int exit_usage = 2;
    npushmem::write_error(fmt::format("npushmem-perf: {}\nTry 'npushmem-perf --help'.\n", why));
    return exit_usage;
}

// The parts of the man page that the table of options does not contain.
npushmem::ManText man_text() {
    return {
        "measure npushmem, each part beside a baseline",
        "",
        "A measurement times one part of npushmem and, in the same run, a baseline. Most subcommands run on several "
        "PEs, which npushmem-run starts; PE 0 reports.\n\n"
        "combine, dispatch and fragments run parts of mixture-of-experts layers, and soak runs many layers of "
        "random shapes; combine, dispatch and soak verify every byte of their results. estimate works in virtual time, "
        "the simulate commands under a model, and routing generates a file.",
        {{"0", "The measurement is complete, and all verified results are right."},
         {"1", "The measurement or a verification failed, or the output is lost."},
         {"2", "The command line is wrong."}},
        {{"NPUSHMEM_*",
          "Select the transports, barriers and other parts that are measured. See "
          "npushmem-variables(7)."}},
        {{"npushmem-run -n 8 npushmem-perf combine --model deepseek-v3-decode",
          "The combine of a mixture-of-experts layer on eight PEs:"},
         {"npushmem-run -n 2 npushmem-perf put --csv put.csv", "Puts between two PEs, also as a table in a file:"},
         {"npushmem-perf simulate-barrier --pes 1024", "The barriers of 1024 simulated PEs:"}},
        "npushmem-run(1), npushmem-info(1), npushmem(7), npushmem-variables(7)"};
}

int run(int argc, char** argv) {
    CLI::App program{
        "Measure npushmem. Most subcommands run on several PEs: npushmem-run -n 8 npushmem-perf combine ...",
        "npushmem-perf"};
    program.require_subcommand(1);
    const auto all = npushmem::perf::all_subcommands();
    std::vector<std::pair<CLI::App*, Subcommand*>> commands;
    for (const auto& command : all) commands.emplace_back(command->declare(program), command.get());
    program.set_version_flag("-V,--version",
                             fmt::format("npushmem-perf {}.{}.{}", npushmem::library_version.major,
                                         npushmem::library_version.minor, npushmem::library_version.patch));
    if (npushmem::print_requested_document(program, man_text(), argc, argv)) return EXIT_SUCCESS;
    if (const std::string unknown = unknown_subcommand(commands, argc > 1 ? argv[1] : nullptr); !unknown.empty())
        return refuse(unknown);
    try {
        program.parse(argc, argv);
    } catch (const CLI::Success& success) {  // help, version
        return program.exit(success);
    } catch (const CLI::ParseError& error) {
        return refuse(error.what());
    }
    return run_chosen(commands);
}

}  // namespace

int main(int argc, char** argv) {
    npushmem::prepare_standard_streams();
    return npushmem::checked_status("npushmem-perf", run(argc, argv));
}
namespace npushmem::perf {

// The list of subcommands. To add one: declare its maker, and name it below.

std::unique_ptr<Subcommand> make_tune_collectives_command();
std::unique_ptr<Subcommand> make_combine_command();
std::unique_ptr<Subcommand> make_dispatch_command();
std::unique_ptr<Subcommand> make_estimate_command();
std::unique_ptr<Subcommand> make_fragments_command();
std::unique_ptr<Subcommand> make_measure_command(const bench::Group& group);
std::unique_ptr<Subcommand> make_npu_barrier_command();
std::unique_ptr<Subcommand> make_npu_check_command();
std::unique_ptr<Subcommand> make_routing_command();
std::unique_ptr<Subcommand> make_simulate_barrier_command();
std::unique_ptr<Subcommand> make_simulate_collectives_command();
std::unique_ptr<Subcommand> make_simulate_layer_command();
std::unique_ptr<Subcommand> make_simulate_startup_command();
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
    all.push_back(make_simulate_collectives_command());
    all.push_back(make_simulate_layer_command());
    all.push_back(make_simulate_startup_command());
    all.push_back(make_startup_command());
    all.push_back(make_tune_barrier_command());
    all.push_back(make_tune_collectives_command());
    all.push_back(make_npu_barrier_command());
    all.push_back(make_npu_check_command());
    return all;
}

}  // namespace npushmem::perf
