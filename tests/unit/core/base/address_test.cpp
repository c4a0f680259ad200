// SPDX-License-Identifier: BSD-3-Clause
#include "core/base/address.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>

namespace npushmem {

namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

Address address(const char* host, std::uint16_t port = 4000) { return Address::parse(host, port).value(); }

TEST(Address, ReadsAndPrintsBothFamilies) {
    EXPECT_EQ(address("10.1.2.3").text(), "10.1.2.3:4000");
    EXPECT_EQ(address("2001:db8::7").text(), "[2001:db8::7]:4000");
    EXPECT_EQ(address("10.1.2.3").family(), Family::v4);
    EXPECT_EQ(address("::1").family(), Family::v6);
    EXPECT_FALSE(Address::parse("no numeric host", 1).ok());
}

// The interface of a link-local address is part of it: without it, connecting fails.
TEST(Address, PrintsTheInterfaceOfAScopedAddress) {
    for (const char* const text : {"fe80::1%1", "::%1"}) {
        const auto address = Address::parse(text, 4000);
        ASSERT_TRUE(address.ok()) << address.status().message();
        EXPECT_EQ(address.value().host_text(), text);
        EXPECT_EQ(address.value().text(), fmt::format("[{}]:4000", text));
    }
}

TEST(Address, DetectsLoopbackAndLinkLocal) {
    EXPECT_TRUE(address("127.0.0.5").is_loopback());
    EXPECT_TRUE(address("::1").is_loopback());
    EXPECT_FALSE(address("10.0.0.1").is_loopback());
    EXPECT_FALSE(address("::2").is_loopback());
    EXPECT_TRUE(address("169.254.9.9").is_link_local());
    EXPECT_TRUE(address("fe80::1").is_link_local());
    EXPECT_FALSE(address("2001:db8::1").is_link_local());
}

TEST(Address, ConvertsToASockaddrAndBack) {
    for (const char* host : {"10.1.2.3", "2001:db8::7"}) {
        sockaddr_storage kernel_form;
        EXPECT_GT(address(host).fill(kernel_form), 0U);
        EXPECT_EQ(Address::from(reinterpret_cast<const sockaddr&>(kernel_form)), address(host));
    }
}

TEST(Address, IsDecodedAsItWasEncoded) {
    for (const Address& each : {address("10.1.2.3"), address("2001:db8::7"), Address{}}) {
        ByteWriter out;
        each.encode(out);
        const Buffer bytes = out.take();
        EXPECT_EQ(bytes.size(), Address::encoded_bytes);
        ByteReader in(bytes);
        EXPECT_EQ(Address::decode(in), each);
        EXPECT_TRUE(in.complete());
    }
}

TEST(Address, ResolvesHostAndPort) {
    EXPECT_EQ(Address::resolve("127.0.0.1:77", Family::none).value().text(), "127.0.0.1:77");
    EXPECT_EQ(Address::resolve("[::1]:77", Family::none).value().text(), "[::1]:77");
    for (const char* wrong : {"", ":77", "127.0.0.1", "127.0.0.1:", "127.0.0.1:0", "127.0.0.1:65536", "127.0.0.1:7x"})
        EXPECT_THAT(Address::resolve(wrong, Family::none).status().message(), HasSubstr("host:port")) << wrong;
    EXPECT_EQ(Address::resolve("[::1]:77", Family::v4).status().code(), Code::config);
}

Interface interface(const char* name, const char* host, bool up = true) {
    return {name, Address::parse(host, 0).value(), up};
}

const std::vector<Interface> machine{
    interface("lo", "127.0.0.1"),        interface("docker0", "172.17.0.1"),
    interface("eth0", "2001:db8::1"),    interface("eth0", "10.0.0.1"),
    interface("eth1", "10.0.1.1"),       interface("eth10", "10.0.10.1"),
    interface("ib0", "10.9.0.1", false), interface("lo", "::1"),
    interface("eth0", "fe80::1"),
};

std::string chosen(const std::string& pattern, Family family = Family::none) {
    const auto choice = choose_interface(machine, pattern, family, "NPUSHMEM_BOOTSTRAP_UID_SOCK_");
    return choice.ok() ? choice.value().host_text() : choice.status().message();
}

TEST(ChooseInterface, PrefersOrdinaryOverVirtualOverLoopback) {
    EXPECT_EQ(chosen(""), "10.0.0.1");
    EXPECT_EQ(chosen("^eth"), "172.17.0.1");
    EXPECT_EQ(chosen("^eth,docker"), "127.0.0.1");
}

TEST(ChooseInterface, SelectsLoopbackIfNoOtherInterfaceIsUp) {
    EXPECT_EQ(choose_interface({machine[0], machine[6]}, "", Family::none, "NPUSHMEM_BOOTSTRAP_UID_SOCK_")
                  .value()
                  .host_text(),
              "127.0.0.1");
}

TEST(ChooseInterface, MatchesBeginningsOrWholeNames) {
    EXPECT_EQ(chosen("eth1"), "10.0.1.1");
    EXPECT_EQ(chosen("=eth10"), "10.0.10.1");
    EXPECT_EQ(chosen("^=eth0,eth1"), "10.0.10.1");
    EXPECT_EQ(chosen("nothing,docker"), "172.17.0.1");
    EXPECT_EQ(chosen("=lo"), "127.0.0.1");
}

TEST(ChooseInterface, SelectsWithinTheFamily) {
    EXPECT_EQ(chosen("", Family::v6), "2001:db8::1");
    EXPECT_EQ(chosen("lo", Family::v6), "::1");
    EXPECT_EQ(chosen("", Family::v4), "10.0.0.1");
}

TEST(ChooseInterface, ListsTheInterfacesIfNoneMatches) {
    EXPECT_THAT(chosen("ib"), AllOf(HasSubstr("NPUSHMEM_BOOTSTRAP_UID_SOCK_IFNAME='ib'"),
                                    HasSubstr("ib0 (10.9.0.1, down)"), HasSubstr("eth0 (10.0.0.1)")));
    EXPECT_THAT(chosen("=docker0", Family::v6), HasSubstr("SOCK_FAMILY=AF_INET6"));
    EXPECT_EQ(choose_interface({}, "", Family::none, "NPUSHMEM_BOOTSTRAP_UID_SOCK_").status().code(), Code::config);
}

TEST(ListInterfaces, FindsLoopback) {
    const auto found = list_interfaces();
    ASSERT_TRUE(found.ok()) << found.status().message();
    EXPECT_TRUE(choose_interface(found.value(), "=lo", Family::none, "NPUSHMEM_BOOTSTRAP_UID_SOCK_").ok());
}

}  // namespace

}  // namespace npushmem
