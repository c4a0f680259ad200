// npushmem-perf: measurements, each beside its baseline in the same run.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <utility>
#include <vector>

#include "bench/perf/subcommand.hpp"
#include "core/base/version.hpp"

namespace {

using npushmem::perf::Subcommand;

int run_chosen(const std::vector<std::pair<CLI::App*, Subcommand*>>& commands) {
    for (const auto& [app, command] : commands) {
        if (app->parsed()) return command->run();
    }
    return EXIT_FAILURE;
}

}  // namespace

int main(int argc, char** argv) {
    CLI::App program{
        "Measure npushmem. Most subcommands run on several PEs: npushmem-run -n 8 npushmem-perf combine ..."};
    program.require_subcommand(1);
    const auto all = npushmem::perf::all_subcommands();
    std::vector<std::pair<CLI::App*, Subcommand*>> commands;
    for (const auto& command : all) commands.emplace_back(command->declare(program), command.get());
    program.set_version_flag("--version",
                             fmt::format("npushmem-perf {}.{}.{}", npushmem::library_version.major,
                                         npushmem::library_version.minor, npushmem::library_version.patch));
    try {
        program.parse(argc, argv);
    } catch (const CLI::Success& asked) {  // help, version
        return program.exit(asked);
    } catch (const CLI::ParseError& error) {
        constexpr int exit_usage = 2;
        fmt::print(stderr, "npushmem-perf: {}\nTry 'npushmem-perf --help'.\n", error.what());
        return exit_usage;
    }
    return run_chosen(commands);
}
