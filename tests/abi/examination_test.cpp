// SPDX-License-Identifier: BSD-3-Clause
// Files that end or block a process that loads them: they end only a child process.
#include "core/tools/info/plugin_examination.hpp"

#include <gmock/gmock.h>
#include <poll.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <fstream>

#include "core/plugin/loader.hpp"

namespace npushmem::info {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;

PluginEntry examined(const std::string& name, std::chrono::milliseconds limit = examination_limit) {
    const auto found =
        PluginFinder({ABI_FATAL_PLUGIN_DIR, ABI_FATAL_PLUGIN_DIR "/slow"}).find(PluginKind::transport, name);
    EXPECT_TRUE(found.ok()) << found.status().message();
    return examine_in_child(found.value(), limit);
}

void expect_refusal(const PluginEntry& entry, const char* reason) {
    ASSERT_TRUE(entry.refusal.has_value());
    EXPECT_THAT(entry.refusal->text, AllOf(HasSubstr(reason), HasSubstr(entry.found.path)));
}

void expect_refusal_at_load(const PluginEntry& entry, const char* reason) {
    ASSERT_NO_FATAL_FAILURE(expect_refusal(entry, reason));
    EXPECT_EQ(entry.refusal->stage, LoadStage::opened);
}

TEST(ExaminationInAChild, OfASoundPluginEqualsThatInThisProcess) {
    const PluginEntry there = examined("harmless");
    const PluginEntry here = examine_plugin(there.found);
    EXPECT_TRUE(there.usable());
    EXPECT_EQ(encode_entry(there), encode_entry(here));
    ASSERT_EQ(there.variables.size(), 1U);
    EXPECT_EQ(there.variables[0].name, "FOO_A");
}

TEST(ExaminationInAChild, OfARefusedPluginEqualsThatInThisProcess) {
    for (const auto& found : PluginFinder({ABI_PLUGIN_DIR}).scan(PluginKind::transport))
        EXPECT_EQ(encode_entry(examine_in_child(found)), encode_entry(examine_plugin(found))) << found.name;
}

TEST(ExaminationInAChild, NamesTheFileThatEndsItsProcess) {
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
    expect_refusal_at_load(examined("crashes"), "signal 11");  // a sanitizer ends the process differently
#endif
    expect_refusal_at_load(examined("ends"), "status 3");
}

// The stage is not checked: on a busy machine the child may not have opened the file when the limit ends.
TEST(ExaminationInAChild, EndsAFileThatHangs) {
    expect_refusal(examined("hangs", std::chrono::milliseconds(200)), "has not ended within 200 ms");
}

TEST(ExaminationInAChild, EndsAFileThatClosesTheResultsAndHangs) {
    expect_refusal(examined("closes_and_hangs", std::chrono::seconds(1)), "has not ended within 1 s");
}

TEST(ExaminationInAChild, KillsProcessesThatAFileStartsWithoutWaitingForThem) {
    std::array<int, 2> ends{-1, -1};
    ASSERT_EQ(::pipe(ends.data()), 0);
    const PluginEntry entry = examined("forks");
    EXPECT_TRUE(entry.usable()) << entry.refusal->text;
    ::close(ends[1]);
    pollfd all_ended{ends[0], POLLIN, 0};
    EXPECT_EQ(::poll(&all_ended, 1, 60'000), 1) << "a process that the file started holds the pipe";
    ::close(ends[0]);
}

TEST(ExaminationInAChild, LeavesNoChildBehind) {
    (void)examined("hangs", std::chrono::milliseconds(1));
    (void)examined("ends");
    EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG), -1);
}

TEST(EncodedEntries, RejectTruncatedBytes) {
    PluginEntry entry{};
    entry.summary = "a summary";
    entry.capabilities = ~std::uint64_t{0};
    entry.variables = {{"A", "1", "uint", "one"}, {"B", "", "string", ""}};
    entry.refusal = Refusal{LoadStage::open, "no"};
    const std::string bytes = encode_entry(entry);
    bool complete = false;
    EXPECT_EQ(encode_entry(decode_entry({}, bytes, complete)), bytes);
    EXPECT_TRUE(complete);
    for (std::size_t size = 0; size < bytes.size(); ++size) {
        (void)decode_entry({}, bytes.substr(0, size), complete);
        EXPECT_FALSE(complete) << size;
    }
}

// Without a child process: the loader itself must refuse these files.
class NoLibrary : public ::testing::Test {
protected:
    NoLibrary() { fs::create_directories(folder_); }
    ~NoLibrary() override { fs::remove_all(folder_); }

    [[nodiscard]] std::string refusal() const {
        LoadStage stage{};
        const auto loaded = load_transport_file({PluginKind::transport, "no_library", file_, {}}, stage);
        EXPECT_EQ(loaded.status().code(), Code::plugin_refused);
        EXPECT_EQ(stage, LoadStage::opened);
        EXPECT_THAT(loaded.status().message(), HasSubstr(file_));
        return loaded.status().message();
    }

    const fs::path folder_ = ::testing::TempDir() + "npushmem_no_library_" + std::to_string(::getpid());
    const std::string file_ = (folder_ / "libnpushmem_transport_no_library.so").string();
};

TEST_F(NoLibrary, RejectsATruncatedLibrary) {
    const fs::path whole = fs::path(ABI_FATAL_PLUGIN_DIR) / "libnpushmem_transport_harmless.so";
    const auto bytes = fs::file_size(whole);
    // The last bytes, behind the last segment, are not loaded.
    for (std::uintmax_t size = 0; size < bytes / 2; size += 61) {
        fs::copy_file(whole, file_, fs::copy_options::overwrite_existing);
        fs::resize_file(file_, size);
        EXPECT_THAT(refusal(), HasSubstr(size < 64 ? "not an ELF file" : "cut off")) << size;
    }
}

TEST_F(NoLibrary, RejectsAFifo) {
    ASSERT_EQ(::mkfifo(file_.c_str(), 0600), 0);
    EXPECT_THAT(refusal(), HasSubstr("not a regular file"));
}

TEST_F(NoLibrary, RejectsAnObjectFileOrAText) {
    std::ofstream(file_) << std::string(100, 'x');
    EXPECT_THAT(refusal(), HasSubstr("not an ELF file"));
    std::string header = std::string("\x7f") + "ELF\x02\x01\x01" + std::string(57, '\0');
    header[16] = 1;  // ET_REL
    std::ofstream(file_, std::ios::trunc) << header;
    EXPECT_THAT(refusal(), HasSubstr("not a shared library"));
}

}  // namespace
}  // namespace npushmem::info
