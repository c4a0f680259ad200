// SPDX-License-Identifier: BSD-3-Clause
#include "core/runtime/job_transports.hpp"

#include <gmock/gmock.h>

#include <filesystem>
#include <set>
#include <thread>

#include "npushmem/testing/fake_bootstrap.hpp"

namespace npushmem {

namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

struct Pe {
    std::string wish = "auto";
    bool served = false;
    std::set<std::string> has{"fast", "slow"};
    bool fabric = false;
    std::string order{};  // empty: that of the job
};

struct Outcome {
    std::vector<std::string> candidates;
    std::string text;  // or the message of the failure
    Code code = Code::ok;
};

// The result of each PE of the job. "nic" drives NICs by itself.
std::vector<Outcome> open(const std::vector<Pe>& pes, const std::string& order = "fast, slow") {
    const auto job = std::make_shared<fakes::FakeJob>(static_cast<int>(pes.size()));
    std::vector<Outcome> out(pes.size());
    std::vector<std::thread> threads;
    for (std::size_t pe = 0; pe < pes.size(); ++pe)
        threads.emplace_back([&, pe] {
            Settings settings;
            settings.remote_transport = pes[pe].wish;
            settings.remote_order = pes[pe].order.empty() ? order : pes[pe].order;
            fakes::FakeBootstrap bootstrap(job, static_cast<int>(pe));
            const auto open_one = [&](const std::string& name) -> Result<OwnedTransport> {
                if (!pes[pe].has.contains(name)) return Status{Code::plugin_missing, "no " + name + " here"};
                return OwnedTransport{name, nullptr, true, false, name == "nic"};
            };
            auto opened = open_remote_candidates(settings, pes[pe].served, pes[pe].fabric, bootstrap, open_one);
            out[pe].code = opened.status().code();
            out[pe].text = opened.status().message();
            if (!opened.ok()) return;
            for (const auto& each : opened.value().transports) out[pe].candidates.push_back(each.name);
            out[pe].text = opened.value().text;
        });
    for (auto& thread : threads) thread.join();
    return out;
}

TEST(RemoteCandidates, AreTheFirstThatAllHave) {
    for (const auto& outcome : open({{}, {}, {}})) EXPECT_THAT(outcome.candidates, ElementsAre("fast"));
    const auto mixed = open({{}, {"auto", false, {"slow"}}, {}});
    for (const auto& outcome : mixed) EXPECT_THAT(outcome.candidates, ElementsAre("slow"));
    EXPECT_THAT(mixed[0].text, HasSubstr("fast: PE 1 cannot open it"));
    EXPECT_THAT(mixed[1].text, HasSubstr("fast: no fast here"));
}

TEST(RemoteCandidates, AreAllWhereTheNetworksMayDiffer) {
    const std::set<std::string> all{"fast", "slow", "nic"};
    const std::vector<Pe> pes{{"auto", false, all}, {"auto", false, all, true}};
    for (const auto& outcome : open(pes)) EXPECT_THAT(outcome.candidates, ElementsAre("fast", "slow"));
    for (const auto& outcome : open(pes, "fast,nic,slow"))
        EXPECT_THAT(outcome.candidates, ElementsAre("fast", "nic")) << "one that drives NICs ends the search";
    for (const auto& outcome : open(pes, "nic,fast")) EXPECT_THAT(outcome.candidates, ElementsAre("nic"));
}

TEST(RemoteCandidates, NeedTheSameOrderOnAllPes) {
    const auto different = open({{}, {}, {"auto", false, {"slow"}, false, "slow"}});
    for (const auto& outcome : different) {
        EXPECT_EQ(outcome.code, Code::config);
        EXPECT_THAT(outcome.text, HasSubstr("PE 2 has another NPUSHMEM_REMOTE_ORDER than PE 0"));
    }
    EXPECT_THAT(different[2].text, HasSubstr("PE 2 has 'slow'"));
    const auto equal = open({{}, {"auto", false, {"slow"}, false, " fast ,slow,"}});
    for (const auto& outcome : equal) {
        EXPECT_EQ(outcome.code, Code::ok);
        EXPECT_THAT(outcome.candidates, ElementsAre("slow"));
    }
}

TEST(RemoteCandidates, ListsWhatWasTriedWhenNoneCanBeOpened) {
    const auto none = open({{}, {"auto", false, {}}});
    EXPECT_THAT(none[0].candidates, IsEmpty());
    EXPECT_THAT(none[1].text, AllOf(HasSubstr("no fast here"), HasSubstr("no slow here")));
    EXPECT_THAT(open({{}, {}}, " , ")[0].text, HasSubstr("NPUSHMEM_REMOTE_ORDER is empty"));
}

TEST(RemoteCandidates, AreNoneIfAPeOverridesTheChoice) {
    for (const Pe& other : {Pe{"none", false, {}}, Pe{"libfabric", false, {}}, Pe{"auto", true, {}}}) {
        const auto outcome = open({{}, other});
        EXPECT_THAT(outcome[0].candidates, IsEmpty());
        EXPECT_THAT(outcome[0].text, HasSubstr("PE 1 selected its own"));
        EXPECT_EQ(outcome[1].text, "");
    }
}

TEST(FabricDevices, AreThoseOfRdmaAndSlingshot) {
    const std::filesystem::path classes = ::testing::TempDir() + "npushmem_device_classes";
    std::filesystem::remove_all(classes);
    EXPECT_FALSE(has_fabric_device(classes));
    std::filesystem::create_directories(classes / "infiniband");
    std::filesystem::create_directories(classes / "net" / "eth0");
    EXPECT_FALSE(has_fabric_device(classes)) << "the module is loaded, without a device";
    std::filesystem::create_directories(classes / "cxi" / "cxi0");
    EXPECT_TRUE(has_fabric_device(classes));
    std::filesystem::remove_all(classes);
}

}  // namespace

namespace {

using ::testing::HasSubstr;

TEST(RemoteModeChoice, FollowsTheVariableBetweenHosts) {
    const RemoteModeChoice proxied = choose_remote_mode("0", true, {8, 8});
    EXPECT_EQ(proxied.mode, npu::RemoteMode::proxy);
    EXPECT_THAT(proxied.text, HasSubstr("NPUSHMEM_IB_ENABLE_IBGDA=0"));
    const RemoteModeChoice direct = choose_remote_mode("1", true, {8, 1});
    EXPECT_EQ(direct.mode, npu::RemoteMode::direct);
    EXPECT_THAT(direct.text, HasSubstr("NPUSHMEM_IB_ENABLE_IBGDA=1"));
}

TEST(RemoteModeChoice, NeedsAFreeCpuForTheProxyUnlessConfigured) {
    const RemoteModeChoice roomy = choose_remote_mode("auto", true, {8, 4});
    EXPECT_EQ(roomy.mode, npu::RemoteMode::proxy);
    EXPECT_THAT(roomy.text, HasSubstr("4 PEs with a proxy each have room on 8 CPUs"));
    const RemoteModeChoice crowded = choose_remote_mode("auto", true, {7.5, 4});
    EXPECT_EQ(crowded.mode, npu::RemoteMode::direct);
    EXPECT_THAT(crowded.text, HasSubstr("auto: 4 PEs with a proxy each would share 7.5 CPUs"));
}

TEST(RemoteModeChoice, IsDirectWithinAHost) {
    for (const char* ibgda : {"auto", "0", "1"}) {
        const RemoteModeChoice choice = choose_remote_mode(ibgda, false, {8, 1});
        EXPECT_EQ(choice.mode, npu::RemoteMode::direct);
        EXPECT_THAT(choice.text, HasSubstr("within a host"));
    }
}

}  // namespace

}  // namespace npushmem
