// SPDX-License-Identifier: BSD-3-Clause
// The operations of one context, call by call: against MockTransport, because the order of the calls is the contract.
#include "core/remote/remote_access.hpp"

#include <gmock/gmock.h>

#include "tests/unit/core/remote/remote_access_fixture.hpp"

namespace npushmem {
namespace {

using ::testing::_;
using ::testing::AllOf;
using ::testing::DoAll;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::InSequence;
using ::testing::Return;
using ::testing::SetArgPointee;
using Completion = RemoteAccess::Completion;

TEST_F(RemoteAccessTest, ConnectsAPeerOnceAtItsFirstUse) {
    reach_with(everything);
    {
        InSequence order;
        expect_meeting();
        EXPECT_CALL(transport, put(9,
                                   AllOf(Field(&npushmem_rma::pe, 1), Field(&npushmem_rma::remote, 77),
                                         Field(&npushmem_rma::offset, 64), Field(&npushmem_rma::bytes, sizeof value)),
                                   _))
            .WillOnce(Return(Code::ok));
        EXPECT_CALL(transport, get(9, _, _)).WillOnce(Return(Code::ok));
        expect_parting();
    }
    EXPECT_TRUE(access->put(1, 64, &value, sizeof value, Completion::local).ok());
    EXPECT_TRUE(access->get(1, 64, &value, sizeof value, Completion::local).ok());
    end();
}

TEST_F(RemoteAccessTest, UnusedPeersCostNothing) {
    reach_with(everything);
    EXPECT_TRUE(access->quiet().ok());
    EXPECT_TRUE(access->fence().ok());
    end();  // the strict mock has seen no queue and no connection
}

TEST_F(RemoteAccessTest, ProgressReachesATransportThatOnlyReceives) {
    reach_with(everything);
    EXPECT_CALL(transport, progress()).WillOnce(Return(Code::ok));
    EXPECT_TRUE(access->progress().ok());
    end();
}

TEST_F(RemoteAccessTest, PassesAsynchronousErrorsOnWithTheirPe) {
    reach_with(everything);
    std::vector<std::pair<int, Code>> events;
    peers->on_event([&](int pe, Code code) {
        events.emplace_back(pe, code);
        return false;
    });
    EXPECT_CALL(transport, progress()).WillOnce(Return(Code::ok));
    EXPECT_CALL(transport, poll_event(_)).WillOnce([](npushmem_event& event) {
        event.code = static_cast<std::int32_t>(Code::unreachable);
        event.pe = 1;
        std::string("the cable is gone").copy(event.message, sizeof event.message);
        return Code::ok;
    });
    const Status status = access->progress();
    EXPECT_EQ(status.code(), Code::unreachable);
    EXPECT_EQ(status.message(), "transport mock: the cable is gone");
    EXPECT_EQ(events, (std::vector{std::pair{1, Code::unreachable}}));
    end();
}

// The program that knows of a death needs no more failures because of it.
TEST_F(RemoteAccessTest, AnAcknowledgedDeathFailsNoQuiet) {
    reach_with(everything);
    expect_meeting();
    expect_parting();
    bool is_known = false;
    peers->on_failure([&is_known](int pe) { return is_known && pe == 1; });
    peers->survive_deaths();
    EXPECT_CALL(transport, put(9, _, _)).WillOnce(Return(Code::ok));
    EXPECT_CALL(transport, quiet(9)).Times(2).WillRepeatedly(Return(Code::timeout));
    const long source = 1;
    EXPECT_TRUE(access->put(1, 0, &source, sizeof source, RemoteAccess::Completion::deferred).ok());
    EXPECT_EQ(access->quiet().code(), Code::peer_dead) << "whatever the transport calls it";
    is_known = true;
    EXPECT_TRUE(access->quiet().ok());
    end();
}

auto request(std::uint64_t offset, std::uint64_t bytes) {
    return AllOf(Field(&npushmem_rma::offset, offset), Field(&npushmem_rma::bytes, bytes));
}

TEST_F(RemoteAccessTest, AdjacentBlocksAreOnePut) {
    reach_with(everything);
    expect_meeting();
    expect_parting();
    const long source[] = {1, 0, 0, 2, 0, 0, 3};
    EXPECT_CALL(transport, put(9, request(40, 24), _))
        .WillOnce([](std::uint64_t, const npushmem_rma& op, std::uint64_t*) {
            const long* moved = static_cast<const long*>(op.local);
            EXPECT_EQ((std::vector<long>{moved[0], moved[1], moved[2]}), (std::vector<long>{1, 2, 3}));
            return Code::ok;
        });
    EXPECT_TRUE(access->put_blocks(1, {40, 8, 24, 8, 3}, source).ok());
    end();
}

TEST_F(RemoteAccessTest, ManyAdjacentBlocksAreOnePutPerStagingBuffer) {
    reach_with(everything);
    expect_meeting();
    expect_parting();
    const std::vector<long> source(20000);
    {
        InSequence order;
        EXPECT_CALL(transport, put(9, request(0, 65536), _)).WillOnce(Return(Code::ok));
        EXPECT_CALL(transport, put(9, request(65536, 65536), _)).WillOnce(Return(Code::ok));
        EXPECT_CALL(transport, put(9, request(131072, 160000 - 131072), _)).WillOnce(Return(Code::ok));
    }
    EXPECT_TRUE(access->put_blocks(1, {0, 8, 8, 8, 20000}, source.data()).ok());
    end();
}

auto blocks(std::uint64_t offset, const void* local, std::uint64_t count) {
    return AllOf(Field(&npushmem_put_strided::block,
                       AllOf(request(offset, 8), Field(&npushmem_rma::remote, 77), Field(&npushmem_rma::local, local))),
                 Field(&npushmem_put_strided::count, count), Field(&npushmem_put_strided::remote_stride, 9000),
                 Field(&npushmem_put_strided::local_stride, 16));
}

TEST_F(RemoteAccessTest, ShortDistantBlocksArePutTogetherWhereTheTransportCan) {
    reach_with(everything | NPUSHMEM_CAP_PUT_STRIDED);
    expect_meeting();
    expect_parting();
    std::vector<long> source(600);
    InSequence order;
    EXPECT_CALL(transport, put_strided(9, blocks(40, source.data(), 256), _))
        .WillOnce(DoAll(SetArgPointee<2>(31), Return(Code::ok)));
    EXPECT_CALL(transport, put_strided(9, blocks(40 + 256 * 9000, &source[512], 44), _)).WillOnce(Return(Code::ok));
    EXPECT_CALL(transport, test(9, 31)).WillOnce(Return(Code::ok));
    EXPECT_TRUE(access->put_blocks(1, {40, 9000, 16, 8, 300}, source.data()).ok());
    EXPECT_CALL(transport, put(9, request(0, 264), _)).WillOnce(Return(Code::ok));
    EXPECT_CALL(transport, put(9, request(9000, 264), _)).WillOnce(Return(Code::ok));
    EXPECT_TRUE(access->put_blocks(1, {0, 9000, 264, 264, 2}, source.data()).ok()) << "long blocks, one by one";
    end();
}

// Gaps between the blocks are read too, but not the gap after the last one.
TEST_F(RemoteAccessTest, BlocksWithSmallGapsAreOneGet) {
    reach_with(everything);
    expect_meeting();
    expect_parting();
    long dest[5] = {-1, -1, -1, -1, -1};
    EXPECT_CALL(transport, get(9, request(16, 2 * 80 + 8), _))
        .WillOnce([](std::uint64_t, const npushmem_rma& op, std::uint64_t*) {
            for (int i = 0; i < 3; ++i) static_cast<long*>(op.local)[10 * i] = i + 5;
            return Code::ok;
        });
    EXPECT_TRUE(access->get_blocks(1, {16, 80, 16, 8, 3}, dest).ok());
    EXPECT_THAT(dest, ::testing::ElementsAre(5, -1, 6, -1, 7));
    end();
}

// Where a request takes time, larger gaps are read; where it does not, they are skipped.
TEST_F(RemoteAccessTest, BlocksWithMediumGapsAreOneGetIfRequestsTakeTime) {
    reach_with(everything);
    expect_meeting();
    expect_parting();
    long dest[3] = {-1, -1, -1};
    InSequence order;
    EXPECT_CALL(transport, get(9, request(16, 8), _))
        .WillOnce([](std::uint64_t, const npushmem_rma& op, std::uint64_t* token) {
            *static_cast<long*>(op.local) = 5;
            *token = 31;
            return Code::ok;
        });
    EXPECT_CALL(transport, test(9, 31)).WillOnce(Return(Code::ok));
    EXPECT_CALL(transport, get(9, request(16 + 400, 400 + 8), _))
        .WillOnce([](std::uint64_t, const npushmem_rma& op, std::uint64_t*) {
            for (int i = 0; i < 2; ++i) static_cast<long*>(op.local)[50 * i] = i + 6;
            return Code::ok;
        });
    EXPECT_TRUE(access->get_blocks(1, {16, 400, 8, 8, 3}, dest).ok());
    EXPECT_THAT(dest, ::testing::ElementsAre(5, 6, 7));
    for (const std::uint64_t offset : {16, 416, 816})
        EXPECT_CALL(transport, get(9, request(offset, 8), _)).WillOnce(Return(Code::ok));
    EXPECT_TRUE(access->get_blocks(1, {16, 400, 8, 8, 3}, dest).ok());
    end();
}

// A window of requests is posted before any wait; posted ones are awaited even if a later one fails.
TEST_F(RemoteAccessTest, DistantBlocksDoNotWaitForEachOther) {
    reach_with(everything);
    expect_meeting();
    expect_parting();
    const long source[3] = {1, 2, 3};
    const auto posted = [](std::uint64_t token) {
        return [token](std::uint64_t, const npushmem_rma&, std::uint64_t* out) {
            *out = token;
            return Code::ok;
        };
    };
    InSequence order;
    EXPECT_CALL(transport, put(9, request(0, 8), _)).WillOnce(posted(31));
    EXPECT_CALL(transport, put(9, request(9000, 8), _)).WillOnce(posted(32));
    EXPECT_CALL(transport, put(9, request(18000, 8), _)).WillOnce(Return(Code::unreachable));
    EXPECT_CALL(transport, test(9, 31)).WillOnce(Return(Code::again)).WillOnce(Return(Code::ok));
    EXPECT_CALL(transport, test(9, 32)).WillOnce(Return(Code::ok));
    EXPECT_EQ(access->put_blocks(1, {0, 9000, 8, 8, 3}, source).code(), Code::unreachable);
    end();
}

TEST_F(RemoteAccessTest, GetsAnyNumberOfDistantBlocks) {
    reach_with(everything);
    expect_meeting();
    expect_parting();
    std::vector<long> dest(150);
    EXPECT_CALL(transport, get(9, _, _))
        .Times(150)
        .WillRepeatedly([](std::uint64_t, const npushmem_rma& op, std::uint64_t*) {
            *static_cast<long*>(op.local) = static_cast<long>(op.offset / 8192);
            return Code::ok;
        });
    EXPECT_TRUE(access->get_blocks(1, {0, 8192, 8, 8, 150}, dest.data()).ok());
    for (std::size_t i = 0; i < dest.size(); ++i) EXPECT_EQ(dest[i], static_cast<long>(i));
    EXPECT_TRUE(access->get_blocks(1, {0, 8192, 8, 8, 0}, dest.data()).ok());
    end();
}

TEST_F(RemoteAccessTest, PutSignalWithoutTheCapabilityIsPutFenceSignal) {
    reach_with(NPUSHMEM_CAP_PUT | NPUSHMEM_CAP_GET | NPUSHMEM_CAP_ATOMIC);
    {
        InSequence order;
        expect_meeting();
        EXPECT_CALL(transport, put(9, _, _)).WillOnce(Return(Code::ok));
        EXPECT_CALL(transport, fence(9)).WillOnce(Return(Code::ok));
        EXPECT_CALL(transport, atomic(9,
                                      AllOf(Field(&npushmem_atomic::operation, NPUSHMEM_ATOMIC_ADD),
                                            Field(&npushmem_atomic::width, 8), Field(&npushmem_atomic::offset, 128),
                                            Field(&npushmem_atomic::operand, 4)),
                                      _))
            .WillOnce(Return(Code::ok));
        expect_parting();
    }
    EXPECT_TRUE(access->put_signal(1, 0, &value, sizeof value, 128, 4, NPUSHMEM_SIGNAL_ADD, Completion::local).ok());
    end();
}

TEST_F(RemoteAccessTest, SendsNoSignalAfterAPutThatFailed) {
    reach_with(NPUSHMEM_CAP_PUT | NPUSHMEM_CAP_GET | NPUSHMEM_CAP_ATOMIC);
    expect_meeting();
    expect_parting();
    EXPECT_CALL(transport, put(9, _, _)).WillOnce(DoAll(SetArgPointee<2>(5), Return(Code::ok)));
    EXPECT_CALL(transport, test(9, 5)).WillOnce(Return(Code::system));
    EXPECT_CALL(transport, fence(_)).Times(0);
    EXPECT_CALL(transport, atomic(_, _, _)).Times(0);
    const Status sent = access->put_signal(1, 0, &value, sizeof value, 128, 4, NPUSHMEM_SIGNAL_ADD, Completion::local);
    EXPECT_EQ(sent.code(), Code::system);
    end();
}

TEST_F(RemoteAccessTest, NoQuietOverAllPesWaitsForAnUnawaitedSignal) {
    reach_with(everything);
    expect_meeting();
    expect_parting();
    const InSequence in_order;
    const auto signal = [this] {
        return access->put_signal(1, 0, nullptr, 0, 64, 7, NPUSHMEM_SIGNAL_SET, Completion::unawaited);
    };
    EXPECT_CALL(transport, put_signal(9, _, _)).WillOnce(Return(Code::ok));
    EXPECT_TRUE(signal().ok());
    EXPECT_TRUE(access->quiet().ok());

    EXPECT_CALL(transport, quiet(9)).WillOnce(Return(Code::ok));
    const int pe = 1;
    EXPECT_TRUE(access->quiet(std::span(&pe, 1)).ok());

    EXPECT_CALL(transport, put_signal(9, _, _)).WillOnce(Return(Code::ok));
    EXPECT_CALL(transport, put(9, _, _)).WillOnce(Return(Code::ok));
    EXPECT_CALL(transport, quiet(9)).WillOnce(Return(Code::ok));
    EXPECT_TRUE(signal().ok());
    EXPECT_TRUE(access->put(1, 0, &value, sizeof value, Completion::deferred).ok());
    EXPECT_TRUE(access->quiet().ok()) << "of the program's put";
    EXPECT_TRUE(access->quiet().ok());

    EXPECT_CALL(transport, put_signal(9, _, _)).WillOnce(Return(Code::ok));
    EXPECT_CALL(transport, quiet(9)).WillOnce(Return(Code::ok));
    EXPECT_TRUE(signal().ok());
    EXPECT_TRUE(access->complete().ok());
    EXPECT_TRUE(access->complete().ok());
    end();
}

TEST_F(RemoteAccessTest, AFenceOfAPeOrdersUnawaitedSignals) {
    reach_with(everything);
    expect_meeting();
    expect_parting();
    const InSequence in_order;
    EXPECT_CALL(transport, put_signal(9, _, _)).WillOnce(Return(Code::ok));
    EXPECT_CALL(transport, fence(9)).WillOnce(Return(Code::ok));
    EXPECT_CALL(transport, put_signal(9, _, _)).WillOnce(Return(Code::ok));
    for (const std::uint64_t next : {1, 2}) {
        EXPECT_TRUE(access->fence(1, nullptr).ok());
        EXPECT_TRUE(access->put_signal(1, 0, nullptr, 0, 64, next, NPUSHMEM_SIGNAL_SET, Completion::unawaited).ok());
    }
    end();
}

TEST_F(RemoteAccessTest, ReportsAnUnsupportedAtomic) {
    reach_with(everything, 1U << NPUSHMEM_ATOMIC_ADD);
    npushmem_atomic op{};
    op.pe = 1;
    op.operation = NPUSHMEM_ATOMIC_SWAP;
    op.width = 4;
    const Status refused = access->atomic(op, Completion::local);
    EXPECT_EQ(refused.code(), Code::unsupported);
    EXPECT_THAT(refused.message(), HasSubstr("transport mock has no 32-bit atomic"));
    end();
}

TEST_F(RemoteAccessTest, ConnectionAndImportFailuresReportThePeerAndAreRetried) {
    reach_with(everything);
    EXPECT_CALL(transport, connect(_))
        .WillOnce(Return(Status{Code::system, "no route"}))
        .WillOnce(Return(Status{}));  // a transport connects to a peer once
    EXPECT_CALL(transport, import_memory(1, _))
        .WillOnce(Return(Status{Code::protocol, "bad handle"}))
        .WillOnce(Return(std::uint64_t{77}));
    EXPECT_CALL(transport, create_queue()).WillOnce(Return(std::uint64_t{9}));
    EXPECT_CALL(transport, put(_, _, _)).WillOnce(Return(Code::ok));
    expect_parting();
    EXPECT_THAT(access->put(1, 0, &value, 8, Completion::local).message(),
                HasSubstr("cannot connect to PE 1: no route"));
    EXPECT_THAT(access->put(1, 0, &value, 8, Completion::local).message(),
                HasSubstr("cannot use the memory of PE 1: bad handle"));
    EXPECT_TRUE(access->put(1, 0, &value, 8, Completion::local).ok());
    end();
}

TEST_F(RemoteAccessTest, AnErrorCodeOfTheTransportReachesTheCaller) {
    reach_with(everything);
    expect_meeting();
    expect_parting();
    EXPECT_CALL(transport, put(_, _, _)).WillOnce(Return(Code::range));
    const Status failed = access->put(1, 0, &value, 8, Completion::local);
    EXPECT_EQ(failed.code(), Code::range);
    EXPECT_THAT(failed.message(), HasSubstr("transport mock: a put to PE 1 failed"));
    end();
}

// The result word of a timed-out fetch is not reused, because the result may still arrive.
TEST_F(RemoteAccessTest, ATimedOutFetchKeepsItsResultWord) {
    reach_with(everything);
    expect_meeting();
    expect_parting();
    std::vector<void*> words;
    EXPECT_CALL(transport, atomic(9, _, _))
        .WillRepeatedly([&](std::uint64_t, const npushmem_atomic& op, std::uint64_t* token) {
            words.push_back(op.result);
            *token = words.size();
            *static_cast<std::uint64_t*>(op.result) = 70 + words.size();
            return Code::ok;
        });
    EXPECT_CALL(transport, test(9, _)).WillRepeatedly([](std::uint64_t, std::uint64_t token) {
        return token == 1 ? Code::again : Code::ok;
    });
    EXPECT_CALL(transport, progress()).WillRepeatedly(Return(Code::ok));
    const RemoteAccess::WaitFunction impatient = [](const std::function<bool()>& ready, const WaitFor&) {
        return ready() ? Status{} : Status{Code::timeout, "at once"};
    };
    npushmem_atomic op{};
    op.pe = 1;
    op.operation = NPUSHMEM_ATOMIC_FETCH_ADD;
    op.width = 8;
    std::uint64_t old = 5;
    op.result = &old;
    EXPECT_EQ(access->atomic(op, Completion::local, &impatient).code(), Code::timeout);
    EXPECT_EQ(old, 5U) << "written for a caller that had received a failure";
    EXPECT_TRUE(access->atomic(op, Completion::local).ok());
    EXPECT_EQ(old, 72U);
    EXPECT_TRUE(access->atomic(op, Completion::local).ok());
    ASSERT_EQ(words.size(), 3U);
    EXPECT_NE(words[1], words[0]);
    EXPECT_EQ(words[2], words[1]) << "the word of one that is over is used again";
    end();
}

}  // namespace
}  // namespace npushmem
