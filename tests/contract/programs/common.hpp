// SPDX-License-Identifier: BSD-3-Clause
// Parts that the contract programs share: the values of --config, GoogleTest's initialisation, the run of the tests.
#pragma once

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <iostream>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/config.hpp"
#include "npushmem/plugin/abi.h"
#include "npushmem/plugin/status.hpp"
#include "tests/contract/case_process.hpp"
#include "tests/contract/case_runner.hpp"
#include "tests/contract/split_arguments.hpp"

namespace npushmem::contract {

// Options of a contract program that stand for options of GoogleTest.
struct TestOptions {
    std::string filter;
    std::string json;
    bool list = false;
};

// Adds one --config, "NAME=VALUE" with or without NPUSHMEM_ before the name, to the variables of a plugin. A later
// value replaces an earlier one. Returns Code::argument for a text of another form.
inline Status add_config(const std::string& setting, std::map<std::string, std::string>& variables) {
    constexpr std::string_view prefix = "NPUSHMEM_";
    const auto equals = setting.find('=');
    if (equals == std::string::npos) return {Code::argument, fmt::format("--config {}: write NAME=VALUE", setting)};
    std::string name = setting.substr(0, equals);
    if (name.starts_with(prefix)) name.erase(0, prefix.size());
    variables[name] = setting.substr(equals + 1);
    return {};
}

// Adds the names of a plugin's variables, without NPUSHMEM_.
inline void add_names(std::span<const npushmem_config_row> rows, std::vector<std::string>& names) {
    for (const auto& row : rows) names.emplace_back(row.name);
}

// Checks that each variable of --config is in the table of a plugin (`plugin_names`) or of the runtime: a plugin can
// read no other through its host. Returns Code::argument with the names of the plugins' variables.
inline Status check_known(const std::map<std::string, std::string>& given, std::vector<std::string> plugin_names) {
    std::sort(plugin_names.begin(), plugin_names.end());
    plugin_names.erase(std::unique(plugin_names.begin(), plugin_names.end()), plugin_names.end());
    std::vector<std::string> known = plugin_names;
    for (const auto& row : config_rows()) known.emplace_back(row.name);
    for (const auto& [name, value] : given) {
        if (std::find(known.begin(), known.end(), name) != known.end()) continue;
        const std::string near = nearest(name, known);
        return {Code::argument,
                fmt::format("--config {}={}: there is no variable NPUSHMEM_{}{}; variables of the plugins: {}; "
                            "npushmem-info -c lists those of the runtime, which are accepted as well",
                            name, is_secret(name) ? "..." : value, name,
                            near.empty() ? "" : fmt::format("; did you mean NPUSHMEM_{}?", near),
                            plugin_names.empty() ? "none" : fmt::format("{}", fmt::join(plugin_names, ", ")))};
    }
    return {};
}

// GoogleTest's own options follow those that stand for one, so that they prevail. The process of a case gets no other
// filter than its own, and writes no report.
inline void init_googletest(const TestOptions& options, const SplitArguments& arguments) {
    std::vector<std::string> added;
    if (!options.filter.empty()) added.push_back("--gtest_filter=" + options.filter);
    if (!options.json.empty()) added.push_back("--gtest_output=json:" + options.json);
    if (own_role().is_started_for_a_case()) added.clear();
    std::vector<char*> words{arguments.for_gtest.front()};
    for (auto& each : added) words.push_back(each.data());
    words.insert(words.end(), arguments.for_gtest.begin() + 1, arguments.for_gtest.end());
    int count = static_cast<int>(words.size()) - 1;  // it ends as argv does
    ::testing::InitGoogleTest(&count, words.data());
}

// Runs the added tests that the options select, or lists them. Returns the program's exit status: 2 if the options
// select none, because such a run would prove nothing.
inline int run_selected_tests(const TestOptions& options) {
    const int status = options.list ? list_cases() : RUN_ALL_TESTS();
    if (own_role().is_started_for_a_case() || GTEST_FLAG_GET(list_tests)) return status;
    if (::testing::UnitTest::GetInstance()->test_to_run_count() > 0) return status;
    std::cerr << fmt::format("no case matches the filter \"{}\"; --list prints the names of all cases\n",
                             GTEST_FLAG_GET(filter));
    return 2;
}

}  // namespace npushmem::contract
