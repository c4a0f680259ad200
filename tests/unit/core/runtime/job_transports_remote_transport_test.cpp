// SPDX-License-Identifier: BSD-3-Clause
#include "core/runtime/job_transports.hpp"

#include <gmock/gmock.h>

#include <set>
#include <thread>

#include "npushmem/testing/fake_bootstrap.hpp"

namespace npushmem {

namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

struct Pe {
    std::string wish = "auto";
    bool served = false;
    std::set<std::string> has{"fast", "slow"};
};

struct Outcome {
    std::string transport;  // empty: none
    std::string explanation;
};

// The result of each PE of the job.
std::vector<Outcome> choose(const std::vector<Pe>& pes, const std::string& order = "fast, slow") {
    const auto job = std::make_shared<fakes::FakeJob>(static_cast<int>(pes.size()));
    std::vector<Outcome> out(pes.size());
    std::vector<std::thread> threads;
    for (std::size_t pe = 0; pe < pes.size(); ++pe)
        threads.emplace_back([&, pe] {
            Settings settings;
            settings.remote_transport = pes[pe].wish;
            settings.remote_order = order;
            fakes::FakeBootstrap bootstrap(job, static_cast<int>(pe));
            const auto open = [&](const std::string& name) -> Result<OwnedTransport> {
                if (!pes[pe].has.contains(name)) return Status{Code::plugin_missing, "no " + name + " here"};
                return OwnedTransport{name, nullptr, true};
            };
            auto choice = choose_remote_transport(settings, pes[pe].served, bootstrap, open);
            ASSERT_TRUE(choice.ok()) << choice.status().message();
            if (choice.value().transport) out[pe].transport = choice.value().transport->name;
            out[pe].explanation = choice.value().explanation;
        });
    for (auto& thread : threads) thread.join();
    return out;
}

TEST(RemoteTransportChoice, TakesTheFirstThatAllHave) {
    for (const auto& outcome : choose({{}, {}, {}})) EXPECT_EQ(outcome.transport, "fast");
    const auto mixed = choose({{}, {"auto", false, {"slow"}}, {}});
    for (const auto& outcome : mixed) EXPECT_EQ(outcome.transport, "slow");
    EXPECT_THAT(mixed[0].explanation, HasSubstr("fast: PE 1 cannot open it"));
    EXPECT_THAT(mixed[1].explanation, HasSubstr("fast: no fast here"));
}

TEST(RemoteTransportChoice, ListsWhatWasTriedWhenNoneCanBeOpened) {
    const auto none = choose({{}, {"auto", false, {}}});
    EXPECT_EQ(none[0].transport, "");
    EXPECT_THAT(none[1].explanation, AllOf(HasSubstr("no fast here"), HasSubstr("no slow here")));
    EXPECT_THAT(choose({{}, {}}, " , ")[0].explanation, HasSubstr("NPUSHMEM_REMOTE_ORDER is empty"));
}

TEST(RemoteTransportChoice, SelectsNoneIfAPeOverridesTheChoice) {
    for (const Pe& other : {Pe{"none", false, {}}, Pe{"libfabric", false, {}}, Pe{"auto", true, {}}}) {
        const auto outcome = choose({{}, other});
        EXPECT_EQ(outcome[0].transport, "");
        EXPECT_THAT(outcome[0].explanation, HasSubstr("PE 1 selected its own"));
        EXPECT_EQ(outcome[1].explanation, "");
    }
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
