// SPDX-License-Identifier: BSD-3-Clause
#include "bootstrap/rendezvous/settings.hpp"

#include <gmock/gmock.h>

#include <algorithm>

#include "npushmem/testing/fake_host.hpp"

namespace npushmem::rendezvous {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

Result<Settings> read_with(const char* name, const char* value) {
    fakes::FakeHost fake;
    fake.set(name, value);
    return Settings::read(Host(&fake.table(), "uid"));
}

TEST(Settings, HaveTheDefaultsOfTheRows) {
    fakes::FakeHost with_rows;
    for (const auto& row : config_rows()) with_rows.set(row.name, row.default_value);
    fakes::FakeHost without;
    for (const fakes::FakeHost* fake : {&with_rows, &without}) {
        const Settings settings = Settings::read(Host(&fake->table(), "uid")).value();
        EXPECT_EQ(settings.timeout, Milliseconds{60000});
        EXPECT_EQ(settings.collective_timeout, settings.timeout);
        EXPECT_EQ(settings.family, Family::none);
        EXPECT_EQ(settings.interface_pattern, "");
        EXPECT_EQ(settings.session, "");
        EXPECT_TRUE(settings.shares_memory);
        EXPECT_EQ(settings.emulated_host, -1);
    }
}

TEST(Settings, ReadFamilyAndTimes) {
    EXPECT_EQ(read_with("BOOTSTRAP_UID_SOCK_FAMILY", "AF_INET6").value().family, Family::v6);
    EXPECT_EQ(read_with("BOOTSTRAP_UID_SOCK_FAMILY", "af_inet").value().family, Family::v4);
    EXPECT_EQ(read_with("BOOTSTRAP_TIMEOUT", "250ms").value().timeout, Milliseconds{250});
    EXPECT_EQ(read_with("BOOTSTRAP_TIMEOUT", "1us").value().timeout, Milliseconds{1}) << "never rounded to none";
    EXPECT_EQ(read_with("BOOTSTRAP_TIMEOUT", "250ms").value().collective_timeout, Milliseconds{250});
    EXPECT_EQ(read_with("BOOTSTRAP_COLLECTIVE_TIMEOUT", "5s").value().collective_timeout, Milliseconds{5000});
}

TEST(Settings, ReadSharedMemoryAndTheEmulatedHost) {
    EXPECT_FALSE(read_with("BOOTSTRAP_SHARED_MEMORY", "no").value().shares_memory);
    EXPECT_EQ(read_with("EMULATED_HOST", "3").value().emulated_host, 3);
}

TEST(Settings, ReportVariableValueAndSyntaxOfMalformedValues) {
    EXPECT_THAT(read_with("BOOTSTRAP_UID_SOCK_FAMILY", "ipv5").status().message(),
                AllOf(HasSubstr("NPUSHMEM_BOOTSTRAP_UID_SOCK_FAMILY='ipv5'"), HasSubstr("AF_INET, AF_INET6 or auto")));
    EXPECT_THAT(read_with("BOOTSTRAP_TIMEOUT", "soon").status().message(),
                HasSubstr("NPUSHMEM_BOOTSTRAP_TIMEOUT='soon'"));
    EXPECT_THAT(read_with("BOOTSTRAP_TIMEOUT", "0").status().message(), HasSubstr("above 0"));
    EXPECT_EQ(read_with("BOOTSTRAP_COLLECTIVE_TIMEOUT", "-1s").status().code(), Code::config);
    EXPECT_THAT(read_with("BOOTSTRAP_SHARED_MEMORY", "maybe").status().message(),
                HasSubstr("NPUSHMEM_BOOTSTRAP_SHARED_MEMORY='maybe'"));
}

TEST(Settings, EveryRowExplainsItself) {
    for (const auto& row : config_rows()) EXPECT_GT(std::string(row.meaning).size(), 10U) << row.name;
}

}  // namespace
}  // namespace npushmem::rendezvous
