// SPDX-License-Identifier: BSD-3-Clause
// npushmem-contract-transport: runs the transport contract over plugins given by name or path, or over all plugins
// found.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <csignal>
#include <deque>
#include <iostream>

#include "core/base/config.hpp"
#include "core/base/streams.hpp"
#include "core/plugin/plugin_finder.hpp"
#include "tests/contract/fabric.hpp"
#include "tests/contract/split_arguments.hpp"

namespace npushmem::contract {
namespace {

struct Options {
    std::vector<std::string> stacks;
    std::vector<std::string> without;  // names
    std::vector<std::string> config;   // NAME=VALUE
    std::string plugin_path;
    std::uint32_t devices = 0;         // of each PE
    std::vector<std::string> command;  // as it was called
    std::vector<int> child;            // a ChildArguments
};

std::vector<Case> all_cases() {
    std::vector<Case> out;
    for (const auto& list : {life_cases(), memory_cases(), rma_cases(), atomic_cases(), ordering_cases(), queue_cases(),
                             error_cases(), process_cases()})
        out.insert(out.end(), list.begin(), list.end());
    return out;
}

class ContractTest : public ::testing::Test {
public:
    ContractTest(const Subject& subject, const Case& what) : subject_(subject), case_(what) {}

    void TestBody() override {
        constexpr int pes = 3;
        auto fabric = Fabric::make(subject_, pes);
        ASSERT_TRUE(fabric.ok()) << fabric.status().message();
        if (case_.needs != 0 && fabric.value()->pairs_with(case_.needs).empty())
            GTEST_SKIP() << "offers none of: " << capability_names(case_.needs);
        case_.body(*fabric.value());
    }

private:
    const Subject& subject_;
    const Case& case_;
};

void register_tests(const std::deque<Subject>& subjects, const std::vector<Case>& cases) {
    for (const auto& subject : subjects)
        for (const auto& each : cases)
            ::testing::RegisterTest(
                subject.label.c_str(), each.name, nullptr, nullptr, __FILE__, __LINE__,
                [&subject, &each]() -> ::testing::Test* { return new ContractTest(subject, each); });
}

// Every transport that is found and needs no missing hardware; decorators around p2p. Excluded plugins are not loaded.
std::vector<std::string> everything(const PluginFinder& finder, const std::vector<std::string>& without) {
    std::vector<std::string> out;
    for (const auto& found : finder.scan(PluginKind::transport)) {
        if (std::find(without.begin(), without.end(), found.name) != without.end()) continue;
        const auto loaded = load_transport(finder, found.path);
        if (!loaded.ok()) continue;  // npushmem-info shows why
        const bool decorator = (loaded.value()->table().capabilities & NPUSHMEM_CAP_DECORATOR) != 0;
        out.push_back(decorator ? found.name + "(p2p)" : found.name);
    }
    return out;
}

Status add_subjects(const PluginFinder& finder, const std::string& text, const fakes::FakeHost& host,
                    const std::vector<std::string>& command, std::deque<Subject>& out) {
    auto parsed = parse_transport_selection(text);
    if (!parsed.ok()) return parsed.status();
    for (const auto& stack : parsed.value()) {
        auto loaded = load_stack(finder, stack);
        if (!loaded.ok()) return loaded.status();
        out.push_back({stack.text() + ", one file", loaded.value(), Layout::one_file, &host, command, out.size()});
        out.push_back(
            {stack.text() + ", own files", std::move(loaded).value(), Layout::own_files, &host, command, out.size()});
    }
    return {};
}

Status configure(const Options& options, fakes::FakeHost& host) {
    for (const auto& setting : options.config) {
        const auto equals = setting.find('=');
        if (equals == std::string::npos) return {Code::argument, fmt::format("--config {}: write NAME=VALUE", setting)};
        std::string name = setting.substr(0, equals);
        if (name.starts_with("NPUSHMEM_")) name.erase(0, 9);
        host.set(name, setting.substr(equals + 1));
    }
    return {};
}

int run(const Options& options) {
    fakes::FakeHost host;
    Status status = configure(options, host);
    const PluginFinder finder(plugin_search_path(options.plugin_path));
    std::deque<Subject> subjects;
    const auto stacks = options.stacks.empty() ? everything(finder, options.without) : options.stacks;
    for (const auto& stack : stacks)
        if (status.ok()) status = add_subjects(finder, stack, host, options.command, subjects);
    for (auto& subject : subjects) subject.devices = options.devices;
    if (!status.ok()) {
        std::cerr << status.message() << "\n";
        return 2;
    }
    if (!options.child.empty()) {
        (void)std::signal(SIGPIPE, SIG_DFL);  // a transport that causes it must fail visibly
        const auto& order = options.child;
        const auto subject = static_cast<std::size_t>(order[0]);
        return run_child(subjects.at(subject), {subject, order[1], order[2], order[3]});
    }
    const std::vector<Case> cases = all_cases();
    register_tests(subjects, cases);
    return RUN_ALL_TESTS();
}

int run_program(int argc, char** argv) {
    SplitArguments arguments(argc, argv);

    Options options;
    options.command.assign(argv, argv + arguments.ours);
    options.plugin_path = ProcessEnvironment().get("NPUSHMEM_PLUGIN_PATH").value_or("");
    CLI::App app("Runs the transport contract over plugins.");
    app.footer("GoogleTest's options work as well: --gtest_list_tests, --gtest_filter=*fence*, --gtest_brief=1.");
    app.add_option("transports", options.stacks,
                   "names, paths of .so files, or stacks such as fault(p2p); default: every transport that is found");
    app.add_option("--without", options.without, "name of a transport that the default leaves out, repeatable")
        ->allow_extra_args(false);
    app.add_option("-c,--config", options.config, "NAME=VALUE of a configuration variable of the plugins, repeatable")
        ->allow_extra_args(false);
    app.add_option("--plugin-path", options.plugin_path, "directories to search first (default: NPUSHMEM_PLUGIN_PATH)");
    app.add_option("--devices", options.devices,
                   "each PE uses so many of the transport's devices; default: what the transport takes by itself");
    // For the program itself: see process_cases.cpp.
    app.add_option(child_option, options.child)->expected(4)->group("");
    CLI11_PARSE(app, arguments.ours, argv);
    auto count = arguments.count_for_gtest();
    ::testing::InitGoogleTest(&count, arguments.for_gtest.data());
    return run(options);
}

}  // namespace
}  // namespace npushmem::contract

int main(int argc, char** argv) {
    npushmem::prepare_standard_streams();
    return npushmem::checked_status("npushmem-contract-transport", npushmem::contract::run_program(argc, argv));
}
