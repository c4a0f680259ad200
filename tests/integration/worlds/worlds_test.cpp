// SPDX-License-Identifier: BSD-3-Clause
// Worlds beside the default one: several in one process, over different transports, in different threads, created and
// destroyed in any order.
#include "npushmem/worlds.h"

#include <gmock/gmock.h>
#include <malloc.h>
#include <sys/mman.h>
#include <unistd.h>

#include <barrier>
#include <cstdlib>
#include <functional>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "npushmem.h"
#include "npushmem/plugin/abi.h"
#include "npushmem/plugin/transport.h"
#include "npushmemx.h"

namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// The text of the thread's last failure, which it clears.
std::string last_failure() {
    const char* text = "";
    const int code = npushmemx_last_error(&text);
    std::string copy = code != 0 ? text : "";
    npushmemx_clear_error();
    return copy;
}

npushmemx_uniqueid_t make_id() {
    npushmemx_uniqueid_t id{};
    EXPECT_EQ(npushmemx_get_uniqueid(&id), 0);
    return id;
}

using Settings = std::vector<const char*>;

npushmemx_world_t create(const npushmemx_uniqueid_t& id, int rank, int nranks, Settings settings = {}) {
    settings.insert(settings.end(), {"NPUSHMEM_SYMMETRIC_SIZE=4M", nullptr});
    npushmemx_world_attr_t attr = NPUSHMEMX_WORLD_ATTR_INITIALIZER;
    attr.settings = settings.data();
    EXPECT_EQ(npushmemx_set_attr_uniqueid_args(rank, nranks, &id, &attr.init), 0);
    npushmemx_world_t world = nullptr;
    (void)npushmemx_world_create(&attr, &world);
    return world;
}

npushmemx_world_t make_current(npushmemx_world_t world) {
    npushmemx_world_t before = nullptr;
    EXPECT_EQ(npushmemx_world_make_current(world, &before), 0);
    return before;
}

void run_threads(int count, const std::function<void(int)>& body) {
    std::vector<std::thread> threads;
    for (int i = 0; i < count; ++i) threads.emplace_back(body, i);
    for (std::thread& thread : threads) thread.join();
}

// One rank of each of several jobs, which have the same ranks.
struct Ranks {
    std::vector<npushmemx_uniqueid_t> ids;
    int nranks;

    Ranks(int jobs, int ranks) : nranks(ranks) {
        for (int i = 0; i < jobs; ++i) ids.push_back(make_id());
    }
};

Settings over_p2p() { return {"NPUSHMEM_TRANSPORTS=self,p2p"}; }
Settings over_calls() { return {"NPUSHMEM_TRANSPORTS=self,nomap(p2p)"}; }
Settings over_faults() { return {"NPUSHMEM_TRANSPORTS=fault(p2p)", "NPUSHMEM_FAULT_SEED=5"}; }

long rounds() {
    const char* const given = std::getenv("WORLDS_TEST_ROUNDS");
    return given != nullptr ? std::atol(given) : 300;
}

// Every family of operations on the current world.
void use_current_world(int pe, int npes) {
    const int right = (pe + 1) % npes;
    const int left = (pe + npes - 1) % npes;
    EXPECT_EQ(npushmem_my_pe(), pe);
    EXPECT_EQ(npushmem_n_pes(), npes);
    auto* const words = static_cast<long*>(npushmem_calloc(4096, sizeof(long)));
    ASSERT_NE(words, nullptr) << last_failure();
    std::vector<long> mine(1024, 1000 + pe);
    npushmem_long_p(words, pe + 1, right);
    npushmem_putmem(words + 1024, mine.data(), mine.size() * sizeof(long), right);
    npushmem_long_atomic_add(words + 1, 7, 0);
    npushmem_barrier_all();
    EXPECT_EQ(words[0], left + 1);
    EXPECT_EQ(std::accumulate(words + 1024, words + 2048, 0L), 1024L * (1000 + left));
    EXPECT_EQ(npushmem_long_atomic_fetch(words + 1, 0), 7L * npes);
    EXPECT_EQ(npushmem_long_g(words, right), pe + 1);
    std::vector<long> theirs(1024);
    npushmem_getmem(theirs.data(), words + 1024, theirs.size() * sizeof(long), right);
    EXPECT_EQ(theirs, mine);
    npushmem_long_iput(words + 2048, mine.data(), 2, 1, 16, right);
    npushmem_quiet();
    npushmem_sync_all();
    EXPECT_EQ(words[2048 + 30], 1000 + left);
    auto* const signal = reinterpret_cast<std::uint64_t*>(words + 2);
    npushmem_putmem_signal(words + 3072, mine.data(), 64 * sizeof(long), signal, 1, NPUSHMEM_SIGNAL_OP_ADD, right);
    (void)npushmem_signal_wait_until(signal, NPUSHMEM_CMP_EQ, 1);
    EXPECT_EQ(words[3072 + 63], 1000 + left);
    words[3] = pe;
    EXPECT_EQ(npushmem_long_sum_reduce(NPUSHMEM_TEAM_WORLD, words + 4, words + 3, 1), 0);
    EXPECT_EQ(words[4], static_cast<long>(npes) * (npes - 1) / 2);
    npushmem_team_t odd = NPUSHMEM_TEAM_INVALID;
    if (npes > 1) {
        EXPECT_EQ(npushmem_team_split_strided(NPUSHMEM_TEAM_WORLD, 1, 2, npes / 2, nullptr, 0, &odd), 0);
        EXPECT_EQ(npushmem_team_my_pe(odd), pe % 2 == 1 ? pe / 2 : -1);
    }
    if (odd != NPUSHMEM_TEAM_INVALID) {
        npushmem_ctx_t ctx = NPUSHMEM_CTX_INVALID;
        EXPECT_EQ(npushmem_team_create_ctx(odd, 0, &ctx), 0);
        npushmem_ctx_long_p(ctx, words + 5, 77, 0);
        npushmem_ctx_quiet(ctx);
        npushmem_team_sync(odd);
        EXPECT_EQ(words[5], pe == 1 ? 77 : 0);
        npushmem_ctx_destroy(ctx);
        npushmem_team_destroy(odd);
    }
    npushmem_barrier_all();
    npushmem_free(words);
    EXPECT_EQ(last_failure(), "");
}

// Two jobs over different transports in one process: each thread is a PE of both, and exchanges on both in turn.
TEST(Worlds, OverDifferentTransportsExchangeBetweenThreads) {
    const Ranks ranks(2, 2);
    run_threads(2, [&](int pe) {
        const npushmemx_world_t mapped = create(ranks.ids[0], pe, 2, over_p2p());
        Settings counted = over_faults();
        counted.push_back("NPUSHMEM_STATS=1");
        const npushmemx_world_t called = create(ranks.ids[1], 1 - pe, 2, counted);
        ASSERT_NE(mapped, nullptr) << last_failure();
        ASSERT_NE(called, nullptr) << last_failure();
        (void)make_current(mapped);
        auto* const there = static_cast<long*>(npushmem_calloc(2, sizeof(long)));
        (void)make_current(called);
        auto* const here = static_cast<long*>(npushmem_calloc(2, sizeof(long)));
        npushmem_ctx_t ctx = NPUSHMEM_CTX_INVALID;
        ASSERT_EQ(npushmemx_world_context(mapped, &ctx), 0);
        const long total = rounds();
        for (long round = 1; round <= total; ++round) {
            // The context's world needs not be current; the waits need it.
            npushmem_ctx_long_p(ctx, there, round, 1 - pe);
            npushmem_long_p(here, -round, pe);  // this PE is number 1 - pe there
            npushmem_long_wait_until(here, NPUSHMEM_CMP_EQ, -round);
            (void)make_current(mapped);
            npushmem_long_wait_until(there, NPUSHMEM_CMP_EQ, round);
            EXPECT_EQ(npushmem_long_atomic_fetch_inc(there + 1, 1 - pe), round - 1);
            (void)make_current(called);
            npushmem_barrier_all();
        }
        EXPECT_EQ(last_failure(), "");
        npushmemx_statistics_t statistics{};
        EXPECT_EQ(npushmemx_get_statistics(&statistics), 0);
        EXPECT_GE(statistics.barriers, static_cast<std::uint64_t>(total));
        (void)make_current(mapped);
        EXPECT_EQ(npushmemx_get_statistics(&statistics), 0);
        EXPECT_LT(statistics.barriers, 20U);
        // In the other order than they were made.
        EXPECT_EQ(npushmemx_world_destroy(called), 0) << last_failure();
        EXPECT_EQ(npushmemx_world_destroy(mapped), 0) << last_failure();
    });
}

TEST(Worlds, HaveAllFamiliesOfOperations) {
    for (const auto& settings : {over_p2p(), over_calls(), over_faults(), Settings{"NPUSHMEM_TRANSPORTS=hccs"}}) {
        SCOPED_TRACE(settings.front());
        const Ranks ranks(1, 3);
        run_threads(3, [&](int pe) {
            const npushmemx_world_t world = create(ranks.ids[0], pe, 3, settings);
            ASSERT_NE(world, nullptr) << last_failure();
            (void)make_current(world);
            use_current_world(pe, 3);
            EXPECT_EQ(npushmemx_world_destroy(world), 0) << last_failure();
        });
    }
}

// The default world starts, works and ends between the lives of others, with other numbers of PEs.
TEST(Worlds, LiveBesideTheDefaultWorldInAnyOrder) {
    npushmemx_world_t const early = create(make_id(), 0, 1, over_calls());
    npushmem_init();
    npushmemx_world_t const late = create(make_id(), 0, 1, over_p2p());
    use_current_world(0, 1);
    auto* const of_default = static_cast<long*>(npushmem_calloc(1, sizeof(long)));
    for (const npushmemx_world_t world : {early, late}) {
        EXPECT_EQ(make_current(world), nullptr);
        use_current_world(0, 1);
        // Data of the default world stays there.
        EXPECT_EQ(npushmem_addr_accessible(of_default, 0), 0);
        EXPECT_EQ(make_current(nullptr), world);
        EXPECT_EQ(npushmem_addr_accessible(of_default, 0), 1);
    }
    EXPECT_EQ(npushmemx_world_destroy(early), 0);
    use_current_world(0, 1);
    npushmem_finalize();
    (void)make_current(late);
    use_current_world(0, 1);
    (void)make_current(nullptr);
    npushmem_init();
    use_current_world(0, 1);
    EXPECT_EQ(npushmemx_world_destroy(late), 0);
    npushmem_finalize();
    EXPECT_EQ(last_failure(), "");
}

// One thread makes a world, another one uses it, a third one destroys it.
TEST(Worlds, PassFromThreadToThread) {
    npushmemx_world_t world = nullptr;
    std::thread([&] { world = create(make_id(), 0, 1); }).join();
    std::thread([&] {
        (void)make_current(world);
        use_current_world(0, 1);
    }).join();
    npushmem_ctx_t ctx = NPUSHMEM_CTX_INVALID;
    EXPECT_EQ(npushmemx_world_context(world, &ctx), 0);
    std::barrier<> sync(2);
    std::thread other([&] {
        (void)make_current(world);
        sync.arrive_and_wait();
        sync.arrive_and_wait();
        // The thread's current world is gone.
        EXPECT_EQ(npushmem_my_pe(), -1);
        EXPECT_THAT(last_failure(), AllOf(HasSubstr("has been destroyed"), HasSubstr("make_current")));
        npushmem_ctx_quiet(ctx);
        EXPECT_THAT(last_failure(), HasSubstr("destroyed"));
        (void)make_current(nullptr);
    });
    sync.arrive_and_wait();
    EXPECT_EQ(npushmemx_world_destroy(world), 0);
    sync.arrive_and_wait();
    other.join();
}

TEST(Worlds, ManyAtATimeEndInAnyOrder) {
    constexpr int count = 6;
    std::vector<npushmemx_world_t> worlds;
    for (int i = 0; i < count; ++i) worlds.push_back(create(make_id(), 0, 1));
    for (const int i : {3, 0, 5, 1, 4, 2}) {
        (void)make_current(worlds[static_cast<std::size_t>(i)]);
        use_current_world(0, 1);
        EXPECT_EQ(npushmemx_world_destroy(worlds[static_cast<std::size_t>(i)]), 0);
        // The default world, which does not run, is the current one again.
        EXPECT_EQ(npushmem_my_pe(), -1);
        EXPECT_THAT(last_failure(), HasSubstr("npushmem_init"));
    }
}

// A program that calls init and finalize itself can run in a world.
TEST(Worlds, AProgramStartsAndEndsTheLibraryInItsWorld) {
    npushmemx_world_t const world = create(make_id(), 0, 1);
    (void)make_current(world);
    npushmem_init();
    EXPECT_EQ(npushmem_n_pes(), 1);
    npushmem_finalize();
    use_current_world(0, 1);
    EXPECT_EQ(last_failure(), "");
    npushmem_finalize();
    EXPECT_THAT(last_failure(), HasSubstr("npushmemx_world_destroy"));
    npushmemx_init_attr_t attr = NPUSHMEMX_INIT_ATTR_INITIALIZER;
    const npushmemx_uniqueid_t other = make_id();
    EXPECT_EQ(npushmemx_set_attr_uniqueid_args(0, 2, &other, &attr), 0);
    EXPECT_EQ(npushmemx_init_attr(NPUSHMEMX_INIT_WITH_UNIQUEID, &attr), NPUSHMEM_E_ARGUMENT);
    EXPECT_THAT(last_failure(), HasSubstr("another unique id"));
    EXPECT_EQ(npushmemx_world_destroy(world), 0);
}

// The death of a world ends the waits of its other PEs.
TEST(Worlds, AnAbortedWorldIsADeadPe) {
    const Ranks ranks(1, 2);
    run_threads(2, [&](int pe) {
        npushmemx_world_t const world = create(ranks.ids[0], pe, 2, over_calls());
        ASSERT_NE(world, nullptr) << last_failure();
        (void)make_current(world);
        npushmem_barrier_all();
        if (pe == 1) {
            EXPECT_EQ(npushmemx_world_abort(world), 0);
            return;
        }
        npushmem_barrier_all();
        EXPECT_THAT(last_failure(), HasSubstr("PE 1"));
        EXPECT_NE(npushmemx_world_destroy(world), 0);
        EXPECT_NE(last_failure(), "");
    });
}

TEST(Worlds, RefuseWrongArguments) {
    const auto refused = [](int expected, int seen, const char* text) {
        EXPECT_EQ(seen, expected);
        EXPECT_THAT(last_failure(), HasSubstr(text));
    };
    npushmemx_world_attr_t attr = NPUSHMEMX_WORLD_ATTR_INITIALIZER;
    npushmemx_world_t world = nullptr;
    npushmem_ctx_t ctx = NPUSHMEM_CTX_INVALID;
    refused(NPUSHMEM_E_ARGUMENT, npushmemx_world_create(&attr, nullptr), "world is NULL");
    refused(NPUSHMEM_E_ARGUMENT, npushmemx_world_create(nullptr, &world), "attr is NULL");
    refused(NPUSHMEM_E_ARGUMENT, npushmemx_world_create(&attr, &world), "attr has no rank");
    EXPECT_EQ(world, nullptr);
    const npushmemx_uniqueid_t id = make_id();
    EXPECT_EQ(npushmemx_set_attr_uniqueid_args(0, 1, &id, &attr.init), 0);
    for (const char* const wrong : {"TRANSPORTS=self", "NPUSHMEM_TRANSPORTS"}) {
        const char* const settings[] = {wrong, nullptr};
        attr.settings = settings;
        refused(NPUSHMEM_E_ARGUMENT, npushmemx_world_create(&attr, &world), "expected NPUSHMEM_NAME=value");
    }
    const npushmem_transport_v1 empty{};
    const npushmem_transport_v1* const tables[] = {&empty, nullptr};
    attr.settings = nullptr;
    attr.transports = tables;
    refused(NPUSHMEM_E_ARGUMENT, npushmemx_world_create(&attr, &world), "without a size or a name");
    attr.transports = nullptr;
    const char* const malformed[] = {"NPUSHMEM_SYMMETRIC_SIZE=many", nullptr};
    attr.settings = malformed;
    refused(NPUSHMEM_E_CONFIG, npushmemx_world_create(&attr, &world), "NPUSHMEM_SYMMETRIC_SIZE");
    const char* const missing[] = {"NPUSHMEM_TRANSPORTS=nowhere", nullptr};
    attr.settings = missing;
    refused(NPUSHMEM_E_PLUGIN_MISSING, npushmemx_world_create(&attr, &world), "nowhere");
    EXPECT_EQ(world, nullptr);
    attr.settings = nullptr;
    for (const std::uint32_t wrong_size : {8U, 5000U}) {
        attr.struct_size = wrong_size;
        refused(NPUSHMEM_E_ARGUMENT, npushmemx_world_create(&attr, &world), "NPUSHMEMX_WORLD_ATTR_INITIALIZER");
    }
    attr.struct_size = sizeof attr;
    attr.reserved = 1;
    refused(NPUSHMEM_E_ARGUMENT, npushmemx_world_create(&attr, &world), "attr.reserved is 1");
    attr.reserved = 0;
    attr.init.struct_size += 8;  // the members behind it would be elsewhere
    refused(NPUSHMEM_E_ARGUMENT, npushmemx_world_create(&attr, &world), "attr.init.struct_size");
    attr.init.struct_size -= 8;
    // Of a later version.
    struct {
        npushmemx_world_attr_t known;
        void* member;
    } longer{attr, &attr};
    longer.known.struct_size = sizeof longer;
    refused(NPUSHMEM_E_UNSUPPORTED, npushmemx_world_create(&longer.known, &world), "update the library");
    longer.member = nullptr;
    EXPECT_EQ(npushmemx_world_create(&longer.known, &world), 0) << last_failure();
    EXPECT_EQ(npushmemx_world_destroy(world), 0);

    refused(NPUSHMEM_E_ARGUMENT, npushmemx_world_destroy(nullptr), "npushmem_finalize");
    refused(NPUSHMEM_E_ARGUMENT, npushmemx_world_abort(nullptr), "npushmem_finalize");
    const auto nowhere = reinterpret_cast<npushmemx_world_t>(std::uintptr_t{1} << 40);
    refused(NPUSHMEM_E_ARGUMENT, npushmemx_world_destroy(nowhere), "there is no world");
    refused(NPUSHMEM_E_ARGUMENT, npushmemx_world_make_current(nowhere, nullptr), "there is no world");
    refused(NPUSHMEM_E_ARGUMENT, npushmemx_world_context(nowhere, &ctx), "there is no world");
    refused(NPUSHMEM_E_ARGUMENT, npushmemx_world_context(nullptr, nullptr), "ctx is NULL");
    EXPECT_EQ(npushmemx_world_context(nullptr, &ctx), 0);
    EXPECT_EQ(ctx, NPUSHMEM_CTX_DEFAULT);

    world = create(make_id(), 0, 1);
    EXPECT_EQ(npushmemx_world_context(world, &ctx), 0);
    npushmem_ctx_destroy(ctx);
    EXPECT_THAT(last_failure(), HasSubstr("default context of a world cannot be destroyed"));
    EXPECT_EQ(npushmemx_world_destroy(world), 0);
    refused(NPUSHMEM_E_ARGUMENT, npushmemx_world_destroy(world), "has been destroyed");
    refused(NPUSHMEM_E_ARGUMENT, npushmemx_world_make_current(world, nullptr), "has been destroyed");
    npushmem_ctx_int_p(ctx, nullptr, 1, 0);
    EXPECT_THAT(last_failure(), HasSubstr("has been destroyed"));
}

TEST(Worlds, RefuseObjectsOfAnother) {
    npushmemx_world_t const first = create(make_id(), 0, 1);
    npushmemx_world_t const second = create(make_id(), 0, 1);
    (void)make_current(first);
    auto* const word = static_cast<long*>(npushmem_calloc(1, sizeof(long)));
    npushmem_team_t team = NPUSHMEM_TEAM_INVALID;
    EXPECT_EQ(npushmem_team_split_strided(NPUSHMEM_TEAM_WORLD, 0, 1, 1, nullptr, 0, &team), 0);
    (void)make_current(second);
    npushmem_long_p(word, 1, 0);
    EXPECT_THAT(last_failure(), HasSubstr("not symmetric"));
    EXPECT_EQ(npushmem_long_atomic_fetch(word, 0), 0);
    EXPECT_THAT(last_failure(), HasSubstr("not symmetric"));
    EXPECT_EQ(npushmem_team_my_pe(team), -1);
    EXPECT_THAT(last_failure(), HasSubstr("belongs to another world"));
    EXPECT_EQ(npushmem_team_n_pes(team), -1);
    EXPECT_THAT(last_failure(), HasSubstr("belongs to another world"));
    static long variable = 0;
    npushmem_long_p(&variable, 1, 0);
    EXPECT_THAT(last_failure(), HasSubstr("only the default world has the process's variables"));
    (void)make_current(first);
    npushmem_long_p(word, 1, 0);
    EXPECT_EQ(*word, 1);
    EXPECT_EQ(npushmem_team_my_pe(team), 0);
    npushmem_team_destroy(team);
    EXPECT_EQ(last_failure(), "");
    EXPECT_EQ(npushmemx_world_destroy(second), 0);
    EXPECT_EQ(npushmemx_world_destroy(first), 0);
}

// Operations in a stream act on the world that was current when they were queued.
TEST(Worlds, HaveStreams) {
    npushmemx_world_t const first = create(make_id(), 0, 1);
    npushmemx_world_t const second = create(make_id(), 0, 1, over_calls());
    for (const npushmemx_world_t world : {first, second, first}) {
        (void)make_current(world);
        auto* const words = static_cast<long*>(npushmem_calloc(2, sizeof(long)));
        EXPECT_EQ(npushmemx_long_p_on_stream(words, 9, 0, nullptr), 0);
        EXPECT_EQ(npushmemx_barrier_all_on_stream(nullptr), 0);
        EXPECT_EQ(npushmemx_stream_synchronize(nullptr), 0);
        EXPECT_EQ(words[0], 9);
        npushmem_free(words);
    }
    EXPECT_EQ(last_failure(), "");
    EXPECT_EQ(npushmemx_world_destroy(first), 0);
    EXPECT_EQ(npushmemx_world_destroy(second), 0);
}

TEST(Worlds, RefuseStreamsOfAnother) {
    npushmemx_world_t const first = create(make_id(), 0, 1);
    npushmemx_world_t const second = create(make_id(), 0, 1);
    npushmemx_stream_t stream = nullptr;
    npushmemx_stream_t unused = nullptr;
    EXPECT_EQ(npushmemx_stream_create(&unused), 0);  // of no world
    (void)make_current(first);
    EXPECT_EQ(npushmemx_stream_create(&stream), 0);
    auto* const words = static_cast<long*>(npushmem_calloc(2, sizeof(long)));
    EXPECT_EQ(npushmemx_long_p_on_stream(words, 9, 0, stream), 0);
    EXPECT_EQ(npushmemx_long_g_on_stream(words, 0, stream), 9);
    const auto expect_refused = [&](npushmemx_stream_t given) {
        EXPECT_EQ(npushmemx_barrier_all_on_stream(given), NPUSHMEM_E_ARGUMENT);
        EXPECT_THAT(last_failure(), HasSubstr("the device of another world"));
        long here = 0;
        EXPECT_EQ(npushmemx_memset_on_stream(&here, 1, sizeof here, given), NPUSHMEM_E_ARGUMENT);
        EXPECT_EQ(npushmemx_stream_synchronize(given), NPUSHMEM_E_ARGUMENT);
        npushmemx_clear_error();
        EXPECT_EQ(npushmemx_long_g_on_stream(&here, 0, given), 0);
        EXPECT_THAT(last_failure(), HasSubstr("the device of another world"));
    };
    (void)make_current(second);
    expect_refused(stream);
    EXPECT_EQ(npushmemx_barrier_all_on_stream(unused), 0);
    EXPECT_EQ(npushmemx_stream_synchronize(unused), 0);
    EXPECT_EQ(npushmemx_world_destroy(second), 0);
    // Of worlds that have ended; the default world runs in this process for the second time.
    (void)make_current(first);
    expect_refused(unused);
    EXPECT_EQ(npushmemx_stream_synchronize(stream), 0);
    EXPECT_EQ(npushmemx_world_destroy(first), 0);
    npushmem_init();
    expect_refused(stream);
    npushmemx_stream_t of_default = nullptr;
    EXPECT_EQ(npushmemx_stream_create(&of_default), 0);
    npushmem_finalize();
    npushmem_init();
    expect_refused(of_default);
    for (npushmemx_stream_t each : {stream, unused, of_default}) EXPECT_EQ(npushmemx_stream_destroy(each), 0);
    npushmem_finalize();
    EXPECT_EQ(last_failure(), "");
}

// Memory that is symmetric in one world: a private buffer, one of a file, and an object of the heap.
TEST(Worlds, RefuseMemoryThatIsSymmetricInAnother) {
    constexpr std::size_t bytes = 16384;
    npushmemx_world_t const first = create(make_id(), 0, 1);
    npushmemx_world_t const second = create(make_id(), 0, 1);
    const int file = memfd_create("shared", MFD_CLOEXEC);
    ASSERT_EQ(ftruncate(file, bytes), 0);
    for (const int flags : {MAP_PRIVATE | MAP_ANONYMOUS, MAP_SHARED}) {
        void* const memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, flags, flags == MAP_SHARED ? file : -1, 0);
        ASSERT_NE(memory, MAP_FAILED);
        const auto register_in = [&](npushmemx_world_t world) {
            (void)make_current(world);
            return static_cast<long*>(npushmemx_buffer_register_symmetric(memory, bytes, 0));
        };
        long* const there = register_in(first);
        ASSERT_NE(there, nullptr) << last_failure();
        EXPECT_EQ(register_in(second), nullptr);
        EXPECT_THAT(last_failure(), AllOf(HasSubstr("symmetric already, in another world"),
                                          HasSubstr("npushmemx_buffer_unregister_symmetric")));
        (void)make_current(first);
        npushmem_long_p(there, 5, 0);
        EXPECT_EQ(*static_cast<long*>(memory), 5) << "the registration is as before";
        EXPECT_EQ(npushmemx_buffer_unregister_symmetric(there, bytes), 0);
        long* const moved = register_in(second);
        ASSERT_NE(moved, nullptr) << last_failure();
        EXPECT_EQ(*moved, 5);
        EXPECT_EQ(npushmemx_buffer_unregister_symmetric(moved, bytes), 0);
        EXPECT_NE(register_in(second), nullptr) << last_failure();  // until this world ends
        (void)make_current(first);
        void* const object = npushmem_align(4096, bytes);
        (void)make_current(second);
        EXPECT_EQ(npushmemx_buffer_register_symmetric(object, bytes, 0), nullptr);
        EXPECT_THAT(last_failure(), HasSubstr("symmetric already, in another world"));
    }
    EXPECT_EQ(npushmemx_world_destroy(second), 0);
    void* const memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    (void)make_current(first);
    EXPECT_NE(npushmemx_buffer_register_symmetric(memory, bytes, 0), nullptr) << last_failure();
    EXPECT_EQ(npushmemx_world_destroy(first), 0);
    EXPECT_EQ(close(file), 0);
    EXPECT_EQ(last_failure(), "");
}

TEST(Worlds, IdsTakeLittleMemory) {
    for (int i = 0; i < 20; ++i) (void)make_id();
    const std::size_t before = mallinfo2().uordblks;
    constexpr int ids = 200;
    for (int i = 0; i < ids; ++i) (void)make_id();
    EXPECT_LT(mallinfo2().uordblks, before + ids * 2048);
}

}  // namespace
