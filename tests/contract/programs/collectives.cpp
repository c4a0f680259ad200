// SPDX-License-Identifier: BSD-3-Clause
// npushmem-contract-collectives: runs the contract of collectives over a plugin. Its PEs are threads; with --of it is
// one PE of a job that a launcher has started:
//     npushmem-contract-collectives ./libnpushmem_collectives_mine.so
//     mpirun -n 3 env NPUSHMEM_BOOTSTRAP=mpi NPUSHMEM_BOOTSTRAP_MPI_INIT=1 npushmem-contract-collectives mpi --of 3
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <iostream>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/base/config.hpp"
#include "core/base/log.hpp"
#include "core/base/streams.hpp"
#include "core/plugin/loader.hpp"
#include "core/plugin/opened_plugin.hpp"
#include "core/plugin/plugin_finder.hpp"
#include "core/runtime/plugin_sources.hpp"
#include "core/tools/common/cli_documents.hpp"
#include "npushmem/testing/contract.hpp"
#include "tests/contract/collectives/collectives_case.hpp"
#include "tests/contract/programs/common.hpp"
#include "tests/contract/programs/man_texts.hpp"

namespace npushmem::contract {
namespace {

struct CollectivesOptions {
    std::string plugin;
    std::vector<int> pes{2, 3, 5};
    int of = 0;
    std::vector<std::string> config;  // NAME=VALUE
    std::string plugin_path;
    TestOptions tests;
    int deadline = 120;  // seconds
};

// Connects this PE to the others of its job, as the start of npushmem does.
class LaunchedJob {
public:
    Result<Bootstrap*> join(int pes) {
        const ProcessEnvironment environment;
        auto read = Config::read(environment);
        if (!read.ok()) return read.status();
        config_ = std::make_unique<Config>(std::move(read).value());
        services_ = std::make_unique<PluginServices>(*config_, log_);
        npushmem_bootstrap_params params{};
        params.struct_size = sizeof params;
        params.rank = params.nranks = -1;
        auto opened = PluginSources(environment).open_bootstrap(*config_, services_->table(), params);
        if (!opened.ok()) return opened.status();
        bootstrap_ = std::move(opened).value();
        if (bootstrap_->nranks() == pes) return bootstrap_.get();
        return Status{Code::argument, fmt::format("--of {}: the job has {} PEs", pes, bootstrap_->nranks())};
    }

private:
    std::unique_ptr<Config> config_;
    Log log_;
    std::unique_ptr<PluginServices> services_;
    std::unique_ptr<Bootstrap> bootstrap_;
};

Result<std::map<std::string, std::string>> variables_for(const CollectivesOptions& options,
                                                         const LoadedCollectives& plugin) {
    constexpr std::string_view prefix = "NPUSHMEM_";
    std::map<std::string, std::string> given;
    for (const auto& setting : options.config)
        if (Status added = add_config(setting, given); !added.ok()) return added;
    std::vector<std::string> names;
    add_names(plugin.config_rows(), names);
    if (Status known = check_known(given, names); !known.ok()) return known;
    for (const auto& [name, value] : ProcessEnvironment().npushmem_variables())
        given.try_emplace(name.substr(prefix.size()), value);
    return given;
}

int refuse(const Status& why) {
    std::cerr << why.message() << "\n";
    return 2;
}

int run(const CollectivesOptions& options) {
    const auto loaded = load_collectives(PluginFinder(plugin_search_path(options.plugin_path)), options.plugin);
    if (!loaded.ok()) return refuse(loaded.status());
    auto variables = variables_for(options, *loaded.value());
    if (!variables.ok()) return refuse(variables.status());
    CollectivesSubject subject;
    subject.name = loaded.value()->name();
    subject.open = [plugin = loaded.value()](const npushmem_host& host, const npushmem_collectives_params& params) {
        return open_collectives(plugin, host, params);
    };
    subject.config = std::move(variables).value();
    subject.pes = options.pes;
    subject.deadline = std::chrono::seconds(options.deadline);
    LaunchedJob job;
    if (options.of == 0) {
        add_collectives_contract(subject);
        return run_selected_tests(options.tests);
    }
    const auto others = job.join(options.of);
    if (!others.ok()) return refuse(others.status());
    add_collectives_contract_of_launched_pe(subject, *others.value());
    // A launched PE has no supervisor.
    ::alarm(2 * static_cast<unsigned>(options.deadline));
    return run_selected_tests(options.tests);
}

int run_program(int argc, char** argv) {
    SplitArguments arguments(argc, argv);
    CollectivesOptions options;
    options.plugin_path = ProcessEnvironment().get("NPUSHMEM_PLUGIN_PATH").value_or("");
    CLI::App app("Runs the contract of collectives over a plugin.", "npushmem-contract-collectives");
    app.footer(
        "The PEs of a case are threads of a process of its own. GoogleTest's options work as well: "
        "--gtest_filter=*team*, --gtest_brief=1. NPUSHMEM_CONTRACT_IN_PROCESS=1 runs the cases in this process, for a "
        "debugger.");
    app.add_option("collectives", options.plugin, "name or path of the plugin")->required();
    auto* threads = app.add_option("--pes", options.pes, "numbers of PEs, 2 to 6; default: 2, 3 and 5");
    auto* part =
        app.add_option("--of", options.of, "this process is one of so many PEs, 2 to 6, started by a launcher");
    threads->check(CLI::Range(2, 6))->excludes(part);
    part->check(CLI::Range(2, 6));
    app.add_option("-c,--config", options.config,
                   "NAME=VALUE of a configuration variable of the plugin or the runtime, repeatable; NAME with or "
                   "without NPUSHMEM_; an unknown NAME is refused")
        ->allow_extra_args(false);
    app.add_option("--plugin-path", options.plugin_path, "directories to search first (default: NPUSHMEM_PLUGIN_PATH)");
    auto* list = app.add_flag("--list", options.tests.list, "list the cases with their rules, and run none");
    app.add_option("--filter", options.tests.filter, "run the tests that match, as --gtest_filter: *team*:*reduces*");
    app.add_option("--json", options.tests.json, "write the results to this file, in GoogleTest's JSON form")
        ->excludes(list);
    app.add_option("--deadline", options.deadline,
                   "seconds until a case has failed; with --of, half of the limit of all cases (default: 120)")
        ->check(CLI::Range(1, 86400));
    if (print_requested_document(app, collectives_man_text(), argc, argv)) return 0;
    CLI11_PARSE(app, arguments.ours, argv);
    init_googletest(options.tests, arguments);
    return run(options);
}

}  // namespace
}  // namespace npushmem::contract

int main(int argc, char** argv) {
    (void)npushmem::contract::own_role();  // before a plugin starts threads
    npushmem::prepare_standard_streams();
    return npushmem::checked_status("npushmem-contract-collectives", npushmem::contract::run_program(argc, argv));
}
