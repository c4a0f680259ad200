// SPDX-License-Identifier: BSD-3-Clause
#include "bootstrap/rendezvous/messages.hpp"

#include <gtest/gtest.h>

#include "bootstrap/rendezvous/settings.hpp"

namespace npushmem::rendezvous {

namespace {

TEST(RankList, JoinsRuns) {
    EXPECT_EQ(rank_list({5}), "rank 5");
    EXPECT_EQ(rank_list({5, 7}), "ranks 5, 7");
    EXPECT_EQ(rank_list({5, 6}), "ranks 5, 6");
    EXPECT_EQ(rank_list({0, 1, 2, 4, 6, 7, 8, 9}), "ranks 0-2, 4, 6-9");
}

TEST(RankList, CutsLongLists) {
    std::vector<int> even;
    for (int rank = 0; rank < 100; rank += 2) even.push_back(rank);
    EXPECT_EQ(rank_list(even), "ranks 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22 and 38 more");
}

constexpr std::size_t join_bytes_of_0_2_0 = 56;  // fewer than now

// Every shorter and every longer form of a message is refused, except those that end in `also` bytes.
template <class Message>
void expect_exact(const Buffer& bytes, std::size_t also = 0) {
    EXPECT_TRUE(Message::decode(bytes).has_value());
    for (std::size_t length = 0; length < bytes.size(); ++length)
        EXPECT_EQ(Message::decode(std::span(bytes).first(length)).has_value(), length == also && also != 0) << length;
    Buffer longer = bytes;
    longer.push_back({});
    EXPECT_FALSE(Message::decode(longer).has_value());
}

Join sample_join() {
    return {{3, 77, "host"},
            8,
            {1, 2, 3},
            Milliseconds{60000},
            Address::parse("10.0.0.1", 5).value(),
            {11, 12, -1, 1000},
            {77, 5, 21, 22, 4096}};
}

TEST(Messages, AreReadExactly) {
    expect_exact<Join>(sample_join().encode(), sample_join().encode().size() - join_bytes_of_0_2_0);
    expect_exact<Assign>(Assign{4, {1, 2, "p"}, Address::parse("::1", 9).value(), {77, 5, 21, 22, 4096}}.encode());
    expect_exact<Link>(Link{{3, 77, "host"}}.encode());
    expect_exact<Failure>(Failure{{Code::timeout, "late"}}.encode());
}

TEST(Messages, JoinKeepsItsFields) {
    const Join read = *Join::decode(sample_join().encode());
    EXPECT_EQ(read.who.text(), "rank 3 (pid 77 on host host)");
    EXPECT_EQ(read.nranks, 8);
    EXPECT_EQ(read.version.minor, 2);
    EXPECT_EQ(read.timeout.count(), 60000);
    EXPECT_EQ(read.listener.text(), "10.0.0.1:5");
    EXPECT_EQ(read.host.machine, 11U);
    EXPECT_EQ(read.host.space, 12U);
    EXPECT_EQ(read.host.emulated, -1);
    EXPECT_EQ(read.host.user, 1000U);
    EXPECT_EQ(read.memory.process, 77);
    EXPECT_EQ(read.memory.descriptor, 5);
    EXPECT_EQ(read.memory.device, 21U);
    EXPECT_EQ(read.memory.inode, 22U);
    EXPECT_EQ(read.memory.bytes, 4096U);
}

TEST(Messages, AFailureNeverDecodesAsSuccess) {
    const auto read = [](std::int32_t code) {
        return Failure::decode(ByteWriter().integer(code).text("why", 9).take())->cause;
    };
    EXPECT_EQ(read(NPUSHMEM_E_TIMEOUT).code(), Code::timeout);
    EXPECT_EQ(read(NPUSHMEM_OK).code(), Code::aborted);
    EXPECT_EQ(read(NPUSHMEM_AGAIN).code(), Code::aborted);
    EXPECT_EQ(read(NPUSHMEM_OK).message(), "why");
}

TEST(Messages, ALongCauseIsCutToFitItsFrame) {
    const Buffer bytes = Failure{{Code::aborted, std::string(100000, 'x')}}.encode();
    EXPECT_LE(bytes.size(), limits::abort_bytes);
    EXPECT_EQ(Failure::decode(bytes)->cause.message().size(), limits::abort_text_bytes);
}

TEST(Messages, IntroductionsFitTheirFrames) {
    Join join = sample_join();
    join.who.host = std::string(1000, 'h');
    EXPECT_LE(join.encode().size(), limits::introduction_bytes);
    Assign assign{1, join.who, join.listener, join.memory};
    EXPECT_LE(assign.encode().size(), limits::introduction_bytes);
}

}  // namespace

}  // namespace npushmem::rendezvous
