#include "transports/verbs/verbs_settings.hpp"

#include <gmock/gmock.h>

#include "tests/fakes/fake_host.hpp"

namespace npushmem::verbs {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

Result<VerbsSettings> read(std::initializer_list<std::pair<const char*, const char*>> values) {
    fakes::FakeHost host;
    for (const auto& [name, value] : values) host.set(name, value);
    return read_verbs_settings(Host(&host.table(), "verbs"));
}

TEST(VerbsSettings, HasDefaultsForEverything) {
    const auto read_settings = read({});
    ASSERT_TRUE(read_settings.ok()) << read_settings.status().message();
    const VerbsSettings& settings = read_settings.value();
    EXPECT_EQ(settings.gid_index, -1);
    EXPECT_FALSE(settings.range);
    EXPECT_EQ(settings.roce_version, 2);
    EXPECT_EQ(settings.queue_depth, 1024U);
    EXPECT_EQ(settings.atomics, NativeAtomics::if_coherent);
}

TEST(VerbsSettings, TakesWhatIsGiven) {
    const auto read_settings = read({{"IB_GID_INDEX", "3"},
                                     {"IB_ROCE_VERSION_NUM", "1"},
                                     {"IB_ADDR_FAMILY", "af_inet6"},
                                     {"IB_ADDR_RANGE", "10.1.0.0/16"},
                                     {"IB_SL", "5"},
                                     {"IB_TRAFFIC_CLASS", "106"},
                                     {"IB_PKEY", "0x8001"},
                                     {"IB_MTU", "2048"},
                                     {"IB_RETRY_COUNT", "2"},
                                     {"IB_TIMEOUT", "20"},
                                     {"QP_DEPTH", "64"},
                                     {"VERBS_REGISTER_CHUNK", "1M"},
                                     {"VERBS_STRIPE_BYTES", "64K"},
                                     {"VERBS_REGISTRATION_CACHE", "3M"},
                                     {"IB_NATIVE_ATOMICS", "always"}});
    ASSERT_TRUE(read_settings.ok()) << read_settings.status().message();
    const VerbsSettings& settings = read_settings.value();
    EXPECT_EQ(settings.gid_index, 3);
    EXPECT_EQ(settings.roce_version, 1);
    EXPECT_EQ(settings.family, AddressFamily::ipv6);
    EXPECT_EQ(settings.range.value().text(), "10.1.0.0/16");
    EXPECT_EQ(settings.service_level, 5);
    EXPECT_EQ(settings.traffic_class, 106);
    EXPECT_EQ(settings.pkey, 0x8001);
    EXPECT_EQ(settings.mtu, 2048);
    EXPECT_EQ(settings.retry_count, 2);
    EXPECT_EQ(settings.timeout, 20);
    EXPECT_EQ(settings.queue_depth, 64U);
    EXPECT_EQ(settings.chunk_bytes, 1U << 20);
    EXPECT_EQ(settings.stripe_bytes, 64U << 10);
    EXPECT_EQ(settings.cache_bytes, 3U << 20);
    EXPECT_EQ(read({{"VERBS_STRIPE_BYTES", "0"}}).value().stripe_bytes, 0U);
    EXPECT_EQ(settings.atomics, NativeAtomics::always);
    EXPECT_EQ(read({{"IB_NATIVE_ATOMICS", "always"}, {"DISABLE_IB_NATIVE_ATOMICS", "1"}}).value().atomics,
              NativeAtomics::never);
}

TEST(VerbsSettings, NamesTheVariableThatIsWrong) {
    const std::pair<const char*, const char*> wrong[] = {{"IB_GID_INDEX", "-2"},
                                                         {"IB_ROCE_VERSION_NUM", "3"},
                                                         {"IB_ADDR_FAMILY", "AF_UNIX"},
                                                         {"IB_ADDR_RANGE", "10.1.0.0/33"},
                                                         {"IB_SL", "16"},
                                                         {"IB_PKEY", "0x10000"},
                                                         {"IB_PKEY", "key"},
                                                         {"IB_MTU", "1500"},
                                                         {"IB_RETRY_COUNT", "8"},
                                                         {"IB_TIMEOUT", "0"},
                                                         {"QP_DEPTH", "8"},
                                                         {"VERBS_REGISTER_CHUNK", "3M"},
                                                         {"VERBS_REGISTER_CHUNK", "1K"},
                                                         {"VERBS_STRIPE_BYTES", "1K"},
                                                         {"VERBS_REGISTRATION_CACHE", "much"},
                                                         {"IB_NATIVE_ATOMICS", "maybe"},
                                                         {"NIC_RAILS", "mlx5_0=x"}};
    for (const auto& [name, value] : wrong) {
        const auto refused = read({{name, value}});
        ASSERT_FALSE(refused.ok()) << name << "=" << value;
        EXPECT_EQ(refused.status().code(), Code::config);
        EXPECT_THAT(refused.status().message(), HasSubstr(std::string("NPUSHMEM_") + name));
    }
}

}  // namespace
}  // namespace npushmem::verbs
