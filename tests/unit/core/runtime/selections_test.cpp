// SPDX-License-Identifier: BSD-3-Clause
#include "core/runtime/selections.hpp"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "tests/fakes/fake_os.hpp"

namespace npushmem {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using Json = nlohmann::json;

npushmem_device device_at(const char* name, std::uint32_t port, const char* pci_address) {
    npushmem_device device{};
    device.struct_size = sizeof device;
    device.port = port;
    (void)std::string(name).copy(device.name, sizeof device.name);
    (void)std::string(pci_address).copy(device.pci_address, sizeof device.pci_address);
    return device;
}

topology::NicChoice nic_port(const char* name, std::uint32_t port) {
    topology::NicChoice nic;
    nic.nic = name;
    nic.port = port;
    nic.rail_number = 3;
    nic.distance = topology::DistanceClass::pix;
    nic.bits_per_second = 200'000'000'000;
    nic.shared_with = {7};
    return nic;
}

HostNics two_pes_with_nics() {
    HostNics host;
    host.in_use = true;
    host.transport = "verbs";
    host.assignment.method = "balanced";
    host.assignment.pes = {{4, "NPU 0", {nic_port("mlx5_0", 2)}, "nearest"}, {5, "NPU 1", {}, "no NIC is left"}};
    host.assignment.notes = {"mlx5_9:1 is down"};
    host.devices = {device_at("mlx5_0", 1, "0000:01:00.0"), device_at("mlx5_0", 2, "0000:02:00.0")};
    return host;
}

TEST(NicsOfAPe, AreThoseOfItsHostWithTheirAddresses) {
    const PeNics nics = nics_of(two_pes_with_nics(), 4, {5, false, "here"});
    EXPECT_TRUE(nics.is_known);
    EXPECT_EQ(nics.transport, "verbs");
    EXPECT_EQ(nics.device, "NPU 0");
    EXPECT_EQ(nics.why, "nearest");
    ASSERT_EQ(nics.nics.size(), 1U);
    EXPECT_EQ(nics.nics[0].choice, nic_port("mlx5_0", 2));
    EXPECT_EQ(nics.nics[0].pci_address, "0000:02:00.0") << "of the port, not only of the name";
}

TEST(NicsOfAPe, MayBeNone) {
    const PeNics none = nics_of(two_pes_with_nics(), 5, {4, false, "here"});
    EXPECT_TRUE(none.is_known);
    EXPECT_TRUE(none.nics.empty());
    EXPECT_EQ(none.why, "no NIC is left");
    // A PE of the host whose transports have no NICs is not in the assignment.
    const PeNics absent = nics_of(two_pes_with_nics(), 6, {4, false, "here"});
    EXPECT_TRUE(absent.is_known);
    EXPECT_EQ(absent.why, "no transport of PE 6 drives a NIC");
}

TEST(NicsOfAPe, AreUnknownOnOtherHosts) {
    const PeNics far = nics_of(two_pes_with_nics(), 9, {4, true, "there"});
    EXPECT_FALSE(far.is_known);
    EXPECT_THAT(far.why, AllOf(HasSubstr("PE 9"), HasSubstr("there")));
}

TEST(NicsOfAPe, AreUnknownToAPeWithoutNicsOfItsOwn) {
    HostNics host;
    host.in_use = true;
    EXPECT_TRUE(nics_of(host, 4, {4, false, "here"}).is_known);
    EXPECT_FALSE(nics_of(host, 5, {4, false, "here"}).is_known);
}

TEST(NicsOfAPe, AreNoneInAJobWithoutThem) {
    for (const bool other_host : {false, true}) {
        const PeNics nics = nics_of(HostNics{}, 1, {0, other_host, "there"});
        EXPECT_TRUE(nics.is_known);
        EXPECT_EQ(nics.why, "no transport in use drives a NIC");
    }
}

JobReport job_of_six() {
    JobReport job;
    job.pes = 6;
    job.host_names = {"plain", "a \"b\" \\ c\n"};
    job.even = false;
    job.heap_bytes = 64U << 20;
    job.static_data = "none";
    job.bootstrap = {"uid", "there is a unique id", 100};
    job.between_hosts = "ucx (auto)";
    job.kernels = RemoteModeChoice{npu::RemoteMode::proxy, "by a proxy thread"};
    job.barrier = {{barrier::Algorithms::id_of<barrier::DisseminationK>(), 8}, "line 3 of file"};
    job.barrier_input = {6, 0.5, 2, false};
    job.waiting = "spins";
    return job;
}

TEST(JobText, HasTheSelectionsOfTheValues) {
    const std::string text = describe(job_of_six());
    EXPECT_THAT(text, HasSubstr(": 6 PEs on 2 hosts (block, uneven), symmetric heap 64 MiB each\n"));
    EXPECT_THAT(text, HasSubstr("\nstatic data: none\nbootstrap: uid (there is a unique id)\n"
                                "between hosts: ucx (auto)\nkernels: by a proxy thread\n"
                                "barrier: dissemination_k:8 (line 3 of file)\nwaiting: spins\n"));
    JobReport alone;
    alone.host_names = {"plain"};
    EXPECT_THAT(describe(alone), AllOf(HasSubstr("1 PEs on 1 host (block)"), HasSubstr("\nbootstrap: given\n"),
                                       Not(HasSubstr("kernels: ")), Not(HasSubstr("between hosts: "))));
}

class JsonOfReport : public ::testing::Test {
protected:
    Json parsed() {
        const std::string text = to_json({job, transports, routes, nics, preview, *config});
        EXPECT_EQ(text.find('\n'), std::string::npos) << "one line: " << text;
        return Json::parse(text);
    }
    static std::unique_ptr<Config> read(const FakeEnvironment& environment) {
        return std::make_unique<Config>(Config::read(environment).value());
    }

    JobReport job = job_of_six();
    std::vector<TransportReport> transports{{"self", "listed in NPUSHMEM_TRANSPORTS", false, true},
                                            {"trace(fault(p2p))", "", false, false},
                                            {"verbs", "chosen", true, true}};
    std::vector<RouteRange> routes{{0, 0, {0, {NPUSHMEM_CAP_MAP | NPUSHMEM_CAP_PUT, 1, 2, "the PE itself"}}},
                                   {1, 5, {2, {NPUSHMEM_CAP_GET | NPUSHMEM_CAP_REMOTE, 0, 0, "rail \"0\"\xff"}}}};
    HostNics nics = two_pes_with_nics();
    const NicPreview* preview = nullptr;
    std::unique_ptr<Config> config = read({});
};

TEST_F(JsonOfReport, HasTheJob) {
    const Json report = parsed();
    EXPECT_EQ(report.at("job").at("pes"), 6);
    EXPECT_EQ(report.at("job").at("hosts"), 2);
    EXPECT_EQ(report.at("job").at("host_names")[1], "a \"b\" \\ c\n") << "special characters survive";
    EXPECT_EQ(report.at("job").at("even"), false);
    EXPECT_EQ(report.at("heap").at("bytes"), 64U << 20);
    EXPECT_EQ(report.at("bootstrap"), Json::parse(R"({"name": "uid", "reason": "there is a unique id",
                                                     "confidence": 100, "rank": 0, "nranks": 6})"));
    EXPECT_EQ(report.at("between_hosts"), "ucx (auto)");
    EXPECT_EQ(report.at("kernels"), Json::parse(R"({"mode": "proxy", "reason": "by a proxy thread"})"));
    EXPECT_EQ(report.at("barrier"), Json::parse(R"({"algorithm": "dissemination_k", "radix": 8,
                                                   "reason": "line 3 of file", "pes": 6, "hosts": 2,
                                                   "pes_per_core": 0.5, "mapped": false})"));
    EXPECT_EQ(report.at("waiting"), "spins");
}

TEST_F(JsonOfReport, HasNullWhereNothingWasChosen) {
    job.kernels.reset();
    job.between_hosts.clear();
    job.barrier.plan = {barrier::tree_id};
    const Json report = parsed();
    EXPECT_TRUE(report.at("kernels").is_null());
    EXPECT_TRUE(report.at("between_hosts").is_null());
    EXPECT_TRUE(report.at("barrier").at("radix").is_null());
}

TEST_F(JsonOfReport, HasTransportsWithTheirLayers) {
    const Json report = parsed().at("transports");
    ASSERT_EQ(report.size(), 3U);
    EXPECT_EQ(report[1].at("layers"), Json::parse(R"(["trace", "fault", "p2p"])"));
    EXPECT_TRUE(report[1].at("reason").is_null());
    EXPECT_EQ(report[1].at("in_use"), false);
    EXPECT_EQ(report[2].at("remote"), true);
}

TEST_F(JsonOfReport, HasTheRoutesAsRanges) {
    const Json report = parsed().at("routes");
    ASSERT_EQ(report.size(), 2U);
    EXPECT_EQ(report[0].at("mapped"), true);
    EXPECT_EQ(report[0].at("atomic_32"), 1);
    EXPECT_EQ(report[0].at("atomic_64"), 2);
    EXPECT_EQ(report[1].at("first_pe"), 1);
    EXPECT_EQ(report[1].at("last_pe"), 5);
    EXPECT_EQ(report[1].at("transport"), "verbs");
    EXPECT_EQ(report[1].at("capabilities"), Json::parse(R"(["get", "remote"])"));
    EXPECT_EQ(report[1].at("reason"), "rail \"0\"\xef\xbf\xbd") << "a byte that is no UTF-8 is replaced";
}

TEST_F(JsonOfReport, HasTheNics) {
    const Json report = parsed().at("nics");
    EXPECT_EQ(report.at("transport"), "verbs");
    EXPECT_EQ(report.at("method"), "balanced");
    ASSERT_EQ(report.at("pes").size(), 2U);
    EXPECT_EQ(report.at("pes")[0].at("pe"), 4);
    EXPECT_EQ(report.at("pes")[0].at("ports")[0],
              Json::parse(R"({"name": "mlx5_0", "port": 2, "pci_address": "0000:02:00.0", "distance": "PIX", "rail": 3,
                              "bits_per_second": 200000000000, "shared_with": [7]})"));
    EXPECT_EQ(report.at("notes"), Json::parse(R"(["mlx5_9:1 is down"])"));
}

TEST_F(JsonOfReport, HasThePreviewOfAJobWithoutNics) {
    const NicPreview seen{two_pes_with_nics().assignment, {}};
    nics = {};
    preview = &seen;
    Json report = parsed().at("nics");
    EXPECT_TRUE(report.at("transport").is_null()) << "no transport drives them";
    EXPECT_EQ(report.at("pes").size(), 2U);
    EXPECT_TRUE(report.at("pes")[0].at("ports")[0].at("pci_address").is_null());
    EXPECT_TRUE(report.at("failure").is_null());
    const NicPreview failed{{}, {Code::config, "no such file"}};
    preview = &failed;
    report = parsed().at("nics");
    EXPECT_EQ(report.at("failure"), "no such file");
    EXPECT_TRUE(report.at("pes").empty());
}

TEST_F(JsonOfReport, HasTheVariablesThatAreSet) {
    config = read({{"NPUSHMEM_DEBUG_SUBSYS", "\"q\"\t\\"}, {"SHMEM_SYMMETRIC_SIZE", "1k"}, {"HOME", "/"}});
    EXPECT_EQ(parsed().at("variables"), Json::parse(R"([
        {"name": "NPUSHMEM_SYMMETRIC_SIZE", "value": "1024", "default": "1G", "standard": "SHMEM_SYMMETRIC_SIZE=1k",
         "file": null},
        {"name": "NPUSHMEM_DEBUG_SUBSYS", "value": "\"q\"\t\\", "default": "", "standard": null, "file": null}])"));
}

TEST_F(JsonOfReport, HidesTheUniqueId) {
    const std::string secret(256, 'c');
    config = read({{"NPUSHMEM_UNIQUEID", secret}});
    const Json report = parsed();
    ASSERT_EQ(report.at("variables").size(), 1U);
    EXPECT_TRUE(report.at("variables")[0].at("value").is_null());
    EXPECT_THAT(report.dump(), Not(HasSubstr(secret)));
}

}  // namespace
}  // namespace npushmem
