// SPDX-License-Identifier: BSD-3-Clause
// What the contract programs share: the values of --config, GoogleTest's initialisation, and the run of the tests.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <iostream>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "npushmem/plugin/status.hpp"
#include "tests/contract/case_process.hpp"
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

// GoogleTest's own options follow those that stand for one, so that they prevail. The process of a case gets no other
// filter than its own, and writes no report.
inline void init_googletest(const TestOptions& options, const SplitArguments& arguments) {
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

// Runs the added tests that the options select. Returns the program's exit status: 2 if the options select none,
// because such a run would prove nothing.
inline int run_selected_tests() {
    const int status = RUN_ALL_TESTS();
    if (own_role().is_started_for_a_case() || GTEST_FLAG_GET(list_tests)) return status;
    if (::testing::UnitTest::GetInstance()->test_to_run_count() > 0) return status;
    std::cerr << fmt::format("no case matches the filter \"{}\"; --list prints the names of all cases\n",
                             GTEST_FLAG_GET(filter));
    return 2;
}

}  // namespace npushmem::contract
