// SPDX-License-Identifier: BSD-3-Clause
// Runs every fuzz target over its corpus, and over changes of it from a fixed seed. No clang is needed.
#include <gtest/gtest.h>

#include <filesystem>
#include <random>
#include <vector>

#include "core/base/streams.hpp"
#include "tests/fuzz/targets.hpp"

namespace npushmem::fuzz {
namespace {

constexpr std::size_t max_bytes = 4096;
constexpr std::size_t max_files = 40;

class FuzzTarget : public ::testing::TestWithParam<Target> {
protected:
    FuzzTarget() {
        std::vector<std::filesystem::path> paths;
        const auto folder = std::filesystem::path(NPUSHMEM_FUZZ_CORPUS) / GetParam().name;
        for (const auto& entry : std::filesystem::directory_iterator(folder)) paths.push_back(entry.path());
        std::ranges::sort(paths);
        for (const auto& path : paths) corpus_.emplace_back(path.filename(), read_whole_file(path).value());
    }
    void run(const std::string& input) { GetParam().run(std::as_bytes(std::span(input))); }

    std::vector<std::pair<std::string, std::string>> corpus_;  // names and contents, in a fixed order
};

TEST_P(FuzzTarget, AcceptsItsCorpus) {
    EXPECT_FALSE(corpus_.empty());
    EXPECT_LE(corpus_.size(), max_files);
    for (const auto& [name, content] : corpus_) {
        EXPECT_LT(content.size(), max_bytes) << name;
        EXPECT_NO_THROW(run(content)) << name;
    }
}

// One change of an input: bytes replaced, removed, repeated, or taken from another input.
void change(std::string& input, const std::string& other, std::mt19937& random) {
    const auto below = [&](std::size_t limit) { return limit == 0 ? 0 : random() % limit; };
    const std::size_t at = below(input.size() + 1);
    const std::size_t length = below(std::min<std::size_t>(input.size() - at, 16) + 1);
    switch (random() % 5) {
        case 0: input.insert(at, 1, static_cast<char>(random())); break;
        case 1: input.erase(at, length); break;
        case 2: input.insert(at, input.substr(at, length)); break;
        case 3: input.replace(at, length, other.substr(below(other.size() + 1), below(16))); break;
        default:
            if (at < input.size())
                input[at] = static_cast<char>(random() % 2 == 0 ? input[at] ^ 1 << random() % 8 : 255);
    }
}

TEST_P(FuzzTarget, AcceptsChangesOfItsCorpus) {
    constexpr int executions = 4000;
    std::mt19937 random(20261123);
    for (int i = 0; i < executions; ++i) {
        std::string input = corpus_[random() % corpus_.size()].second;
        for (auto left = 1 + random() % 4; left > 0; --left)
            change(input, corpus_[random() % corpus_.size()].second, random);
        input.resize(std::min(input.size(), max_bytes));
        ASSERT_NO_THROW(run(input)) << "execution " << i << " of the input " << ::testing::PrintToString(input);
    }
}

INSTANTIATE_TEST_SUITE_P(All, FuzzTarget, ::testing::ValuesIn(targets),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace npushmem::fuzz
