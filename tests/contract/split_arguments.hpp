// SPDX-License-Identifier: BSD-3-Clause
// Splits the command line of a contract program: GoogleTest gets its options; the program gets all others, including
// --help.
#pragma once

#include <algorithm>
#include <string_view>
#include <vector>

namespace npushmem::contract {

struct SplitArguments {
    SplitArguments(int argc, char** argv) {
        const auto is_ours = [](std::string_view argument) { return !argument.starts_with("--gtest_"); };
        char** const theirs = std::stable_partition(argv + 1, argv + argc, is_ours);
        ours = static_cast<int>(theirs - argv);
        for_gtest.push_back(argv[0]);
        for_gtest.insert(for_gtest.end(), theirs, argv + argc);
        for_gtest.push_back(nullptr);  // as argv ends
    }

    int ours = 0;  // number of the program's arguments in argv, with its name; GoogleTest's follow them
    std::vector<char*> for_gtest;
};

}  // namespace npushmem::contract
