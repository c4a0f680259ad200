// SPDX-License-Identifier: BSD-3-Clause
#include "core/coll/collectives.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "npushmem/npu/bfloat16.hpp"
#include "npushmem/npu/half.hpp"
#include "tests/fakes/thread_group.hpp"

namespace npushmem::coll {
namespace {

using fakes::ThreadGroup;
using Threads = fakes::ThreadGroupWorld;
constexpr std::uint64_t room = Threads::room;

struct Shape {
    int members;
    bool mapped;
    bool lines = true;
    Method method = Method::automatic;
    bool oversubscribed = false;
    int hosts = 1;
    bool signals = false;
};
void PrintTo(const Shape& shape, std::ostream* out) {
    *out << shape.members << (shape.mapped ? " mapped" : " behind a transport")
         << (shape.lines ? "" : " without lines");
    if (shape.method != Method::automatic) *out << " by " << name_of(shape.method);
    if (shape.oversubscribed) *out << ", more than cores";
    if (shape.hosts > 1) *out << " on " << shape.hosts << " hosts" << (shape.signals ? " with signals" : "");
}

using Body = std::function<void(ThreadGroup& group, std::byte* memory)>;

// Runs body(group, own memory) for each member in a thread.
void run_all(Threads& world, const Body& body) {
    std::vector<std::jthread> threads;
    for (int i = 0; i < world.members; ++i)
        threads.emplace_back([&, i] {
            ThreadGroup group(world, i);
            body(group, group.mapped_address(i, 0));
        });
}

class Collectives : public ::testing::TestWithParam<Shape> {
protected:
    static void run(const Body& body) {
        Threads world(GetParam().members, GetParam().mapped, GetParam().lines);
        world.method = GetParam().method;
        world.oversubscribed = GetParam().oversubscribed;
        world.hosts = GetParam().hosts;
        world.signals = GetParam().signals;
        world.leaders = GetParam().lines && GetParam().signals;
        run_all(world, body);
    }
};

constexpr std::uint64_t dest_at = room / 2;
constexpr std::uint64_t counts[] = {1, 7, 28, 29, 256, 257, 5000};

std::uint32_t number(int member, std::uint64_t i) {
    return static_cast<std::uint32_t>(member) * 1000003U + static_cast<std::uint32_t>(i);
}

std::uint32_t* words(std::byte* memory, std::uint64_t offset) {
    return reinterpret_cast<std::uint32_t*>(memory + offset);
}

TEST_P(Collectives, BroadcastCopiesTheRootsArrayToAll) {
    run([](ThreadGroup& group, std::byte* memory) {
        for (const std::uint64_t count : {std::uint64_t{1}, std::uint64_t{100}, std::uint64_t{20000}})
            for (int root = 0; root < group.size(); ++root) {
                for (std::uint64_t i = 0; i < count; ++i) words(memory, 0)[i] = number(group.index(), i);
                words(memory, dest_at)[0] = 77;
                ASSERT_TRUE(group.sync().ok());
                const bool to_root = count != 100;
                ASSERT_TRUE(broadcast(group, dest_at, 0, count * 4, root, to_root).ok());
                if (group.index() == root && !to_root)
                    EXPECT_EQ(words(memory, dest_at)[0], 77U);
                else
                    for (std::uint64_t i = 0; i < count; ++i)
                        ASSERT_EQ(words(memory, dest_at)[i], number(root, i)) << i;
                ASSERT_TRUE(group.sync().ok());
            }
    });
}

// More than any room for small broadcasts holds, in sizes up to the largest small one and a little above.
TEST_P(Collectives, SmallBroadcastsFollowEachOtherWithoutAPause) {
    run([](ThreadGroup& group, std::byte* memory) {
        constexpr std::uint64_t counts_of_bytes[] = {8, 560, 564, 1000, 4092, 4096, 4100};
        constexpr int calls = 70;
        const auto place_of = [](int call) { return static_cast<std::uint64_t>(call) * 5000; };
        for (int call = 0; call < calls; ++call)
            for (std::uint64_t i = 0; i < 1025; ++i) words(memory, place_of(call))[i] = number(group.index() + call, i);
        ASSERT_TRUE(group.sync().ok());
        for (int call = 0; call < calls; ++call) {
            const std::uint64_t count = counts_of_bytes[call % std::size(counts_of_bytes)];
            const int root = call / 3 % group.size();
            const std::uint64_t dest = dest_at + place_of(call);
            ASSERT_TRUE(broadcast(group, dest, place_of(call), count, root, true).ok());
            for (std::uint64_t i = 0; i < count / 4; ++i)
                ASSERT_EQ(words(memory, dest)[i], number(root + call, i)) << "word " << i << " of call " << call;
        }
    });
}

TEST_P(Collectives, ReductionsOfEverySizeCombineAllInPlaceAndNot) {
    run([](ThreadGroup& group, std::byte* memory) {
        for (const std::uint64_t count : counts)
            for (const std::uint64_t dest : {std::uint64_t{0}, dest_at}) {
                for (std::uint64_t i = 0; i < count; ++i) words(memory, 0)[i] = number(group.index(), i);
                ASSERT_TRUE(group.sync().ok());
                ASSERT_TRUE(reduce(group, dest, 0, count, ReduceOperation::sum, ReduceElement::u32).ok());
                for (std::uint64_t i = 0; i < count; ++i) {
                    std::uint32_t expected = 0;
                    for (int member = 0; member < group.size(); ++member) expected += number(member, i);
                    ASSERT_EQ(words(memory, dest)[i], expected) << i << " of " << count;
                }
                ASSERT_TRUE(group.sync().ok());
            }
    });
}

TEST_P(Collectives, ReduceScatterGivesEachMemberItsBlockInPlaceAndNot) {
    run([](ThreadGroup& group, std::byte* memory) {
        const auto members = static_cast<std::uint64_t>(group.size());
        const auto first = static_cast<std::uint64_t>(group.index());
        for (const std::uint64_t count : {1, 7, 28, 29, 257, 2500})
            for (const std::uint64_t dest : {std::uint64_t{0}, dest_at}) {
                for (std::uint64_t i = 0; i < count * members; ++i) words(memory, 0)[i] = number(group.index(), i);
                words(memory, dest_at)[count] = 77;
                ASSERT_TRUE(group.sync().ok());
                ASSERT_TRUE(reduce_scatter(group, dest, 0, count, ReduceOperation::sum, ReduceElement::u32).ok());
                for (std::uint64_t i = 0; i < count; ++i) {
                    std::uint32_t expected = 0;
                    for (int member = 0; member < group.size(); ++member) expected += number(member, first * count + i);
                    ASSERT_EQ(words(memory, dest)[i], expected) << i << " of " << count;
                }
                ASSERT_EQ(words(memory, dest_at)[count], 77U);
                ASSERT_TRUE(group.sync().ok());
            }
    });
}

// 2048 + 1 is no half: rounded after each operand, the sum of any number of ones would stay 2048.
TEST_P(Collectives, SixteenBitsAreRoundedOnce) {
    run([](ThreadGroup& group, std::byte* memory) {
        auto* const source = reinterpret_cast<npu::half*>(memory);
        const auto* const dest = reinterpret_cast<const npu::half*>(memory + dest_at);
        const auto expected = [](int operands) {
            return npu::half(operands == 0 ? 0.0F : 2048.0F + static_cast<float>(operands - 1)).bits();
        };
        for (const std::uint64_t count : {1, 50, 900, 9000}) {
            for (std::uint64_t i = 0; i < count; ++i) source[i] = npu::half(group.index() == 0 ? 2048.0F : 1.0F);
            ASSERT_TRUE(group.sync().ok());
            ASSERT_TRUE(reduce(group, dest_at, 0, count, ReduceOperation::sum, ReduceElement::f16).ok());
            for (std::uint64_t i = 0; i < count; ++i) ASSERT_EQ(dest[i].bits(), expected(group.size())) << i;
            ASSERT_TRUE(group.sync().ok());
            for (const bool inclusive : {false, true}) {
                ASSERT_TRUE(scan(group, dest_at, 0, count, inclusive, ReduceElement::f16).ok());
                for (std::uint64_t i = 0; i < count; ++i)
                    ASSERT_EQ(dest[i].bits(), expected(group.index() + (inclusive ? 1 : 0))) << i;
                ASSERT_TRUE(group.sync().ok());
            }
        }
    });
}

// There is no barrier between the calls: a payload must not be overwritten while another member still reads it.
TEST_P(Collectives, SmallReductionsFollowEachOtherWithoutAPause) {
    run([](ThreadGroup& group, std::byte* memory) {
        for (std::uint32_t round = 0; round < 300; ++round) {
            words(memory, 0)[0] = round + static_cast<std::uint32_t>(group.index());
            ASSERT_TRUE(reduce(group, dest_at, 0, 1, ReduceOperation::max, ReduceElement::u32).ok());
            ASSERT_EQ(words(memory, dest_at)[0], round + static_cast<std::uint32_t>(group.size()) - 1);
        }
    });
}

TEST_P(Collectives, ScansOfEverySizeAddUpToTheMemberOrBeforeIt) {
    run([](ThreadGroup& group, std::byte* memory) {
        for (const bool inclusive : {false, true})
            for (const std::uint64_t count : counts)
                for (const std::uint64_t dest : {std::uint64_t{0}, dest_at}) {
                    for (std::uint64_t i = 0; i < count; ++i) words(memory, 0)[i] = number(group.index(), i);
                    ASSERT_TRUE(group.sync().ok());
                    ASSERT_TRUE(scan(group, dest, 0, count, inclusive, ReduceElement::u32).ok());
                    for (std::uint64_t i = 0; i < count; ++i) {
                        std::uint32_t expected = 0;
                        for (int member = 0; member < group.index() + (inclusive ? 1 : 0); ++member)
                            expected += number(member, i);
                        ASSERT_EQ(words(memory, dest)[i], expected) << i << " of " << count;
                    }
                    ASSERT_TRUE(group.sync().ok());
                }
    });
}

// A sum that began with 0 would lose the sign.
TEST_P(Collectives, ScansOfEverySizeKeepTheSignOfZero) {
    run([](ThreadGroup& group, std::byte* memory) {
        auto* const source = reinterpret_cast<npu::half*>(memory);
        const auto* const dest = reinterpret_cast<const npu::half*>(memory + dest_at);
        constexpr std::uint16_t minus_zero = 0x8000;
        for (const std::uint64_t count : {1, 50, 900, 9000}) {
            for (std::uint64_t i = 0; i < count; ++i) source[i] = npu::half::from_bits(minus_zero);
            ASSERT_TRUE(group.sync().ok());
            for (const bool inclusive : {false, true}) {
                ASSERT_TRUE(scan(group, dest_at, 0, count, inclusive, ReduceElement::f16).ok());
                const std::uint16_t expected = inclusive || group.index() > 0 ? minus_zero : 0;
                for (std::uint64_t i = 0; i < count; ++i) ASSERT_EQ(dest[i].bits(), expected) << i << " of " << count;
                ASSERT_TRUE(group.sync().ok());
            }
        }
    });
}

// Sanitizers end a process that asks for so much memory.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
TEST_P(Collectives, ReduceScatterInPlaceFailsOnAllMembersWithoutMemoryForTheBlock) {
    run([](ThreadGroup& group, std::byte* memory) {
        const Status done =
            reduce_scatter(group, 0, 0, std::uint64_t{1} << 58, ReduceOperation::sum, ReduceElement::u32);
        EXPECT_EQ(done.code(), Code::memory);
        EXPECT_NE(done.message().find("has no memory for the"), std::string::npos) << done.message();
        // The group still works.
        words(memory, 0)[0] = 1;
        ASSERT_TRUE(group.sync().ok());
        ASSERT_TRUE(reduce(group, dest_at, 0, 1, ReduceOperation::sum, ReduceElement::u32).ok());
        EXPECT_EQ(words(memory, dest_at)[0], static_cast<std::uint32_t>(group.size()));
    });
}
#endif

TEST_P(Collectives, CollectAcceptsDifferentCounts) {
    run([](ThreadGroup& group, std::byte* memory) {
        const auto given = [](int member) { return static_cast<std::uint64_t>(member % 3) * 5; };
        for (std::uint64_t i = 0; i < 10; ++i) words(memory, 0)[i] = number(group.index(), i);
        const std::uint64_t source = given(group.index()) > 0 ? 0 : 64;  // of no bytes, any
        ASSERT_TRUE(collect(group, dest_at, source, given(group.index()) * 4, room - dest_at).ok());
        std::uint64_t at = 0;
        for (int member = 0; member < group.size(); ++member)
            for (std::uint64_t i = 0; i < given(member); ++i, ++at)
                ASSERT_EQ(words(memory, dest_at)[at], number(member, i));
    });
}

TEST_P(Collectives, CollectRejectsMoreElementsThanFit) {
    run([](ThreadGroup& group, std::byte* memory) {
        const auto members = static_cast<std::uint64_t>(group.size());
        words(memory, dest_at)[0] = 77;
        EXPECT_EQ(collect(group, dest_at, 0, 8, 8 * members - 1).code(), Code::range);
        EXPECT_EQ(words(memory, dest_at)[0], 77U);
        ASSERT_TRUE(group.sync().ok());
        EXPECT_TRUE(collect(group, dest_at, 0, 8, 8 * members).ok());
    });
}

TEST_P(Collectives, AlltoallsGoesByItsStrides) {
    run([](ThreadGroup& group, std::byte* memory) {
        constexpr std::uint64_t count = 3;
        const auto members = static_cast<std::uint64_t>(group.size());
        for (std::uint64_t i = 0; i < 4 * count * members; ++i) words(memory, 0)[i] = number(group.index(), i);
        ASSERT_TRUE(alltoalls(group, dest_at, 0, {2, 4, count, 4}).ok());
        for (std::uint64_t from = 0; from < members; ++from)
            for (std::uint64_t i = 0; i < count; ++i)
                ASSERT_EQ(words(memory, dest_at)[(from * count + i) * 2],
                          number(static_cast<int>(from), (static_cast<std::uint64_t>(group.index()) * count + i) * 4));
    });
}

// The number of bytes from one member to another: some none, some many.
std::uint64_t sent(int from, int to) { return static_cast<std::uint64_t>((from * 5 + to * 3) % 4) * 24; }

// Blocks of these sizes one behind the other, in the opposite order of the members.
template <class Size>
std::vector<Block> blocks_from(int members, std::uint64_t begin, Size size) {
    std::vector<Block> blocks(static_cast<std::size_t>(members));
    for (int i = members; i-- > 0; begin += blocks[static_cast<std::size_t>(i)].bytes)
        blocks[static_cast<std::size_t>(i)] = {begin, size(i)};
    return blocks;
}

std::vector<Block> blocks_to_receive(const ThreadGroup& group) {
    return blocks_from(group.size(), dest_at, [&](int from) { return sent(from, group.index()); });
}

std::vector<Block> blocks_to_send(const ThreadGroup& group, std::byte* memory) {
    const auto blocks = blocks_from(group.size(), 0, [&](int to) { return sent(group.index(), to); });
    for (int to = 0; to < group.size(); ++to)
        for (std::uint64_t i = 0; i < blocks[static_cast<std::size_t>(to)].bytes / 4; ++i)
            words(memory, blocks[static_cast<std::size_t>(to)].offset)[i] = number(group.index() * 1000 + to, i);
    return blocks;
}

void expect_received(const ThreadGroup& group, std::byte* memory, const std::vector<Block>& blocks) {
    for (int from = 0; from < group.size(); ++from)
        for (std::uint64_t i = 0; i < blocks[static_cast<std::size_t>(from)].bytes / 4; ++i)
            ASSERT_EQ(words(memory, blocks[static_cast<std::size_t>(from)].offset)[i],
                      number(from * 1000 + group.index(), i))
                << "from member " << from;
}

TEST_P(Collectives, AlltoallvSendsAnyNumberOfBytesToEachMember) {
    run([](ThreadGroup& group, std::byte* memory) {
        const auto receive = blocks_to_receive(group);
        const auto send = blocks_to_send(group, memory);
        for (int round = 0; round < 3; ++round) {
            std::memset(memory + dest_at, 0, 4096);
            ASSERT_TRUE(group.sync().ok());
            ASSERT_TRUE(alltoallv(group, receive, send).ok());
            expect_received(group, memory, receive);
        }
    });
}

TEST_P(Collectives, AlltoallvReportsSizesThatDifferToBothMembers) {
    run([](ThreadGroup& group, std::byte* memory) {
        const int last = group.size() - 1;
        auto receive = blocks_to_receive(group);
        auto send = blocks_to_send(group, memory);
        // The last member expects 4 bytes more from the first one, at a place of their own.
        if (group.index() == last) receive[0] = {dest_at + 8192, receive[0].bytes + 4};
        words(memory, dest_at + 8192)[0] = 77;
        ASSERT_TRUE(group.sync().ok());
        const Status done = alltoallv(group, receive, send);
        const bool concerned = group.index() == 0 || group.index() == last;
        EXPECT_EQ(done.code(), concerned ? Code::mismatch : Code::ok) << done.message();
        EXPECT_EQ(words(memory, dest_at + 8192)[0], 77U);
        if (group.index() == last) receive[0].bytes = 0;
        expect_received(group, memory, receive);
    });
}

// More members than write to the workspace at a time.
TEST(ManyMembers, AlltoallvExchangesItsBlocksInTurns) {
    Threads world(90, true, false);
    run_all(world, [](ThreadGroup& group, std::byte* memory) {
        const auto receive = blocks_to_receive(group);
        const auto send = blocks_to_send(group, memory);
        ASSERT_TRUE(group.sync().ok());
        ASSERT_TRUE(alltoallv(group, receive, send).ok());
        expect_received(group, memory, receive);
    });
}

// Each workspace is on another page: members that read all of them would need as many page tables.
TEST(LargeTeams, PublishInTheWorkspacesOfTheirFirstMembers) {
    constexpr std::uint64_t bytes = 128;  // 16 in a workspace
    Threads world(33, true, false);
    run_all(world, [](ThreadGroup& group, std::byte* memory) {
        const int index = group.index();
        const auto check = [&](const Status& done) {
            ASSERT_TRUE(done.ok()) << done.message();
            ASSERT_TRUE(group.sync().ok());
        };
        std::memset(memory, index + 1, bytes);
        check(fcollect(group, dest_at, 0, bytes));
        check(collect(group, dest_at, 0, bytes - static_cast<std::uint64_t>(index), room - dest_at));
        check(reduce(group, dest_at, 0, bytes / 8, ReduceOperation::sum, ReduceElement::u64));
        const auto* const workspace = group.mapped_address(index, group.workspace());
        const bool is_used =
            std::any_of(workspace, workspace + Workspace::bytes, [](std::byte one) { return one != std::byte{0}; });
        EXPECT_EQ(is_used, index <= 2) << "member " << index;
    });
}

// Methods that the built-in choice leaves out for these sizes; one that does not serve a call leaves it to another.
INSTANTIATE_TEST_SUITE_P(Methods, Collectives,
                         ::testing::Values(Shape{4, true, true, Method::push}, Shape{4, true, true, Method::pull},
                                           Shape{4, true, true, Method::scatter},
                                           Shape{4, true, true, Method::partitioned},
                                           Shape{3, false, true, Method::push}, Shape{3, false, true, Method::scatter},
                                           Shape{3, false, true, Method::ring}, Shape{4, true, true, Method::published},
                                           Shape{3, false, true, Method::published}, Shape{9, true, true},
                                           Shape{33, true, false}, Shape{12, true, false, Method::push},
                                           Shape{4, true, true, Method::automatic, true}));

INSTANTIATE_TEST_SUITE_P(Hosts, Collectives,
                         ::testing::Values(Shape{4, false, false, Method::hosts, false, 2},
                                           Shape{6, false, false, Method::hosts, false, 3},
                                           Shape{10, false, false, Method::hosts, false, 2},
                                           Shape{12, false, false, Method::hosts, false, 4},
                                           Shape{12, false, false, Method::automatic, false, 4},
                                           Shape{4, false, false, Method::push, false, 2}));

INSTANTIATE_TEST_SUITE_P(HostsWithSignals, Collectives,
                         ::testing::Values(Shape{2, false, true, Method::automatic, false, 2, true},
                                           Shape{4, false, true, Method::automatic, false, 2, true},
                                           Shape{4, false, false, Method::hosts, false, 2, true},
                                           Shape{3, false, false, Method::hosts, false, 3, true},
                                           Shape{6, false, true, Method::hosts, false, 3, true},
                                           Shape{9, false, false, Method::hosts, false, 3, true},
                                           Shape{10, false, false, Method::automatic, false, 2, true},
                                           Shape{12, false, true, Method::automatic, false, 4, true},
                                           Shape{4, false, false, Method::push, false, 2, true},
                                           Shape{4, false, false, Method::pull, false, 2, true}));

INSTANTIATE_TEST_SUITE_P(Sizes, Collectives,
                         ::testing::Values(Shape{1, true}, Shape{2, true}, Shape{3, true}, Shape{5, true},
                                           Shape{8, true}, Shape{9, true}, Shape{2, true, false}, Shape{5, true, false},
                                           Shape{1, false}, Shape{2, false}, Shape{5, false}));

using Results = std::vector<Code>;  // of the calls of one member

// Runs a collective of 4 members on 2 hosts three times; the first put of member 0 fails. Then calls `check`.
std::vector<Results> with_failing_put(const std::function<Status(ThreadGroup&)>& call,
                                      const std::function<void(std::byte* memory)>& check, bool signals = false,
                                      bool lines = false, int failing = 1) {
    Threads world(4, false, false);
    world.hosts = 2;
    world.signals = signals;
    world.leaders = lines;
    world.method = lines ? Method::automatic : Method::hosts;
    world.failing_put = failing;
    std::vector<Results> results(4, Results(3));
    std::vector<std::jthread> threads;
    for (int i = 0; i < world.members; ++i)
        threads.emplace_back([&, i] {
            ThreadGroup group(world, i);
            std::byte* const memory = group.mapped_address(i, 0);
            words(memory, 0)[0] = number(i, 0);
            (void)group.sync();
            for (Code& result : results[static_cast<std::size_t>(i)]) {
                result = call(group).code();
                world.thread_barrier.arrive_and_wait();  // dest must be ready on all members before the next call
            }
            check(memory);
        });
    threads.clear();
    return results;
}

TEST(CollectivesByHosts, KeepTheirBarriersPairedAfterAFailure) {
    const auto results = with_failing_put([](ThreadGroup& group) { return fcollect(group, dest_at, 0, 4); },
                                          [](std::byte* memory) {
                                              for (int member = 0; member < 4; ++member)
                                                  EXPECT_EQ(words(memory, dest_at)[member], number(member, 0));
                                          });
    EXPECT_EQ(results[0], (Results{Code::system, Code::ok, Code::ok}));
    for (const int other : {1, 2, 3}) EXPECT_EQ(results[static_cast<std::size_t>(other)], Results(3, Code::ok));
}

TEST(CollectivesByHosts, ReportASumThatHasNotArrived) {
    std::uint32_t expected = 0;
    for (int member = 0; member < 4; ++member) expected += number(member, 0);
    const auto results = with_failing_put(
        [](ThreadGroup& group) { return reduce(group, dest_at, 0, 1, ReduceOperation::sum, ReduceElement::u32); },
        [&](std::byte* memory) { EXPECT_EQ(words(memory, dest_at)[0], expected); });
    EXPECT_EQ(results[0], (Results{Code::system, Code::ok, Code::ok}));
    for (const int other : {1, 2, 3})
        EXPECT_EQ(results[static_cast<std::size_t>(other)], (Results{Code::protocol, Code::ok, Code::ok}));
}

// A message that could not be sent fails the call on all members, and no other call.
TEST(CollectivesByHosts, ReportAMessageThatCouldNotBeSent) {
    struct Case {
        const char* name;
        std::function<Status(ThreadGroup&)> call;
        std::uint32_t first;  // in dest afterwards
    };
    std::uint32_t sum = 0;
    for (int member = 0; member < 4; ++member) sum += number(member, 0);
    const std::vector<Case> cases{
        {"fcollect", [](ThreadGroup& group) { return fcollect(group, dest_at, 0, 4); }, number(0, 0)},
        {"broadcast", [](ThreadGroup& group) { return broadcast(group, dest_at, 0, 4, 0, true); }, number(0, 0)},
        {"large broadcast", [](ThreadGroup& group) { return broadcast(group, dest_at, 0, 100'000, 0, true); },
         number(0, 0)},
        {"alltoall", [](ThreadGroup& group) { return alltoall(group, dest_at, 0, 4); }, number(0, 0)},
        {"sum",
         [](ThreadGroup& group) { return reduce(group, dest_at, 0, 1, ReduceOperation::sum, ReduceElement::u32); },
         sum},
        {"large sum",
         [](ThreadGroup& group) { return reduce(group, dest_at, 0, 10'000, ReduceOperation::sum, ReduceElement::u32); },
         sum},
    };
    for (const bool lines : {false, true})
        for (const Case& one : cases)
            for (int failing = 1; failing <= 4; ++failing) {
                SCOPED_TRACE(std::string(one.name) + (lines ? " by lines" : "") + ", put " + std::to_string(failing));
                const auto results = with_failing_put(
                    one.call,
                    [&](std::byte* memory) {
                        if (one.name != std::string("alltoall")) {
                            EXPECT_EQ(words(memory, dest_at)[0], one.first);
                        }
                    },
                    true, lines, failing);
                for (std::size_t call = 0; call < 3; ++call) {
                    const bool failed = results[0][call] != Code::ok;
                    EXPECT_EQ(results[0][call], failed ? Code::system : Code::ok);
                    for (std::size_t member = 1; member < 4; ++member)
                        EXPECT_EQ(results[member][call], failed ? Code::protocol : Code::ok)
                            << "member " << member << ", call " << call;
                }
                EXPECT_FALSE(failing == 1 && results[0][0] == Code::ok) << "no put has failed";
            }
}

}  // namespace
}  // namespace npushmem::coll
