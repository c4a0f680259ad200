// SPDX-License-Identifier: BSD-3-Clause
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>

#include "npushmem/testing/fake_host.hpp"
#include "npushmem/testing/mocks.hpp"
#include "transports/trace/trace_transport.hpp"

namespace npushmem::trace {
namespace {

using namespace std::chrono_literals;

TEST(CallStats, CountsBytesOfSuccessfulCallsOnly) {
    CallStats stats;
    stats.add(Code::ok, 1024, 2us);
    stats.add(Code::again, 1024, 0us);
    stats.add(Code::peer_dead, 1024, 1us);
    EXPECT_EQ(stats.calls(), 3U);
    EXPECT_EQ(stats.bytes(), 1024U);
    EXPECT_EQ(stats.summary("put"), "put: 3 calls, 1 KiB, 3 us, 1 us each, 1 times 'again', 1 failed");
}

TEST(CallStats, OmitsZeroCounts) {
    CallStats stats;
    stats.add(Code::ok, 0, 500ns);
    EXPECT_EQ(stats.summary("fence"), "fence: 1 call, 500 ns, 500 ns each");
}

}  // namespace

}  // namespace npushmem::trace

namespace npushmem {
namespace {

using ::testing::_;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::Return;

class Trace : public ::testing::Test {
protected:
    std::unique_ptr<Transport> open() {
        return TraceTransport::open(Host(&host_.table(), "trace"), table_.params(2)).value();
    }
    std::vector<std::string> texts(std::int32_t level) const {
        std::vector<std::string> out;
        for (const auto& line : host_.lines())
            if (line.level == level) out.push_back(line.text);
        return out;
    }

    fakes::FakeHost host_;
    ::testing::NiceMock<MockTransport> inner_;
    fakes::InnerTable table_{inner_};
};

TEST_F(Trace, WritesEachCallWithItsArgumentsAndResult) {
    const auto trace = open();
    std::byte byte{};
    EXPECT_EQ(trace->put(9, {4, 0, 8, 64, &byte, 1}, nullptr), Code::ok);
    EXPECT_THAT(texts(NPUSHMEM_LOG_TRACE),
                Contains(HasSubstr("pe 2: put(queue 9, pe 4, memory 8 + 64, 1 bytes) -> ok")));
    EXPECT_EQ(trace->put_strided(9, {{4, 0, 8, 64, &byte, 1}, 3, 16, 2}, nullptr), Code::ok);
    EXPECT_THAT(texts(NPUSHMEM_LOG_TRACE),
                Contains(HasSubstr("pe 2: put_strided(queue 9, pe 4, memory 8 + 64, 1 bytes, 3 times, 16 bytes apart "
                                   "there and 2 here) -> ok")));
}

TEST_F(Trace, PassesResultsThrough) {
    const auto trace = open();
    EXPECT_CALL(inner_, get(_, _, _)).WillOnce(Return(Code::timeout));
    EXPECT_EQ(trace->get(1, {}, nullptr), Code::timeout);
    EXPECT_EQ(trace->create_queue().value(), MockTransport::queue);
    EXPECT_EQ(trace->map(1).status().code(), Code::unsupported);
    EXPECT_CALL(inner_, forget(3)).WillOnce(Return(Code::argument));
    EXPECT_EQ(trace->forget(3), Code::argument);
    EXPECT_THAT(texts(NPUSHMEM_LOG_TRACE), Contains(HasSubstr("forget(pe 3) -> argument")));
    EXPECT_THAT(texts(NPUSHMEM_LOG_TRACE), Contains(HasSubstr("get(queue 1")));
}

TEST_F(Trace, DoesNotLogCallsThatReturnAgain) {
    const auto trace = open();
    EXPECT_CALL(inner_, quiet(_)).WillOnce(Return(Code::again)).WillOnce(Return(Code::ok));
    (void)trace->quiet(1);
    EXPECT_THAT(texts(NPUSHMEM_LOG_TRACE), Not(Contains(HasSubstr("quiet"))));
    (void)trace->quiet(1);
    EXPECT_THAT(texts(NPUSHMEM_LOG_TRACE), Contains(HasSubstr("quiet(queue 1) -> ok")).Times(1));
}

TEST_F(Trace, LogsTheStagesFromOpenToClose) {
    auto trace = open();
    EXPECT_THAT(texts(NPUSHMEM_LOG_TRACE), ElementsAre(HasSubstr("pe 2: open(pe 2 of ")));
    const std::array<std::uint32_t, 2> chosen{0, 3};
    EXPECT_CALL(inner_, use_devices(_)).WillOnce(Return(Status{Code::range, "no such device"}));
    EXPECT_EQ(trace->use_devices(chosen).code(), Code::range);
    EXPECT_THAT(texts(NPUSHMEM_LOG_TRACE), Contains(HasSubstr("use_devices(devices 0, 3) -> range")));
    (void)trace->devices();
    EXPECT_THAT(texts(NPUSHMEM_LOG_TRACE), Contains(HasSubstr("pe 2: devices() -> ok")));
    EXPECT_CALL(inner_, address()).WillOnce(Return(Bytes(24)));
    EXPECT_EQ(trace->address().value().size(), 24U);
    EXPECT_THAT(texts(NPUSHMEM_LOG_TRACE).back(), HasSubstr("pe 2: address(24 bytes) -> ok"));
    trace.reset();
    EXPECT_EQ(texts(NPUSHMEM_LOG_TRACE).back(), "pe 2: close()");
}

TEST_F(Trace, LogsTotalsWhenItIsClosed) {
    host_.set("TRACE_CALLS", "no");
    auto trace = open();
    EXPECT_CALL(inner_, put(_, _, _))
        .WillOnce(Return(Code::ok))
        .WillOnce(Return(Code::again))
        .WillOnce(Return(Code::ok))
        .WillOnce(Return(Code::range));
    for (int i = 0; i < 4; ++i) (void)trace->put(1, {0, 0, 0, 0, nullptr, 512}, nullptr);
    EXPECT_TRUE(host_.lines().empty());
    trace.reset();
    ASSERT_EQ(texts(NPUSHMEM_LOG_INFO).size(), 1U);
    EXPECT_THAT(texts(NPUSHMEM_LOG_INFO)[0], HasSubstr("put: 4 calls, 1 KiB, "));
    EXPECT_THAT(texts(NPUSHMEM_LOG_INFO)[0], HasSubstr("1 times 'again', 1 failed"));
}

}  // namespace

}  // namespace npushmem
