// SPDX-License-Identifier: BSD-3-Clause
// The deprecated collectives over active sets, from the standard's text: every type of every reduction in place and
// not, every untyped operation, of nothing, one element, few, and more than any algorithm takes at once; over the whole
// job, every second PE, and all but the first. And what the table of `collectives` leaves out: more than a megabyte,
// teams with strides, and the forms in bytes.
#include <algorithm>
#include <cstring>
#include <vector>

#include "npushmem.h"
#include "tests/integration/api/programs/checker.hpp"

namespace npushmem::api_test {
namespace {

// PEs start, start + 2^log_stride, ..., and this PE's index among them.
struct Set {
    int start;
    int log_stride;
    int size;
    int me;

    [[nodiscard]] int pe(int member) const { return start + member * (1 << log_stride); }
    [[nodiscard]] std::size_t members() const { return static_cast<std::size_t>(size); }
};

struct Room {
    std::byte* dest;
    std::byte* source;
    std::byte* work;
    long* sync;
};

// Small, so that sums and products fit every type.
int number(int member, std::size_t i) {
    return static_cast<int>((i * 3 + static_cast<std::size_t>(member) * 5) % 7) + 1;
}

class OverSet {
public:
    OverSet(Checker& check, const Set& set, const Room& room) : check_(check), set_(set), room_(room) {}

    template <class T, class Combine>
    void reduction(const char* name, void (*call)(T*, const T*, int, int, int, int, T*, long*), Combine combine,
                   int count) {
        for (const bool in_place : {false, true}) {
            T* const source = fill<T>(static_cast<std::size_t>(count), static_cast<std::size_t>(count));
            T* const dest = in_place ? source : reinterpret_cast<T*>(room_.dest);
            call(dest, source, count, set_.start, set_.log_stride, set_.size, reinterpret_cast<T*>(room_.work),
                 room_.sync);
            compare(name, static_cast<std::size_t>(count), dest, [&](std::size_t i) {
                T expected = static_cast<T>(number(0, i));
                for (int member = 1; member < set_.size; ++member)
                    expected = static_cast<T>(combine(expected, static_cast<T>(number(member, i))));
                return expected;
            });
            if (!in_place) guarded<T>(name, static_cast<std::size_t>(count));
        }
        meet(name);
    }

    template <class T>
    void broadcast(void (*call)(void*, const void*, std::size_t, int, int, int, int, long*), std::size_t count) {
        for (int root = 0; root < set_.size; ++root) {
            const T* const source = fill<T>(count, count);
            call(room_.dest, source, count, root, set_.start, set_.log_stride, set_.size, room_.sync);
            // The root's dest stays unchanged.
            compare("broadcast", count, dest<T>(),
                    [&](std::size_t i) { return set_.me == root ? guard<T>() : static_cast<T>(number(root, i)); });
            guarded<T>("broadcast", count);
            meet("broadcast");
        }
    }

    using Collect = void (*)(void*, const void*, std::size_t, int, int, int, long*);

    template <class T>
    void fcollect(Collect call, std::size_t count) {
        const T* const source = fill<T>(count, count * set_.members());
        call(room_.dest, source, count, set_.start, set_.log_stride, set_.size, room_.sync);
        compare("fcollect", count * set_.members(), dest<T>(),
                [&](std::size_t i) { return static_cast<T>(number(static_cast<int>(i / count), i % count)); });
        guarded<T>("fcollect", count * set_.members());
        meet("fcollect");
    }

    // Member m gives count + m elements, but the second one none.
    template <class T>
    void collect(Collect call, std::size_t count) {
        const auto given = [&](int member) { return member == 1 ? 0 : count + static_cast<std::size_t>(member); };
        std::size_t all = 0;
        for (int member = 0; member < set_.size; ++member) all += given(member);
        const T* const source = fill<T>(given(set_.me), all);
        call(room_.dest, source, given(set_.me), set_.start, set_.log_stride, set_.size, room_.sync);
        std::vector<T> expected;
        for (int member = 0; member < set_.size; ++member)
            for (std::size_t i = 0; i < given(member); ++i) expected.push_back(static_cast<T>(number(member, i)));
        compare("collect", all, dest<T>(), [&](std::size_t i) { return expected[i]; });
        guarded<T>("collect", all);
        meet("collect");
    }

    template <class T>
    void alltoall(Collect call, std::size_t count) {
        const T* const source = fill<T>(count * set_.members(), count * set_.members());
        call(room_.dest, source, count, set_.start, set_.log_stride, set_.size, room_.sync);
        compare("alltoall", count * set_.members(), dest<T>(), [&](std::size_t i) {
            const std::size_t from = static_cast<std::size_t>(set_.me) * count + i % count;
            return static_cast<T>(number(static_cast<int>(i / count), from));
        });
        guarded<T>("alltoall", count * set_.members());
        meet("alltoall");
    }

    template <class T>
    void alltoalls(void (*call)(void*, const void*, std::ptrdiff_t, std::ptrdiff_t, std::size_t, int, int, int, long*),
                   std::ptrdiff_t dst, std::ptrdiff_t sst, std::size_t count) {
        const auto to = static_cast<std::size_t>(dst);
        const auto from = static_cast<std::size_t>(sst);
        const T* const source = fill<T>(count * set_.members() * from, count * set_.members() * to);
        call(room_.dest, source, dst, sst, count, set_.start, set_.log_stride, set_.size, room_.sync);
        compare("alltoalls", count * set_.members() * to, dest<T>(), [&](std::size_t i) {
            const std::size_t element = i / to;
            const std::size_t at = (static_cast<std::size_t>(set_.me) * count + element % count) * from;
            return i % to == 0 ? static_cast<T>(number(static_cast<int>(element / count), at)) : guard<T>();
        });
        meet("alltoalls");
    }

private:
    template <class T>
    static T guard() {
        return static_cast<T>(99);
    }
    template <class T>
    T* dest() {
        return reinterpret_cast<T*>(room_.dest);
    }
    // Fills the source, and dest with one more element than it receives; then waits until all members are ready.
    template <class T>
    T* fill(std::size_t count, std::size_t received) {
        T* const source = reinterpret_cast<T*>(room_.source);
        for (std::size_t i = 0; i < count; ++i) source[i] = static_cast<T>(number(set_.me, i));
        std::fill_n(dest<T>(), received + 1, guard<T>());
        npushmem_barrier(set_.start, set_.log_stride, set_.size, room_.sync);
        return source;
    }
    template <class T>
    void guarded(const char* name, std::size_t count) {
        compare(name, 1, dest<T>() + count, [](std::size_t) { return guard<T>(); });
    }
    // Called before the arrays change again; pSync must be unchanged.
    void meet(const char* name) {
        for (int i = 0; i < NPUSHMEM_SYNC_SIZE; ++i) check_.equal(where(name), NPUSHMEM_SYNC_VALUE, room_.sync[i]);
        npushmem_sync(set_.start, set_.log_stride, set_.size, room_.sync);
    }
    // Reports the first unexpected element.
    template <class T, class Expected>
    void compare(const char* name, std::size_t count, const T* seen, Expected expected) {
        for (std::size_t i = 0; i < count; ++i)
            if (!(seen[i] == expected(i))) {
                check_.fail(fmt::format("{} of {}: element {} differs", where(name), count, i));
                return;
            }
    }
    [[nodiscard]] std::string where(const char* name) const {
        return fmt::format("{} over {}:{}:{}", name, set_.start, set_.log_stride, set_.size);
    }

    Checker& check_;
    const Set& set_;
    const Room& room_;
};

void test_reductions(OverSet over, int count) {
#define TEST_ONE(NAME, TYPE, OP, EXPRESSION) \
    over.reduction<TYPE>(                    \
        #NAME "_" #OP, npushmem_##NAME##_##OP##_to_all, [](TYPE a, TYPE b) { return EXPRESSION; }, count);
#define TEST_TYPE(NAME, TYPE)          \
    TEST_ONE(NAME, TYPE, and, (a & b)) \
    TEST_ONE(NAME, TYPE, or, (a | b))  \
    TEST_ONE(NAME, TYPE, xor, (a ^ b))
    NPUSHMEM_FOR_EACH_OLD_BITWISE_REDUCTION_TYPE(TEST_TYPE)
#undef TEST_TYPE
#define TEST_TYPE(NAME, TYPE)                 \
    TEST_ONE(NAME, TYPE, max, std::max(a, b)) \
    TEST_ONE(NAME, TYPE, min, std::min(a, b))
    NPUSHMEM_FOR_EACH_OLD_ORDERED_REDUCTION_TYPE(TEST_TYPE)
#undef TEST_TYPE
#define TEST_TYPE(NAME, TYPE)          \
    TEST_ONE(NAME, TYPE, sum, (a + b)) \
    TEST_ONE(NAME, TYPE, prod, (a * b))
    NPUSHMEM_FOR_EACH_OLD_ARITHMETIC_REDUCTION_TYPE(TEST_TYPE)
#undef TEST_TYPE
#undef TEST_ONE
}

template <class T>
struct Untyped {
    decltype(&npushmem_broadcast32) broadcast;
    decltype(&npushmem_fcollect32) fcollect;
    decltype(&npushmem_collect32) collect;
    decltype(&npushmem_alltoall32) alltoall;
    decltype(&npushmem_alltoalls32) alltoalls;

    void test(OverSet over, std::size_t count) const {
        over.broadcast<T>(broadcast, count);
        over.fcollect<T>(fcollect, count);
        over.collect<T>(collect, count);
        over.alltoall<T>(alltoall, count);
        if (count > 1000) return;
        over.alltoalls<T>(alltoalls, 1, 1, count);
        over.alltoalls<T>(alltoalls, 3, 2, count);
    }
};

constexpr Untyped<std::uint32_t> of_32_bits{npushmem_broadcast32, npushmem_fcollect32, npushmem_collect32,
                                            npushmem_alltoall32, npushmem_alltoalls32};
constexpr Untyped<std::uint64_t> of_64_bits{npushmem_broadcast64, npushmem_fcollect64, npushmem_collect64,
                                            npushmem_alltoall64, npushmem_alltoalls64};

void test_set(Checker& check, const Job& job, const Room& room, int start, int log_stride, int size) {
    const int distance = job.me - start;
    const int stride = 1 << log_stride;
    if (distance < 0 || distance % stride != 0 || distance / stride >= size) return;
    const Set set{start, log_stride, size, distance / stride};
    const OverSet over(check, set, room);
    for (const int count : {0, 1, 3, 145}) test_reductions(over, count);
    for (const std::size_t count : {0, 1, 5, 513, 9001}) of_32_bits.test(over, count);
    for (const std::size_t count : {0, 1, 7, 4100}) of_64_bits.test(over, count);
}

constexpr std::size_t large = (1U << 20) + 4;  // bytes; not a multiple of the team's size

// A team's operations in bytes, and on more than a megabyte.
void test_team(Checker& check, npushmem_team_t team, const Room& room, std::size_t bytes) {
    const int me = npushmem_team_my_pe(team);
    const int n = npushmem_team_n_pes(team);
    auto* dest = reinterpret_cast<unsigned char*>(room.dest);
    auto* source = reinterpret_cast<unsigned char*>(room.source);
    const auto byte = [](int pe, std::size_t i) { return static_cast<unsigned char>(i * 13 + i / 241 + pe * 7); };
    const auto equal = [&](const char* name, std::size_t begin, std::size_t count, int pe, std::size_t from) {
        for (std::size_t i = 0; i < count; ++i)
            if (dest[begin + i] != byte(pe, from + i)) {
                check.fail(
                    fmt::format("{} of {} bytes in a team of {}: byte {} from PE {} differs", name, bytes, n, i, pe));
                return;
            }
    };
    for (std::size_t i = 0; i < bytes; ++i) source[i] = byte(me, i);
    const auto meet = [&] { check.equal("team_sync", 0, npushmem_team_sync(team)); };
    meet();
    check.equal("broadcastmem", 0, npushmem_broadcastmem(team, dest, source, bytes, n - 1));
    equal("broadcastmem", 0, bytes, n - 1, 0);
    meet();
    check.equal("fcollectmem", 0, npushmem_fcollectmem(team, dest, source, bytes));
    for (int pe = 0; pe < n; ++pe) equal("fcollectmem", static_cast<std::size_t>(pe) * bytes, bytes, pe, 0);
    meet();
    const std::size_t given = bytes - std::min(bytes, static_cast<std::size_t>(me));
    check.equal("collectmem", 0, npushmem_collectmem(team, dest, source, given));
    std::size_t at = 0;
    for (int pe = 0; pe < n; ++pe) {
        const std::size_t theirs = bytes - std::min(bytes, static_cast<std::size_t>(pe));
        equal("collectmem", at, theirs, pe, 0);
        at += theirs;
    }
    meet();
    const std::size_t part = bytes / static_cast<std::size_t>(n);
    check.equal("alltoallmem", 0, npushmem_alltoallmem(team, dest, source, part));
    for (int pe = 0; pe < n; ++pe)
        equal("alltoallmem", static_cast<std::size_t>(pe) * part, part, pe, static_cast<std::size_t>(me) * part);
    meet();
}

void test_large_reductions(Checker& check, npushmem_team_t team, const Room& room) {
    const int me = npushmem_team_my_pe(team);
    const int n = npushmem_team_n_pes(team);
    constexpr std::size_t count = large / 4;
    auto* dest = reinterpret_cast<int*>(room.dest);
    auto* source = reinterpret_cast<int*>(room.source);
    for (std::size_t i = 0; i < count; ++i) source[i] = number(me, i);
    npushmem_team_sync(team);
    check.equal("sum_reduce", 0, npushmem_int_sum_reduce(team, dest, source, count));
    check.equal("sum_inscan", 0, npushmem_int_sum_inscan(team, dest + count, source, count));
    check.equal("sum_exscan", 0, npushmem_int_sum_exscan(team, source, source, count));
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < count; ++i) {
        int before = 0;
        int all = 0;
        for (int pe = 0; pe < n; ++pe) {
            all += number(pe, i);
            before += pe < me ? number(pe, i) : 0;
        }
        wrong += dest[i] != all || dest[count + i] != before + number(me, i) || source[i] != before ? 1 : 0;
    }
    check.equal("wrong elements of large reductions and scans", std::size_t{0}, wrong);
    npushmem_team_sync(team);
}

void test_teams(Checker& check, const Job& job, const Room& room) {
    for (const int stride : {1, 2, 3}) {
        npushmem_team_t team = NPUSHMEM_TEAM_INVALID;
        npushmem_team_split_strided(NPUSHMEM_TEAM_WORLD, 0, stride, (job.npes + stride - 1) / stride, nullptr, 0,
                                    &team);
        if (team != NPUSHMEM_TEAM_INVALID) {
            for (const std::size_t bytes : {std::size_t{0}, std::size_t{1}, std::size_t{3}, std::size_t{40001}, large})
                test_team(check, team, room, bytes);
            test_large_reductions(check, team, room);
            npushmem_team_destroy(team);
        }
        npushmem_barrier_all();
    }
}

void test_active_sets(Checker& check, const Job& job) {
    const std::size_t bytes = large * static_cast<std::size_t>(std::max(job.npes, 2)) + 64;
    const Room room{static_cast<std::byte*>(npushmem_malloc(bytes)),
                    static_cast<std::byte*>(npushmem_malloc(large + 64)),
                    static_cast<std::byte*>(npushmem_malloc(8192)),
                    static_cast<long*>(npushmem_calloc(NPUSHMEM_SYNC_SIZE, sizeof(long)))};
    if (!check.that("memory", room.dest && room.source && room.work && room.sync)) return;
    test_set(check, job, room, 0, 0, job.npes);
    npushmem_barrier_all();
    test_set(check, job, room, 0, 1, (job.npes + 1) / 2);
    npushmem_barrier_all();
    if (job.npes > 1) test_set(check, job, room, 1, 0, job.npes - 1);
    npushmem_barrier_all();
    if (job.npes > 2) test_set(check, job, room, job.npes - 1, 5, 1);
    npushmem_barrier_all();
    test_teams(check, job, room);
    check.no_error("active sets");
}

}  // namespace
}  // namespace npushmem::api_test

int main() { return npushmem::api_test::run_family("active_sets", npushmem::api_test::test_active_sets); }
