// SPDX-License-Identifier: BSD-3-Clause
#include "transports/network/network_transport.hpp"

#include <gmock/gmock.h>

#include "npushmem/testing/fake_host.hpp"

namespace npushmem::network {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(NetworkSettingsOfAHost, NativeAtomicsAreUsedOnRequestOnly) {
    fakes::FakeHost host;
    const Host services(&host.table(), "some");
    EXPECT_FALSE(read_native_atomics(services, "SOME_").value());
    for (const char* word : {"auto", "never", "NEVER"}) {
        host.set("SOME_NATIVE_ATOMICS", word);
        EXPECT_FALSE(read_native_atomics(services, "SOME_").value()) << word;
    }
    host.set("SOME_NATIVE_ATOMICS", "Always");
    EXPECT_TRUE(read_native_atomics(services, "SOME_").value());
    host.set("SOME_NATIVE_ATOMICS", "1");
    const Status wrong = read_native_atomics(services, "SOME_").status();
    EXPECT_EQ(wrong.code(), Code::config);
    EXPECT_THAT(wrong.message(), AllOf(HasSubstr("NPUSHMEM_SOME_NATIVE_ATOMICS"), HasSubstr("auto, always, never")));
}

TEST(NetworkSettingsOfAHost, ErrorsNameTheVariable) {
    for (const char* name : {"SOME_PROGRESS_THREAD", "SOME_PEER_TIMEOUT", "SOME_LANES"}) {
        fakes::FakeHost host;
        const Host services(&host.table(), "some");
        ASSERT_TRUE(read_settings(services, "SOME_").ok());
        host.set(name, "many");
        EXPECT_THAT(read_settings(services, "SOME_").status().message(), HasSubstr(std::string("NPUSHMEM_") + name));
    }
}

TEST(NetworkSettingsOfAHost, TheThreadServesPeersAndDetectsTheirDeath) {
    fakes::FakeHost host;
    const Host services(&host.table(), "some");
    EXPECT_EQ(read_settings(services, "SOME_").value().capabilities(), offered_capabilities);
    host.set("SOME_PEER_TIMEOUT", "0");
    EXPECT_EQ(read_settings(services, "SOME_").value().capabilities(),
              offered_capabilities & ~NPUSHMEM_CAP_REPORTS_DEATH);
    host.set("SOME_PROGRESS_THREAD", "false");
    host.set("SOME_PEER_TIMEOUT", "1s");
    EXPECT_EQ(read_settings(services, "SOME_").value().capabilities(),
              offered_capabilities & ~(NPUSHMEM_CAP_REPORTS_DEATH | NPUSHMEM_CAP_TARGET_PROGRESS));
}

}  // namespace
}  // namespace npushmem::network
