// SPDX-License-Identifier: BSD-3-Clause
#include "transports/network/target_handler.hpp"

#include <gtest/gtest.h>

#include <array>

namespace npushmem::network {
namespace {

constexpr int origin = 3;

class TargetHandlerTest : public ::testing::Test {
protected:
    TargetHandlerTest() { region_ = regions_.insert({reinterpret_cast<std::byte*>(words_.data()), sizeof words_, 0}); }

    std::optional<Answer> handle(const Bytes& message) {
        const auto head = parse_header(message);
        return head ? handler_.handle(*head, message) : std::nullopt;
    }
    template <class Message>
    std::optional<Answer> handle(Message message, MessageKind kind, std::span<const std::byte> payload = {}) {
        message.head.kind = kind;
        message.head.origin = origin;
        const auto bytes = bytes_of(message);
        Bytes whole(bytes.begin(), bytes.end());
        whole.insert(whole.end(), payload.begin(), payload.end());
        return handle(whole);
    }
    AtomicRequest atomic(std::uint8_t operation, std::uint8_t width, std::uint64_t offset,
                         std::uint64_t operand) const {
        AtomicRequest out;
        out.region = region_;
        out.operation = operation;
        out.width = width;
        out.offset = offset;
        out.operand = operand;
        return out;
    }
    Code flush(std::uint32_t queue = 0) {
        FlushRequest request;
        request.ticket = 77;
        request.queue = queue;
        const auto answer = handle(request, MessageKind::flush);
        EXPECT_TRUE(answer.has_value());
        EXPECT_EQ(answer->ticket, 77U);
        return static_cast<Code>(answer->code);
    }

    std::array<std::uint64_t, 8> words_{};
    RegionTable regions_;
    TargetHandler handler_{0, regions_};
    std::uint64_t region_;
};

TEST_F(TargetHandlerTest, AnswersAFetchWithTheOldValue) {
    words_[1] = 40;
    AtomicRequest request = atomic(NPUSHMEM_ATOMIC_FETCH_ADD, 8, 8, 2);
    request.ticket = 5;
    const auto answer = handle(request, MessageKind::atomic);
    ASSERT_TRUE(answer.has_value());
    EXPECT_EQ(answer->ticket, 5U);
    EXPECT_EQ(answer->value, 40U);
    EXPECT_EQ(answer->code, NPUSHMEM_OK);
    EXPECT_EQ(words_[1], 42U);
}

TEST_F(TargetHandlerTest, A32BitAtomicTouchesFourBytes) {
    words_[0] = ~std::uint64_t{0};
    handle(atomic(NPUSHMEM_ATOMIC_ADD, 4, 4, 1), MessageKind::atomic);
    EXPECT_EQ(words_[0], 0x00000000ffffffffU);
}

TEST_F(TargetHandlerTest, AnUpdateWithoutTicketIsNotAnswered) {
    EXPECT_FALSE(handle(atomic(NPUSHMEM_ATOMIC_SET, 8, 0, 9), MessageKind::atomic).has_value());
    EXPECT_EQ(words_[0], 9U);
    EXPECT_EQ(flush(), Code::ok);
}

TEST_F(TargetHandlerTest, PutsDataBeforeItsSignal) {
    const std::uint64_t data = 0x1234;
    PutSignalRequest request;
    request.region = request.signal_region = region_;
    request.offset = 16;
    request.signal_offset = 24;
    request.signal = 6;
    request.bytes = sizeof data;
    request.operation = NPUSHMEM_SIGNAL_ADD;
    words_[3] = 1;
    EXPECT_FALSE(handle(request, MessageKind::put_signal, bytes_of(data)).has_value());
    EXPECT_EQ(words_[2], data);
    EXPECT_EQ(words_[3], 7U);
}

TEST_F(TargetHandlerTest, PutsData) {
    const std::uint64_t data = 0x1234;
    PutRequest request;
    request.region = region_;
    request.offset = 16;
    request.bytes = sizeof data;
    request.queue = 4;
    EXPECT_FALSE(handle(request, MessageKind::put, bytes_of(data)).has_value());
    EXPECT_EQ(words_[2], data);
    EXPECT_EQ(flush(4), Code::ok);
    request.offset = sizeof words_ - 7;
    handle(request, MessageKind::put, bytes_of(data));
    EXPECT_EQ(flush(4), Code::range);
    request.offset = 16;
    handle(request, MessageKind::put, Bytes(7));
    EXPECT_EQ(flush(4), Code::protocol);
}

TEST_F(TargetHandlerTest, PutsBlocks) {
    const std::uint64_t data[] = {1, 2, 3};
    const auto payload = std::as_bytes(std::span(data));
    PutStridedRequest request;
    request.region = region_;
    request.offset = 8;
    request.stride = 24;
    request.bytes = 8;
    request.count = 3;
    EXPECT_FALSE(handle(request, MessageKind::put_strided, payload).has_value());
    EXPECT_EQ(words_, (std::array<std::uint64_t, 8>{0, 1, 0, 0, 2, 0, 0, 3}));
    EXPECT_EQ(flush(), Code::ok);
}

// Nothing is written where a field of the message is wrong.
TEST_F(TargetHandlerTest, RefusesMalformedBlocks) {
    PutStridedRequest request;
    request.region = region_;
    request.stride = 16;
    request.bytes = 8;
    request.count = 4;
    const auto outcome = [&](std::size_t payload, auto PutStridedRequest::*field, std::uint64_t value) {
        PutStridedRequest wrong = request;
        wrong.*field = static_cast<std::remove_reference_t<decltype(wrong.*field)>>(value);
        handle(wrong, MessageKind::put_strided, Bytes(payload, std::byte{1}));
        return flush();
    };
    EXPECT_EQ(outcome(31, &PutStridedRequest::region, region_), Code::protocol);
    EXPECT_EQ(outcome(32, &PutStridedRequest::region, region_ + 1), Code::range);
    EXPECT_EQ(outcome(32, &PutStridedRequest::offset, 9), Code::range);
    EXPECT_EQ(outcome(32, &PutStridedRequest::offset, ~std::uint64_t{0}), Code::range);
    EXPECT_EQ(outcome(32, &PutStridedRequest::stride, 19), Code::range);
    EXPECT_EQ(outcome(32, &PutStridedRequest::stride, ~std::uint64_t{15}), Code::range);
    EXPECT_EQ(outcome(32, &PutStridedRequest::stride, std::uint64_t{1} << 63), Code::range);
    EXPECT_EQ(outcome(32, &PutStridedRequest::bytes, 65535), Code::protocol);
    EXPECT_EQ(outcome(65535 * 8, &PutStridedRequest::count, 65535), Code::range);
    EXPECT_EQ(outcome(32, &PutStridedRequest::count, 0), Code::ok);
    EXPECT_EQ(outcome(32, &PutStridedRequest::bytes, 0), Code::ok);
    EXPECT_EQ(words_, (std::array<std::uint64_t, 8>{}));
}

TEST_F(TargetHandlerTest, TheNextFlushReportsAFailureOnce) {
    handle(atomic(NPUSHMEM_ATOMIC_SET, 8, sizeof words_, 1), MessageKind::atomic);
    handle(atomic(NPUSHMEM_ATOMIC_COUNT, 8, 0, 1), MessageKind::atomic);
    EXPECT_EQ(flush(), Code::range);
    EXPECT_EQ(flush(), Code::ok);
}

TEST_F(TargetHandlerTest, AFailureIsReportedToTheRequestingQueue) {
    AtomicRequest request = atomic(NPUSHMEM_ATOMIC_SET, 8, sizeof words_, 1);
    request.queue = 5;
    handle(request, MessageKind::atomic);
    PutSignalRequest shorter;
    shorter.region = shorter.signal_region = region_;
    shorter.bytes = 16;
    shorter.queue = 6;
    handle(shorter, MessageKind::put_signal, Bytes(15));
    EXPECT_EQ(flush(), Code::ok);
    EXPECT_EQ(flush(6), Code::protocol);
    EXPECT_EQ(flush(5), Code::range);
    EXPECT_EQ(flush(5), Code::ok);
}

TEST_F(TargetHandlerTest, NothingIsKeptForALostOrigin) {
    AtomicRequest request = atomic(NPUSHMEM_ATOMIC_SET, 8, sizeof words_, 1);
    for (const std::uint32_t queue : {1U, 2U}) {
        request.queue = queue;
        handle(request, MessageKind::atomic);
    }
    handler_.forget(origin);
    EXPECT_EQ(flush(1), Code::ok);
    EXPECT_EQ(flush(2), Code::ok);
}

TEST_F(TargetHandlerTest, RejectsRangesOutsideOfRegions) {
    for (const std::uint64_t offset : {std::uint64_t{64}, std::uint64_t{60}, ~std::uint64_t{0} - 3}) {
        AtomicRequest request = atomic(NPUSHMEM_ATOMIC_FETCH, 8, offset, 0);
        request.ticket = 1;
        const auto answer = handle(request, MessageKind::atomic);
        ASSERT_TRUE(answer.has_value());
        EXPECT_LT(answer->code, 0) << offset;
    }
    AtomicRequest request = atomic(NPUSHMEM_ATOMIC_FETCH, 8, 0, 0);
    request.region = region_ + 1;
    request.ticket = 1;
    EXPECT_EQ(handle(request, MessageKind::atomic)->code, NPUSHMEM_E_RANGE);
}

TEST_F(TargetHandlerTest, RefusesAPayloadShorterThanItsRequestSays) {
    PutSignalRequest request;
    request.region = request.signal_region = region_;
    request.bytes = 16;
    handle(request, MessageKind::put_signal, Bytes(15));
    EXPECT_EQ(flush(), Code::protocol);
}

TEST_F(TargetHandlerTest, KeepsTheFailuresOfABoundedNumberOfQueues) {
    PutRequest request;
    request.region = region_ + 1;
    for (request.queue = 1; request.queue < TargetHandler::max_failures; ++request.queue)
        handle(request, MessageKind::put);
    EXPECT_EQ(flush(0), Code::ok);
    handle(request, MessageKind::put);
    EXPECT_EQ(flush(0), Code::range) << "the record is full";
    EXPECT_EQ(flush(1), Code::range);
    EXPECT_EQ(flush(1), Code::range) << "a full record stays full";
    handler_.forget(origin);
    EXPECT_EQ(flush(0), Code::ok);
}

TEST_F(TargetHandlerTest, TruncatedMessagesDoNothing) {
    const AtomicRequest whole = atomic(NPUSHMEM_ATOMIC_SET, 8, 0, 9);
    for (std::size_t bytes = 0; bytes < sizeof whole; ++bytes) {
        AtomicRequest request = whole;
        request.head.kind = MessageKind::atomic;
        request.head.origin = origin;
        const auto all = bytes_of(request);
        EXPECT_FALSE(handle(Bytes(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(bytes))).has_value());
    }
    EXPECT_EQ(words_[0], 0U);
}

TEST(MessageHeaderTest, OtherVersionsAndKindsAreNoMessages) {
    MessageHeader head;
    head.kind = MessageKind::ping;
    EXPECT_TRUE(parse_header(bytes_of(head)).has_value());
    ++head.version;
    EXPECT_FALSE(parse_header(bytes_of(head)).has_value());
    head = {};
    EXPECT_FALSE(parse_header(bytes_of(head)).has_value()) << "kind 0";
    head.kind = MessageKind::ping;
    head.magic = 1;
    EXPECT_FALSE(parse_header(bytes_of(head)).has_value());
}

}  // namespace
}  // namespace npushmem::network
