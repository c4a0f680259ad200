#include "core/tools/run/environment_block.hpp"

#include <gmock/gmock.h>

namespace npushmem::run {
namespace {

std::vector<std::string> entries(EnvironmentBlock& block) {
    std::vector<std::string> out;
    const auto pointers = block.pointers();
    EXPECT_EQ(pointers.back(), nullptr);
    for (std::size_t i = 0; i + 1 < pointers.size(); ++i) out.emplace_back(pointers[i]);
    return out;
}

TEST(EnvironmentBlock, LaterSettingsReplaceEarlierOnes) {
    const char* const before[] = {"A=1", "AB=2", "B=", nullptr};
    auto block = EnvironmentBlock::copy_of(before);
    block.set("A", "3");
    block.set("C", "x=y");
    block.set("C", "z");
    EXPECT_THAT(entries(block), ::testing::ElementsAre("A=3", "AB=2", "B=", "C=z"));
}

TEST(EnvironmentBlock, FindsWholeNamesOnly) {
    const char* const before[] = {"AB=2", "B=", nullptr};
    const auto block = EnvironmentBlock::copy_of(before);
    EXPECT_EQ(block.value("A"), nullptr);
    EXPECT_STREQ(block.value("AB"), "2");
    EXPECT_STREQ(block.value("B"), "");
    EXPECT_EQ(block.value(""), nullptr);
}

TEST(EnvironmentBlock, DefaultsYieldToWhatIsThere) {
    auto block = EnvironmentBlock::copy_of(nullptr);
    block.set_default("A", "1");
    block.set_default("A", "2");
    block.set("B", "");
    block.set_default("B", "3");
    EXPECT_THAT(entries(block), ::testing::ElementsAre("A=1", "B="));
}

TEST(EnvironmentBlock, KeepsEntriesThatAreNoAssignments) {
    const char* const before[] = {"odd", "", "A=1", nullptr};
    auto block = EnvironmentBlock::copy_of(before);
    EXPECT_EQ(block.value("odd"), nullptr);
    EXPECT_THAT(entries(block), ::testing::ElementsAre("odd", "", "A=1"));
}

}  // namespace
}  // namespace npushmem::run
