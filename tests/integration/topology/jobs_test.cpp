// SPDX-License-Identifier: BSD-3-Clause
// Concurrent jobs of real processes on one host: their NICs, and the effect of a job's death.
#include <gmock/gmock.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "core/tools/run/exit_record.hpp"
#include "tests/integration/run/job_under_test.hpp"

namespace npushmem::run {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

constexpr const char* all_nics = "mlx5_0,mlx5_1,mlx5_2,mlx5_3,mlx5_4,mlx5_5,mlx5_6,mlx5_7";

// The first word of the form mlx5_N:1 in a job's report.
std::string nic_in(const std::string& text) {
    const auto at = text.find("mlx5_");
    return at == std::string::npos ? "none" : text.substr(at, text.find(':', at) - at);
}

std::string output_of(const std::string& command) {
    const std::unique_ptr<FILE, decltype([](FILE* file) { ::pclose(file); })> pipe(::popen(command.c_str(), "r"));
    std::string text;
    std::array<char, 4096> bytes{};
    while (const std::size_t count = std::fread(bytes.data(), 1, bytes.size(), pipe.get()))
        text.append(bytes.data(), count);
    return text;
}

class TopologyJobs : public ::testing::Test {
protected:
    // A copy with a unique line, so that concurrent runs of this test use different machines.
    void SetUp() override {
        file = ::testing::TempDir() + "topology-" + std::to_string(::getpid()) + ".xml";
        std::filesystem::copy_file(NPUSHMEM_TEST_DATA_DIR "/topologies/switch-pairs.xml", file,
                                   std::filesystem::copy_options::overwrite_existing);
        std::ofstream(file, std::ios::app) << "<!-- " << ::getpid() << " -->\n";
    }
    void TearDown() override {
        std::filesystem::remove(file);
        // The supervisors clean up after the last job, shortly after the launchers have ended.
        EXPECT_TRUE(run::eventually([] { return tables().empty(); })) << ::testing::PrintToString(tables());
    }
    static std::vector<std::string> tables() {
        std::vector<std::string> found;
        for (const auto& entry : std::filesystem::directory_iterator("/dev/shm"))
            if (entry.path().filename().string().starts_with("npushmem-nics")) found.push_back(entry.path());
        return found;
    }

    std::unique_ptr<JobUnderTest> start(const std::vector<std::string>& more, const std::string& part = "waiting",
                                        const std::string& npes = "1") {
        JobSettings settings;
        settings.with_bootstrap = true;
        settings.environment = {"NPUSHMEM_INFO=1",
                                "NPUSHMEM_SYMMETRIC_SIZE=1M",
                                "NPUSHMEM_TOPO_FILE=" + file,
                                "NPUSHMEM_PLUGIN_PATH=" TOPOLOGY_TEST_PLUGINS,
                                "NPUSHMEM_TRANSPORTS=self,p2p,nics",
                                std::string("NPUSHMEM_NICS_NAMES=") + all_nics};
        settings.environment.insert(settings.environment.end(), more.begin(), more.end());
        return std::make_unique<JobUnderTest>(
            std::vector<std::string>{"-n", npes, "--bind", "none", RUN_TEST_NPUSHMEM, part}, settings);
    }
    // The NIC that the job's report names. The report is complete when the job has ended.
    static std::string end_and_get_nic(JobUnderTest& job) {
        job.signal(SIGTERM);
        EXPECT_EQ(job.end_alone(), 128 + SIGTERM) << job.errors();
        return nic_in(job.errors());
    }
    std::string info() const {
        return output_of("NPUSHMEM_TOPO_FILE=" + file + " " TOPOLOGY_TEST_INFO " -t -n 1 2>&1");
    }
    // Starts eight concurrent jobs of one PE, and returns their NICs.
    std::set<std::string> nics_of_eight_jobs(const std::vector<std::string>& more) {
        std::vector<std::unique_ptr<JobUnderTest>> jobs;
        for (int i = 0; i < 8; ++i) jobs.push_back(start(more));
        for (auto& job : jobs) EXPECT_EQ(job->reports(1).at(0).word, "ready");
        seen = info();
        std::set<std::string> nics;
        for (auto& job : jobs) nics.insert(end_and_get_nic(*job));
        return nics;
    }

    std::string file;
    std::string seen;
};

TEST_F(TopologyJobs, EightWorldsOfOnePeUseEightNicsByDistance) {
    EXPECT_THAT(nics_of_eight_jobs({}), SizeIs(8));
    EXPECT_THAT(seen, HasSubstr("NICs in use by 8 jobs on this host"));
    for (int i = 0; i < 8; ++i) EXPECT_THAT(seen, HasSubstr("mlx5_" + std::to_string(i) + ":1  PIX"));
}

TEST_F(TopologyJobs, EightWorldsOfOnePeUseEightNicsByVariable) {
    EXPECT_THAT(nics_of_eight_jobs({"NPUSHMEM_ENABLE_NIC_PE_MAPPING=1", std::string("NPUSHMEM_HCA_LIST=") + all_nics}),
                SizeIs(8));
}

// Compares with arbitration switched off, for users of one world per device.
TEST_F(TopologyJobs, WithoutArbitrationWorldsMeetOnOneNic) {
    EXPECT_THAT(nics_of_eight_jobs({"NPUSHMEM_NIC_ARBITRATION=0"}), SizeIs(1));
}

TEST_F(TopologyJobs, AKilledJobGivesItsNicBack) {
    auto lost = start({});
    const int pe = lost->reports(1).at(0).pid;
    auto lasting = start({});
    (void)lasting->reports(1);
    ASSERT_EQ(::kill(pe, SIGKILL), 0);
    EXPECT_EQ(lost->end_alone(), 128 + SIGKILL);
    const std::string freed = nic_in(lost->errors());
    auto next = start({});
    (void)next->reports(1);
    EXPECT_EQ(end_and_get_nic(*next), freed);
    EXPECT_NE(end_and_get_nic(*lasting), freed);
}

// The later variable of the environment counts.
TEST_F(TopologyJobs, NicsAreReportedAsJson) {
    auto job = start({"NPUSHMEM_INFO=json", "NPUSHMEM_NICS_PER_PE=1"}, "whole", "2");
    EXPECT_EQ(job->end(), 0) << job->errors();
    std::istringstream lines(job->errors());
    std::string line;
    while (std::getline(lines, line) && !line.starts_with("{")) {
    }
    const auto report = nlohmann::json::parse(line);
    EXPECT_EQ(report.at("nics").at("transport"), "nics");
    ASSERT_EQ(report.at("nics").at("pes").size(), 2U);
    for (int pe = 0; pe < 2; ++pe) {
        const auto& nics = report.at("nics").at("pes")[static_cast<std::size_t>(pe)];
        EXPECT_EQ(nics.at("pe"), pe);
        ASSERT_EQ(nics.at("ports").size(), 1U);
        EXPECT_EQ(nics.at("ports")[0].at("port"), 1);
        EXPECT_THAT(nics.at("ports")[0].at("name").get<std::string>(), HasSubstr("mlx5_"));
        EXPECT_EQ(nics.at("ports")[0].at("bits_per_second"), 200'000'000'000);
    }
    EXPECT_NE(report.at("nics").at("pes")[0].at("ports")[0], report.at("nics").at("pes")[1].at("ports")[0]);
}

TEST_F(TopologyJobs, ANicThatIsGoneByTheTimeItIsUsedEndsTheStart) {
    auto job = start({"NPUSHMEM_NICS_GONE=mlx5_1"}, "whole", "2");
    EXPECT_NE(job->end(), 0);
    EXPECT_THAT(job->errors(), HasSubstr("NIC mlx5_1:1 was assigned to PE 1, but the transport no longer offers it"));
    EXPECT_THAT(job->errors(), HasSubstr("NPUSHMEM_HCA_LIST=^mlx5_1:1"));
}

// The supervisor removes the table of a job; without it the launcher does. TearDown looks.
TEST_F(TopologyJobs, AKilledSupervisorLeavesNoTable) {
    auto job = start({});
    EXPECT_EQ(job->reports(1).at(0).word, "ready");
    ASSERT_EQ(::kill(job->supervisor(), SIGKILL), 0);
    EXPECT_EQ(job->end(), exit_launcher_failed) << job->errors();
}

TEST_F(TopologyJobs, AWrongFileEndsTheStartWhateverTheTransports) {
    auto job = start({"NPUSHMEM_TRANSPORTS=self,p2p", "NPUSHMEM_TOPO_FILE=/nowhere.xml"}, "whole");
    EXPECT_NE(job->end(), 0);
    EXPECT_THAT(job->errors(), HasSubstr("cannot read topology file \"/nowhere.xml\""));
}

}  // namespace
}  // namespace npushmem::run
