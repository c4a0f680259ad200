#include "transports/verbs/gid_choice.hpp"

#include <arpa/inet.h>
#include <gmock/gmock.h>

#include <vector>

namespace npushmem::verbs {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

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

TEST(GidChoice, GoesByVersionAndFamily) {
    VerbsSettings settings;
    EXPECT_EQ(chosen(settings), 3U);
    settings.roce_version = 1;
    EXPECT_EQ(chosen(settings), 2U);
    settings.family = AddressFamily::ipv6;
    EXPECT_EQ(chosen(settings), 0U) << "of the link, where there is no other";
    settings.roce_version = 2;
    EXPECT_EQ(chosen(settings), 5U) << "one that is routed";
}

TEST(GidChoice, TakesTheUsersIndexAndInfinibandsFirst) {
    VerbsSettings settings;
    EXPECT_EQ(chosen(settings, false), 0U);
    settings.gid_index = 1;
    EXPECT_EQ(chosen(settings), 1U);
    EXPECT_EQ(chosen(settings, false), 1U);
}

TEST(GidChoice, SaysWhatThereIs) {
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
