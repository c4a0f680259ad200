// SPDX-License-Identifier: BSD-3-Clause
#include "npushmem/testing/matchers.hpp"

#include <array>
#include <cstdio>
#include <vector>

#include "npushmem/testing/mocks.hpp"

namespace npushmem::matchers {
namespace {

using ::testing::_;
using ::testing::DescribeMatcher;
using ::testing::Ge;
using ::testing::HasSubstr;
using ::testing::Matcher;
using ::testing::NiceMock;
using ::testing::Not;
using ::testing::Return;
using ::testing::StringMatchResultListener;

template <class Value, class AnyMatcher>
std::string explanation(const Value& value, const AnyMatcher& matcher) {
    StringMatchResultListener listener;
    EXPECT_FALSE(::testing::ExplainMatchResult(matcher, value, &listener));
    return listener.str();
}

TEST(Matchers, IsOkTakesCodesFailuresAndResults) {
    EXPECT_THAT(Code::ok, IsOk());
    EXPECT_THAT(Code::again, Not(IsOk()));
    EXPECT_THAT(Status{}, IsOk());
    EXPECT_THAT(Result<int>(1), IsOk());
    EXPECT_EQ(explanation(Status{Code::range, "9 of 8"}, IsOk()), "which is range (-101): 9 of 8");
    EXPECT_EQ(explanation(Result<int>(Status{Code::range, "9 of 8"}), IsOk()),
              "which is no value: range (-101): 9 of 8");
}

TEST(Matchers, HasCodeNamesTheCode) {
    EXPECT_THAT(Code::range, HasCode(Code::range));
    EXPECT_THAT(Status(Code::range, "x"), HasCode(Code::range));
    EXPECT_THAT(Result<int>(Status{Code::state, "x"}), HasCode(Code::state));
    EXPECT_THAT(Result<int>(5), HasCode(Code::ok));
    EXPECT_THAT(Code::ok, Not(HasCode(Code::range)));
    EXPECT_EQ(DescribeMatcher<Code>(HasCode(Code::range)), "has the code range (-101)");
}

TEST(Matchers, HasMessageTakesAMatcherOrAText) {
    EXPECT_THAT(Status(Code::config, "MINE_DEPTH='x'"), HasMessage(HasSubstr("MINE_DEPTH")));
    EXPECT_THAT(Result<int>(Status{Code::config, "all"}), HasMessage("all"));
    EXPECT_THAT(Status(Code::config, "all"), Not(HasMessage("some")));
    npushmem_event event{};
    std::snprintf(event.message, sizeof event.message, "link down");
    EXPECT_THAT(event, HasMessage(HasSubstr("link")));
}

TEST(Matchers, BytesAreExplainsTheFirstDifference) {
    std::vector<std::uint8_t> expected(20);
    for (std::size_t i = 0; i < expected.size(); ++i) expected[i] = static_cast<std::uint8_t>(i);
    std::vector<std::byte> actual(20);
    for (std::size_t i = 0; i < actual.size(); ++i) actual[i] = static_cast<std::byte>(i);
    EXPECT_THAT(actual, BytesAre(expected));
    actual[8] = std::byte{0xff};
    actual[9] = std::byte{0xfe};
    EXPECT_EQ(explanation(actual, BytesAre(expected)),
              "which has 20 bytes and differs first at offset 8:\n"
              "  expected ... 02 03 04 05 06 07 [08] 09 0a 0b 0c 0d 0e 0f 10 11 ...\n"
              "  actual   ... 02 03 04 05 06 07 [ff] fe 0a 0b 0c 0d 0e 0f 10 11 ...");
}

TEST(Matchers, BytesAreComparesTheLengthAndWords) {
    const std::array<std::uint16_t, 2> words{0x0101, 0x0202};
    const std::array<std::byte, 4> same{std::byte{1}, std::byte{1}, std::byte{2}, std::byte{2}};
    EXPECT_THAT(words, BytesAre(same));
    EXPECT_EQ(explanation(std::vector<std::byte>(1, std::byte{1}), BytesAre(same)),
              "which has 1 bytes and differs first at offset 1:\n  expected 01 [01] 02 02\n  actual   01 [end]");
    EXPECT_EQ(explanation(std::vector<std::byte>{}, BytesAre(same)),
              "which has 0 bytes and differs first at offset 0:\n  expected [01] 01 02 02\n  actual   [end]");
}

TEST(Matchers, SelectCallsOfAMock) {
    NiceMock<MockTransport> transport;
    EXPECT_CALL(transport, put(_, RmaTo(3, Ge(64U), 8), _)).WillOnce(Return(Code::ok));
    EXPECT_CALL(transport, atomic(_, AtomicOn(1, 16, NPUSHMEM_ATOMIC_ADD), _)).WillOnce(Return(Code::range));
    EXPECT_CALL(transport, put_signal(_, ::testing::AllOf(RmaTo(2, 0, 4), SignalAt(8, 1, NPUSHMEM_SIGNAL_SET)), _))
        .WillOnce(Return(Code::again));
    EXPECT_CALL(transport, connect(IsPe(5))).WillOnce(Return(Status{Code::unreachable, "no route"}));
    npushmem_rma rma{};
    rma.pe = 3;
    rma.offset = 65;
    rma.bytes = 8;
    EXPECT_THAT(transport.put(1, rma, nullptr), IsOk());
    npushmem_atomic atomic{};
    atomic.pe = 1;
    atomic.offset = 16;
    atomic.operation = NPUSHMEM_ATOMIC_ADD;
    EXPECT_THAT(transport.atomic(1, atomic, nullptr), HasCode(Code::range));
    npushmem_put_signal signal{};
    signal.data.pe = 2;
    signal.data.bytes = 4;
    signal.signal_offset = 8;
    signal.signal = 1;
    EXPECT_THAT(transport.put_signal(1, signal, nullptr), HasCode(Code::again));
    npushmem_peer peer{};
    peer.pe = 5;
    EXPECT_THAT(transport.connect(peer), HasMessage("no route"));
}

TEST(Matchers, RejectOtherPlaces) {
    npushmem_rma rma{};
    rma.pe = 1;
    rma.bytes = 8;
    EXPECT_THAT(rma, RmaTo(1, 0, 8));
    EXPECT_THAT(rma, Not(RmaTo(2, 0, 8)));
    EXPECT_THAT(rma, Not(RmaTo(1, 1, 8)));
    EXPECT_THAT(rma, Not(RmaTo(1, 0, 9)));
    npushmem_atomic atomic{};
    atomic.operation = NPUSHMEM_ATOMIC_SWAP;
    EXPECT_THAT(atomic, AtomicOn(0, 0, NPUSHMEM_ATOMIC_SWAP));
    EXPECT_THAT(atomic, Not(AtomicOn(0, 0, NPUSHMEM_ATOMIC_SET)));
}

TEST(Matchers, TellReachableFromUnreachable) {
    const Reach reachable{NPUSHMEM_CAP_PUT | NPUSHMEM_CAP_GET, 0, 0, "same host"};
    EXPECT_THAT(reachable, HasCapabilities(NPUSHMEM_CAP_PUT));
    EXPECT_THAT(reachable, Not(HasCapabilities(NPUSHMEM_CAP_PUT | NPUSHMEM_CAP_MAP)));
    EXPECT_THAT(reachable, Not(IsUnreachable(_)));
    EXPECT_THAT((Reach{0, 0, 0, "another host"}), IsUnreachable(HasSubstr("another")));
    EXPECT_THAT((Reach{0, 0, 0, "another host"}), Not(IsUnreachable("same host")));
    EXPECT_EQ(DescribeMatcher<Reach>(HasCapabilities(NPUSHMEM_CAP_PUT | NPUSHMEM_CAP_GET)), "has: put, get");
}

}  // namespace
}  // namespace npushmem::matchers
