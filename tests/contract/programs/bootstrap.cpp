// SPDX-License-Identifier: BSD-3-Clause
// npushmem-contract-bootstrap: runs the bootstrap contract over a plugin. With --ranks it starts the ranks itself; with
// --of it is one rank of a job that a launcher has started:
//     npushmem-contract-bootstrap uid --ranks 5
//     npushmem-run -n 5 npushmem-contract-bootstrap uid --of 5
// In a value of --config, "{port}" stands for a free port of this host, the same for all ranks that it starts.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstring>
#include <iostream>

#include "core/base/config.hpp"
#include "core/base/streams.hpp"
#include "core/plugin/loader.hpp"
#include "core/plugin/plugin_finder.hpp"
#include "tests/contract/bootstrap/bootstrap_case.hpp"
#include "tests/contract/bootstrap/forked_ranks.hpp"
#include "tests/contract/bootstrap/reserved_port.hpp"
#include "tests/contract/split_arguments.hpp"

namespace npushmem::contract {
namespace {

struct Options {
    std::string plugin;
    int ranks = 0;
    int of = 0;
    std::vector<std::string> config;  // NAME=VALUE
    std::string plugin_path;
};

std::vector<BootstrapCase> all_cases() {
    std::vector<BootstrapCase> out;
    for (const auto& list :
         {bootstrap_gather_cases(), bootstrap_barrier_cases(), bootstrap_failure_cases(), bootstrap_life_cases()})
        out.insert(out.end(), list.begin(), list.end());
    return out;
}

class BootstrapContractTest : public ::testing::Test {
public:
    BootstrapContractTest(const BootstrapSubject& subject, const BootstrapCase& what)
        : subject_(subject), case_(what) {}

    void TestBody() override {
        if (*subject_.expected_ranks < case_.min_ranks) GTEST_SKIP() << "needs " << case_.min_ranks << " ranks";
        case_.body(subject_);
    }

private:
    const BootstrapSubject& subject_;
    const BootstrapCase& case_;
};

// One rank's part.
int run_cases(const BootstrapSubject& subject) {
    ::alarm(rank_timeout_seconds);
    const std::vector<BootstrapCase> cases = all_cases();
    const std::string suite = fmt::format("{}, {} ranks", subject.plugin->name(), *subject.expected_ranks);
    for (const auto& each : cases)
        ::testing::RegisterTest(
            suite.c_str(), each.name, nullptr, nullptr, __FILE__, __LINE__,
            [&subject, &each]() -> ::testing::Test* { return new BootstrapContractTest(subject, each); });
    return checked_status("npushmem-contract-bootstrap", RUN_ALL_TESTS());
}

constexpr std::string_view port_mark = "{port}";

Status fill_in_port(std::string& value, const ReservedPort& port) {
    const auto at = value.find(port_mark);
    if (at == std::string::npos) return {};
    if (port.number() == 0)
        return {Code::system, fmt::format("reserve a port for {}: {}", value, std::strerror(port.error()))};
    value.replace(at, port_mark.size(), std::to_string(port.number()));
    return {};
}

// The variables of a rank, as in a real job: the environment, overridden by this program's options.
Status configure(const Options& options, const ReservedPort& port, fakes::FakeHost& host) {
    host.set("BOOTSTRAP_TIMEOUT", "20s");  // limit of the wait for a rank that has failed a test
    for (const auto& [name, value] : ProcessEnvironment().npushmem_variables()) host.set(name.substr(9), value);
    for (const auto& setting : options.config) {
        const auto equals = setting.find('=');
        if (equals == std::string::npos) return {Code::argument, fmt::format("--config {}: write NAME=VALUE", setting)};
        std::string value = setting.substr(equals + 1);
        if (Status filled = fill_in_port(value, port); !filled.ok()) return filled;
        host.set(setting.substr(0, equals), value);
    }
    return {};
}

int run(const Options& options) {
    fakes::FakeHost host;
    const ReservedPort port;
    auto loaded = load_bootstrap(PluginFinder(plugin_search_path(options.plugin_path)), options.plugin);
    if (Status status = loaded.ok() ? configure(options, port, host) : loaded.status(); !status.ok()) {
        std::cerr << status.message() << "\n";
        return 2;
    }
    const BootstrapSubject subject{loaded.value(), &host, options.ranks > 0 ? options.ranks : options.of};
    if (options.ranks == 0) return run_cases(subject);
    return run_forked_ranks(*loaded.value(), host, options.ranks, [&] { return run_cases(subject); }) == 0 ? 0 : 1;
}

int run_program(int argc, char** argv) {
    SplitArguments arguments(argc, argv);

    Options options;
    options.plugin_path = ProcessEnvironment().get("NPUSHMEM_PLUGIN_PATH").value_or("");
    CLI::App app("Runs the bootstrap contract over a plugin.");
    app.footer("GoogleTest's options work as well: --gtest_filter=*abort*, --gtest_brief=1.");
    app.add_option("bootstrap", options.plugin, "name or path of the plugin")->required();
    auto* fork =
        app.add_option("--ranks", options.ranks, "start so many ranks; by a unique id if the plugin makes any");
    auto* part = app.add_option("--of", options.of, "this process is one of so many ranks, started by a launcher");
    fork->check(CLI::Range(1, 1024))->excludes(part);
    part->check(CLI::Range(1, 1 << 20));
    app.add_option("-c,--config", options.config,
                   "NAME=VALUE of a configuration variable of the plugin, repeatable; {port} in VALUE: a free port of "
                   "this host")
        ->allow_extra_args(false);
    app.add_option("--plugin-path", options.plugin_path, "directories to search first (default: NPUSHMEM_PLUGIN_PATH)");
    CLI11_PARSE(app, arguments.ours, argv);
    if (options.ranks == 0 && options.of == 0) {
        std::cerr << "say --ranks to start ranks here, or --of under a launcher\n";
        return 2;
    }
    auto count = arguments.count_for_gtest();
    ::testing::InitGoogleTest(&count, arguments.for_gtest.data());
    return run(options);
}

}  // namespace
}  // namespace npushmem::contract

int main(int argc, char** argv) {
    npushmem::prepare_standard_streams();
    return npushmem::checked_status("npushmem-contract-bootstrap", npushmem::contract::run_program(argc, argv));
}
