// SPDX-License-Identifier: BSD-3-Clause
// npushmem-contract-bootstrap: runs the bootstrap contract over a plugin. It starts the ranks itself; with --of it is
// one rank of a job that a launcher has started:
//     npushmem-contract-bootstrap uid
//     npushmem-contract-bootstrap uid --ranks 5
//     npushmem-run -n 5 npushmem-contract-bootstrap uid --of 5
// In a value of --config, "{port}" stands for a free port of this host, the same for all ranks of a case.
// It is refused with --of, because each process of a launcher would choose another port.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <iostream>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/base/config.hpp"
#include "core/base/streams.hpp"
#include "core/plugin/loader.hpp"
#include "core/plugin/opened_plugin.hpp"
#include "core/plugin/plugin_finder.hpp"
#include "core/tools/common/cli_documents.hpp"
#include "npushmem/testing/contract.hpp"
#include "tests/contract/bootstrap/bootstrap_case.hpp"
#include "tests/contract/bootstrap/reserved_port.hpp"
#include "tests/contract/programs/common.hpp"
#include "tests/contract/programs/man_texts.hpp"

namespace npushmem::contract {
namespace {

struct BootstrapOptions {
    std::string plugin;
    int ranks = 0;
    int of = 0;
    std::vector<std::string> config;  // NAME=VALUE
    std::string plugin_path;
    TestOptions tests;
    int deadline = 120;  // seconds
};

// The plugin's description of itself, which has no ranks.
class DescriptionTest : public ::testing::Test {
public:
    explicit DescriptionTest(std::shared_ptr<const LoadedBootstrap> plugin) : plugin_(std::move(plugin)) {}

    void TestBody() override {
        if (is_listing()) {
            (void)std::printf(
                "      The table: it has a version, a name, a summary, and a meaning for each variable.\n");
            return;
        }
        const auto& table = plugin_->table();
        EXPECT_EQ(table.major, NPUSHMEM_BOOTSTRAP_MAJOR);
        EXPECT_LE(table.minor, NPUSHMEM_BOOTSTRAP_MINOR);
        EXPECT_EQ(plugin_->name(), table.name);
        EXPECT_STRNE(table.summary, "");
        for (const auto& row : plugin_->config_rows()) EXPECT_STRNE(row.meaning, "") << row.name;
    }

private:
    std::shared_ptr<const LoadedBootstrap> plugin_;
};

constexpr std::string_view port_mark = "{port}";

Status fill_in_port(std::string& value, const BootstrapOptions& options, const ReservedPort& port) {
    const auto at = value.find(port_mark);
    if (at == std::string::npos) return {};
    if (options.of > 0)
        return {Code::argument, fmt::format("{} works only for ranks that this program starts, because each process of "
                                            "a launcher would choose another port; with --of write the port's number",
                                            port_mark)};
    if (port.number() == 0) return {Code::system, fmt::format("reserve a port: {}", std::strerror(port.error()))};
    value.replace(at, port_mark.size(), std::to_string(port.number()));
    return {};
}

// The variables of a rank, as in a real job: the environment, overridden by this program's options.
Result<std::map<std::string, std::string>> variables_of(const BootstrapOptions& options, const LoadedBootstrap& plugin,
                                                        const ReservedPort& port) {
    constexpr std::string_view prefix = "NPUSHMEM_";
    std::map<std::string, std::string> out;
    for (const auto& [name, value] : ProcessEnvironment().npushmem_variables()) out[name.substr(prefix.size())] = value;
    for (const auto& setting : options.config) {
        std::map<std::string, std::string> one;
        Status status = add_config(setting, one);
        if (!status.ok()) return status;
        auto& [name, value] = *one.begin();
        std::vector<std::string> names;
        add_names(plugin.config_rows(), names);
        if (status = check_known(one, names); !status.ok()) return status;
        status = fill_in_port(value, options, port);
        if (!status.ok()) return status.within("--config " + setting);
        out[name] = value;
    }
    return out;
}

BootstrapSubject subject_of(const std::shared_ptr<const LoadedBootstrap>& plugin, const BootstrapOptions& options) {
    BootstrapSubject subject;
    subject.name = plugin->name();
    subject.open = [plugin](const npushmem_host& host,
                            const npushmem_bootstrap_params& params) -> Result<std::unique_ptr<Bootstrap>> {
        auto opened = open_bootstrap(plugin, host, params);
        if (!opened.ok()) return opened.status();
        return std::unique_ptr<Bootstrap>(std::move(opened).value());
    };
    subject.get_uniqueid = [plugin](const npushmem_host& host, std::span<std::byte, NPUSHMEM_UNIQUEID_BYTES> id) {
        return make_uniqueid(*plugin, host, id);
    };
    subject.max_ranks = std::max(subject.max_ranks, options.ranks);
    subject.deadline = std::chrono::seconds(options.deadline);
    return subject;
}

void add_tests(const BootstrapOptions& options, const std::shared_ptr<const LoadedBootstrap>& plugin,
               const BootstrapSubject& subject) {
    ::testing::RegisterTest(subject.name.c_str(), "describes_itself", nullptr, nullptr, __FILE__, __LINE__,
                            [plugin]() -> ::testing::Test* { return new DescriptionTest(plugin); });
    const std::vector<int> numbers{options.ranks};
    if (options.of > 0)
        add_bootstrap_contract_of_launched_rank(subject, options.of);
    else if (options.ranks > 0)
        add_bootstrap_contract_of(subject, numbers);
    else
        add_bootstrap_contract(subject);
}

int run(const BootstrapOptions& options) {
    const ReservedPort port;
    auto loaded = load_bootstrap(PluginFinder(plugin_search_path(options.plugin_path)), options.plugin);
    auto variables = loaded.ok() ? variables_of(options, *loaded.value(), port) : loaded.status();
    if (!variables.ok()) {
        std::cerr << variables.status().message() << "\n";
        return 2;
    }
    BootstrapSubject subject = subject_of(loaded.value(), options);
    subject.config = std::move(variables).value();
    add_tests(options, loaded.value(), subject);
    // A launched rank has no supervisor.
    if (options.of > 0) ::alarm(2 * static_cast<unsigned>(options.deadline));
    return run_selected_tests(options.tests);
}

int run_program(int argc, char** argv) {
    SplitArguments arguments(argc, argv);
    BootstrapOptions options;
    options.plugin_path = ProcessEnvironment().get("NPUSHMEM_PLUGIN_PATH").value_or("");
    CLI::App app("Runs the bootstrap contract over a plugin.", "npushmem-contract-bootstrap");
    app.footer(
        "Each case runs in a process of its own, which starts the ranks; they connect by a unique id if the plugin "
        "makes "
        "any. GoogleTest's options work as well: --gtest_filter=*abort*, --gtest_brief=1. "
        "NPUSHMEM_CONTRACT_IN_PROCESS=1 "
        "starts the ranks from this process, for a debugger.");
    app.add_option("bootstrap", options.plugin, "name or path of the plugin")->required();
    auto* fork = app.add_option("--ranks", options.ranks,
                                "run the cases with so many ranks only; default: 1, 2, 3, 5 and 8, some cases also 16 "
                                "and 64");
    auto* part = app.add_option("--of", options.of,
                                "this process is one of so many ranks, started by a launcher; runs the cases that need "
                                "no ranks of their own");
    fork->check(CLI::Range(1, 1024))->excludes(part);
    part->check(CLI::Range(1, 1 << 20));
    app.add_option("-c,--config", options.config,
                   "NAME=VALUE of a configuration variable of the plugin or the runtime, repeatable; NAME with or "
                   "without NPUSHMEM_; an unknown NAME is refused; {port} in VALUE: a free port of this host, the same "
                   "for all ranks of a case; not with --of")
        ->allow_extra_args(false);
    app.add_option("--plugin-path", options.plugin_path, "directories to search first (default: NPUSHMEM_PLUGIN_PATH)");
    auto* list = app.add_flag("--list", options.tests.list, "list the cases with their rules, and run none");
    app.add_option("--filter", options.tests.filter,
                   "run the tests that match, as --gtest_filter: *abort*:*dies*-*64_ranks*");
    app.add_option("--json", options.tests.json, "write the results to this file, in GoogleTest's JSON form")
        ->excludes(list);
    app.add_option("--deadline", options.deadline,
                   "seconds until a case has failed; with --of, half of the limit of all "
                   "cases (default: 120)")
        ->check(CLI::Range(1, 86400));
    if (print_requested_document(app, bootstrap_man_text(), argc, argv)) return 0;
    CLI11_PARSE(app, arguments.ours, argv);
    init_googletest(options.tests, arguments);
    return run(options);
}

}  // namespace
}  // namespace npushmem::contract

int main(int argc, char** argv) {
    (void)npushmem::contract::own_role();  // before a plugin starts threads
    npushmem::prepare_standard_streams();
    return npushmem::checked_status("npushmem-contract-bootstrap", npushmem::contract::run_program(argc, argv));
}
