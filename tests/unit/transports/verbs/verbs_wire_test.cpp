#include "transports/verbs/verbs_wire.hpp"

#include <gmock/gmock.h>
#include <sys/resource.h>

#include <array>
#include <numeric>

#include "tests/unit/transports/verbs/fake_verbs.hpp"

namespace npushmem::verbs {
namespace {

using fakes::FakeVerbs;
using network::RemotePlace;
using network::WireContext;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

// What a wire told.
class Told final : public network::WireListener {
public:
    void completed(WireContext& context, Code code, const std::string& why) override {
        done[&context] = code;
        if (code != Code::ok) whys.push_back(why);
    }
    void arrived(std::span<const std::byte> message) override { messages.emplace_back(message.begin(), message.end()); }
    void lost(network::Way way, Code code, const std::string& why) override {
        losses.push_back({way.pe, code, why, way.lane});
    }

    struct Loss {
        int pe;
        Code code;
        std::string why;
        std::uint32_t lane;
    };
    std::map<WireContext*, Code> done;
    std::vector<Bytes> messages;
    std::vector<Loss> losses;
    std::vector<std::string> whys;
};

constexpr std::size_t words_per_pe = 4096;

// Two PEs on one fake device, or on two, whose time the test makes pass.
class World {
public:
    World() : verbs(std::make_shared<FakeVerbs>()) { settings.chunk_bytes = 4096; }

    Result<std::unique_ptr<VerbsWire>> open(int pe) {
        return VerbsWire::open(verbs, settings, {pe, 2, pe}, [this] { return now; });
    }
    void start() {
        if (verbs->objects() == 0 && devices == 0) add_devices(1);
        std::array<Bytes, 2> addresses;
        for (int pe = 0; pe < 2; ++pe) {
            auto opened = open(pe);
            ASSERT_TRUE(opened.ok()) << opened.status().message();
            wires[index(pe)] = std::move(opened).value();
            auto address = at(pe).address();
            ASSERT_TRUE(address.ok()) << address.status().message();
            addresses[index(pe)] = std::move(address).value();
        }
        for (int pe = 0; pe < 2; ++pe) {
            ASSERT_TRUE(at(pe).link(1 - pe, addresses[index(1 - pe)]).ok());
            auto memory = at(pe).register_memory(words[index(pe)].data(), sizeof words[0]);
            ASSERT_TRUE(memory.ok());
            number[index(pe)] = memory.value().number;
            keys[index(1 - pe)] = at(1 - pe).import_key(pe, memory.value().key).value();
        }
    }
    void add_devices(int count) {
        for (; count > 0; --count) verbs->add_device("fake" + std::to_string(devices++));
    }

    static std::size_t index(int pe) { return static_cast<std::size_t>(pe); }
    VerbsWire& at(int pe) { return *wires[index(pe)]; }
    // Of the other PE's memory, as `pe` names it.
    RemotePlace place(int pe, std::size_t word, std::uint32_t lane = 0) {
        return {
            {1 - pe, lane}, keys[index(pe)], reinterpret_cast<std::uintptr_t>(words[index(1 - pe)].data()), word * 8};
    }
    void drive(int rounds = 30) {
        for (; rounds > 0; --rounds) {
            (void)at(0).progress(told[0]);
            (void)at(1).progress(told[1]);
        }
    }
    // Repeats what has no room until it is posted.
    Code insist(const std::function<Code()>& call) {
        for (int i = 0; i < 200; ++i) {
            const Code code = call();
            if (code != Code::again) return code;
            drive(1);
        }
        return Code::timeout;
    }
    Code write(int pe, std::size_t word, const void* from, std::size_t bytes, WireContext& context,
               std::uint32_t lane = 0) {
        return insist([&] { return at(pe).write(place(pe, word, lane), from, bytes, context); });
    }
    // The first PE writes over the lane, and the second has it.
    void write_over(std::uint32_t lane, std::size_t word, std::uint64_t value) {
        WireContext context;
        ASSERT_EQ(write(0, word, &value, sizeof value, context, lane), Code::ok) << at(0).why();
        drive();
        EXPECT_EQ(told[0].done.at(&context), Code::ok);
        told[0].done.erase(&context);
        EXPECT_EQ(words[1][word], value);
    }
    void connect() {
        WireContext context;
        const std::uint64_t value = 1;
        ASSERT_EQ(write(0, 0, &value, sizeof value, context), Code::ok);
        drive();
        ASSERT_THAT(told[0].losses, IsEmpty());
    }

    std::shared_ptr<FakeVerbs> verbs;
    VerbsSettings settings;
    std::chrono::steady_clock::time_point now{};
    int devices = 0;
    std::array<std::array<std::uint64_t, words_per_pe>, 2> words{};
    std::array<std::uint64_t, 2> number{};
    std::array<std::uint64_t, 2> keys{};
    std::array<Told, 2> told;
    std::array<std::unique_ptr<VerbsWire>, 2> wires;  // last: go before what they touch
};

TEST(VerbsWire, APutTravelsAndCompletesWhenItHasArrived) {
    World world;
    world.start();
    WireContext context;
    const std::uint64_t value = 77;
    ASSERT_EQ(world.write(0, 5, &value, sizeof value, context), Code::ok);
    world.drive();
    EXPECT_EQ(world.words[1][5], 77U);
    EXPECT_EQ(world.told[0].done.at(&context), Code::ok);
    EXPECT_THAT(world.told[0].losses, IsEmpty());
}

TEST(VerbsWire, NothingIsMadeForAPeerThatNobodyTalksTo) {
    World world;
    world.start();
    const std::size_t before = world.verbs->objects();
    world.drive();
    EXPECT_EQ(world.verbs->objects(), before);
}

TEST(VerbsWire, AGreetingThatIsLostIsSentAgain) {
    World world;
    world.start();
    world.verbs->drop_datagrams = 3;
    WireContext context;
    const std::uint64_t value = 3;
    EXPECT_EQ(world.at(0).write(world.place(0, 0), &value, 8, context), Code::again);
    world.drive();
    EXPECT_EQ(world.at(0).write(world.place(0, 0), &value, 8, context), Code::again) << "it was lost";
    for (int i = 0; i < 4; ++i) {
        world.now += std::chrono::milliseconds(100);
        world.drive();
    }
    EXPECT_EQ(world.write(0, 0, &value, 8, context), Code::ok);
    world.drive();
    EXPECT_EQ(world.words[1][0], 3U);
}

TEST(VerbsWire, BothBeginAtOnceAndMakeOnePair) {
    World world;
    world.start();
    std::array<WireContext, 2> contexts;
    const std::uint64_t value = 9;
    const std::size_t before = world.verbs->reliable_pairs.size();
    for (int pe = 0; pe < 2; ++pe)
        EXPECT_EQ(world.at(pe).write(world.place(pe, 1), &value, 8, contexts[World::index(pe)]), Code::again);
    for (int pe = 0; pe < 2; ++pe) EXPECT_EQ(world.write(pe, 1, &value, 8, contexts[World::index(pe)]), Code::ok);
    world.drive();
    EXPECT_EQ(world.words[0][1], 9U);
    EXPECT_EQ(world.words[1][1], 9U);
    EXPECT_EQ(world.verbs->reliable_pairs.size(), before + 2);
}

TEST(VerbsWire, ALaneHasAQueuePairOfItsOwnAtEachEnd) {
    World world;
    world.start();
    world.connect();
    const std::size_t before = world.verbs->reliable_pairs.size();
    world.write_over(2, 5, 7);
    EXPECT_EQ(world.verbs->reliable_pairs.size(), before + 2);
    world.write_over(2, 5, 8);
    EXPECT_EQ(world.verbs->reliable_pairs.size(), before + 2);
    ASSERT_EQ(world.insist([&] { return world.at(0).send({1, 2}, Bytes(8), {}); }), Code::ok);
    world.drive();
    EXPECT_THAT(world.told[1].messages, SizeIs(1));
    // What the other one sends over its lane of this number has nothing to do with it.
    WireContext context;
    const std::uint64_t value = 9;
    ASSERT_EQ(world.write(1, 6, &value, sizeof value, context, 2), Code::ok);
    world.drive();
    EXPECT_EQ(world.words[0][6], 9U);
    EXPECT_EQ(world.verbs->reliable_pairs.size(), before + 4);
}

TEST(VerbsWire, ALaneMayBeTheFirstThatIsUsed) {
    World world;
    world.start();
    world.write_over(1, 5, 7);
}

TEST(VerbsWire, ALaneThatWasClosedIsMadeAnewAndNothingIsLeft) {
    World world;
    world.start();
    world.connect();
    world.write_over(1, 5, 7);
    const std::size_t open = world.verbs->objects();
    for (std::uint64_t round = 1; round <= 5; ++round) {
        world.at(0).close({1, 1});
        world.drive();
        EXPECT_EQ(world.verbs->objects(), open - 1) << "its own end";
        world.write_over(0, 6, round);
        world.verbs->drop_datagrams = round % 2 == 0 ? 1 : 0;
        WireContext context;
        const std::uint64_t value = 10 + round;
        EXPECT_EQ(world.at(0).write(world.place(0, 5, 1), &value, 8, context), Code::again);
        world.drive();
        world.now += std::chrono::milliseconds(100);
        world.drive();
        world.write_over(1, 5, value);
        EXPECT_EQ(world.verbs->objects(), open);
    }
    EXPECT_THAT(world.told[0].losses, IsEmpty());
    EXPECT_THAT(world.told[1].losses, IsEmpty());
}

TEST(VerbsWire, ALaneThatIsClosedWithSomethingUnderWayGoesWhenItIsOver) {
    World world;
    world.start();
    world.connect();
    world.write_over(1, 5, 7);
    const std::size_t open = world.verbs->objects();
    world.verbs->holds = true;
    WireContext context;
    const std::uint64_t value = 8;
    ASSERT_EQ(world.at(0).write(world.place(0, 5, 1), &value, 8, context), Code::ok);
    world.at(0).close({1, 1});
    world.verbs->holds = false;
    world.drive();
    EXPECT_NE(world.told[0].done.at(&context), Code::ok);
    EXPECT_THAT(world.told[0].losses, IsEmpty()) << "whoever has the lane next would lose it";
    EXPECT_EQ(world.verbs->objects(), open - 1);
    world.write_over(1, 5, 9);
}

TEST(VerbsWire, AnErrorOnALaneIsTheLanes) {
    World world;
    world.start();
    world.connect();
    world.write_over(1, 5, 7);
    world.verbs->next_status = IBV_WC_REM_ACCESS_ERR;
    WireContext context;
    const std::uint64_t value = 8;
    ASSERT_EQ(world.write(0, 5, &value, sizeof value, context, 1), Code::ok);
    world.drive();
    EXPECT_EQ(world.told[0].done.at(&context), Code::range);
    ASSERT_THAT(world.told[0].losses, SizeIs(1));
    EXPECT_EQ(world.told[0].losses[0].lane, 1U);
    EXPECT_EQ(world.told[0].losses[0].code, Code::range);
    world.write_over(0, 6, 10);
    world.write_over(2, 7, 11);
}

TEST(VerbsWire, ALaneForWhichThereIsNoQueuePairIsToldWithWhatToDo) {
    World world;
    world.start();
    world.connect();
    world.verbs->fail("create_qp", ENOMEM);
    WireContext context;
    const std::uint64_t value = 8;
    EXPECT_EQ(world.write(0, 5, &value, sizeof value, context, 1), Code::system);
    EXPECT_THAT(world.at(0).why(), HasSubstr("NPUSHMEM_VERBS_LANES"));
    world.verbs->mend("create_qp");
    world.verbs->fail("create_qp", ENOMEM, 1);  // at the peer
    EXPECT_EQ(world.write(0, 5, &value, sizeof value, context, 2), Code::system);
    ASSERT_THAT(world.told[0].losses, SizeIs(1));
    EXPECT_EQ(world.told[0].losses[0].lane, 2U);
    EXPECT_THAT(world.told[0].losses[0].why, HasSubstr("the peer could not make a queue pair"));
    world.verbs->mend("create_qp");
    world.write_over(0, 5, 9);
    world.at(0).close({1, 2});
    world.write_over(2, 5, 10);
}

TEST(VerbsWire, AGreetingOfAnotherJobIsNoneOfOurs) {
    World world;
    world.start();
    auto stranger = VerbsWire::open(world.verbs, world.settings, {0, 2, 0}, [&] { return world.now; });
    ASSERT_TRUE(stranger.ok());
    Contact wrong = *contact_from(world.at(1).address().value());
    wrong.nonce ^= 1;  // as of an earlier opening
    ASSERT_TRUE(stranger.value()->address().ok());
    ASSERT_TRUE(stranger.value()->link(1, bytes_from(wrong)).ok());
    const std::size_t before = world.verbs->reliable_pairs.size();
    EXPECT_EQ(stranger.value()->send({1}, Bytes(8), {}), Code::again);
    Told told;
    for (int i = 0; i < 5; ++i) (void)stranger.value()->progress(told);
    world.drive();
    EXPECT_EQ(world.verbs->reliable_pairs.size(), before + 1) << "PE 1 made a queue pair for a stranger";
}

TEST(VerbsWire, MemoryIsRegisteredChunkByChunkWhenItIsTouched) {
    World world;
    world.start();
    world.connect();
    const std::size_t one = world.verbs->registered_bytes();
    world.connect();
    EXPECT_EQ(world.verbs->registered_bytes(), one);
    WireContext context;
    const std::uint64_t value = 5;
    ASSERT_EQ(world.write(0, 512, &value, 8, context), Code::ok);  // in the second chunk of 4096 bytes
    world.drive();
    EXPECT_EQ(world.verbs->registered_bytes(), one + 4096);
    EXPECT_EQ(world.words[1][512], 5U);
}

TEST(VerbsWire, LongTransfersCrossChunksInBothDirections) {
    World world;
    world.start();
    std::iota(world.words[0].begin(), world.words[0].end(), 100U);
    WireContext there;
    ASSERT_EQ(world.write(0, 0, world.words[0].data(), sizeof world.words[0], there), Code::ok);
    world.drive();
    EXPECT_EQ(world.told[0].done.at(&there), Code::ok);
    EXPECT_EQ(world.words[0], world.words[1]);
    std::vector<std::uint64_t> back(words_per_pe);  // not registered: for this transfer only
    const std::size_t before = world.verbs->registered_bytes();
    WireContext here;
    EXPECT_EQ(
        world.insist([&] { return world.at(0).read(world.place(0, 0), back.data(), sizeof world.words[0], here); }),
        Code::ok);
    world.drive();
    EXPECT_TRUE(std::equal(back.begin(), back.end(), world.words[1].begin()));
    EXPECT_EQ(world.verbs->registered_bytes(), before);
}

TEST(VerbsWire, ATransferOfMoreRequestsThanFitIsPostedBitByBit) {
    World world;
    world.settings.queue_depth = 16;
    world.settings.chunk_bytes = 64;
    world.start();
    std::iota(world.words[0].begin(), world.words[0].end(), 7U);
    WireContext context;
    ASSERT_EQ(world.write(0, 0, world.words[0].data(), sizeof world.words[0], context), Code::ok);
    EXPECT_EQ(world.at(0).send({1}, Bytes(8), {}), Code::again) << "a message may not overtake it";
    world.drive(200);
    EXPECT_EQ(world.told[0].done.at(&context), Code::ok);
    EXPECT_EQ(world.words[0], world.words[1]);
}

TEST(VerbsWire, ABurstAsksForFewCompletionsAndEveryOneIsTold) {
    World world;
    world.start();
    world.connect();
    world.verbs->send_flags.clear();
    constexpr std::size_t count = 200;
    std::array<WireContext, count> contexts;
    const std::uint64_t value = 1;
    for (auto& context : contexts) ASSERT_EQ(world.at(0).write(world.place(0, 0), &value, 8, context), Code::ok);
    world.drive();
    for (auto& context : contexts) EXPECT_EQ(world.told[0].done.at(&context), Code::ok);
    const auto asked = std::count_if(world.verbs->send_flags.begin(), world.verbs->send_flags.end(),
                                     [](unsigned flags) { return (flags & IBV_SEND_SIGNALED) != 0; });
    EXPECT_LE(asked, 10);
    EXPECT_GE(asked, 2);
}

TEST(VerbsWire, AFullQueueIsBackPressureAndNoOverflow) {
    World world;
    world.settings.queue_depth = 16;
    world.start();
    world.connect();
    world.verbs->holds = true;
    std::array<WireContext, 64> contexts;
    const std::uint64_t value = 1;
    std::size_t posted = 0;
    while (posted < contexts.size() && world.at(0).write(world.place(0, 0), &value, 8, contexts[posted]) == Code::ok)
        ++posted;
    EXPECT_GT(posted, 8U);
    EXPECT_LT(posted, 16U);
    world.verbs->holds = false;
    world.drive();
    EXPECT_EQ(world.write(0, 0, &value, 8, contexts[posted]), Code::ok);
    EXPECT_THAT(world.told[0].losses, IsEmpty());
}

TEST(VerbsWire, ASignalFollowsItsDataInOneChain) {
    World world;
    world.start();
    world.connect();
    EXPECT_EQ(world.at(0).traits().signals, 1U << NPUSHMEM_SIGNAL_SET);
    const int before = world.verbs->calls["post_send"];
    world.verbs->opcodes.clear();
    std::array<std::uint64_t, 100> data{};
    data.fill(4);
    WireContext context;
    ASSERT_EQ(world.at(0).write_signal(world.place(0, 10), data.data(), sizeof data, world.place(0, 200), 11, context),
              Code::ok);
    EXPECT_EQ(world.verbs->calls["post_send"], before + 2);  // of one chain
    world.drive();
    EXPECT_EQ(world.words[1][109], 4U);
    EXPECT_EQ(world.words[1][200], 11U);
    EXPECT_EQ(world.told[0].done.at(&context), Code::ok);
}

TEST(VerbsWire, MessagesArriveInOrderWithTheirTwoPieces) {
    World world;
    world.start();
    for (unsigned i = 0; i < 300; ++i) {
        const Bytes head(i % 7 + 1, static_cast<std::byte>(i));
        const Bytes rest(i * 13 % 4000, static_cast<std::byte>(i));
        ASSERT_EQ(world.insist([&] { return world.at(0).send({1}, head, rest); }), Code::ok);
    }
    world.drive(200);
    ASSERT_THAT(world.told[1].messages, SizeIs(300));
    for (unsigned i = 0; i < 300; ++i) {
        EXPECT_THAT(world.told[1].messages[i], SizeIs(i % 7 + 1 + i * 13 % 4000));
        EXPECT_THAT(world.told[1].messages[i], Each(static_cast<std::byte>(i)));
    }
    EXPECT_EQ(world.at(0).send({1}, Bytes(world.at(0).traits().message_bytes + 1), {}), Code::argument);
}

npushmem_atomic atomic_op(std::uint8_t operation, std::uint64_t operand, std::uint64_t compare, void* result) {
    npushmem_atomic op{};
    op.operation = operation;
    op.width = 8;
    op.operand = operand;
    op.compare = compare;
    op.result = result;
    return op;
}

TEST(VerbsWire, NativeAtomicsAreOnlyForNicsThatAreAtomicWithTheCpuUnlessTheUserInsists) {
    const auto offered = [](ibv_atomic_cap able, NativeAtomics wish) {
        World world;
        world.settings.atomics = wish;
        world.verbs->add_device("fake0").attributes.atomic_cap = able;
        world.devices = 1;
        world.start();
        return world.at(0).traits().atomic_64 != 0;
    };
    EXPECT_FALSE(offered(IBV_ATOMIC_HCA, NativeAtomics::if_coherent));
    EXPECT_TRUE(offered(IBV_ATOMIC_GLOB, NativeAtomics::if_coherent));
    EXPECT_FALSE(offered(IBV_ATOMIC_GLOB, NativeAtomics::never));
    EXPECT_TRUE(offered(IBV_ATOMIC_HCA, NativeAtomics::always));
    EXPECT_FALSE(offered(IBV_ATOMIC_NONE, NativeAtomics::always));
}

TEST(VerbsWire, NativeAtomicsReturnWhatWasThere) {
    World world;
    world.settings.atomics = NativeAtomics::always;
    world.start();
    world.connect();
    world.words[1][3] = 40;
    std::array<std::uint64_t, 4> old{};
    std::array<WireContext, 4> contexts;
    const std::array<npushmem_atomic, 4> ops{
        atomic_op(NPUSHMEM_ATOMIC_FETCH_ADD, 2, 0, &old[0]), atomic_op(NPUSHMEM_ATOMIC_COMPARE_SWAP, 50, 42, &old[1]),
        atomic_op(NPUSHMEM_ATOMIC_COMPARE_SWAP, 60, 42, &old[2]), atomic_op(NPUSHMEM_ATOMIC_FETCH, 0, 0, &old[3])};
    for (std::size_t i = 0; i < ops.size(); ++i)
        ASSERT_EQ(world.insist([&] { return world.at(0).atomic(world.place(0, 3), ops[i], contexts[i]); }), Code::ok);
    world.drive();
    EXPECT_THAT(old, ::testing::ElementsAre(40, 42, 50, 50));
    EXPECT_EQ(world.words[1][3], 50U);
}

TEST(VerbsWire, AWriteBehindAnAtomicIsHeldBackByTheFenceBit) {
    World world;
    world.settings.atomics = NativeAtomics::always;
    world.start();
    world.connect();
    world.verbs->holds = true;
    world.verbs->send_flags.clear();
    std::array<WireContext, 2> contexts;
    const std::uint64_t value = 1;
    ASSERT_EQ(world.at(0).atomic(world.place(0, 0), atomic_op(NPUSHMEM_ATOMIC_ADD, 1, 0, nullptr), contexts[0]),
              Code::ok);
    ASSERT_EQ(world.at(0).write(world.place(0, 1), &value, 8, contexts[1]), Code::ok);
    world.verbs->holds = false;
    world.drive();
    ASSERT_GE(world.verbs->send_flags.size(), 2U);
    EXPECT_EQ(world.verbs->send_flags[0] & IBV_SEND_FENCE, 0U);
    EXPECT_NE(world.verbs->send_flags[1] & IBV_SEND_FENCE, 0U);
}

TEST(VerbsWire, APeerThatDoesNotAcknowledgeIsLostWithEverythingUnderWay) {
    World world;
    world.start();
    world.connect();
    world.verbs->holds = true;
    std::array<WireContext, 40> contexts;
    const std::uint64_t value = 1;
    for (auto& context : contexts) ASSERT_EQ(world.at(0).write(world.place(0, 0), &value, 8, context), Code::ok);
    world.verbs->next_status = IBV_WC_RETRY_EXC_ERR;
    world.verbs->holds = false;
    world.drive();
    for (auto& context : contexts) EXPECT_EQ(world.told[0].done.at(&context), Code::peer_dead);
    ASSERT_FALSE(world.told[0].losses.empty());
    EXPECT_EQ(world.told[0].losses[0].pe, 1);
    EXPECT_THAT(world.told[0].losses[0].why,
                AllOf(HasSubstr("work request "), HasSubstr("transport retry counter exceeded (status 12"),
                      HasSubstr("NPUSHMEM_IB_TIMEOUT")));
    EXPECT_EQ(world.at(0).write(world.place(0, 0), &value, 8, contexts[0]), Code::peer_dead);
    EXPECT_THAT(world.at(0).why(), HasSubstr("transport retry counter exceeded"));
}

TEST(VerbsWire, AKeyThatWasTakenBackIsAnErrorOfRange) {
    World world;
    world.start();
    world.connect();
    world.at(1).deregister_memory(world.number[1]);
    WireContext context;
    const std::uint64_t value = 1;
    ASSERT_EQ(world.write(0, 0, &value, 8, context), Code::ok);
    world.drive();
    EXPECT_EQ(world.told[0].done.at(&context), Code::range);
    EXPECT_THAT(world.told[0].whys, Contains(HasSubstr("deregistered")));
}

TEST(VerbsWire, AChunkThatThePeerCannotRegisterFailsTheOperationAndNotThePeer) {
    World world;
    world.start();
    world.connect();
    world.verbs->fail("reg_mr", ENOMEM);
    WireContext context;
    const std::uint64_t value = 1;
    ASSERT_EQ(world.write(0, 1024, &value, 8, context), Code::ok);
    world.drive();
    EXPECT_EQ(world.told[0].done.at(&context), Code::memory);
    EXPECT_THAT(world.told[0].whys,
                Contains(AllOf(HasSubstr("the peer says: ibv_reg_mr"), HasSubstr("Cannot allocate"))));
    EXPECT_THAT(world.told[0].losses, IsEmpty());
    world.verbs->mend("reg_mr");
    ASSERT_EQ(world.write(0, 1024, &value, 8, context), Code::ok);
    world.drive();
    EXPECT_EQ(world.told[0].done.at(&context), Code::ok);
}

TEST(VerbsWire, ARefusedChunkIsToldOnlyToWhoeverNeedsIt) {
    World world;
    world.start();
    world.connect();
    world.verbs->fail("reg_mr", ENOMEM);
    WireContext refused;
    const std::uint64_t value = 1;
    ASSERT_EQ(world.at(0).write(world.place(0, 1024), &value, 8, refused), Code::again) << "its key is asked for";
    world.drive();
    WireContext other;
    ASSERT_EQ(world.write(0, 0, &value, 8, other), Code::ok);
    world.drive();
    EXPECT_EQ(world.told[0].done.at(&other), Code::ok);
    ASSERT_EQ(world.write(0, 1024, &value, 8, refused), Code::ok);
    world.drive();
    EXPECT_EQ(world.told[0].done.at(&refused), Code::memory);
}

TEST(VerbsWire, APeerThatIsGivenUpLetsGoOfEverythingUnderWay) {
    World world;
    world.start();
    world.connect();
    world.verbs->holds = true;
    std::array<WireContext, 40> contexts;
    const std::uint64_t value = 1;
    for (auto& context : contexts) ASSERT_EQ(world.at(0).write(world.place(0, 0), &value, 8, context), Code::ok);
    world.at(0).forget(1);
    world.drive();
    for (auto& context : contexts) EXPECT_EQ(world.told[0].done.at(&context), Code::peer_dead);
    EXPECT_EQ(world.at(0).write(world.place(0, 0), &value, 8, contexts[0]), Code::peer_dead);
}

TEST(VerbsWire, OwnMemoryThatCannotBeRegisteredFailsTheOperationAndNotThePeer) {
    World world;
    world.start();
    world.connect();
    std::vector<std::byte> large(20000);
    WireContext context;
    EXPECT_EQ(world.insist([&] { return world.at(0).read(world.place(0, 0), large.data(), large.size(), context); }),
              Code::ok);
    world.drive();
    EXPECT_EQ(world.told[0].done.at(&context), Code::ok);
    world.verbs->fail("reg_mr", ENOMEM);
    EXPECT_EQ(world.at(0).read(world.place(0, 0), large.data(), large.size(), context), Code::ok);
    world.drive();
    EXPECT_EQ(world.told[0].done.at(&context), Code::memory);
    EXPECT_THAT(world.told[0].losses, IsEmpty());
}

TEST(VerbsWire, QueuePairsThatAreUsedUpAreSaidSo) {
    World world;
    world.start();
    world.verbs->fail("create_qp", ENOMEM);
    WireContext context;
    const std::uint64_t value = 1;
    EXPECT_EQ(world.at(0).write(world.place(0, 0), &value, 8, context), Code::system);
    EXPECT_THAT(world.at(0).why(), AllOf(HasSubstr("ibv_create_qp with 1024 requests (NPUSHMEM_QP_DEPTH)"),
                                         HasSubstr("1000 queue pairs")));
    EXPECT_TRUE(world.at(0).prepare_to_wait()) << "nobody is asked any more";
}

TEST(VerbsWire, APostThatTheDeviceRefusesLosesThePeer) {
    World world;
    world.start();
    world.connect();
    world.verbs->fail("post_send", ENOMEM);
    WireContext context;
    const std::uint64_t value = 1;
    EXPECT_EQ(world.at(0).write(world.place(0, 0), &value, 8, context), Code::system);
    EXPECT_THAT(world.at(0).why(), HasSubstr("ibv_post_send: Cannot allocate memory"));
}

TEST(VerbsWire, ACompletionQueueThatBreaksLosesEveryPeer) {
    World world;
    world.start();
    world.connect();
    world.verbs->fail("poll_cq", EIO);
    (void)world.at(0).progress(world.told[0]);
    ASSERT_THAT(world.told[0].losses, SizeIs(1));
    EXPECT_THAT(world.told[0].losses[0].why, HasSubstr("ibv_poll_cq"));
}

TEST(VerbsWire, EventsOfTheDeviceAreHints) {
    World world;
    world.start();
    world.connect();
    world.verbs->raise(IBV_EVENT_PORT_ERR);
    for (int i = 0; i < 600; ++i) (void)world.at(0).progress(world.told[0]);
    EXPECT_THAT(world.told[0].losses, IsEmpty()) << "a link may come back";
    world.verbs->next_status = IBV_WC_RETRY_EXC_ERR;
    WireContext context;
    const std::uint64_t value = 1;
    ASSERT_EQ(world.at(0).write(world.place(0, 0), &value, 8, context), Code::ok);
    world.drive();
    ASSERT_FALSE(world.told[0].losses.empty());
    EXPECT_THAT(world.told[0].losses[0].why, HasSubstr("port fake0:1 (1: RoCE v2 ::ffff:10.0.0.1) went down"));
}

TEST(VerbsWire, AQueuePairThatTheDeviceStopsLosesItsPeer) {
    World world;
    world.start();
    world.connect();
    const std::uint32_t of_pe_0 = world.verbs->reliable_pairs[2];  // after one probe of each
    world.verbs->raise(IBV_EVENT_QP_FATAL, of_pe_0);
    for (int i = 0; i < 600; ++i) (void)world.at(0).progress(world.told[0]);
    ASSERT_THAT(world.told[0].losses, SizeIs(1));
    EXPECT_EQ(world.told[0].losses[0].code, Code::peer_dead);
}

TEST(VerbsWire, AThreadMayWaitOnlyWhenNothingIsUnderWayThatNoDescriptorTellsOf) {
    World world;
    world.start();
    EXPECT_TRUE(world.at(0).prepare_to_wait());
    EXPECT_GE(world.at(0).descriptor(), 0);
    EXPECT_EQ(world.at(0).send({1}, Bytes(8), {}), Code::again);
    EXPECT_FALSE(world.at(0).prepare_to_wait()) << "a greeting has to be repeated";
    world.drive();
    EXPECT_EQ(world.at(0).send({1}, Bytes(8), {}), Code::ok);
    EXPECT_FALSE(world.at(1).prepare_to_wait()) << "something has arrived";
    world.drive();
    EXPECT_THAT(world.told[1].messages, SizeIs(1));
    EXPECT_TRUE(world.at(1).prepare_to_wait());
}

// Opening

Status failure_of_opening(World& world) {
    auto wire = world.open(0);
    return wire.ok() ? wire.value()->address().status() : wire.status();
}

TEST(VerbsWireOpening, WithoutADeviceSaysSo) {
    World world;
    const Status refused = failure_of_opening(world);
    EXPECT_EQ(refused.code(), Code::unreachable);
    EXPECT_THAT(refused.message(), AllOf(HasSubstr("no RDMA device"), HasSubstr("rdma_rxe")));
}

TEST(VerbsWireOpening, WithoutTheKernelsModuleSaysSo) {
    World world;
    world.verbs->fail("get_device_list", ENOSYS);
    EXPECT_THAT(failure_of_opening(world).message(), HasSubstr("ib_uverbs"));
}

TEST(VerbsWireOpening, PortsThatAreDownAreNamed) {
    World world;
    world.verbs->add_device("fake0", IBV_PORT_DOWN);
    world.verbs->add_device("fake1", IBV_PORT_INIT);
    const Status refused = failure_of_opening(world);
    EXPECT_THAT(refused.message(), AllOf(HasSubstr("no RDMA port is active"), HasSubstr("fake0:1, fake1:1 are down")));
}

TEST(VerbsWireOpening, ADeviceThatCannotBeOpenedIsNamed) {
    World world;
    world.add_devices(1);
    world.verbs->fail("open_device", EACCES);
    EXPECT_THAT(failure_of_opening(world).message(), HasSubstr("cannot open fake0: Permission denied"));
}

TEST(VerbsWireOpening, PesOfAHostTakeActivePortsInTurnUnlessTheyAreAssignedOthers) {
    World world;
    world.verbs->add_device("fake0");
    world.verbs->add_device("fake1", IBV_PORT_DOWN);
    world.verbs->add_device("fake2");
    world.devices = 3;
    auto second = world.open(1);
    ASSERT_TRUE(second.ok());
    ASSERT_THAT(second.value()->ports(), SizeIs(3));
    EXPECT_EQ(second.value()->ports()[0].bits_per_second, 100'000'000'000U);
    ASSERT_TRUE(second.value()->address().ok());
    EXPECT_THAT(second.value()->traits().name, HasSubstr("fake2:1"));
    EXPECT_EQ(second.value()->use_port(0).code(), Code::state) << "it is open";
    auto first = world.open(0);
    ASSERT_TRUE(first.ok());
    EXPECT_EQ(first.value()->use_port(3).code(), Code::argument);
    ASSERT_TRUE(first.value()->use_port(1).ok());
    EXPECT_THAT(first.value()->address().status().message(),
                AllOf(HasSubstr("cannot use RDMA port fake1:1"), HasSubstr("the port is down")));
}

TEST(VerbsWireOpening, WhatIsNotInThePortsTablesIsNamed) {
    World world;
    world.add_devices(1);
    world.settings.gid_index = 7;
    EXPECT_THAT(failure_of_opening(world).message(),
                AllOf(HasSubstr("NPUSHMEM_IB_GID_INDEX=7"), HasSubstr("1: RoCE v2 ::ffff:10.0.0.1")));
    world.settings.gid_index = -1;
    world.settings.pkey = 0x8002;
    EXPECT_THAT(failure_of_opening(world).message(), HasSubstr("NPUSHMEM_IB_PKEY=0x8002"));
    world.settings.pkey = 0x8001;
    EXPECT_TRUE(failure_of_opening(world).ok());
    world.settings.mtu = 4096;
    EXPECT_THAT(failure_of_opening(world).message(), HasSubstr("NPUSHMEM_IB_MTU=4096: the port carries 1024 at most"));
}

TEST(VerbsWireOpening, AProofOpensAPortThatServesAndLeavesNothingOpen) {
    World world;
    world.add_devices(2);
    auto wire = world.open(0);
    ASSERT_TRUE(wire.ok());
    world.verbs->fail("create_cq", ENOMEM, 1);
    EXPECT_TRUE(wire.value()->prove().ok());
    EXPECT_EQ(world.verbs->objects(), 0U);
    EXPECT_THAT(wire.value()->prove().message(), AllOf(HasSubstr("fake0:1"), HasSubstr("ibv_create_cq")));
    EXPECT_EQ(world.verbs->objects(), 0U);
    world.verbs->mend("create_cq");
    ASSERT_TRUE(wire.value()->use_port(1).ok());
    EXPECT_TRUE(wire.value()->address().ok());
}

TEST(VerbsWireOpening, WhateverFailsHalfWayIsUnmadeAndNamed) {
    for (const char* call : {"alloc_pd", "create_comp_channel", "create_cq", "create_srq", "create_qp", "modify_qp",
                             "reg_mr", "post_recv", "post_srq_recv", "query_gid_table"}) {
        for (const int after : {0, 1, 2, 3, 5}) {
            World world;
            world.add_devices(1);
            world.verbs->fail(call, EPERM, after);
            const Status refused = failure_of_opening(world);
            if (after == 0) {
                EXPECT_FALSE(refused.ok()) << call;
                EXPECT_THAT(refused.message(), HasSubstr(call));
            }
            EXPECT_EQ(world.verbs->objects(), 0U) << call << " failed after " << after;
        }
    }
}

TEST(VerbsWireOpening, ADeviceThatDoesNotAnswerIsNamed) {
    for (const auto& [call, object] : {std::pair{"query_device", "fake0"}, std::pair{"query_port", "fake0:1"}}) {
        World world;
        world.add_devices(1);
        world.verbs->fail(call, EIO);
        EXPECT_THAT(failure_of_opening(world).message(),
                    HasSubstr(std::string("can be used; cannot query ") + object + ": Input/output error"));
        EXPECT_EQ(world.verbs->objects(), 0U);
    }
}

TEST(VerbsWireOpening, NothingIsLeftOfAWireThatHasBeenUsed) {
    World world;
    world.start();
    world.connect();
    for (auto& wire : world.wires) wire.reset();
    EXPECT_EQ(world.verbs->objects(), 0U);
}

TEST(VerbsWireOpening, ALimitOfLockedMemoryIsNamedWithItsRemedy) {
    EXPECT_THAT(registration_hint(EPERM, 0), IsEmpty());
    rlimit before{};
    ASSERT_EQ(::getrlimit(RLIMIT_MEMLOCK, &before), 0);
    if (before.rlim_max < 65536) GTEST_SKIP() << "less than that may be locked here";
    rlimit low = before;
    low.rlim_cur = 65536;
    ASSERT_EQ(::setrlimit(RLIMIT_MEMLOCK, &low), 0);
    EXPECT_THAT(registration_hint(ENOMEM, 4096),
                AllOf(HasSubstr("4 KiB are registered already"), HasSubstr("RLIMIT_MEMLOCK"), HasSubstr("is 64 KiB"),
                      HasSubstr("limits.d")));
    ASSERT_EQ(::setrlimit(RLIMIT_MEMLOCK, &before), 0);
}

TEST(VerbsWireOpening, TheUsersChoicesReachTheQueuePair) {
    World world;
    world.settings.retry_count = 3;
    world.settings.timeout = 18;
    world.settings.service_level = 2;
    world.settings.traffic_class = 106;
    world.settings.mtu = 512;
    world.start();
    world.connect();
    const auto& changes = world.verbs->changes;
    const auto has = [&](auto&& holds) { return std::any_of(changes.begin(), changes.end(), holds); };
    EXPECT_TRUE(has([](const ibv_qp_attr& to) {
        return to.qp_state == IBV_QPS_RTR && to.path_mtu == IBV_MTU_512 && to.ah_attr.sl == 2 &&
               to.ah_attr.is_global == 1 && to.ah_attr.grh.traffic_class == 106 && to.ah_attr.grh.sgid_index == 1;
    }));
    EXPECT_TRUE(has([](const ibv_qp_attr& to) {
        return to.qp_state == IBV_QPS_RTS && to.retry_cnt == 3 && to.timeout == 18 && to.rnr_retry == 7;
    }));
}

}  // namespace
}  // namespace npushmem::verbs
