// SPDX-License-Identifier: BSD-3-Clause
#include "core/tools/info/summary.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "core/base/parse.hpp"
#include "core/tools/info/reports_json.hpp"
#include "tests/fakes/fake_os.hpp"
#include "tests/fakes/topologies.hpp"

namespace npushmem::info {

namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::ResultOf;

PluginEntry named_entry(PluginKind kind, const std::string& name) {
    PluginEntry entry{};
    entry.found = {kind, name, "/lib/" + name + ".so", {}};
    return entry;
}

// Two plugins found, one refused, one absent; eight PEs on a machine with eight NICs.
class SummaryTest : public ::testing::Test {
protected:
    SummaryTest() : config_(read_config()) {
        plugins_.folders = {"/lib/npushmem"};
        for (const char* name : {"p2p", "ucx"}) plugins_.entries.push_back(named_entry(PluginKind::transport, name));
        plugins_.entries.push_back(named_entry(PluginKind::bootstrap, "mine"));
        plugins_.entries.back().refusal = Refusal{LoadStage::size, "too small"};
        plugins_.absent = {{PluginKind::transport, "verbs", "no headers"}};
        system_.cpus = 8;
        system_.kernel = kernel_of("6.1.0");
        system_.library = {"/lib/libnpushmem.so.0.1.0", "0.1.0"};
        auto job = view_job(config_.settings(), 8, 1);
        EXPECT_TRUE(job.ok()) << job.status().message();
        job_ = std::move(job).value();
        auto barrier = preview_barrier(config_.settings(), 8, 1, 8);
        EXPECT_TRUE(barrier.ok()) << barrier.status().message();
        barrier_ = std::move(barrier).value();
    }

    [[nodiscard]] Summary summary() const {
        return summarise({config_, {"NPUSHMEM_NO_SUCH"}, plugins_, system_, &job_, &barrier_, checks_, 8});
    }

    static Config read_config() {
        auto config = Config::read(FakeEnvironment{{"NPUSHMEM_TOPO_FILE", topology::topology_path("switch-pairs.xml")},
                                                   {"NPUSHMEM_NIC_ARBITRATION", "0"},
                                                   {"NPUSHMEM_UNIQUEID", "sesame"}});
        EXPECT_TRUE(config.ok()) << config.status().message();
        return std::move(config).value();
    }

    Config config_;
    PluginReport plugins_;
    SystemFacts system_;
    JobView job_;
    BarrierReport barrier_;
    std::vector<Check> checks_{{"CPUs", Severity::note, "few", "waits", "fewer PEs"}};
};

TEST_F(SummaryTest, HasTheChoicesOfAJob) {
    const Summary all = summary();
    EXPECT_THAT(all.transports.found, ElementsAre("p2p", "ucx"));
    EXPECT_THAT(all.transports.absent, ElementsAre("verbs"));
    EXPECT_THAT(all.bootstraps.refused, ElementsAre("mine"));
    EXPECT_EQ(all.job.remote.name, "ucx");
    EXPECT_EQ(all.job.nics.size(), 8U);
    EXPECT_EQ(all.notes, 1U);
    const std::string text = describe(all);
    EXPECT_THAT(
        text,
        AllOf(HasSubstr("2 found: p2p ucx; 1 absent: verbs\n"), HasSubstr("0 found: none; 1 refused: mine"),
              HasSubstr("PE 0 self, PE 1-7 p2p, seen from PE 0"), HasSubstr("ucx (auto: verbs"),
              HasSubstr("dissemination (every PE has a core"), HasSubstr("mlx5_0:1"),
              HasSubstr("1 unknown: NPUSHMEM_NO_SUCH; 3 variables set: NPUSHMEM_"), HasSubstr("0 problems, 1 note")));
    EXPECT_THAT(text, Not(HasSubstr("sesame")));
    EXPECT_THAT(text, HasSubstr("\nReady: npushmem-run -n 8 ./program"));
}

TEST_F(SummaryTest, IsNotReadyWithAProblem) {
    checks_.push_back({"shared memory", Severity::problem, "no memfd", "every job", "allow it"});
    EXPECT_THAT(describe(summary()), EndsWith("\nNot ready: shared memory: no memfd; see npushmem-info --doctor\n"));
}

TEST_F(SummaryTest, FitsOnAScreen) {
    checks_.push_back({"variable", Severity::problem, std::string(300, 'x') + "\n", "every job", "correct it"});
    for (int i = 0; i < 100; ++i) plugins_.folders.push_back("/a/long/folder/number/" + std::to_string(i) + "/ä");
    const std::string text = describe(summary());
    auto lines = split(text, '\n');
    EXPECT_EQ(lines.back(), "");
    lines.pop_back();
    EXPECT_LE(lines.size(), 24U);
    EXPECT_THAT(lines, Each(ResultOf([](const std::string& line) { return line.size(); }, ::testing::Le(100U))));
    EXPECT_THAT(text, AllOf(HasSubstr("xxx...;"), EndsWith("see npushmem-info --doctor\n")));
}

TEST_F(SummaryTest, WrapsReasons) {
    Summary all = summary();
    all.job.remote = {"ucx", "auto: " + std::string(60, 'a') + " " + std::string(60, 'b') + " the end"};
    EXPECT_THAT(describe(all),
                HasSubstr(std::string(60, 'a') + "\n" + std::string(14, ' ') + std::string(60, 'b') + " the end)\n"));
    all.first_problem = "memory: " + std::string(80, 'c') + " and its whole reason";
    EXPECT_THAT(describe(all), EndsWith("\nNot ready: memory: " + std::string(80, 'c') +
                                        "\nand its whole reason; see npushmem-info --doctor\n"));
}

TEST_F(SummaryTest, SurvivesFailedPreviews) {
    const Summary empty = summarise({config_, {}, plugins_, system_, nullptr, nullptr, checks_, 8});
    EXPECT_THAT(describe(empty), AllOf(HasSubstr("barrier     unknown: the preview failed"),
                                       HasSubstr("transports  unknown: the preview failed")));
}

using Json = nlohmann::json;

TEST_F(SummaryTest, IsAJsonObject) {
    Reports reports;
    reports.summary = summary();
    const Json json = Json::parse(to_json(reports));
    EXPECT_EQ(json.size(), 2U);
    const Json& all = json["summary"];
    EXPECT_EQ(all["ready"], true);
    EXPECT_EQ(all["first_problem"], nullptr);
    EXPECT_EQ(all["transports"]["found"], Json::parse(R"(["p2p", "ucx"])"));
    EXPECT_EQ(all["job"]["pes"], 8);
    EXPECT_EQ(all["job"]["remote_transport"], "ucx");
    EXPECT_EQ(all["job"]["routes"][1]["transport"], "p2p");
    EXPECT_EQ(all["job"]["routes"][1]["pes"], Json::parse("[1,2,3,4,5,6,7]"));
    EXPECT_EQ(all["job"]["nics"][0]["ports"][0]["name"], "mlx5_0");
}

TEST_F(SummaryTest, EveryReportIsAMemberOfTheObject) {
    Reports reports;
    reports.variables = &config_;
    reports.plugins = plugins_;
    reports.barriers = barrier_;
    reports.checks = checks_;
    reports.topology = {job_, {}, 0, preview_kernels(config_.settings(), 8, 1, 8)};
    const Json json = Json::parse(to_json(reports));
    for (const Json& row : json["variables"]["rows"])
        EXPECT_EQ(row["value"] == nullptr, row["name"] == "NPUSHMEM_UNIQUEID") << row;
    EXPECT_EQ(json["variables"]["rows"].size(), config_.effective().size());
    EXPECT_EQ(json["plugins"]["found"].size(), 3U);
    EXPECT_EQ(json["plugins"]["found"][0]["refused"], nullptr);
    EXPECT_EQ(json["plugins"]["found"][2]["refused"]["stage"], "size");
    EXPECT_EQ(json["plugins"]["absent"][0]["reason"], "no headers");
    EXPECT_EQ(json["barriers"]["choice"]["algorithm"], "dissemination");
    EXPECT_EQ(json["barriers"]["algorithms"].size(), barrier::Algorithms::count);
    EXPECT_EQ(json["doctor"]["notes"], 1);
    EXPECT_EQ(json["doctor"]["checks"][0]["severity"], "note");
    EXPECT_EQ(json["topology"]["job"]["pes"], 8);
    EXPECT_EQ(json["topology"]["machine"]["nics"].size(), job_.machine.nics.size());
    EXPECT_EQ(json["topology"]["kernels"]["mode"], "direct");
    EXPECT_FALSE(json.contains("summary"));
}

}  // namespace

}  // namespace npushmem::info
