// SPDX-License-Identifier: BSD-3-Clause
#include "core/plugin/plugin_finder.hpp"

#include <gmock/gmock.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace npushmem {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr auto transport = PluginKind::transport;

// Two folders with files that have plugins' names. The finder opens none, so they may be empty.
class Finder : public ::testing::Test {
protected:
    Finder() : root_(::testing::TempDir() + "npushmem_finder_" + std::to_string(::getpid())) {
        make("a/libnpushmem_transport_p2p.so");
        make("a/libnpushmem_bootstrap_uid.so");
        make("b/libnpushmem_transport_p2p.so");
        make("b/libnpushmem_transport_verbs.so");
        make("b/libnpushmem_transport_.so");
        make("b/libnpushmem_transport_UPPER.so");
        make("b/libnpushmem_transport_p2p.so.1");
        make("b/unrelated.so");
    }
    ~Finder() override { fs::remove_all(root_); }
    void make(const char* file) {
        fs::create_directories((root_ / file).parent_path());
        std::ofstream(root_ / file) << "";
    }
    [[nodiscard]] std::string at(const char* file) const { return (root_ / file).string(); }

    fs::path root_;
    PluginFinder finder_{{(root_ / "a").string(), (root_ / "missing").string(), (root_ / "b").string()}};
};

TEST_F(Finder, TheFirstDirectoryWins) {
    const auto found = finder_.find(transport, "p2p");
    ASSERT_TRUE(found.ok());
    EXPECT_EQ(found.value().path, at("a/libnpushmem_transport_p2p.so"));
    EXPECT_EQ(finder_.find(transport, "verbs").value().path, at("b/libnpushmem_transport_verbs.so"));
}

TEST_F(Finder, APathIsUsedWhateverTheSearchPath) {
    EXPECT_EQ(finder_.find(transport, at("b/libnpushmem_transport_p2p.so")).value().path,
              at("b/libnpushmem_transport_p2p.so"));
    EXPECT_EQ(finder_.find(transport, at("a/libnpushmem_bootstrap_uid.so")).status().code(), Code::plugin_missing);
}

TEST_F(Finder, DistinguishesPluginsOfEachKind) {
    EXPECT_TRUE(finder_.find(PluginKind::bootstrap, "uid").ok());
    EXPECT_FALSE(finder_.find(transport, "uid").ok());
}

TEST_F(Finder, AMissingNameIsExplained) {
    const std::string text = finder_.find(transport, "verb").status().message();
    EXPECT_THAT(text, HasSubstr("'verb'; did you mean 'verbs'? Looked for"));
    EXPECT_THAT(text, HasSubstr("There: p2p, verbs"));
    EXPECT_THAT(PluginFinder({}).find(transport, "p2p").status().message(),
                HasSubstr("'p2p'. Looked for libnpushmem_transport_p2p.so in: no directory."));
}

TEST_F(Finder, StatesWhyAPluginOfThisProjectIsNotInstalled) {
    std::ofstream(root_ / "b/absent-plugins.txt") << "transport ucx install libucx-dev and configure again\n";
    EXPECT_EQ(finder_.find(transport, "ucx").status().message(),
              "transport plugin 'ucx' is not installed: install libucx-dev and configure again");
    EXPECT_THAT(finder_.find(PluginKind::bootstrap, "ucx").status().message(),
                HasSubstr("there is no bootstrap plugin"));
}

TEST_F(Finder, ReportsEntriesThatAreNoFilesAndSearchesOn) {
    fs::create_directory(root_ / "a/libnpushmem_transport_folder.so");
    fs::create_symlink("nowhere", root_ / "a/libnpushmem_transport_link.so");
    fs::create_directory(root_ / "a/libnpushmem_transport_verbs.so");
    const std::string folder = finder_.find(transport, "folder").status().message();
    EXPECT_THAT(folder, HasSubstr(at("a/libnpushmem_transport_folder.so") + ": it is a directory"));
    EXPECT_THAT(folder, Not(HasSubstr("did you mean")));
    EXPECT_THAT(finder_.find(transport, "link").status().message(), HasSubstr("a link to a file that does not exist"));
    EXPECT_EQ(finder_.find(transport, "verbs").value().path, at("b/libnpushmem_transport_verbs.so"));
    for (const auto& plugin : finder_.scan(transport)) {
        if (plugin.name != "verbs") continue;
        EXPECT_EQ(plugin.path, at("b/libnpushmem_transport_verbs.so"));
        EXPECT_THAT(plugin.shadowed, ElementsAre(at("a/libnpushmem_transport_verbs.so")));
    }
}

TEST_F(Finder, ReportsAFolderThatDoesNotExist) {
    EXPECT_THAT(finder_.find(transport, "nosuch").status().message(),
                HasSubstr((root_ / "missing").string() + " (no such directory)"));
}

TEST_F(Finder, ScanListsEachNameOnceAndReportsHiddenFiles) {
    const auto found = finder_.scan(transport);
    ASSERT_EQ(found.size(), 2U);
    EXPECT_EQ(found[0].name, "p2p");
    EXPECT_EQ(found[0].path, at("a/libnpushmem_transport_p2p.so"));
    EXPECT_THAT(found[0].shadowed, ElementsAre(at("b/libnpushmem_transport_p2p.so")));
    EXPECT_EQ(found[1].name, "verbs");
    EXPECT_THAT(found[1].shadowed, IsEmpty());
}

TEST(PluginNames, AreLowerCaseLettersDigitsAndSeparators) {
    for (const char* name : {"p2p", "a", "my_net-2"}) EXPECT_TRUE(is_plugin_name(name)) << name;
    for (const char* name : {"", "2p", "P2P", "a.b", "a/b", "..", "a b", "-a"})
        EXPECT_FALSE(is_plugin_name(name)) << name;
    EXPECT_EQ(plugin_name_in(transport, plugin_file_name(transport, "my_net")), "my_net");
    EXPECT_EQ(plugin_name_in(transport, "libnpushmem_bootstrap_uid.so"), "");
    EXPECT_EQ(plugin_name_in(transport, "libnpushmem_transport_.so"), "");
    EXPECT_EQ(plugin_name_in(transport, "libnpushmem_transport_so"), "");
}

TEST(SearchPath, BeginsWithTheUsersDirectoriesWithoutDuplicates) {
    const auto path = plugin_search_path("/one/dir:/two/../one/dir::/three");
    ASSERT_GE(path.size(), 4U);
    EXPECT_EQ(path[0], "/one/dir");
    EXPECT_EQ(path[1], "/three");
    EXPECT_THAT(plugin_search_path(""), ::testing::Contains(HasSubstr("npushmem")));
}

TEST(SearchPath, ReportsDirectoriesOfTheUserThatDoNotExist) {
    EXPECT_THAT(missing_directories(""), IsEmpty());
    EXPECT_THAT(missing_directories("/:" + ::testing::TempDir()), IsEmpty());
    EXPECT_THAT(missing_directories("/:/nonexistent:/proc/self/status"),
                ElementsAre(HasSubstr("'/nonexistent'"), HasSubstr("'/proc/self/status'")));
}

TEST(SearchPath, ContainsTheFolderBesideTheProgram) {
    const fs::path own = fs::read_symlink("/proc/self/exe").parent_path();
    EXPECT_EQ(directory_of_this_library(), own.string());
    EXPECT_THAT(plugin_search_path(""), ::testing::Contains(fs::weakly_canonical(own / "../lib/npushmem").string()));
}

TEST(SearchPath, OfALibraryElsewhereOmitsTheFolderOfThisProgram) {
    const fs::path own = fs::read_symlink("/proc/self/exe").parent_path();
    const auto path = plugin_search_path_from("/mine", "/prefix/bin/../lib");
    ASSERT_EQ(path.size(), 3U) << "beside the library is one folder, under two names";
    EXPECT_EQ(path[0], "/mine");
    EXPECT_EQ(path[1], "/prefix/lib/npushmem");
    EXPECT_THAT(path, ::testing::Not(::testing::Contains((own / "npushmem").string())));
}

}  // namespace
}  // namespace npushmem
