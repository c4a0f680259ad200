#include "core/tools/info/readable_environment.hpp"

#include <gmock/gmock.h>

#include "core/base/config.hpp"
#include "tests/fakes/fake_environment.hpp"

namespace npushmem::info {
namespace {

using ::testing::HasSubstr;

TEST(ReadableEnvironment, IsEverythingWhenNothingIsMalformed) {
    const FakeEnvironment all{{"NPUSHMEM_PLUGIN_PATH", "/mine"}, {"NPUSHMEM_NO_SUCH", "1"}};
    const ReadableEnvironment readable(all);
    EXPECT_TRUE(readable.mistakes().empty());
    EXPECT_EQ(readable.npushmem_variables(), all.npushmem_variables());
    EXPECT_EQ(readable.get("NPUSHMEM_PLUGIN_PATH"), "/mine");
    EXPECT_EQ(readable.get("NPUSHMEM_PE"), std::nullopt);
}

TEST(ReadableEnvironment, LeavesOutAndNamesEachMalformedVariable) {
    const FakeEnvironment all{
        {"NPUSHMEM_DISABLE_P2P", "perhaps"}, {"NPUSHMEM_PLUGIN_PATH", "/mine"}, {"NPUSHMEM_SYMMETRIC_SIZE", "large"}};
    const ReadableEnvironment readable(all);
    ASSERT_EQ(readable.mistakes().size(), 2U);
    EXPECT_THAT(readable.mistakes()[0].message(), HasSubstr("NPUSHMEM_DISABLE_P2P"));
    EXPECT_THAT(readable.mistakes()[1].message(), HasSubstr("NPUSHMEM_SYMMETRIC_SIZE"));
    const auto config = Config::read(readable);
    ASSERT_TRUE(config.ok()) << config.status().message();
    EXPECT_EQ(config.value().settings().plugin_path, "/mine");
}

}  // namespace
}  // namespace npushmem::info
