// SPDX-License-Identifier: BSD-3-Clause
#include "transports/libfabric/provider_choice.hpp"

#include <gmock/gmock.h>

#include <set>

namespace npushmem::libfabric {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// Offers these providers and no others.
ProviderQuery offering(std::set<std::string> names) {
    return [names = std::move(names)](const std::string& provider, const ProviderRequest&) -> Result<ChosenProvider> {
        if (!names.contains(provider)) return Status{Code::unreachable, "not on this host"};
        ChosenProvider out;
        out.note = provider;
        return out;
    };
}

TEST(ProviderChoice, TakesTheFastestAvailable) {
    const auto chosen = choose_provider({}, offering({"tcp;ofi_rxm", "verbs;ofi_rxm"}));
    ASSERT_TRUE(chosen.ok());
    EXPECT_THAT(chosen.value().note, HasSubstr("verbs;ofi_rxm"));
}

TEST(ProviderChoice, ASlowProviderIsReported) {
    const auto chosen = choose_provider({}, offering({"tcp;ofi_rxm"}));
    ASSERT_TRUE(chosen.ok());
    EXPECT_THAT(chosen.value().note, AllOf(HasSubstr("no faster provider"), HasSubstr("cxi: not on this host"),
                                           HasSubstr("efa"), HasSubstr("verbs")));
}

TEST(ProviderChoice, ShmIsUsedOnRequestOnly) {
    EXPECT_FALSE(choose_provider({}, offering({"shm"})).ok());
    EXPECT_TRUE(choose_provider({"shm", ""}, offering({"shm"})).ok());
}

TEST(ProviderChoice, DoesNotReplaceTheUsersProvider) {
    const auto chosen = choose_provider({"verbs;ofi_rxm", ""}, offering({"tcp;ofi_rxm"}));
    ASSERT_FALSE(chosen.ok());
    EXPECT_EQ(chosen.status().code(), Code::config);
    EXPECT_THAT(chosen.status().message(), AllOf(HasSubstr("verbs;ofi_rxm"), HasSubstr("not on this host")));
}

TEST(ProviderChoice, WithoutAnyProviderTheErrorListsAll) {
    const auto chosen = choose_provider({}, offering({}));
    ASSERT_FALSE(chosen.ok());
    for (const char* tried : {"cxi", "efa", "verbs;ofi_rxm", "tcp;ofi_rxm"})
        EXPECT_THAT(chosen.status().message(), HasSubstr(tried));
}

}  // namespace
}  // namespace npushmem::libfabric
