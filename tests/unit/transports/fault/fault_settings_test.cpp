#include "transports/fault/fault_settings.hpp"

#include <gmock/gmock.h>

#include "tests/fakes/fake_host.hpp"

namespace npushmem::fault {
namespace {

using ::testing::HasSubstr;

TEST(FailRules, AreReadInOrder) {
    const auto rules = parse_fail_rules("put:3:timeout, register_memory:1:peer_dead");
    ASSERT_TRUE(rules.ok()) << rules.status().message();
    ASSERT_EQ(rules.value().size(), 2U);
    EXPECT_EQ(rules.value()[0].function, Function::put);
    EXPECT_EQ(rules.value()[0].call, 3U);
    EXPECT_EQ(rules.value()[0].code, Code::timeout);
    EXPECT_EQ(rules.value()[1].function, Function::register_memory);
    EXPECT_EQ(rules.value()[1].code, Code::peer_dead);
    EXPECT_TRUE(parse_fail_rules("").value().empty());
}

TEST(FailRules, SayWhatIsWrong) {
    EXPECT_THAT(parse_fail_rules("put").status().message(), HasSubstr("as in put:3:timeout"));
    EXPECT_THAT(parse_fail_rules("putt:1:timeout").status().message(), HasSubstr("these can: connect"));
    EXPECT_THAT(parse_fail_rules("put:0:timeout").status().message(), HasSubstr("number of the call"));
    EXPECT_THAT(parse_fail_rules("put:1:late").status().message(), HasSubstr("one of argument"));
    EXPECT_FALSE(parse_fail_rules("put:1:ok").ok());
    EXPECT_FALSE(parse_fail_rules("put:1:again").ok());
}

TEST(FaultSettings, HaveDefaultsAndLimits) {
    fakes::FakeHost host;
    const Host services(&host.table(), "fault");
    ASSERT_TRUE(read_settings(services).ok());
    EXPECT_TRUE(read_settings(services).value().reorder);
    host.set("FAULT_SEED", "77");
    EXPECT_EQ(read_settings(services).value().seed, 77U);
    host.set("FAULT_AGAIN", "91");
    const Status wrong = read_settings(services).status();
    EXPECT_EQ(wrong.code(), Code::config);
    EXPECT_THAT(wrong.message(), HasSubstr("NPUSHMEM_FAULT_AGAIN"));
}

}  // namespace
}  // namespace npushmem::fault
