// SPDX-License-Identifier: BSD-3-Clause
// npushmem-contract-transport: runs the transport contract over plugins given by name or path, or over all plugins
// found.
#include <fmt/format.h>
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
#include "tests/contract/case_process.hpp"
#include "tests/contract/programs/man_texts.hpp"
#include "tests/contract/split_arguments.hpp"

namespace npushmem::contract {
namespace {

struct Options {
    std::vector<std::string> stacks;
    std::vector<std::string> without;  // names
    std::vector<std::string> config;   // NAME=VALUE
    std::string plugin_path;
    std::uint32_t devices = 0;  // of each PE
    unsigned deadline = 120;    // seconds
    std::string filter;
    std::string json;
    bool list = false;
    bool in_process = false;
};

// Whether this process needs the subject: the process of a case needs only its own.
bool is_needed(const std::string& name) {
    return !own_role().is_started_for_a_case() || own_role().case_name.starts_with(name);
}

// Every transport that is found and needs no missing hardware; decorators around p2p. Excluded plugins are not loaded.
std::vector<std::string> everything(const PluginFinder& finder, const std::vector<std::string>& without) {
    std::vector<std::string> out;
    for (const auto& found : finder.scan(PluginKind::transport)) {
        if (std::find(without.begin(), without.end(), found.name) != without.end() || !is_needed(found.name)) continue;
        const auto loaded = load_transport(finder, found.path);
        if (!loaded.ok()) continue;  // npushmem-info shows why
        const bool decorator = (loaded.value()->table().capabilities & NPUSHMEM_CAP_DECORATOR) != 0;
        out.push_back(decorator ? found.name + "(p2p)" : found.name);
    }
    return out;
}

Status add_subjects(const PluginFinder& finder, const std::string& text, const TransportSubject& common) {
    auto parsed = parse_transport_selection(text);
    if (!parsed.ok()) return parsed.status();
    for (const auto& stack : parsed.value()) {
        if (!is_needed(stack.text())) continue;
        auto loaded = load_stack(finder, stack);
        if (!loaded.ok()) return loaded.status();
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

Status configure(const Options& options, TransportSubject& subject) {
    for (const auto& setting : options.config) {
        const auto equals = setting.find('=');
        if (equals == std::string::npos) return {Code::argument, fmt::format("--config {}: write NAME=VALUE", setting)};
        std::string name = setting.substr(0, equals);
        if (name.starts_with("NPUSHMEM_")) name.erase(0, 9);
        subject.config[name] = setting.substr(equals + 1);
    }
    return {};
}

int run(const Options& options) {
    TransportSubject common;
    common.devices = options.devices;
    common.deadline = std::chrono::seconds(options.deadline);
    Status status = configure(options, common);
    const PluginFinder finder(plugin_search_path(options.plugin_path));
    const auto stacks = options.stacks.empty() ? everything(finder, options.without) : options.stacks;
    for (const auto& stack : stacks)
        if (status.ok()) status = add_subjects(finder, stack, common);
    if (!status.ok()) {
        std::cerr << status.message() << "\n";
        return 2;
    }
    return RUN_ALL_TESTS();
}

// GoogleTest's own options follow those that stand for one, so that they prevail: the process of a case has a filter.
void init_googletest(const Options& options, const SplitArguments& arguments) {
    std::vector<std::string> added;
    if (!options.filter.empty()) added.push_back("--gtest_filter=" + options.filter);
    if (options.list) added.emplace_back("--gtest_list_tests");
    if (!options.json.empty()) added.push_back("--gtest_output=json:" + options.json);
    if (own_role().is_started_for_a_case()) added.clear();
    std::vector<char*> words{arguments.for_gtest.front()};
    for (auto& each : added) words.push_back(each.data());
    words.insert(words.end(), arguments.for_gtest.begin() + 1, arguments.for_gtest.end());
    int count = static_cast<int>(words.size()) - 1;  // it ends as argv does
    ::testing::InitGoogleTest(&count, words.data());
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
    app.add_option("-c,--config", options.config, "NAME=VALUE of a configuration variable of the plugins, repeatable")
        ->allow_extra_args(false);
    app.add_option("--plugin-path", options.plugin_path, "directories to search first (default: NPUSHMEM_PLUGIN_PATH)");
    app.add_option("--devices", options.devices,
                   "each PE uses so many of the transport's devices; default: what the transport takes by itself");
    app.add_flag("--list", options.list, "list the cases and run none");
    app.add_option("--filter", options.filter,
                   "patterns of the cases to run, separated by ':', after '-' of those to leave out, over "
                   "<transport>/<layout>.<case>: 'p2p/own_files.*put*:*fence*-*watcher*'");
    app.add_option("--json", options.json, "file for the results as GoogleTest writes them");
    app.add_option("--deadline", options.deadline, "seconds after which a case fails (default: 120)")
        ->check(CLI::Range(1, 86400));
    app.add_flag("--in-process", options.in_process, "run the cases in this process, for a debugger");
    if (print_requested_document(app, transport_man_text(), argc, argv)) return 0;
    CLI11_PARSE(app, arguments.ours, argv);
    if (options.in_process) (void)::setenv("NPUSHMEM_CONTRACT_IN_PROCESS", "1", 1);
    init_googletest(options, arguments);
    return run(options);
}

}  // namespace
}  // namespace npushmem::contract

int main(int argc, char** argv) {
    (void)npushmem::contract::own_role();  // before a plugin starts threads
    npushmem::prepare_standard_streams();
    return npushmem::checked_status("npushmem-contract-transport", npushmem::contract::run_program(argc, argv));
}
