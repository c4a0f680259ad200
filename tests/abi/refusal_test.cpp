// SPDX-License-Identifier: BSD-3-Clause
// Every stage of loading refuses its faults, reports the reason, and leaves nothing behind.
#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>

#include "core/plugin/loader.hpp"
#include "core/plugin/opened_plugin.hpp"
#include "core/plugin/plugin_catalogue.hpp"
#include "npushmem/testing/fake_host.hpp"

namespace npushmem {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

PluginFinder wrong_plugins() { return PluginFinder({ABI_PLUGIN_DIR}); }

npushmem_transport_params params() {
    npushmem_transport_params out{};
    out.struct_size = sizeof out;
    out.npes = 1;
    out.host.emulated = -1;
    return out;
}

// The expected stage and texts of a wrong plugin's refusal.
struct WrongPlugin {
    PluginKind kind;
    const char* name;
    LoadStage stage;
    std::vector<std::string> says;
};

// Prints the parameter for the test program.
void PrintTo(const WrongPlugin& plugin, std::ostream* out) { *out << name_of(plugin.kind) << ' ' << plugin.name; }

std::string test_name(const ::testing::TestParamInfo<WrongPlugin>& info) {
    return std::string(name_of(info.param.kind)) + "_" + info.param.name;
}

class Refused : public ::testing::TestWithParam<WrongPlugin> {};

TEST_P(Refused, FailsAtItsStageWithTheReason) {
    const auto& [kind, name, stage, says] = GetParam();
    const auto found = wrong_plugins().find(kind, name);
    ASSERT_TRUE(found.ok()) << found.status().message();
    const PluginEntry entry = examine_plugin(found.value());
    ASSERT_TRUE(entry.refusal.has_value());
    EXPECT_EQ(name_of(entry.refusal->stage), name_of(stage)) << entry.refusal->text;
    EXPECT_THAT(entry.refusal->text, AllOf(HasSubstr(name), HasSubstr("refused at stage"), HasSubstr(".so")));
    for (const auto& words : says) EXPECT_THAT(entry.refusal->text, HasSubstr(words));
}

constexpr auto transport = PluginKind::transport;
constexpr auto bootstrap = PluginKind::bootstrap;
constexpr auto collectives = PluginKind::collectives;

INSTANTIATE_TEST_SUITE_P(
    EveryStage, Refused,
    ::testing::Values(
        WrongPlugin{transport, "undefined_symbol", LoadStage::opened, {"npushmem_test_symbol_that_nobody_defines"}},
        WrongPlugin{transport, "no_entry", LoadStage::entry, {"does not export npushmem_transport_entry_v1"}},
        WrongPlugin{transport, "no_table", LoadStage::entry, {"returned no table"}},
        WrongPlugin{transport, "is_bootstrap", LoadStage::entry, {"it is a bootstrap plugin"}},
        WrongPlugin{transport, "entry_elsewhere", LoadStage::entry, {"libabi_dependency.so", "not by itself"}},
        WrongPlugin{
            transport, "entry_v0", LoadStage::major, {"version 0", "runtime uses version 1", "too old", "rebuild"}},
        WrongPlugin{transport,
                    "entry_v2",
                    LoadStage::major,
                    {"version 2", "runtime uses version 1", "too new", "newer npushmem"}},
        WrongPlugin{transport, "part_v2", LoadStage::major, {"version 2", "runtime uses version 1", "too new"}},
        WrongPlugin{transport,
                    "other_part",
                    LoadStage::entry,
                    {"does not export npushmem_transport_entry_v1, nor the same with _other_part behind it"}},
        WrongPlugin{transport, "part_of_bootstraps", LoadStage::entry, {"it is a bootstrap plugin, rename the file"}},
        WrongPlugin{transport, "major_9", LoadStage::major, {"version 9", "too new"}},
        WrongPlugin{transport, "too_small", LoadStage::size, {"64 bytes", "mandatory"}},
        WrongPlugin{transport, "too_large", LoadStage::size, {"2147483647 bytes", "cannot be true"}},
        WrongPlugin{transport, "odd_size", LoadStage::size, {"cannot be true"}},
        WrongPlugin{transport,
                    "other_name",
                    LoadStage::name,
                    {"'another'", "'other_name'", "libnpushmem_transport_another.so"}},
        WrongPlugin{transport, "no_name", LoadStage::name, {"no name"}},
        WrongPlugin{transport, "no_quiet", LoadStage::functions, {"'quiet'"}},
        WrongPlugin{transport, "no_put", LoadStage::capabilities, {"'put'"}},
        WrongPlugin{transport, "no_data", LoadStage::capabilities, {"ordered", "move data"}},
        WrongPlugin{transport, "all_ones", LoadStage::major, {"version 65535"}},
        WrongPlugin{transport, "table_nowhere", LoadStage::entry, {"its table is at 0xffffffffffffff00"}},
        WrongPlugin{transport, "name_nowhere", LoadStage::name, {"name is at 0xffffffffffffff00", "read"}},
        WrongPlugin{transport, "summary_nowhere", LoadStage::name, {"summary is at 0xffffffffffffff00"}},
        WrongPlugin{transport, "row_nowhere", LoadStage::configuration, {"row 1", "text at 0xffffffffffffff00"}},
        WrongPlugin{transport, "twin_rows", LoadStage::configuration, {"FOO_A", "twice"}},
        WrongPlugin{transport, "bad_default", LoadStage::configuration, {"FOO_A", "'many'", "uint"}},
        WrongPlugin{transport, "bad_type", LoadStage::configuration, {"FOO_A", "'float'"}},
        WrongPlugin{transport, "bad_row_name", LoadStage::configuration, {"'foo a'"}},
        WrongPlugin{transport, "empty_row", LoadStage::configuration, {"row 1 lacks"}},
        WrongPlugin{transport, "no_rows", LoadStage::configuration, {"claims 3"}},
        WrongPlugin{bootstrap, "entry_v2", LoadStage::major, {"bootstrap", "too new"}},
        WrongPlugin{bootstrap, "too_small", LoadStage::size, {"16 bytes"}},
        WrongPlugin{bootstrap, "no_barrier", LoadStage::functions, {"'barrier'"}},
        WrongPlugin{collectives, "entry_v2", LoadStage::major, {"collectives", "too new"}},
        WrongPlugin{collectives, "is_bootstrap", LoadStage::entry, {"it is a bootstrap plugin"}},
        WrongPlugin{collectives, "major_9", LoadStage::major, {"version 9", "too new"}},
        WrongPlugin{collectives, "too_small", LoadStage::size, {"mandatory"}},
        WrongPlugin{collectives, "other_name", LoadStage::name, {"libnpushmem_collectives_another.so"}},
        WrongPlugin{collectives, "no_test", LoadStage::functions, {"'test'"}}),
    test_name);

TEST(RefusedAtFound, ReportsTheSearchPathAndSimilarNames) {
    const auto loaded = load_transport(wrong_plugins(), "sounds");
    ASSERT_FALSE(loaded.ok());
    EXPECT_EQ(loaded.status().code(), Code::plugin_missing);
    EXPECT_THAT(loaded.status().message(),
                AllOf(HasSubstr("did you mean 'sound'"), HasSubstr(ABI_PLUGIN_DIR),
                      HasSubstr("libnpushmem_transport_sounds.so"), HasSubstr("NPUSHMEM_PLUGIN_PATH")));
}

TEST(RefusedAtFound, RejectsMalformedNames) {
    for (const char* name : {"", "..", "Sound", "so und", "x.so"})
        EXPECT_EQ(load_transport(wrong_plugins(), name).status().code(), Code::plugin_missing) << name;
    EXPECT_THAT(load_transport(wrong_plugins(), ABI_PLUGIN_DIR).status().message(), HasSubstr("directory"));
    EXPECT_THAT(load_transport(wrong_plugins(), "./libnot_there.so").status().message(), HasSubstr("no such file"));
    EXPECT_THAT(load_transport(wrong_plugins(), ABI_PLUGIN_DIR "/libabi_dependency.so").status().message(),
                HasSubstr("must be called libnpushmem_transport_<name>.so"));
}

TEST(RefusedAtOpened, RejectsFilesThatAreNoLibraries) {
    const std::filesystem::path folder = ::testing::TempDir() + "npushmem_abi_files";
    std::filesystem::create_directories(folder);
    const std::filesystem::path file = folder / "libnpushmem_transport_text.so";
    std::ofstream(file) << "this is no ELF file\n";
    const auto text = load_transport(PluginFinder({folder}), "text");
    EXPECT_EQ(text.status().code(), Code::plugin_refused);
    EXPECT_THAT(text.status().message(), AllOf(HasSubstr("stage 'opened'"), HasSubstr(file.string())));
    std::ofstream(file, std::ios::trunc).flush();
    EXPECT_THAT(load_transport(PluginFinder({folder}), "text").status().message(), HasSubstr("stage 'opened'"));
    std::filesystem::remove_all(folder);
}

Status open_status(const char* name, fakes::FakeHost& host) {
    auto loaded = load_transport(wrong_plugins(), name);
    if (!loaded.ok()) return loaded.status();
    return open_transport(loaded.value(), host.table(), params()).status();
}

TEST(RefusedAtOpen, KeepsTheMessageOfThePlugin) {
    fakes::FakeHost host;
    const Status refused = open_status("no_open", host);
    EXPECT_EQ(refused.code(), Code::system);
    EXPECT_THAT(refused.message(), StartsWith("transport no_open: the wrong plugin opens nothing"));
}

TEST(RefusedAtOpen, ABootstrapWhoseJobFailsKeepsItsCode) {
    fakes::FakeHost host;
    auto loaded = load_bootstrap(wrong_plugins(), "no_open");
    ASSERT_TRUE(loaded.ok()) << loaded.status().message();
    const npushmem_bootstrap_params none{};
    const Status failed = open_bootstrap(loaded.value(), host.table(), none).status();
    EXPECT_EQ(failed.code(), Code::unreachable);
    EXPECT_THAT(failed.message(), StartsWith("bootstrap no_open: rank 1 never joined"));
}

TEST(RefusedAtOpen, ABootstrapThatRejectsItselfReturnsPluginRefused) {
    fakes::FakeHost host;
    auto loaded = load_bootstrap(wrong_plugins(), "refuses");
    ASSERT_TRUE(loaded.ok()) << loaded.status().message();
    const npushmem_bootstrap_params none{};
    const Status refused = open_bootstrap(loaded.value(), host.table(), none).status();
    EXPECT_EQ(refused.code(), Code::plugin_refused);
    EXPECT_THAT(refused.message(), AllOf(HasSubstr("bootstrap plugin 'refuses'"), HasSubstr("stage 'open'")));
}

TEST(RefusedAtOpen, SurvivesMessagesWithoutEndOrWithoutText) {
    fakes::FakeHost host;
    EXPECT_THAT(open_status("no_open_unterminated", host).message(), HasSubstr(std::string(2044, 'x')));
    EXPECT_THAT(open_status("no_open_silent", host).message(), HasSubstr("without a message"));
}

TEST(RefusedAtOpen, ExceptionsBecomeMessages) {
    fakes::FakeHost host;
    host.set("THROWING_OPEN", "true");
    EXPECT_THAT(open_status("throwing", host).message(), HasSubstr("open of the throwing plugin threw"));
}

TEST(RefusedAtOpen, ALibraryOfCollectivesKeepsItsCodeAndMessage) {
    fakes::FakeHost host;
    auto loaded = load_collectives(wrong_plugins(), "no_open");
    ASSERT_TRUE(loaded.ok()) << loaded.status().message();
    const Status refused = open_collectives(loaded.value(), host.table(), {}).status();
    EXPECT_EQ(refused.code(), Code::unsupported);
    EXPECT_EQ(refused.message(), "collectives no_open: no accelerator here");
}

TEST(Tolerated, ALibraryOfCollectivesWithoutOptionalFunctions) {
    fakes::FakeHost host;
    auto loaded = load_collectives(wrong_plugins(), "sound");
    ASSERT_TRUE(loaded.ok()) << loaded.status().message();
    auto opened = open_collectives(loaded.value(), host.table(), {});
    ASSERT_TRUE(opened.ok()) << opened.status().message();
    Collectives& library = *opened.value();
    EXPECT_EQ(library.description(), "");
    EXPECT_EQ(library.supports(NPUSHMEM_COLL_BARRIER, 0), 1U);
    std::uint64_t request = 0;
    EXPECT_EQ(library.start(1, {}, request).code(), Code::again);
    const Status failed = library.test(request);
    EXPECT_EQ(failed.code(), Code::system);
    EXPECT_EQ(failed.message(), "the network is gone");
    library.abandon(request);
}

TEST(RefusedAtOpen, RejectsABootstrapWithAnImpossibleRank) {
    fakes::FakeHost host;
    auto loaded = load_bootstrap(wrong_plugins(), "bad_rank");
    ASSERT_TRUE(loaded.ok()) << loaded.status().message();
    const npushmem_bootstrap_params none{};
    EXPECT_THAT(open_bootstrap(loaded.value(), host.table(), none).status().message(), HasSubstr("rank 5 of 1"));
}

TEST(RefusedAtConfiguration, ReportsAMalformedValueOfTheUser) {
    fakes::FakeHost host;
    host.set("FOO_A", "plenty");
    const Status refused = open_status("with_row", host);
    EXPECT_EQ(refused.code(), Code::config);
    EXPECT_THAT(refused.message(), AllOf(HasSubstr("NPUSHMEM_FOO_A is 'plenty'"), HasSubstr("stage 'configuration'")));
    host.set("FOO_A", "3");
    EXPECT_TRUE(open_status("with_row", host).ok());
}

TEST(FileOfSeveralPlugins, ExportsAnEntryWithThePluginsName) {
    const auto loaded = load_transport(wrong_plugins(), "one-of-many");
    ASSERT_TRUE(loaded.ok()) << loaded.status().message();
    EXPECT_STREQ(loaded.value()->table().name, "one-of-many");
}

TEST(Tolerated, AcceptsATableWithFieldsOfALaterMinorVersion) {
    auto loaded = load_transport(wrong_plugins(), "newer_minor");
    ASSERT_TRUE(loaded.ok()) << loaded.status().message();
    EXPECT_EQ(loaded.value()->minor(), 7);
    EXPECT_EQ(loaded.value()->table().struct_size, sizeof(npushmem_transport_v1));
}

}  // namespace
}  // namespace npushmem
