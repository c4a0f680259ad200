#include "bootstrap/rendezvous/doorman.hpp"

#include <gmock/gmock.h>

#include "tests/unit/bootstrap/rendezvous/raw_client.hpp"

namespace npushmem::rendezvous {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr std::uint32_t door_session = 5;
const Credentials ours{{std::byte{1}}, {std::byte{2}}};
const Credentials wrong_secret{{std::byte{1}}, {std::byte{3}}};
const Credentials other_job{{std::byte{9}}, {std::byte{2}}};

class DoormanTest : public ::testing::Test {
protected:
    static constexpr Doorman::Limits limits{4, std::chrono::seconds{10}};

    Doorman door_ = make();
    Moment now_ = Clock::now();

    static Doorman make() {
        auto listener = Socket::listen(Address::parse("127.0.0.1", 0).value());
        auto find = [](const Nonce& job) { return job == ours.job ? std::optional(ours) : std::nullopt; };
        return std::move(Doorman::make(std::move(listener).value(), door_session, find, limits)).value();
    }

    // Serves when the door's descriptor says that there is something to do.
    std::vector<Admitted> serve_when_ready() {
        constexpr int test_patience_ms = 20000;
        pollfd waiting{door_.fd(), POLLIN, 0};
        EXPECT_EQ(::poll(&waiting, 1, test_patience_ms), 1);
        return door_.serve(now_);
    }

    // Accepts one stranger; on the loopback interface a connection is there as soon as connect() was called.
    RawClient stranger() {
        RawClient client(door_.address());
        serve_when_ready();
        return client;
    }

    // The greeting of a client while this thread also is the doorman.
    ConnectionKeys greet(const RawClient& client, const Credentials& credentials,
                         std::uint32_t in_session = door_session) {
        const Nonce mine{std::byte{4}};
        client.send(raw_frame({}, in_session, 0, FrameType::hello, Hello{credentials.job, mine}.encode()));
        serve_when_ready();
        const Buffer answer = client.receive(FrameHeader::bytes + sizeof(Nonce));
        Nonce theirs{};
        if (answer.size() == FrameHeader::bytes + theirs.size())
            std::ranges::copy(std::span(answer).subspan(FrameHeader::bytes), theirs.begin());
        return derive_keys(credentials, in_session, mine, theirs);
    }
};

const Buffer some_payload(20, std::byte{6});

TEST_F(DoormanTest, AdmitsWhoKnowsTheSecret) {
    const RawClient client = stranger();
    const ConnectionKeys keys = greet(client, ours);
    client.send(raw_frame(keys.connector, door_session, 0, FrameType::join, some_payload));
    const auto admitted = serve_when_ready();
    ASSERT_THAT(admitted, SizeIs(1));
    EXPECT_EQ(admitted[0].job, ours.job);
    EXPECT_EQ(admitted[0].first.payload, some_payload);
    EXPECT_EQ(door_.strangers(), 0U);
}

TEST_F(DoormanTest, TurnsAwayWrongSecretsAndUnknownJobsAlike) {
    for (const Credentials& each : {wrong_secret, other_job}) {
        const RawClient client = stranger();
        const ConnectionKeys keys = greet(client, each);
        client.send(raw_frame(keys.connector, door_session, 0, FrameType::join, some_payload));
        EXPECT_THAT(serve_when_ready(), IsEmpty());
        EXPECT_TRUE(client.is_turned_away());
    }
}

TEST_F(DoormanTest, TurnsAwayOtherSessions) {
    const RawClient client = stranger();
    client.send(raw_frame({}, door_session + 1, 0, FrameType::hello, Hello{ours.job, {}}.encode()));
    EXPECT_THAT(serve_when_ready(), IsEmpty());
    EXPECT_TRUE(client.is_turned_away());
}

TEST_F(DoormanTest, TurnsAwayReplays) {
    const RawClient honest = stranger();
    const ConnectionKeys keys = greet(honest, ours);
    const Buffer join = raw_frame(keys.connector, door_session, 0, FrameType::join, some_payload);
    honest.send(join);
    ASSERT_THAT(serve_when_ready(), SizeIs(1));

    const RawClient replaying = stranger();
    greet(replaying, ours);  // the same greeting, byte for byte; the answer's nonce is new
    replaying.send(join);
    EXPECT_THAT(serve_when_ready(), IsEmpty());
    EXPECT_TRUE(replaying.is_turned_away());
}

TEST_F(DoormanTest, TurnsAwayGarbage) {
    const RawClient client = stranger();
    client.send(Buffer(500, std::byte{'G'}));
    EXPECT_THAT(serve_when_ready(), IsEmpty());
    EXPECT_TRUE(client.is_turned_away());
}

TEST_F(DoormanTest, TellsAnotherVersionWhichOneItSpeaks) {
    const RawClient client = stranger();
    Buffer hello = raw_frame({}, door_session, 0, FrameType::hello, Hello{ours.job, {}}.encode());
    hello[4] = std::byte{protocol_version + 1};
    client.send(hello);
    EXPECT_THAT(serve_when_ready(), IsEmpty());
    const Buffer answer = client.receive(FrameHeader::bytes);
    ASSERT_EQ(answer.size(), FrameHeader::bytes);
    EXPECT_EQ(answer[4], std::byte{protocol_version});
    EXPECT_TRUE(client.is_turned_away());
}

TEST_F(DoormanTest, LosesPatienceWithTheSilentAndTheSlow) {
    const RawClient silent = stranger();
    const RawClient slow = stranger();
    slow.send(Buffer(1, std::byte{'N'}));
    serve_when_ready();
    EXPECT_EQ(door_.strangers(), 2U);
    EXPECT_FALSE(door_.next_duty().passed(now_ + std::chrono::seconds{9}));
    now_ += std::chrono::seconds{11};
    EXPECT_TRUE(door_.next_duty().passed(now_));
    door_.serve(now_);
    EXPECT_EQ(door_.strangers(), 0U);
    EXPECT_TRUE(silent.is_turned_away());
    EXPECT_TRUE(slow.is_turned_away());
}

TEST_F(DoormanTest, TheOldestStrangerMakesRoomForTheNewest) {
    std::vector<RawClient> crowd;
    for (std::size_t i = 0; i < limits.strangers; ++i) crowd.push_back(stranger());
    const RawClient honest = stranger();
    EXPECT_EQ(door_.strangers(), limits.strangers);
    EXPECT_TRUE(crowd.front().is_turned_away());
    const ConnectionKeys keys = greet(honest, ours);
    honest.send(raw_frame(keys.connector, door_session, 0, FrameType::join, some_payload));
    EXPECT_THAT(serve_when_ready(), SizeIs(1));
}

TEST_F(DoormanTest, TurnsAwayIntroductionsThatAreTooLong) {
    const RawClient client = stranger();
    const ConnectionKeys keys = greet(client, ours);
    client.send(raw_frame(keys.connector, door_session, 0, FrameType::up, Buffer(4096)));
    EXPECT_THAT(serve_when_ready(), IsEmpty());
    EXPECT_TRUE(client.is_turned_away());
}

}  // namespace
}  // namespace npushmem::rendezvous
