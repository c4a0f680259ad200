// SPDX-License-Identifier: BSD-3-Clause
#include "core/remote/local_buffers.hpp"

#include <gmock/gmock.h>
#include <sys/mman.h>

#include <array>

#include "core/base/host_facts.hpp"
#include "npushmem/testing/mocks.hpp"
#include "tests/unit/core/remote/remote_access_fixture.hpp"

namespace npushmem {
namespace {

using ::testing::_;
using ::testing::AllOf;
using ::testing::ByMove;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::NiceMock;
using ::testing::Return;

// Two transports that pin memory.
class LocalBuffersTest : public RemoteAccessFixture {
protected:
    LocalBuffersTest() : RemoteAccessFixture(1) {
        build_map({everything, all_atomics, all_atomics, "mock"});
        buffers.emplace(std::vector<NamedTransport>{{"first", &first}, {"second", &second}}, *peers);
    }
    void TearDown() override {
        buffers.reset();
        peers.reset();
    }
    static auto region(std::uint64_t number) {
        return Return(ByMove(Result<RegisteredMemory>(RegisteredMemory{number, {}})));
    }

    NiceMock<MockTransport> first;
    NiceMock<MockTransport> second;
    std::optional<LocalBuffers> buffers;
    std::array<char, 100> memory{};
};

TEST_F(LocalBuffersTest, RegisterOnceWithEveryTransportThatPins) {
    const auto is_memory = AllOf(Field(&npushmem_memory::base, memory.data()), Field(&npushmem_memory::bytes, 100U),
                                 Field(&npushmem_memory::fd, -1));
    EXPECT_CALL(first, register_memory(is_memory)).WillOnce(region(5));
    EXPECT_CALL(second, register_memory(is_memory)).WillOnce(region(6));
    EXPECT_TRUE(buffers->add(memory.data(), memory.size()).ok());
    EXPECT_CALL(first, deregister_memory(5)).WillOnce(Return(Code::ok));
    EXPECT_CALL(second, deregister_memory(6)).WillOnce(Return(Code::ok));
    EXPECT_TRUE(buffers->remove(memory.data()).ok());
    EXPECT_EQ(buffers->remove(memory.data()).code(), Code::argument);
}

TEST_F(LocalBuffersTest, AFailureUndoesTheOthers) {
    EXPECT_CALL(first, register_memory(_)).WillOnce(region(5));
    EXPECT_CALL(second, register_memory(_)).WillOnce(Return(ByMove(Status{Code::memory, "RLIMIT_MEMLOCK"})));
    EXPECT_CALL(first, deregister_memory(5)).WillOnce(Return(Code::ok));
    EXPECT_CALL(second, deregister_memory(_)).Times(0);
    const Status failed = buffers->add(memory.data(), memory.size());
    EXPECT_EQ(failed.code(), Code::memory);
    EXPECT_THAT(failed.message(), AllOf(HasSubstr("transport second cannot register 100 bytes"), HasSubstr("RLIMIT")));
    EXPECT_EQ(buffers->remove(memory.data()).code(), Code::argument);
}

TEST_F(LocalBuffersTest, TheEndDeregistersAll) {
    EXPECT_CALL(first, register_memory(_)).WillOnce(region(5)).WillOnce(region(7));
    EXPECT_CALL(second, register_memory(_)).WillOnce(region(6)).WillOnce(region(8));
    EXPECT_TRUE(buffers->add(memory.data(), 50).ok());
    EXPECT_TRUE(buffers->add(memory.data() + 50, 50).ok()) << "they touch, but do not overlap";
    for (const std::uint64_t number : {5U, 7U})
        EXPECT_CALL(first, deregister_memory(number)).WillOnce(Return(Code::ok));
    for (const std::uint64_t number : {6U, 8U})
        EXPECT_CALL(second, deregister_memory(number)).WillOnce(Return(Code::ok));
    buffers.reset();
}

TEST_F(LocalBuffersTest, RefusesOverlapsAndWhatIsNoMemory) {
    EXPECT_TRUE(buffers->add(memory.data() + 20, 40).ok());
    for (const auto& [begin, bytes] : {std::pair{0U, 21U}, {20U, 40U}, {30U, 1U}, {59U, 10U}, {0U, 100U}})
        EXPECT_EQ(buffers->add(memory.data() + begin, bytes).code(), Code::argument) << begin << ", " << bytes;
    EXPECT_EQ(buffers->add(nullptr, 8).code(), Code::argument);
    EXPECT_EQ(buffers->add(memory.data(), 0).code(), Code::argument);
    EXPECT_EQ(buffers->add(memory.data(), ~std::uint64_t{0}).code(), Code::argument);
    const std::uint64_t page = page_bytes();
    void* const read_only = mmap(nullptr, page, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    EXPECT_THAT(buffers->add(read_only, page).message(), HasSubstr("cannot be read and written"));
    munmap(read_only, page);
}

}  // namespace
}  // namespace npushmem
