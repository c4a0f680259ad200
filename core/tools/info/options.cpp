// SPDX-License-Identifier: BSD-3-Clause
#include "core/tools/info/options.hpp"

#include <fmt/core.h>
#include <CLI/CLI.hpp>

#include "core/base/config.hpp"
#include "core/tools/common/cli_documents.hpp"

namespace npushmem::info {

namespace {

constexpr int exit_failure = 1;
constexpr int exit_usage = 2;

#if __has_include(<nlohmann/json.hpp>)
constexpr bool has_json = true;
#else
constexpr bool has_json = false;
#endif

void declare(CLI::App& app, Options& options) {
    app.add_flag("-c,--config", options.variables, "list every variable: value, default, origin, meaning");
    app.add_flag("-p,--plugins", options.plugins,
                 "list the plugins found; for each refused plugin its stage and reason");
    app.add_flag(
        "-t,--topology", options.topology,
        "describe the machine, the NICs that its PEs would use, the transport map, and how kernels would reach "
        "PEs of other hosts");
    app.add_flag("-b,--barriers", options.barriers,
                 "list the barriers, and the one that auto chooses for -n PEs on --nodes hosts");
    app.add_flag("--doctor", options.doctor,
                 "check limits, memory, CPUs, devices, plugins, versions and variables, and print what to change; the "
                 "exit status is 1 if there is a problem");
    app.add_flag("--jobs", options.jobs,
                 "list your running jobs on this host: which PE waits in which call, since when and for whom, and PEs "
                 "that are in different collective calls");
    app.add_flag("--json", options.json, "print the requested reports as one JSON object");
    app.add_option("--save", options.save, "write the machine to this file, for NPUSHMEM_TOPO_FILE on any machine")
        ->type_name("FILE");
    app.add_flag("-V,--version", options.version, "show the versions of the library and of its interfaces");
    app.add_option("--draw", options.draw,
                   "draw the host, its PEs, their NICs and the transport map into this SVG file")
        ->type_name("FILE");
    app.add_option("-n,--pes", options.pes,
                   "number of PEs for -t, -b and --draw; for the summary and --doctor the default is one PE for each "
                   "usable CPU")
        ->check(CLI::Range(1, 65536))
        ->capture_default_str();
    app.add_option(
           "--nodes", options.nodes,
           "number of hosts like this one; PEs are assigned as by npushmem-run: the first hosts have one PE more if "
           "the numbers do not divide")
        ->check(CLI::Range(1, 65536))
        ->capture_default_str();
    app.add_flag("--print-man-variables", options.variables_page)->group("");
}

// The parts of the man page that the table of options does not contain.
ManText man_text() {
    return {"show what npushmem finds and would choose on this machine",
            "",
            "Prints the reports that the options select: variables, plugins, the machine with its NICs and the "
            "transport map, barriers, checks. It reads the same variables and searches the same folders as a program "
            "would, and starts no job. Without a report option it prints a summary.\n\n"
            "The topology describes an imagined job of -n PEs on --nodes hosts like this one. Plugins are examined in "
            "child processes, so that a plugin that crashes is reported like any other bad one.\n\n"
            "Values of variables that contain secrets of a job are not shown.",
            {{"0", "The reports are complete, and the summary or --doctor found no problem."},
             {"1",
              "A variable is malformed, a report failed, a problem was found, the output is lost, or --json is not "
              "available. A malformed variable counts as unset, and the reports are printed."},
             {"2", "The command line is wrong."}},
            {{"NPUSHMEM_*", "Reported by -c, and respected by the other reports. See npushmem-variables(7)."},
             {"NPUSHMEM_PLUGIN_PATH", "Folders that are searched first for plugins, separated by colons."},
             {"NPUSHMEM_TOPO_FILE", "A machine that --save has written, instead of this one."}},
            {{"npushmem-info --jobs", "What the PEs of a job that makes no progress wait for:"},
             {"npushmem-info --doctor", "What prevents or slows jobs on this machine, and what to change:"},
             {"npushmem-info -p", "The plugins that are found, and why others are refused or absent:"},
             {"npushmem-info -t -n 16 --nodes 2", "The NICs and the transport map of 16 PEs on two such hosts:"},
             {"npushmem-info --draw job.svg -n 8", "The same as a picture:"}},
            "npushmem-run(1), npushmem(7), npushmem-variables(7), npushmem-plugins(7)"};
}

}  // namespace

std::variant<Options, EarlyExit> parse_options(const std::vector<std::string>& arguments) {
    CLI::App app{
        "Shows what npushmem finds and would choose on this machine. Without a report option it prints a summary; its "
        "exit "
        "status is 0 if a job can run, otherwise 1.",
        "npushmem-info"};
    Options options;
    declare(app, options);
    if (auto document = requested_document(app, man_text(), arguments)) return EarlyExit{0, std::move(*document)};
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
    if (options.json && !has_json)
        return EarlyExit{exit_failure,
                         "npushmem-info: --json: this npushmem was built without nlohmann-json: install "
                         "nlohmann-json3-dev and build it again, or omit --json\n"};
    const bool files = !options.save.empty() || !options.draw.empty();
    options.summary = !options.variables && !options.plugins && !options.topology && !options.barriers &&
                      !options.version && !options.doctor && !options.jobs && !options.variables_page && !files;
    options.pes_given = app.count("--pes") > 0;
    return options;
}

namespace {

class OneVariable final : public Environment {
public:
    OneVariable(const std::string& name, const std::string& value) : name_(name), value_(value) {}

    [[nodiscard]] std::optional<std::string> get(const std::string& name) const override {
        return name == name_ ? std::optional(value_) : std::nullopt;
    }
    [[nodiscard]] std::map<std::string, std::string> npushmem_variables() const override {
        return name_.starts_with("NPUSHMEM_") ? std::map<std::string, std::string>{{name_, value_}}
                                              : std::map<std::string, std::string>{};
    }

private:
    const std::string& name_;
    const std::string& value_;
};

}  // namespace

ReadableEnvironment::ReadableEnvironment(const Environment& all) {
    for (const auto& [name, value] : all.npushmem_variables()) {
        const auto alone = Config::read(OneVariable(name, value));
        if (alone.ok())
            readable_.emplace(name, value);
        else
            errors_.push_back(alone.status());
    }
    for (const auto& variable : standard_variables())
        for (const std::string name : variable.names)
            if (const auto value = all.get(name)) {
                const Status alone = Config::read(OneVariable(name, *value)).status();
                alone.ok() ? (void)standard_.emplace(name, *value) : errors_.push_back(alone);
            }
}

std::optional<std::string> ReadableEnvironment::get(const std::string& name) const {
    for (const auto* values : {&readable_, &standard_})
        if (const auto found = values->find(name); found != values->end()) return found->second;
    return std::nullopt;
}

}  // namespace npushmem::info
