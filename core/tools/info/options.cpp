#include "core/tools/info/options.hpp"

#include <fmt/core.h>

#include <CLI/CLI.hpp>

namespace npushmem::info {

namespace {

constexpr int exit_usage = 2;

void declare(CLI::App& app, Options& options) {
    app.add_flag("-c,--config", options.variables, "every variable: value, default, who set it, meaning");
    app.add_flag("-p,--plugins", options.plugins,
                 "the plugins found, and for each refused one the stage and the reason");
    app.add_flag("-t,--topology", options.topology,
                 "the machine, the NICs that its PEs would use, the transport map, and how kernels would reach PEs of "
                 "other hosts");
    app.add_flag("-b,--barriers", options.barriers,
                 "the barriers there are, and which one auto takes for -n PEs on --nodes hosts");
    app.add_option("--save", options.save, "write the machine to this file, for NPUSHMEM_TOPO_FILE on any machine")
        ->type_name("FILE");
    app.add_flag("-V,--version", options.version, "versions of the library and of its interfaces");
    app.add_option("--draw", options.draw,
                   "draw the host, its PEs, their NICs and the transport map into this SVG file")
        ->type_name("FILE");
    app.add_option("-n,--pes", options.pes, "how many PEs -t, -b and --draw are about")
        ->check(CLI::Range(1, 65536))
        ->capture_default_str();
    app.add_option(
           "--nodes", options.nodes,
           "on how many hosts like this one; as npushmem-run deals them out, the first hosts have one PE more where "
           "the numbers do not divide")
        ->check(CLI::Range(1, 65536))
        ->capture_default_str();
}

}  // namespace

std::variant<Options, EarlyExit> parse_options(const std::vector<std::string>& arguments) {
    CLI::App app{"Shows what npushmem finds and would choose on this machine.", "npushmem-info"};
    Options options;
    declare(app, options);
    try {
        app.parse(std::vector<std::string>(arguments.rbegin(), arguments.rend()));
    } catch (const CLI::CallForHelp&) {
        return EarlyExit{0, app.help()};
    } catch (const CLI::ParseError& error) {
        return EarlyExit{exit_usage, fmt::format("npushmem-info: {}\nTry 'npushmem-info --help'.\n", error.what())};
    }
    if (options.nodes > options.pes)
        return EarlyExit{exit_usage,
                         fmt::format("npushmem-info: --nodes {} needs at least as many PEs, but -n is {}\nTry "
                                     "'npushmem-info --help'.\n",
                                     options.nodes, options.pes)};
    const bool files = !options.save.empty() || !options.draw.empty();
    if (!options.variables && !options.plugins && !options.topology && !options.barriers && !options.version && !files)
        return EarlyExit{0, app.help()};
    return options;
}

}  // namespace npushmem::info
