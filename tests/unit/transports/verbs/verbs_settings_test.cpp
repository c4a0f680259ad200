// SPDX-License-Identifier: BSD-3-Clause
#include <arpa/inet.h>
#include <gmock/gmock.h>

#include <vector>

#include "npushmem/testing/fake_host.hpp"
#include "transports/verbs/verbs_settings.hpp"

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

TEST(VerbsSettings, ReadsAllVariables) {
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

namespace {

ibv_gid_entry entry(std::uint32_t index, ibv_gid_type type, const char* address) {
    ibv_gid_entry out{};
    out.gid_index = index;
    out.gid_type = type;
    EXPECT_EQ(::inet_pton(AF_INET6, address, out.gid.raw), 1) << address;
    return out;
}

// As a port of RoCE has it.
const std::vector<ibv_gid_entry>& table() {
    static const std::vector<ibv_gid_entry> out{
        entry(0, IBV_GID_TYPE_ROCE_V1, "fe80::1"), entry(1, IBV_GID_TYPE_ROCE_V2, "fe80::1"),
        entry(2, IBV_GID_TYPE_ROCE_V1, "::ffff:10.0.0.1"), entry(3, IBV_GID_TYPE_ROCE_V2, "::ffff:10.0.0.1"),
        entry(5, IBV_GID_TYPE_ROCE_V2, "2001:db8::1")};
    return out;
}

std::uint32_t chosen(const VerbsSettings& settings, bool ethernet = true) {
    const auto out = choose_gid(table(), ethernet, settings);
    EXPECT_TRUE(out.ok()) << out.status().message();
    return out.ok() ? out.value().gid_index : 999;
}

TEST(GidChoice, SelectsByVersionAndFamily) {
    VerbsSettings settings;
    EXPECT_EQ(chosen(settings), 3U);
    settings.roce_version = 1;
    EXPECT_EQ(chosen(settings), 2U);
    settings.family = AddressFamily::ipv6;
    EXPECT_EQ(chosen(settings), 0U) << "of the link, where there is no other";
    settings.roce_version = 2;
    EXPECT_EQ(chosen(settings), 5U) << "one that is routed";
}

TEST(GidChoice, SelectsByRangeInsteadOfFamily) {
    VerbsSettings settings;
    settings.range = GidRange::parse("2001:db8::/32").value();
    EXPECT_EQ(chosen(settings), 5U);
    settings.range = GidRange::parse("10.0.0.0/8").value();
    EXPECT_EQ(chosen(settings), 3U);
    settings.roce_version = 1;
    EXPECT_EQ(chosen(settings), 2U);
    settings.range = GidRange::parse("10.1.0.0/16").value();
    EXPECT_THAT(choose_gid(table(), true, settings).status().message(),
                AllOf(HasSubstr("no address of RoCE v1 in NPUSHMEM_IB_ADDR_RANGE=10.1.0.0/16"),
                      HasSubstr("2: RoCE v1 ::ffff:10.0.0.1")));
}

TEST(GidRange, ContainsAddressesWithItsPrefix) {
    const auto has = [](const char* range, const char* address) {
        return GidRange::parse(range).value().has(entry(0, IBV_GID_TYPE_ROCE_V2, address).gid.raw);
    };
    EXPECT_TRUE(has("10.0.0.0/8", "::ffff:10.200.1.1"));
    EXPECT_FALSE(has("10.0.0.0/8", "::ffff:11.0.0.1"));
    EXPECT_TRUE(has("10.0.0.129/25", "::ffff:10.0.0.254"));
    EXPECT_FALSE(has("10.0.0.129/25", "::ffff:10.0.0.1"));
    EXPECT_TRUE(has("10.0.0.1", "::ffff:10.0.0.1"));
    EXPECT_FALSE(has("10.0.0.1", "::ffff:10.0.0.2"));
    EXPECT_TRUE(has("0.0.0.0/0", "::ffff:1.2.3.4"));
    EXPECT_FALSE(has("0.0.0.0/0", "2001:db8::1"));
    EXPECT_TRUE(has("::/0", "2001:db8::1"));
    EXPECT_FALSE(has("fe80::/10", "2001:db8::1"));
    EXPECT_TRUE(has("fe80::/10", "febf::1"));
}

TEST(GidRange, RejectsMalformedText) {
    for (const char* text :
         {"", "ten", "10.0.0.0/", "10.0.0.0/33", "10.0.0/8", "::/129", "10.0.0.0/8/8", "10.0.0.0/-1"})
        EXPECT_THAT(GidRange::parse(text).status().message(), HasSubstr("not an address range such as 10.1.0.0/16"));
}

TEST(GidChoice, TakesTheUsersIndexAndInfinibandsFirst) {
    VerbsSettings settings;
    EXPECT_EQ(chosen(settings, false), 0U);
    settings.gid_index = 1;
    EXPECT_EQ(chosen(settings), 1U);
    EXPECT_EQ(chosen(settings, false), 1U);
}

TEST(GidChoice, ErrorsListTheTable) {
    VerbsSettings settings;
    settings.gid_index = 4;  // a hole
    EXPECT_THAT(choose_gid(table(), true, settings).status().message(),
                AllOf(HasSubstr("NPUSHMEM_IB_GID_INDEX=4"), HasSubstr("3: RoCE v2 ::ffff:10.0.0.1")));
    const auto none = choose_gid(std::span(table()).first(2), true, VerbsSettings{});
    EXPECT_EQ(none.status().code(), Code::config);
    EXPECT_THAT(none.status().message(),
                AllOf(HasSubstr("no address of RoCE v2 and IPv4, but 0: RoCE v1 fe80::1, 1: RoCE v2 fe80::1"),
                      HasSubstr("NPUSHMEM_IB_ADDR_FAMILY")));
    EXPECT_THAT(choose_gid({}, true, VerbsSettings{}).status().message(), HasSubstr("but none"));
}

}  // namespace

}  // namespace npushmem::verbs
