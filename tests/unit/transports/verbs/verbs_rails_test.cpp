// SPDX-License-Identifier: BSD-3-Clause
// PEs with several ports each.
#include <gmock/gmock.h>

#include <numeric>

#include "tests/unit/transports/verbs/fake_verbs.hpp"
#include "tests/unit/transports/verbs/verbs_world.hpp"
#include "transports/network/multi_rail_wire.hpp"

namespace npushmem::verbs {
namespace {

using network::MultiRailWire;
using network::Readiness;
using network::RemoteAddress;
using network::WireContext;
using test::RecordingListener;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;

constexpr std::size_t words_of_pe = 8192;
constexpr std::uint64_t all_bytes = words_of_pe * 8;

class VerbsRails : public ::testing::Test {
protected:
    // Each PE has this many of the two devices, in the same order.
    void start(std::size_t ports_of_first, std::size_t ports_of_second) {
        for (int i = 0; i < 2; ++i) verbs_->add_device("fake" + std::to_string(i));
        start_on({0, 1}, {0, 1}, ports_of_first, ports_of_second);
    }
    // Each PE has the first of these devices, this many.
    void start_on(const std::vector<std::size_t>& of_first, const std::vector<std::size_t>& of_second,
                  std::size_t ports_of_first = 2, std::size_t ports_of_second = 2) {
        settings_.chunk_bytes = 4096;
        open(0, {of_first.begin(), of_first.begin() + static_cast<std::ptrdiff_t>(ports_of_first)});
        open(1, {of_second.begin(), of_second.begin() + static_cast<std::ptrdiff_t>(ports_of_second)});
        for (std::size_t pe = 0; pe < 2; ++pe) {
            const auto memory = wires_[pe]->register_memory(words_[pe].data(), all_bytes);
            ASSERT_TRUE(memory.ok()) << memory.status().message();
            const Bytes address = wires_[pe]->address().value();
            ASSERT_TRUE(wires_[1 - pe]->add_peer(static_cast<int>(pe), address).ok());
            keys_[1 - pe] = wires_[1 - pe]->import_key(static_cast<int>(pe), memory.value().key).value();
        }
    }
    void open(std::size_t pe, const std::vector<std::size_t>& ports) {
        std::vector<MultiRailWire::Rail> rails;
        const auto caches = std::make_shared<RegistrationCaches>();
        for (const std::size_t port : ports) {
            auto made =
                VerbsWire::open(verbs_, settings_, {static_cast<int>(pe), 2, 0, subnets_}, [this] { return now_; });
            ASSERT_TRUE(made.ok());
            ASSERT_TRUE(made.value()->use_port(port).ok());
            made.value()->use_watch(watch_);
            made.value()->use_caches(caches);
            rails.push_back({std::move(made).value(), 0});
        }
        if (ports.size() == 1)
            wires_[pe] = std::move(rails.front().wire);
        else
            wires_[pe] = std::make_unique<MultiRailWire>(static_cast<int>(pe), std::move(rails), stripe_bytes_);
        ASSERT_TRUE(wires_[pe]->address().ok());
    }
    RemoteAddress place(std::size_t pe, std::uint32_t lane = 0, std::uint64_t offset = 0) {
        return {{static_cast<int>(1 - pe), lane},
                keys_[pe],
                reinterpret_cast<std::uintptr_t>(words_[1 - pe].data()),
                offset};
    }
    void drive(int rounds = 60) {
        for (; rounds > 0; --rounds)
            for (std::size_t pe = 0; pe < 2; ++pe) (void)wires_[pe]->progress(told_[pe]);
    }
    template <class Call>
    Code retry_until_posted(Call call) {
        for (int i = 0; i < 200; ++i) {
            const Code code = call();
            if (code != Code::again) return code;
            drive(1);
        }
        return Code::timeout;
    }
    Code write(std::size_t pe, std::uint64_t bytes, WireContext& context, std::uint32_t lane = 0) {
        return retry_until_posted([&] { return wires_[pe]->write(place(pe, lane), data_.data(), bytes, context); });
    }
    // Once one has been refused for want of a lane, the next are cut.
    void make_ready(std::size_t pe) {
        WireContext context;
        ASSERT_EQ(write(pe, all_bytes, context), Code::ok);
        drive();
        ASSERT_EQ(told_[pe].done.at(&context), Code::ok);
        verbs_->sent_bytes.clear();
    }

    // Both directions, over all paired ports.
    void exchange() {
        for (const std::size_t pe : {0U, 1U}) {
            make_ready(pe);
            WireContext context;
            ASSERT_EQ(write(pe, all_bytes, context), Code::ok) << wires_[pe]->last_error();
            drive();
            EXPECT_EQ(told_[pe].done.at(&context), Code::ok);
            EXPECT_EQ(words_[1 - pe], data_);
        }
    }
    std::string route(std::size_t pe) {
        const Bytes address = wires_[1 - pe]->address().value();
        auto found = wires_[pe]->route_to(static_cast<int>(1 - pe), address);
        return found.ok() ? found.value() : found.status().message();
    }
    // Two devices that nothing connects, which both PEs have.
    void add_two_planes() {
        for (const char* name : {"fake0", "fake1"}) verbs_->add_device(name);
        verbs_->isolated = true;
    }

    // Two contexts of the first PE: the first one's own port is the second, the other's the first.
    void take_lanes() {
        WireContext over_second;
        WireContext over_first;
        ASSERT_EQ(write(0, 8, over_second, 1), Code::ok);
        ASSERT_EQ(write(0, 8, over_first, 2), Code::ok);
        drive();
    }

    std::shared_ptr<fakes::FakeVerbs> verbs_ = std::make_shared<fakes::FakeVerbs>();
    std::shared_ptr<fakes::FakeWatch> watch_;  // of all, if the test has one
    VerbsSettings settings_;
    std::vector<GidRange> subnets_;
    std::uint64_t stripe_bytes_ = 8192;
    std::chrono::steady_clock::time_point now_{};
    std::array<std::vector<std::uint64_t>, 2> words_{std::vector<std::uint64_t>(words_of_pe),
                                                     std::vector<std::uint64_t>(words_of_pe)};
    std::vector<std::uint64_t> data_ = std::vector<std::uint64_t>(words_of_pe, 7);
    std::array<std::uint64_t, 2> keys_{};
    std::array<RecordingListener, 2> told_;
    std::array<std::unique_ptr<network::Wire>, 2> wires_;  // last: go before what they touch
};

TEST_F(VerbsRails, LongTransfersUseBothDevicesInBothDirections) {
    start(2, 2);
    EXPECT_THAT(wires_[0]->traits().name, AllOf(HasSubstr("verbs on fake0:1"), HasSubstr(" and verbs on fake1:1")));
    make_ready(0);
    std::iota(data_.begin(), data_.end(), 5U);
    WireContext there;
    ASSERT_EQ(write(0, all_bytes, there), Code::ok);
    EXPECT_FALSE(wires_[0]->in_order({1}));
    drive();
    EXPECT_EQ(told_[0].done.at(&there), Code::ok);
    EXPECT_EQ(words_[1], data_);
    EXPECT_GE(verbs_->sent_bytes["fake0"], all_bytes / 2 - 64);
    EXPECT_GE(verbs_->sent_bytes["fake1"], all_bytes / 2 - 64);
    std::vector<std::uint64_t> back(words_of_pe);
    WireContext here;
    ASSERT_EQ(retry_until_posted([&] { return wires_[0]->read(place(0), back.data(), all_bytes, here); }), Code::ok);
    drive();
    EXPECT_EQ(told_[0].done.at(&here), Code::ok);
    EXPECT_EQ(back, data_);
}

TEST_F(VerbsRails, ASignalFollowsDataOverBothDevices) {
    start(2, 2);
    make_ready(0);
    WireContext context;
    const std::uint64_t at = all_bytes - 8;
    ASSERT_EQ(retry_until_posted([&] {
                  return wires_[0]->write_signal(place(0), data_.data(), all_bytes - 64, place(0, 0, at), 99, context);
              }),
              Code::ok);
    drive();
    EXPECT_EQ(told_[0].done.at(&context), Code::ok);
    EXPECT_EQ(words_[1].back(), 99U);
    EXPECT_EQ(words_[1].front(), 7U);
}

TEST_F(VerbsRails, PesWithDifferentNumbersOfPortsUseWhatBothHave) {
    start(2, 1);
    // The first port of the first PE and the only one of the second.
    for (std::size_t pe = 0; pe < 2; ++pe) {
        for (const std::uint32_t lane : {0U, 1U}) {
            WireContext context;
            ASSERT_EQ(write(pe, all_bytes, context, lane), Code::ok) << wires_[pe]->last_error();
            drive();
            EXPECT_EQ(told_[pe].done.at(&context), Code::ok);
            EXPECT_EQ(words_[1 - pe], data_);
        }
        ASSERT_EQ(retry_until_posted([&] { return wires_[pe]->send({static_cast<int>(1 - pe)}, Bytes(100), {}); }),
                  Code::ok);
        drive();
        EXPECT_EQ(told_[1 - pe].messages.size(), 1U);
    }
}

TEST_F(VerbsRails, PortsOfOnePlaneAreConnectedInWhateverOrderTheyAreAssigned) {
    add_two_planes();
    start_on({0, 1}, {1, 0});
    exchange();
    for (const char* device : {"fake0", "fake1"}) EXPECT_GT(verbs_->sent_bytes[device], 0U);
    EXPECT_EQ(route(0), "fake0:1 -> 10.0.0.1, rail 0 on both ends; fake1:1 -> 10.0.0.2, rail 1 on both ends");
    EXPECT_EQ(route(1), route(0));
}

TEST_F(VerbsRails, APeWithOnePortTakesThePeersPortOfThatPlane) {
    add_two_planes();
    start_on({0, 1}, {1}, 2, 1);
    exchange();
    EXPECT_EQ(verbs_->sent_bytes["fake0"], 0U);
    EXPECT_THAT(route(0), "fake1:1 -> 10.0.0.2, rail 1 on both ends");
    EXPECT_THAT(route(1), HasSubstr("(1: RoCE v2 ::ffff:10.0.0.2): fake1:1 -> 10.0.0.2, rail 1 on both ends"));
}

TEST_F(VerbsRails, AFailingPortFailsItsOperationsAndTheOtherContinues) {
    start(2, 2);
    make_ready(0);
    take_lanes();
    WireContext over_second;
    verbs_->cut_off = "fake1";
    WireContext cut;
    ASSERT_EQ(write(0, all_bytes, cut, 2), Code::ok);
    drive();
    EXPECT_EQ(told_[0].done.at(&cut), Code::system);
    EXPECT_THAT(told_[0].whys, Contains(AllOf(HasSubstr("transport retry counter exceeded"), HasSubstr("fake1:1"))));
    std::vector<std::pair<std::uint32_t, Code>> lost;
    for (const auto& loss : told_[0].losses) lost.emplace_back(loss.lane, loss.code);
    EXPECT_THAT(lost, UnorderedElementsAre(Pair(1U, Code::system), Pair(2U, Code::system)));
    EXPECT_EQ(write(0, 8, over_second, 1), Code::system);
    EXPECT_TRUE(wires_[0]->in_order({1}));
    data_.assign(words_of_pe, 8);
    WireContext after;
    ASSERT_EQ(write(0, all_bytes, after), Code::ok);
    drive();
    EXPECT_EQ(told_[0].done.at(&after), Code::ok);
    EXPECT_EQ(words_[1], data_);
    EXPECT_EQ(told_[0].losses.size(), 2U);
    wires_[0]->close({1, 1});
    ASSERT_EQ(write(0, 8, over_second, 1), Code::ok) << "over the first port";
    drive();
    EXPECT_EQ(told_[0].done.at(&over_second), Code::ok);
}

// The lane of the context is lost, and its transfers over the other port fail: their caller may have returned.
TEST_F(VerbsRails, AFailedStripeLeavesNoWriteForItsContext) {
    start(2, 2);
    make_ready(0);
    take_lanes();
    verbs_->held = "fake1";
    WireContext cut;
    ASSERT_EQ(write(0, all_bytes, cut, 2), Code::ok);
    drive();  // the first port's part is over
    verbs_->held = "fake0";
    WireContext late;
    std::uint64_t into = 5;
    ASSERT_EQ(retry_until_posted([&] { return wires_[0]->read(place(0, 2), &into, sizeof into, late); }), Code::ok);
    verbs_->cut_off = "fake1";
    drive();
    const auto lost = [](const auto& loss) { return loss.lane == 2; };
    ASSERT_TRUE(std::any_of(told_[0].losses.begin(), told_[0].losses.end(), lost));
    verbs_->held.clear();
    drive();
    EXPECT_EQ(into, 5U);
}

// With one port the fenced operation continues as well.
TEST_F(VerbsRails, AStripeThatCannotBeRegisteredFailsOnlyItsOperation) {
    start(2, 2);
    make_ready(0);
    make_ready(0);  // over both
    for (const std::uint32_t lane : {0U, 1U, 2U}) {
        WireContext first;
        ASSERT_EQ(write(0, 8, first, lane), Code::ok);
        drive();
        for (const int good : {0, 1}) {
            data_.assign(words_of_pe, 10 * lane + static_cast<unsigned>(good) + 20);
            verbs_->fail("reg_mr", ENOMEM, good);
            WireContext failed;
            WireContext signalled;
            ASSERT_EQ(write(0, all_bytes, failed, lane), Code::ok);
            drive();
            EXPECT_EQ(told_[0].done.at(&failed), Code::memory);
            EXPECT_THAT(told_[0].whys.back(), HasSubstr("ibv_reg_mr"));
            EXPECT_TRUE(wires_[0]->in_order({1, lane}));
            verbs_->fail("reg_mr", ENOMEM, good);
            words_[1].back() = 0;
            ASSERT_EQ(retry_until_posted([&] {
                          return wires_[0]->write_signal(place(0, lane), data_.data(), all_bytes - 64,
                                                         place(0, lane, all_bytes - 8), 99, signalled);
                      }),
                      Code::ok);
            drive();
            EXPECT_EQ(told_[0].done.at(&signalled), Code::memory);
            EXPECT_EQ(words_[1].back(), 0U) << "a signal without its data";
            verbs_->clear_fault("reg_mr");
            EXPECT_THAT(told_[0].losses, IsEmpty());
            WireContext after;
            ASSERT_EQ(write(0, all_bytes, after, lane), Code::ok);
            drive();
            EXPECT_EQ(told_[0].done.at(&after), Code::ok);
            EXPECT_EQ(words_[1], data_);
        }
    }
}

// The limit of locked memory applies to the process, not to a port.
TEST_F(VerbsRails, APortWithoutRoomReclaimsUnusedRegistrationsOfTheOther) {
    watch_ = std::make_shared<fakes::FakeWatch>();
    stripe_bytes_ = all_bytes;
    start(2, 2);
    make_ready(0);
    WireContext first;
    ASSERT_EQ(write(0, all_bytes * 3 / 4, first), Code::ok);
    drive();
    for (int i = 0; i < 2; ++i) make_ready(0);                      // over both, and kept: half of it by each
    const std::vector<std::uint64_t> more(words_of_pe * 3 / 4, 9);  // over the first alone, which keeps less
    const std::size_t kept = verbs_->registered_bytes();
    verbs_->lockable = kept;
    WireContext context;
    ASSERT_EQ(retry_until_posted([&] { return wires_[0]->write(place(0), more.data(), more.size() * 8, context); }),
              Code::ok);
    drive();
    EXPECT_EQ(told_[0].done.at(&context), Code::ok);
    EXPECT_THAT(told_[0].whys, IsEmpty());
    EXPECT_EQ(words_[1][more.size() - 1], 9U);
    EXPECT_LE(verbs_->registered_bytes(), kept - all_bytes);
    verbs_->lockable = verbs_->registered_bytes() + more.size() * 4;
    ASSERT_EQ(retry_until_posted([&] { return wires_[0]->write(place(0), more.data(), more.size() * 8, context); }),
              Code::ok);
    drive();
    EXPECT_EQ(told_[0].done.at(&context), Code::memory) << "nobody keeps any more";
}

TEST_F(VerbsRails, AWaitingThreadIsWokenForAnUnpostedStripe) {
    settings_.queue_depth = 16;
    start(2, 2);
    make_ready(0);
    std::array<WireContext, 16> cuts;  // each over a lane of its own of the first port, and over one of the second
    const auto lane_of = [](std::size_t i) { return static_cast<std::uint32_t>(2 * i); };
    for (std::size_t i = 0; i < cuts.size(); ++i) {
        ASSERT_EQ(write(0, stripe_bytes_, cuts[i], lane_of(i)), Code::ok);
        drive();
    }
    told_[0].done.clear();
    ASSERT_TRUE(wires_[0]->prepare_to_wait(network::WakeEvents::arrivals));
    verbs_->holds = true;
    std::size_t posted = 0;
    for (; posted < cuts.size() && !test::wakes(*wires_[0]); ++posted) {
        ASSERT_TRUE(wires_[0]->prepare_to_wait(network::WakeEvents::arrivals)) << posted;
        ASSERT_EQ(wires_[0]->write(place(0, lane_of(posted)), data_.data(), stripe_bytes_, cuts[posted]), Code::ok);
    }
    EXPECT_GT(posted, 4U) << "as long as all parts find room nobody is woken";
    EXPECT_TRUE(test::wakes(*wires_[0]));
    EXPECT_FALSE(wires_[0]->prepare_to_wait(network::WakeEvents::arrivals));
    verbs_->holds = false;
    drive();
    EXPECT_EQ(told_[0].done.size(), posted);
    for (std::size_t i = 0; i < posted; ++i) EXPECT_EQ(told_[0].done.at(&cuts[i]), Code::ok);
    EXPECT_TRUE(wires_[0]->prepare_to_wait(network::WakeEvents::arrivals));
    EXPECT_FALSE(test::wakes(*wires_[0]));
}

TEST_F(VerbsRails, APortWithoutAnswersIsNotUsed) {
    start(2, 2);
    verbs_->drop_datagrams = 1 << 20;
    EXPECT_EQ(wires_[0]->readiness({1}), Readiness::connecting);
    for (int i = 0; i < 30; ++i) {
        now_ += std::chrono::milliseconds(100);
        drive(1);
    }
    EXPECT_EQ(wires_[0]->readiness({1}), Readiness::unreachable);
    EXPECT_THAT(told_[0].losses, IsEmpty());
    verbs_->drop_datagrams = 0;
    now_ += std::chrono::milliseconds(100);
    drive();
    EXPECT_EQ(wires_[0]->readiness({1}), Readiness::ready) << "late is not never";
}

TEST_F(VerbsRails, NothingLeaks) {
    start(2, 2);
    make_ready(0);
    make_ready(1);
    for (auto& wire : wires_) wire.reset();
    EXPECT_EQ(verbs_->objects(), 0U);
}

}  // namespace
}  // namespace npushmem::verbs
