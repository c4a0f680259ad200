// SPDX-License-Identifier: BSD-3-Clause
#include "core/runtime/collectives_choice.hpp"

#include <gmock/gmock.h>

#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "npushmem/testing/fake_bootstrap.hpp"
#include "npushmem/testing/fake_collectives.hpp"

namespace npushmem {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

using Opened = Result<OwnedCollectives>;

Opened opened_fake(int pe, const std::string& description = "fake 1.0") {
    auto job = std::make_shared<fakes::FakeCollectivesJob>();
    job->description = description;
    return OwnedCollectives{"fake", std::make_unique<fakes::FakeCollectives>(job, pe)};
}

Settings with_library() {
    Settings settings;
    settings.coll_library = "fake";
    return settings;
}

// Chooses on three PEs, each in a thread; open(pe) opens the library.
std::vector<Result<CollectivesChoice>> choose(const Settings& settings, const std::function<Opened(int)>& open) {
    constexpr int pes = 3;
    static const barrier::Tuning tuning;
    const auto job = std::make_shared<fakes::FakeJob>(pes);
    std::vector<Result<CollectivesChoice>> out;
    for (int pe = 0; pe < pes; ++pe) out.emplace_back(Status{});
    std::vector<std::jthread> threads;
    for (int pe = 0; pe < pes; ++pe)
        threads.emplace_back([&, pe] {
            fakes::FakeBootstrap bootstrap(job, pe);
            auto& mine = out[static_cast<std::size_t>(pe)];
            mine = choose_collectives(
                settings, bootstrap, [&] { return open(pe); }, tuning, [](const std::string&) {});
            if (!mine.ok()) bootstrap.abort(mine.status().message());
        });
    threads.clear();
    return out;
}

TEST(CollectivesChoice, WithoutAVariableThereIsNoLibrary) {
    for (const auto& chosen : choose({}, [](int) -> Opened { return Status{Code::system, "must not be called"}; })) {
        ASSERT_TRUE(chosen.ok());
        EXPECT_EQ(chosen.value().library, nullptr);
        EXPECT_FALSE(chosen.value().is_rejected());
    }
}

TEST(CollectivesChoice, ALibraryThatAllPesOpenIsUsed) {
    for (const auto& chosen : choose(with_library(), [](int pe) { return opened_fake(pe); })) {
        ASSERT_TRUE(chosen.ok()) << chosen.status().message();
        ASSERT_NE(chosen.value().library, nullptr);
        EXPECT_EQ(chosen.value().library->name(), "fake");
        EXPECT_THAT(chosen.value().text,
                    AllOf(HasSubstr("fake (set by NPUSHMEM_COLL_LIBRARY; fake 1.0: barrier"), HasSubstr("sum:4")));
    }
}

TEST(CollectivesChoice, OnePeThatCannotUseItMakesAllUseOurs) {
    const auto open = [](int pe) {
        return pe == 2 ? Opened(Status{Code::state, "MPI does not run"}) : opened_fake(pe);
    };
    for (const auto& chosen : choose(with_library(), open)) {
        ASSERT_TRUE(chosen.ok()) << chosen.status().message();
        EXPECT_TRUE(chosen.value().is_rejected());
        EXPECT_EQ(chosen.value().text, "npushmem (NPUSHMEM_COLL_LIBRARY=fake is not used; PE 2: MPI does not run)");
    }
}

TEST(CollectivesChoice, DifferentVersionsMakeAllUseOurs) {
    const auto open = [](int pe) { return opened_fake(pe, pe == 1 ? "fake 2.0" : "fake 1.0"); };
    for (const auto& chosen : choose(with_library(), open)) {
        ASSERT_TRUE(chosen.ok()) << chosen.status().message();
        EXPECT_THAT(chosen.value().text, HasSubstr("PE 1 has fake 2.0, PE 0 has fake 1.0"));
        EXPECT_TRUE(chosen.value().is_rejected());
    }
}

TEST(CollectivesChoice, AMissingPluginEndsTheStart) {
    const auto open = [](int pe) {
        return pe == 0 ? Opened(Status{Code::plugin_missing, "there is no plugin"}) : opened_fake(pe);
    };
    const auto all = choose(with_library(), open);
    EXPECT_EQ(all[0].status().code(), Code::plugin_missing);
    EXPECT_THAT(all[0].status().message(), HasSubstr("NPUSHMEM_COLL_LIBRARY: there is no plugin"));
    EXPECT_FALSE(all[1].ok());
}

TEST(CollectivesChoice, JobsThatSurviveDeathsUseOurs) {
    Settings settings = with_library();
    settings.survives_deaths = true;
    for (const auto& chosen : choose(settings, [](int pe) { return opened_fake(pe); })) {
        ASSERT_TRUE(chosen.ok());
        EXPECT_THAT(chosen.value().text, HasSubstr("NPUSHMEM_ON_PEER_DEATH=survive"));
        EXPECT_TRUE(chosen.value().is_rejected());
    }
}

TEST(CollectivesChoice, RulesForLibrariesThatDoNotExistAreFound) {
    const auto tuning = barrier::Tuning::parse(
        "broadcast * * * 0-99 npushmem\nreduce * * * * fake\n\nreduce * * * * fakr\nbarrier * * * * zzzzzz\n",
        "rules.txt");
    ASSERT_TRUE(tuning.ok());
    EXPECT_THAT(
        unknown_libraries(tuning.value(), {"fake"}),
        ::testing::ElementsAre("rules.txt, line 4: there is no library 'fakr' of collectives; npushmem serves the "
                               "calls of this rule; did you mean fake?",
                               "rules.txt, line 5: there is no library 'zzzzzz' of collectives; npushmem serves "
                               "the calls of this rule"));
    EXPECT_THAT(unknown_libraries({}, {}), ::testing::IsEmpty());
}

}  // namespace
}  // namespace npushmem
