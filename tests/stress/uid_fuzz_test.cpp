// SPDX-License-Identifier: BSD-3-Clause
// Sends random and almost valid bytes to a live rendezvous service while real jobs start there repeatedly. Every
// sequence comes from a seed that a failure prints.
#include <gmock/gmock.h>

#include <atomic>
#include <random>
#include <thread>

#include "bootstrap/rendezvous/messages.hpp"
#include "bootstrap/rendezvous/settings.hpp"
#include "tests/unit/bootstrap/rendezvous/raw_client.hpp"
#include "tests/unit/bootstrap/uid/thread_job.hpp"

namespace npushmem::uid {

using namespace rendezvous;
namespace {

using ::testing::Each;

MATCHER(Succeeded, "") {
    *result_listener << arg.message();
    return arg.ok();
}

// Generates the messages of an attacker that knows the protocol and the job's name, but not its secret.
class Attacker {
public:
    Attacker(std::uint32_t seed, const Nonce& job) : random_(seed), job_(job) {}

    std::size_t below(std::size_t limit) { return std::uniform_int_distribution<std::size_t>(0, limit - 1)(random_); }

    Buffer noise(std::size_t length) {
        Buffer bytes(length);
        for (std::byte& each : bytes) each = static_cast<std::byte>(below(256));
        return bytes;
    }

    // One message of the kinds below, complete or truncated.
    Buffer message() {
        Buffer bytes = kind();
        if (below(3) == 0) mutate(bytes);
        if (below(5) == 0) bytes.resize(below(bytes.size() + 1));
        return bytes;
    }

private:
    Buffer kind() {
        switch (below(5)) {
            case 0: return noise(1 + below(200));
            case 1: return hello();
            case 2: return frame(FrameType::join, join());
            case 3: return header_only();
            default: return frame(static_cast<FrameType>(1 + below(12)), noise(below(600)));
        }
    }

    Buffer hello() {
        Hello made;
        made.job = job_;
        std::ranges::copy(noise(made.nonce.size()), made.nonce.begin());
        return raw_frame({}, 0, 0, FrameType::hello, made.encode());
    }

    Buffer join() {
        Join made{Identity::of_this_process(static_cast<int>(below(9)) - 1),
                  static_cast<int>(below(10)),
                  {0, 1, 0},
                  Milliseconds{1 + below(1000)},
                  Address{},
                  {},
                  {}};
        return made.encode();
    }

    Buffer frame(FrameType type, const Buffer& payload) {
        SipKey key{};
        std::ranges::copy(noise(key.size()), key.begin());
        return raw_frame(below(2) == 0 ? std::optional(key) : std::nullopt, static_cast<std::uint32_t>(below(3)),
                         below(3), type, payload);
    }

    // Announces a payload that never arrives.
    Buffer header_only() {
        FrameHeader header{static_cast<FrameType>(1 + below(10)), 0,
                           static_cast<std::uint32_t>(below(std::size_t{1} << 32)), 0};
        return ByteWriter().bytes(header.encode()).bytes(header.tag).take();
    }

    void mutate(Buffer& bytes) {
        for (std::size_t flips = 1 + below(8); flips > 0 && !bytes.empty(); --flips)
            bytes[below(bytes.size())] ^= static_cast<std::byte>(1 + below(255));
    }

    std::mt19937 random_;
    Nonce job_;
};

// Opens one connection and sends a few messages. Then closes it, or leaves it open among the last `kept`.
void attack_once(Attacker& attacker, const Address& where, std::vector<RawClient>& kept) {
    constexpr std::size_t max_open_clients = 64;
    RawClient client(where);
    for (std::size_t messages = attacker.below(4); messages > 0; --messages) client.send(attacker.message());
    if (attacker.below(3) != 0) return;
    if (kept.size() >= max_open_clients) kept.erase(kept.begin());
    kept.push_back(std::move(client));
}

class UidFuzz : public ::testing::TestWithParam<std::uint32_t> {};
INSTANTIATE_TEST_SUITE_P(Seeds, UidFuzz, ::testing::Values(1U, 2U, 3U, 4U));

TEST_P(UidFuzz, AJobStartsWhileUnauthenticatedPeersSendGarbage) {
    constexpr int attacks = 2000;
    constexpr int min_starts = 3;
    const ThreadJob job;
    const UniqueId id = job.id();
    std::atomic<bool> done = false;
    std::thread unauthenticated_peers([&] {
        Attacker attacker(GetParam(), id.credentials.job);
        std::vector<RawClient> kept;
        for (int i = 0; i < attacks; ++i) attack_once(attacker, id.service, kept);
        done.store(true, std::memory_order_relaxed);  // partner: the loop's load; nothing else is handed over
    });
    const auto body = [](Bootstrap& rank) { return rank.barrier(); };
    bool sound = true;
    for (int start = 0; sound && (start < min_starts || !done.load(std::memory_order_relaxed)); ++start) {
        const auto outcomes = job.run(5, body);
        EXPECT_THAT(outcomes, Each(Succeeded())) << "seed " << GetParam() << ", start " << start;
        sound = std::ranges::all_of(outcomes, &Status::ok);
    }
    unauthenticated_peers.join();
    EXPECT_THAT(job.run(5, body), Each(Succeeded())) << "after the attack, seed " << GetParam();
}

// PEs that hold the secret may be faulty too: their start may fail, but the service must survive.
TEST_P(UidFuzz, MembersThatSendGarbageDoNotKillTheService) {
    constexpr int attacks = 300;
    const ThreadJob job;
    const UniqueId id = job.id();
    Attacker attacker(GetParam(), id.credentials.job);
    for (int i = 0; i < attacks; ++i) {
        const RawClient client(id.service);
        const ConnectionKeys keys = client.greet(id.credentials, 0);
        const auto type = attacker.below(3) == 0 ? static_cast<FrameType>(1 + attacker.below(10)) : FrameType::join;
        Join join{Identity::of_this_process(static_cast<int>(attacker.below(12)) - 2),
                  static_cast<int>(attacker.below(12)) - 1,
                  {0, 1, 0},
                  Milliseconds{attacker.below(20)},
                  Address{},
                  {},
                  {}};
        const Buffer payload = attacker.below(4) == 0 ? attacker.noise(attacker.below(500)) : join.encode();
        client.send(raw_frame(keys.connector, 0, 0, type, payload));
        if (attacker.below(2) == 0) client.send(attacker.message());
    }
    // Another job at the same service is not affected.
    const ThreadJob other;
    EXPECT_EQ(other.id().service, id.service);
    EXPECT_THAT(other.run(5, [](Bootstrap& rank) { return rank.barrier(); }), Each(Succeeded()));
}

}  // namespace
}  // namespace npushmem::uid
