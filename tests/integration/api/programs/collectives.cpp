// SPDX-License-Identifier: BSD-3-Clause
// Collectives: every type and operation on several teams, in place and not, with sizes that select every algorithm; and
// over active sets. Expected values follow from every member's contribution.
#include <algorithm>
#include <cstring>
#include <string>
#include <type_traits>
#include <vector>

#include "npushmem.h"
#include "npushmemx.h"
#include "tests/integration/api/programs/checker.hpp"

namespace npushmem::api_test {
namespace {

// The value of member `pe` at element i: small, so that sums and products fit every type.
int number(int pe, std::size_t i) { return static_cast<int>((i * 3 + static_cast<std::size_t>(pe) * 5) % 7) + 1; }
template <class T>
T small(int pe, std::size_t i) {
    return static_cast<T>(number(pe, i));
}

struct Where {
    std::string name;
    npushmem_team_t team;
    int me;
    int size;
};

template <class T>
using TeamCall = int (*)(npushmem_team_t, T*, const T*, std::size_t);

constexpr std::size_t most = 9000;  // elements; needs several blocks
constexpr std::size_t every_type =
    3;  // the other counts run for a few types only, since their code does not depend on the type

// dest and source with room for `most` elements for every member.
struct Room {
    std::byte* dest;
    std::byte* source;
    std::size_t bytes;
};

template <class T>
class Typed {
public:
    Typed(Checker& check, const Where& where, const Room& room, std::string type)
        : check_(check),
          where_(where),
          dest_(reinterpret_cast<T*>(room.dest)),
          source_(reinterpret_cast<T*>(room.source)),
          type_(std::move(type)) {}

    // `combine(a, b)` of the first `up_to` members, or of all.
    template <class Combine>
    void reduction(const char* name, TeamCall<T> call, Combine combine, std::size_t count) {
        for (const bool in_place : {false, true}) {
            fill(count, count);
            T* const into = in_place ? source_ : dest_;
            meet();
            expect_zero(name, call(where_.team, into, source_, count));
            for (std::size_t i = 0; i < count; ++i) {
                T expected = small<T>(0, i);
                for (int pe = 1; pe < where_.size; ++pe) expected = combine(expected, small<T>(pe, i));
                compare(name, count, i, expected, into[i]);
            }
        }
    }

    void scan(const char* name, TeamCall<T> call, bool inclusive, std::size_t count) {
        for (const bool in_place : {false, true}) {
            fill(count, count);
            T* const into = in_place ? source_ : dest_;
            meet();
            expect_zero(name, call(where_.team, into, source_, count));
            for (std::size_t i = 0; i < count; ++i) {
                int expected = 0;
                for (int pe = 0; pe < where_.me + (inclusive ? 1 : 0); ++pe) expected += number(pe, i);
                compare(name, count, i, static_cast<T>(expected), into[i]);
            }
        }
    }

    void broadcast(int (*call)(npushmem_team_t, T*, const T*, std::size_t, int), std::size_t count) {
        for (const int root : {0, where_.size - 1}) {
            fill(count, count);
            meet();
            expect_zero("broadcast", call(where_.team, dest_, source_, count, root));
            for (std::size_t i = 0; i < count; ++i) compare("broadcast", count, i, small<T>(root, i), dest_[i]);
            compare("broadcast", count, count, guard(), dest_[count]);
        }
    }

    void fcollect(TeamCall<T> call, std::size_t count) {
        fill(count, count * members());
        meet();
        expect_zero("fcollect", call(where_.team, dest_, source_, count));
        for (int pe = 0; pe < where_.size; ++pe)
            for (std::size_t i = 0; i < count; ++i)
                compare("fcollect", count, i, small<T>(pe, i), dest_[static_cast<std::size_t>(pe) * count + i]);
        compare("fcollect", count, count, guard(), dest_[static_cast<std::size_t>(where_.size) * count]);
    }

    // Member pe gives count + pe elements, the second one none.
    void collect(TeamCall<T> call, std::size_t count) {
        const auto given = [&](int pe) { return pe == 1 ? 0 : count + static_cast<std::size_t>(pe); };
        fill(count + members(), (count + members()) * members());
        meet();
        expect_zero("collect", call(where_.team, dest_, source_, given(where_.me)));
        std::size_t at = 0;
        for (int pe = 0; pe < where_.size; ++pe)
            for (std::size_t i = 0; i < given(pe); ++i, ++at) compare("collect", count, at, small<T>(pe, i), dest_[at]);
        compare("collect", count, at, guard(), dest_[at]);
    }

    void alltoall(TeamCall<T> call, std::size_t count) {
        const auto n = static_cast<std::size_t>(where_.size);
        fill(count * n, count * n);
        meet();
        expect_zero("alltoall", call(where_.team, dest_, source_, count));
        for (int pe = 0; pe < where_.size; ++pe)
            for (std::size_t i = 0; i < count; ++i)
                compare("alltoall", count, i, small<T>(pe, static_cast<std::size_t>(where_.me) * count + i),
                        dest_[static_cast<std::size_t>(pe) * count + i]);
    }

    void alltoalls(int (*call)(npushmem_team_t, T*, const T*, std::ptrdiff_t, std::ptrdiff_t, std::size_t)) {
        constexpr std::size_t count = 5;
        const auto n = static_cast<std::size_t>(where_.size);
        fill(count * n * 3, count * n * 2);
        meet();
        expect_zero("alltoalls", call(where_.team, dest_, source_, 2, 3, count));
        for (std::size_t i = 0; i < count * n * 2; ++i) {
            const int pe = static_cast<int>(i / 2 / count);
            const std::size_t from = (static_cast<std::size_t>(where_.me) * count + i / 2 % count) * 3;
            compare("alltoalls", count, i, i % 2 == 0 ? small<T>(pe, from) : guard(), dest_[i]);
        }
    }

    // Member a sends (a + 2b) % 3 + 1 elements, but none if a is b, to member b.
    void alltoallv(int (*call)(npushmem_team_t, T*, const std::size_t*, const std::size_t*, const T*,
                               const std::size_t*, const std::size_t*)) {
        const auto sent = [](int a, int b) { return a == b ? 0 : static_cast<std::size_t>((a + 2 * b) % 3 + 1); };
        std::vector<std::size_t> to_counts, to_offsets, from_counts, from_offsets;
        for (int pe = 0; pe < where_.size; ++pe) {
            from_counts.push_back(sent(where_.me, pe));
            from_offsets.push_back(static_cast<std::size_t>(where_.size - pe) * 4);
            to_counts.push_back(sent(pe, where_.me));
            to_offsets.push_back(static_cast<std::size_t>(pe) * 5 + 1);
        }
        fill(members() * 4 + 4, members() * 5);
        meet();
        expect_zero("alltoallv", call(where_.team, dest_, to_counts.data(), to_offsets.data(), source_,
                                      from_counts.data(), from_offsets.data()));
        for (std::size_t i = 0; i < members() * 5; ++i) {
            const int pe = static_cast<int>(i / 5);
            const bool received = i % 5 >= 1 && i % 5 < 1 + sent(pe, where_.me);
            const std::size_t from = static_cast<std::size_t>(where_.size - where_.me) * 4 + i % 5 - 1;
            compare("alltoallv", 5, i, received ? small<T>(pe, from) : guard(), dest_[i]);
        }
    }

private:
    static T guard() { return static_cast<T>(99); }
    // `count` elements here, `received` there and one more.
    void fill(std::size_t count, std::size_t received) {
        for (std::size_t i = 0; i < count; ++i) source_[i] = small<T>(where_.me, i);
        for (std::size_t i = 0; i <= received; ++i) dest_[i] = guard();
    }
    [[nodiscard]] std::size_t members() const { return static_cast<std::size_t>(where_.size); }
    // Called before a collective, so that dest is ready on all. None is needed afterwards.
    void meet() { expect_zero("team_sync", npushmem_team_sync(where_.team)); }
    void expect_zero(const char* name, int code) {
        check_.equal(fmt::format("{} {} on {}", type_, name, where_.name), 0, code);
    }
    void compare(const char* name, std::size_t count, std::size_t i, const T& expected, const T& seen) {
        if (!(expected == seen))
            check_.fail(fmt::format("{} {} of {} on {}: element {} differs", type_, name, count, where_.name, i));
    }

    Checker& check_;
    const Where& where_;
    T* dest_;
    T* source_;
    std::string type_;
};

void test_data(Checker& check, const Where& where, const Room& room, std::size_t count) {
#define TEST_TYPE(NAME, TYPE)                                                                           \
    {                                                                                                   \
        Typed<TYPE> typed(check, where, room, #NAME);                                                   \
        typed.broadcast(npushmem_##NAME##_broadcast, count);                                            \
        typed.fcollect(npushmem_##NAME##_fcollect, count);                                              \
        typed.collect(npushmem_##NAME##_collect, count);                                                \
        typed.alltoall(npushmem_##NAME##_alltoall, count);                                              \
        if (count == every_type) typed.alltoalls(npushmem_##NAME##_alltoalls);                          \
        if (count == every_type) typed.alltoallv(npushmemx_##NAME##_alltoallv);                         \
        typed.reduction(                                                                                \
            "max", npushmem_##NAME##_max_reduce, [](TYPE a, TYPE b) { return std::max(a, b); }, count); \
        typed.reduction(                                                                                \
            "min", npushmem_##NAME##_min_reduce, [](TYPE a, TYPE b) { return std::min(a, b); }, count); \
    }
    if (count == every_type) {
        NPUSHMEM_FOR_EACH_RMA_TYPE(TEST_TYPE)
    } else {
        TEST_TYPE(int, int)
        TEST_TYPE(longdouble, long double)
    }
#undef TEST_TYPE
}

template <class T>
T sum_of(T a, T b) {
    return static_cast<T>(a + b);
}
template <class T>
T product_of(T a, T b) {
    return static_cast<T>(a * b);
}

void test_arithmetic(Checker& check, const Where& where, const Room& room, std::size_t count) {
#define TEST_TYPE(NAME, TYPE)                                                            \
    {                                                                                    \
        Typed<TYPE> typed(check, where, room, #NAME);                                    \
        typed.reduction("sum", npushmem_##NAME##_sum_reduce, sum_of<TYPE>, count);       \
        typed.reduction("prod", npushmem_##NAME##_prod_reduce, product_of<TYPE>, count); \
        typed.scan("inscan", npushmem_##NAME##_sum_inscan, true, count);                 \
        typed.scan("exscan", npushmem_##NAME##_sum_exscan, false, count);                \
    }
    if (count == every_type) {
        NPUSHMEM_FOR_EACH_ARITHMETIC_REDUCTION_TYPE(TEST_TYPE)
    } else {
        TEST_TYPE(double, double)
        TEST_TYPE(complexd, npushmem_complexd)
    }
#undef TEST_TYPE
#define TEST_TYPE(NAME, TYPE)                                                                                     \
    {                                                                                                             \
        Typed<TYPE> typed(check, where, room, #NAME);                                                             \
        typed.reduction(                                                                                          \
            "and", npushmem_##NAME##_and_reduce, [](TYPE a, TYPE b) { return static_cast<TYPE>(a & b); }, count); \
        typed.reduction(                                                                                          \
            "or", npushmem_##NAME##_or_reduce, [](TYPE a, TYPE b) { return static_cast<TYPE>(a | b); }, count);   \
        typed.reduction(                                                                                          \
            "xor", npushmem_##NAME##_xor_reduce, [](TYPE a, TYPE b) { return static_cast<TYPE>(a ^ b); }, count); \
    }
    if (count == every_type) {
        NPUSHMEM_FOR_EACH_BITWISE_REDUCTION_TYPE(TEST_TYPE)
    } else {
        TEST_TYPE(uint64, std::uint64_t)
    }
#undef TEST_TYPE
}

void test_team(Checker& check, const Where& where, const Room& room, std::initializer_list<std::size_t> counts) {
    for (const std::size_t count : counts) {
        test_data(check, where, room, count);
        test_arithmetic(check, where, room, count);
    }
}

// Active sets: all PEs, the even PEs, and all but the first; each with a pSync that must stay unchanged.
void test_active_set(Checker& check, const Job& job, const Room& room, int start, int log_stride, int size,
                     long* sync) {
    const int stride = 1 << log_stride;
    const bool member = job.me >= start && (job.me - start) % stride == 0 && (job.me - start) / stride < size;
    if (!member) return;
    const int me = (job.me - start) / stride;
    const auto n = static_cast<std::size_t>(size);
    auto* dest = reinterpret_cast<std::int64_t*>(room.dest);
    auto* source = reinterpret_cast<std::int64_t*>(room.source);
    auto* ints = reinterpret_cast<int*>(room.dest);
    auto* int_source = reinterpret_cast<int*>(room.source);
    const auto what = [&](const char* name) { return fmt::format("{} over {}:{}:{}", name, start, log_stride, size); };
    for (int round = 0; round < 3; ++round) {
        for (std::size_t i = 0; i < 4 * n; ++i) source[i] = job.me * 100 + static_cast<std::int64_t>(i);
        std::fill_n(dest, 4 * n, -1);
        npushmem_barrier(start, log_stride, size, sync);
        const int root = round % size;
        npushmem_broadcast64(dest, source, 2, root, start, log_stride, size, sync);
        check.equal(what("broadcast64"), me == root ? std::int64_t{-1} : (start + root * stride) * 100 + 1, dest[1]);
        npushmem_barrier(start, log_stride, size, sync);
        npushmem_fcollect64(dest, source, 2, start, log_stride, size, sync);
        check.equal(what("fcollect64"), std::int64_t{(start + (size - 1) * stride) * 100 + 1}, dest[2 * n - 1]);
        npushmem_barrier(start, log_stride, size, sync);
        npushmem_collect64(dest, source, static_cast<std::size_t>(me) + 1, start, log_stride, size, sync);
        check.equal(what("collect64"), std::int64_t{(start + (size - 1) * stride) * 100}, dest[n * (n - 1) / 2]);
        npushmem_barrier(start, log_stride, size, sync);
        npushmem_alltoall64(dest, source, 1, start, log_stride, size, sync);
        check.equal(what("alltoall64"), std::int64_t{(start + (size - 1) * stride) * 100 + me}, dest[n - 1]);
        npushmem_barrier(start, log_stride, size, sync);
        npushmem_alltoalls64(dest, source, 1, 2, 1, start, log_stride, size, sync);
        check.equal(what("alltoalls64"), std::int64_t{start * 100 + 2 * me}, dest[0]);
        npushmem_sync(start, log_stride, size, sync);
        int_source[0] = me + 1;
        npushmem_int_sum_to_all(ints, int_source, 1, start, log_stride, size, int_source + 8, sync);
        check.equal(what("sum_to_all"), size * (size + 1) / 2, ints[0]);
        npushmem_int_max_to_all(ints, int_source, 1, start, log_stride, size, int_source + 8, sync);
        check.equal(what("max_to_all"), size, ints[0]);
        npushmem_int_and_to_all(ints, int_source, 1, start, log_stride, size, int_source + 8, sync);
        check.equal(what("and_to_all"), size == 1 ? 1 : 0, ints[0]);
        npushmem_barrier(start, log_stride, size, sync);
        for (int i = 0; i < NPUSHMEM_SYNC_SIZE; ++i) check.equal(what("pSync"), NPUSHMEM_SYNC_VALUE, sync[i]);
        npushmem_barrier(start, log_stride, size, sync);
    }
}

// Broadcasts with an array larger than any block of an algorithm, and one of a megabyte.
void test_large(Checker& check, const Job& job) {
    for (const std::size_t bytes : {std::size_t{40001}, std::size_t{1} << 20}) {
        auto* memory = static_cast<unsigned char*>(npushmem_malloc(2 * bytes));
        const auto byte = [](int pe, std::size_t i) { return static_cast<unsigned char>(i * 13 + i / 241 + pe * 7); };
        for (std::size_t i = 0; i < bytes; ++i) memory[i] = byte(job.me, i);
        const int root = job.npes - 1;
        npushmem_barrier_all();
        check.equal("broadcastmem", 0, npushmem_broadcastmem(NPUSHMEM_TEAM_WORLD, memory + bytes, memory, bytes, root));
        std::size_t wrong = 0;
        for (std::size_t i = 0; i < bytes; ++i) wrong += memory[bytes + i] != byte(root, i);
        check.equal("wrong bytes of a large broadcast", std::size_t{0}, wrong);
        npushmem_barrier_all();
        npushmem_free(memory);
    }
}

// Bytes, some hundreds of thousands of them; a PE that receives nothing gives no dest.
void test_large_alltoallv(Checker& check, const Job& job) {
    const auto n = static_cast<std::size_t>(job.npes);
    const std::size_t bytes = 300001;
    auto* memory = static_cast<unsigned char*>(npushmem_malloc(2 * bytes));
    const auto byte = [](int pe, std::size_t i) { return static_cast<unsigned char>(i * 7 + i / 251 + pe * 3); };
    for (std::size_t i = 0; i < bytes; ++i) memory[i] = byte(job.me, i);
    std::vector<std::size_t> counts(n), none(n), zeros(n);
    counts[0] = bytes;
    if (job.me == 0) none[n - 1] = bytes;
    const bool last = job.me == job.npes - 1;
    npushmem_barrier_all();
    check.equal("alltoallvmem", 0,
                npushmemx_alltoallvmem(NPUSHMEM_TEAM_WORLD, job.me == 0 ? memory + bytes : nullptr, none.data(),
                                       zeros.data(), memory, last ? counts.data() : zeros.data(), zeros.data()));
    std::size_t wrong = 0;
    for (std::size_t i = 0; job.me == 0 && i < bytes; ++i) wrong += memory[bytes + i] != byte(job.npes - 1, i);
    check.equal("wrong bytes of a large alltoallv", std::size_t{0}, wrong);
    npushmem_barrier_all();
    npushmem_free(memory);
}

// Every method that a program can select, with payloads that it serves and others.
void test_methods(Checker& check, const Job& job, const Room& room) {
    for (const char* method : {"lines", "ring", "push", "pull", "scatter", "hosts", "published", "partitioned"}) {
        const std::string choice = fmt::format("npushmem:{}", method);
        check.equal(choice, 0, npushmemx_team_set_collectives(NPUSHMEM_TEAM_WORLD, choice.c_str()));
        test_team(check, {method, NPUSHMEM_TEAM_WORLD, job.me, job.npes}, room, {1, 300});
    }
    check.equal("auto", 0, npushmemx_team_set_collectives(NPUSHMEM_TEAM_WORLD, "auto"));
}

void test_collectives(Checker& check, const Job& job) {
    const std::size_t bytes = (most + 64) * 16 * static_cast<std::size_t>(job.npes + 2);
    const Room room{static_cast<std::byte*>(npushmem_malloc(bytes)), static_cast<std::byte*>(npushmem_malloc(bytes)),
                    bytes};
    auto* sync = static_cast<long*>(npushmem_calloc(NPUSHMEM_SYNC_SIZE, sizeof(long)));
    if (!check.that("memory", room.dest != nullptr && room.source != nullptr && sync != nullptr)) return;
    test_team(check, {"world", NPUSHMEM_TEAM_WORLD, job.me, job.npes}, room, {0, 1, every_type, 300, most});
    test_methods(check, job, room);
    npushmem_team_t team = NPUSHMEM_TEAM_INVALID;
    // Backwards, without PE 0 where there are others.
    const int size = job.npes > 1 ? job.npes - 1 : 1;
    npushmem_team_split_strided(NPUSHMEM_TEAM_WORLD, job.npes - 1, size > 1 ? -1 : 1, size, nullptr, 0, &team);
    if (team != NPUSHMEM_TEAM_INVALID) {
        test_team(check, {"a team", team, npushmem_team_my_pe(team), npushmem_team_n_pes(team)}, room, {1, most});
        npushmem_team_destroy(team);
    }
    npushmem_barrier_all();
    test_active_set(check, job, room, 0, 0, job.npes, sync);
    npushmem_barrier_all();
    test_active_set(check, job, room, 0, 1, (job.npes + 1) / 2, sync);
    npushmem_barrier_all();
    if (job.npes > 1) test_active_set(check, job, room, 1, 0, job.npes - 1, sync);
    npushmem_barrier_all();
    check.no_error("collectives");
    npushmem_free(sync);
    npushmem_free(room.source);
    npushmem_free(room.dest);
    test_large(check, job);
    test_large_alltoallv(check, job);
}

}  // namespace
}  // namespace npushmem::api_test

int main() { return npushmem::api_test::run_family("collectives", npushmem::api_test::test_collectives); }
