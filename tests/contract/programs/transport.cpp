// SPDX-License-Identifier: BSD-3-Clause
// npushmem-contract-transport: runs the transport contract over plugins given by name or path, or over all plugins
// found.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <stdexcept>

#include "core/base/config.hpp"
#include "core/base/streams.hpp"
#include "core/plugin/plugin_finder.hpp"
#include "core/plugin/transport_stack.hpp"
#include "core/tools/common/cli_documents.hpp"
#include "npushmem/testing/contract.hpp"
#include "tests/contract/programs/common.hpp"
#include "tests/contract/programs/man_texts.hpp"

namespace npushmem::contract {
namespace {

struct Options {
    std::vector<std::string> stacks;
    std::vector<std::string> without;  // names
    std::vector<std::string> config;   // NAME=VALUE
    std::string plugin_path;
    std::uint32_t devices = 0;  // of each PE
    unsigned deadline = 120;    // seconds
    TestOptions tests;
    bool in_process = false;
};

// Whether this process needs the subject: the process of a case needs only its own.
bool is_needed(const std::string& name) {
    return !own_role().is_started_for_a_case() || own_role().case_name.starts_with(name);
}

// Every transport that is found, decorators around p2p, except the excluded ones, which are not loaded. A plugin that
// cannot be loaded is a failure, because the run would say nothing about it.
Result<std::vector<std::string>> everything(const PluginFinder& finder, const std::vector<std::string>& without) {
    const auto all = finder.scan(PluginKind::transport);
    for (const auto& name : without)
        if (std::none_of(all.begin(), all.end(), [&](const FoundPlugin& found) { return found.name == name; }))
            return Status{Code::argument, fmt::format("--without {}: no transport of this name is found in {}; "
                                                      "npushmem-info lists the transports",
                                                      name, fmt::join(finder.directories(), ", "))};
    std::vector<std::string> out;
    for (const auto& found : all) {
        if (std::find(without.begin(), without.end(), found.name) != without.end() || !is_needed(found.name)) continue;
        const auto loaded = load_transport(finder, found.path);
        if (!loaded.ok())
            return loaded.status().within(
                fmt::format("transport {} (--without {} leaves it out)", found.name, found.name));
        const bool decorator = (loaded.value()->table().capabilities & NPUSHMEM_CAP_DECORATOR) != 0;
        out.push_back(decorator ? found.name + "(p2p)" : found.name);
    }
    if (all.empty())
        return Status{Code::plugin_missing,
                      fmt::format("no transport is found in {}; give --plugin-path, or the path of a plugin",
                                  fmt::join(finder.directories(), ", "))};
    return out;
}

// Adds the names of the plugins' variables to `variables`.
Status add_subjects(const PluginFinder& finder, const std::string& text, const TransportSubject& common,
                    std::vector<std::string>& variables) {
    auto parsed = parse_transport_selection(text);
    if (!parsed.ok()) return parsed.status();
    for (const auto& stack : parsed.value()) {
        if (!is_needed(stack.text())) continue;
        auto loaded = load_stack(finder, stack);
        if (!loaded.ok()) return loaded.status();
        for (const auto& layer : loaded.value()) add_names(layer->config_rows(), variables);
        TransportSubject subject = common;
        subject.name = stack.text();
        subject.capabilities = loaded.value().front()->table().capabilities;
        subject.open = [layers = std::move(loaded).value()](
                           const npushmem_host& host,
                           const npushmem_transport_params& params) -> Result<std::unique_ptr<Transport>> {
            auto opened = open_stack(layers, host, params);
            if (!opened.ok()) return opened.status();
            return std::unique_ptr<Transport>(std::move(opened).value());
        };
        try {
            add_transport_contract(std::move(subject));
        } catch (const std::invalid_argument& refused) {
            return {Code::argument, refused.what()};
        }
    }
    return {};
}

int run(const Options& options) {
    TransportSubject common;
    common.devices = options.devices;
    common.deadline = std::chrono::seconds(options.deadline);
    const PluginFinder finder(plugin_search_path(options.plugin_path));
    const auto stacks =
        options.stacks.empty() ? everything(finder, options.without) : Result<std::vector<std::string>>(options.stacks);
    std::vector<std::string> variables;
    Status status = stacks.status();
    for (const auto& setting : options.config)
        if (status.ok()) status = add_config(setting, common.config);
    for (std::size_t i = 0; status.ok() && i < stacks.value().size(); ++i)
        status = add_subjects(finder, stacks.value()[i], common, variables);
    // The process of a case loads only its own plugins; the options were checked before it started.
    if (status.ok() && !own_role().is_started_for_a_case()) status = check_known(common.config, variables);
    if (!status.ok()) {
        std::cerr << status.message() << "\n";
        return 2;
    }
    return run_selected_tests(options.tests);
}

int run_program(int argc, char** argv) {
    const SplitArguments arguments(argc, argv);

    Options options;
    options.plugin_path = ProcessEnvironment().get("NPUSHMEM_PLUGIN_PATH").value_or("");
    CLI::App app("Runs the transport contract over plugins. Each case runs in a process of its own.",
                 "npushmem-contract-transport");
    app.footer(
        "GoogleTest's options work as well, such as --gtest_brief=1 and --gtest_repeat=10. NPUSHMEM_CONTRACT_VERBOSE=1 "
        "prints what the processes of all cases write, not only of failed ones.");
    app.add_option("transports", options.stacks,
                   "names, paths of .so files, or stacks such as fault(p2p); default: every transport that is found");
    app.add_option("--without", options.without, "name of a transport that the default leaves out, repeatable")
        ->allow_extra_args(false);
    app.add_option("-c,--config", options.config,
                   "NAME=VALUE of a configuration variable of the plugins or the runtime, repeatable; NAME with or "
                   "without NPUSHMEM_; an unknown NAME is refused")
        ->allow_extra_args(false);
    app.add_option("--plugin-path", options.plugin_path, "directories to search first (default: NPUSHMEM_PLUGIN_PATH)");
    app.add_option("--devices", options.devices,
                   "each PE uses so many of the transport's devices; default: what the transport takes by itself");
    auto* list = app.add_flag("--list", options.tests.list, "list the cases with their rules, and run none");
    app.add_option("--filter", options.tests.filter,
                   "patterns of the cases to run, separated by ':', after '-' of those to leave out, over "
                   "<transport>/<layout>.<case>: 'p2p/own_files.*put*:*fence*-*watcher*'");
    app.add_option("--json", options.tests.json, "file for the results as GoogleTest writes them")->excludes(list);
    app.add_option("--deadline", options.deadline, "seconds after which a case fails (default: 120)")
        ->check(CLI::Range(1, 86400));
    app.add_flag("--in-process", options.in_process, "run the cases in this process, for a debugger");
    if (print_requested_document(app, transport_man_text(), argc, argv)) return 0;
    CLI11_PARSE(app, arguments.ours, argv);
    if (options.in_process) (void)::setenv("NPUSHMEM_CONTRACT_IN_PROCESS", "1", 1);
    init_googletest(options.tests, arguments);
    return run(options);
}

}  // namespace
}  // namespace npushmem::contract

int main(int argc, char** argv) {
    (void)npushmem::contract::own_role();  // before a plugin starts threads
    npushmem::prepare_standard_streams();
    return npushmem::checked_status("npushmem-contract-transport", npushmem::contract::run_program(argc, argv));
}
