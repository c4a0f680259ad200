// The command line of a contract program: GoogleTest's options go to it, everything else, --help included, is ours.
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
    [[nodiscard]] int count_for_gtest() const { return static_cast<int>(for_gtest.size()) - 1; }

    int ours = 0;  // how many of argv, the program's name among them: the others have been moved behind
    std::vector<char*> for_gtest;
};

}  // namespace npushmem::contract
