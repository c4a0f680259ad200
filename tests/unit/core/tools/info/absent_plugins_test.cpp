#include "core/tools/info/absent_plugins.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace npushmem::info {
namespace {

TEST(AbsentPlugins, AreReadFromEveryFolderThatHasAList) {
    const std::string folder = ::testing::TempDir() + "npushmem-absent";
    std::filesystem::create_directories(folder);
    std::ofstream(folder + "/absent-plugins.txt") << "bootstrap pmix built without libpmix: install it\n"
                                                     "transport verbs no libibverbs\n"
                                                     "cut";
    const auto absent = absent_plugins({"/nonexistent", folder});
    ASSERT_EQ(absent.size(), 2U);
    EXPECT_EQ(absent[0].kind, PluginKind::bootstrap);
    EXPECT_EQ(absent[0].name, "pmix");
    EXPECT_EQ(absent[0].why, "built without libpmix: install it");
    EXPECT_EQ(absent[1].kind, PluginKind::transport);
    std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace npushmem::info
