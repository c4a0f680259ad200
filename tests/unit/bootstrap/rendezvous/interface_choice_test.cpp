#include "bootstrap/rendezvous/interface_choice.hpp"

#include <gmock/gmock.h>

namespace npushmem::rendezvous {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

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
    const auto choice = choose_interface(machine, pattern, family);
    return choice.ok() ? choice.value().host_text() : choice.status().message();
}

TEST(ChooseInterface, PrefersOrdinaryOverVirtualOverLoopback) {
    EXPECT_EQ(chosen(""), "10.0.0.1");
    EXPECT_EQ(chosen("^eth"), "172.17.0.1");
    EXPECT_EQ(chosen("^eth,docker"), "127.0.0.1");
}

TEST(ChooseInterface, TakesLoopbackWhenNothingElseIsUp) {
    EXPECT_EQ(choose_interface({machine[0], machine[6]}, "", Family::none).value().host_text(), "127.0.0.1");
}

TEST(ChooseInterface, MatchesBeginningsOrWholeNames) {
    EXPECT_EQ(chosen("eth1"), "10.0.1.1");
    EXPECT_EQ(chosen("=eth10"), "10.0.10.1");
    EXPECT_EQ(chosen("^=eth0,eth1"), "10.0.10.1");
    EXPECT_EQ(chosen("nothing,docker"), "172.17.0.1");
    EXPECT_EQ(chosen("=lo"), "127.0.0.1");
}

TEST(ChooseInterface, KeepsToTheFamily) {
    EXPECT_EQ(chosen("", Family::v6), "2001:db8::1");
    EXPECT_EQ(chosen("lo", Family::v6), "::1");
    EXPECT_EQ(chosen("", Family::v4), "10.0.0.1");
}

TEST(ChooseInterface, SaysWhatThereIsWhenNothingFits) {
    EXPECT_THAT(chosen("ib"), AllOf(HasSubstr("NPUSHMEM_BOOTSTRAP_UID_SOCK_IFNAME='ib'"),
                                    HasSubstr("ib0 (10.9.0.1, down)"), HasSubstr("eth0 (10.0.0.1)")));
    EXPECT_THAT(chosen("=docker0", Family::v6), HasSubstr("SOCK_FAMILY=AF_INET6"));
    EXPECT_EQ(choose_interface({}, "", Family::none).status().code(), Code::config);
}

TEST(ListInterfaces, FindsLoopback) {
    const auto found = list_interfaces();
    ASSERT_TRUE(found.ok()) << found.status().message();
    EXPECT_TRUE(choose_interface(found.value(), "=lo", Family::none).ok());
}

}  // namespace
}  // namespace npushmem::rendezvous
