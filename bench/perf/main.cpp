// npushmem-perf: measurements, each beside its baseline in the same run.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <utility>
#include <vector>

#include "bench/perf/subcommand.hpp"
#include "core/base/parse.hpp"
#include "core/base/streams.hpp"
#include "core/base/version.hpp"

namespace {

using npushmem::perf::Subcommand;

int run_chosen(const std::vector<std::pair<CLI::App*, Subcommand*>>& commands) {
    for (const auto& [app, command] : commands) {
        if (app->parsed()) return command->run();
    }
    return EXIT_FAILURE;
}

// What CLI11 would only call an argument that it did not expect.
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

int run(int argc, char** argv) {
    CLI::App program{
        "Measure npushmem. Most subcommands run on several PEs: npushmem-run -n 8 npushmem-perf combine ..."};
    program.require_subcommand(1);
    const auto all = npushmem::perf::all_subcommands();
    std::vector<std::pair<CLI::App*, Subcommand*>> commands;
    for (const auto& command : all) commands.emplace_back(command->declare(program), command.get());
    program.set_version_flag("-V,--version",
                             fmt::format("npushmem-perf {}.{}.{}", npushmem::library_version.major,
                                         npushmem::library_version.minor, npushmem::library_version.patch));
    if (const std::string unknown = unknown_subcommand(commands, argc > 1 ? argv[1] : nullptr); !unknown.empty())
        return refuse(unknown);
    try {
        program.parse(argc, argv);
    } catch (const CLI::Success& asked) {  // help, version
        return program.exit(asked);
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
