// SPDX-License-Identifier: BSD-3-Clause
// Symmetric memory: every function to allocate, resize and free an object, exhaustion, and calls whose arguments differ
// between PEs.
#include <algorithm>
#include <cstring>
#include <vector>

#include "npushmem.h"
#include "npushmem/plugin/abi.h"
#include "npushmemx.h"
#include "tests/integration/api/programs/checker.hpp"

namespace npushmem::api_test {
namespace {

std::uint64_t address(const void* object) { return reinterpret_cast<std::uintptr_t>(object); }

npushmemx_heap_info_t heap_now(Checker& check) {
    npushmemx_heap_info_t info{};
    check.equal("npushmemx_heap_info", 0, npushmemx_heap_info(&info));
    return info;
}

// The object is the same on all PEs: a put to its last bytes arrives there.
void test_symmetric(Checker& check, const Job& job, const char* what, void* object, std::size_t bytes) {
    if (!check.that(std::string(what) + " returned NULL", object != nullptr)) return;
    auto* last = static_cast<unsigned char*>(object) + bytes - 1;
    const auto mine = static_cast<unsigned char>(job.me + 1);
    npushmem_uchar_put(last, &mine, 1, job.right());
    npushmem_barrier_all();
    check.equal(std::string(what) + ": last byte", static_cast<unsigned char>(job.left() + 1), *last);
    npushmem_barrier_all();
}

void test_malloc(Checker& check, const Job& job) {
    std::vector<std::pair<void*, std::size_t>> objects;
    for (const std::size_t bytes : {1U, 8U, 63U, 64U, 65U, 4096U, 100'000U, 3U << 20}) {
        void* object = npushmem_malloc(bytes);
        check.equal(fmt::format("alignment of malloc({})", bytes), std::uint64_t{0}, address(object) % 64);
        test_symmetric(check, job, "malloc", object, bytes);
        for (const auto& [other, size] : objects)
            check.that("objects overlap",
                       address(object) + bytes <= address(other) || address(other) + size <= address(object));
        objects.emplace_back(object, bytes);
    }
    for (const auto& object : objects) npushmem_free(object.first);
    check.that("malloc(0) is NULL", npushmem_malloc(0) == nullptr);
    check.that("calloc(0, 8) is NULL", npushmem_calloc(0, 8) == nullptr);
    check.that("calloc(8, 0) is NULL", npushmem_calloc(8, 0) == nullptr);
    npushmem_free(nullptr);
    check.no_error("malloc and free");
}

void test_align(Checker& check, const Job& job) {
    for (std::size_t alignment = 1; alignment <= (2U << 20); alignment *= 2) {
        void* object = npushmem_align(alignment, 33);
        check.equal(fmt::format("alignment {}", alignment), std::uint64_t{0}, address(object) % alignment);
        test_symmetric(check, job, "align", object, 33);
        npushmem_free(object);
    }
    check.no_error("align");
    for (const std::size_t wrong : {std::size_t{0}, std::size_t{3}, std::size_t{48}, ~std::size_t{0}}) {
        check.that("a wrong alignment gives NULL", npushmem_align(wrong, 8) == nullptr);
        check.failed_with("a wrong alignment", NPUSHMEM_E_ARGUMENT, {"npushmem_align", std::to_string(wrong)});
    }
}

void test_hints(Checker& check, const Job& job) {
    for (const long hints : {0L, NPUSHMEM_MALLOC_ATOMICS_REMOTE, NPUSHMEM_MALLOC_SIGNAL_REMOTE,
                             NPUSHMEM_MALLOC_ATOMICS_REMOTE | NPUSHMEM_MALLOC_SIGNAL_REMOTE}) {
        void* object = npushmem_malloc_with_hints(128, hints);
        test_symmetric(check, job, "malloc_with_hints", object, 128);
        npushmem_free(object);
    }
    for (const std::size_t bytes : {std::size_t{1}, std::size_t{3} << 20}) {
        void* before = npushmem_malloc(64);
        void* object = npushmem_malloc_with_hints(bytes, NPUSHMEMX_MALLOC_HUGE_PAGES);
        test_symmetric(check, job, "malloc_with_hints of huge pages", object, bytes);
        if (bytes > 1) check.equal("the alignment of huge pages", std::uint64_t{0}, address(object) % (2U << 20));
        npushmem_free(object);
        npushmem_free(before);
    }
    check.no_error("malloc_with_hints");
}

// A PE that has left calloc may put; a PE that is still inside must not zero the data afterwards.
void test_calloc(Checker& check, const Job& job) {
    constexpr std::size_t bytes = 96U << 10;
    for (int round = 0; round < 12; ++round) {
        auto* used = static_cast<unsigned char*>(npushmem_malloc(bytes));
        std::memset(used, 0xee, bytes);
        npushmem_free(used);
        auto* cleared = static_cast<unsigned char*>(npushmem_calloc(bytes / 8, 8));
        const auto mine = static_cast<unsigned char>(job.me + 1);
        for (const std::size_t at : {std::size_t{0}, bytes / 2, bytes - 1})
            npushmem_uchar_put(cleared + at, &mine, 1, job.right());
        npushmem_barrier_all();
        std::size_t others = 0;
        for (const std::size_t at : {std::size_t{0}, bytes / 2, bytes - 1}) {
            check.equal("an early put into calloc's object", static_cast<unsigned char>(job.left() + 1), cleared[at]);
            cleared[at] = 0;
        }
        for (std::size_t i = 0; i < bytes; ++i) others += cleared[i] != 0;
        check.equal("bytes that calloc left as they were", std::size_t{0}, others);
        npushmem_free(cleared);
    }
    check.that("a product that overflows gives NULL", npushmem_calloc(~std::size_t{0} / 2, 16) == nullptr);
    check.failed_with("a product that overflows", NPUSHMEM_E_MEMORY, {"npushmem_calloc"});
}

void test_realloc(Checker& check, const Job& job) {
    auto* object = static_cast<long*>(npushmem_realloc(nullptr, 4 * sizeof(long)));
    test_symmetric(check, job, "realloc of NULL", object, 4 * sizeof(long));
    for (int i = 0; i < 4; ++i) object[i] = job.me * 10 + i;
    void* behind = npushmem_malloc(64);
    const auto keeps = [&](const char* what, int count) {
        for (int i = 0; i < count; ++i)
            check.equal(fmt::format("{}, element {}", what, i), long{job.me * 10 + i}, object[i]);
        npushmem_barrier_all();
    };
    object = static_cast<long*>(npushmem_realloc(object, 100'000));
    keeps("realloc to more, elsewhere", 4);
    object = static_cast<long*>(npushmem_realloc(object, 200'000));
    keeps("realloc to more, in place", 4);
    object = static_cast<long*>(npushmem_realloc(object, 2 * sizeof(long)));
    keeps("realloc to less", 2);
    const auto capacity = heap_now(check).capacity;
    check.that("a realloc without room gives NULL", npushmem_realloc(object, capacity * 2) == nullptr);
    check.failed_with("a realloc without room", NPUSHMEM_E_MEMORY, {"npushmem_realloc", std::to_string(capacity * 2)});
    keeps("realloc that failed", 2);
    check.that("realloc to nothing gives NULL", npushmem_realloc(object, 0) == nullptr);
    check.no_error("realloc to nothing");
    npushmem_free(object);
    check.failed_with("free of what realloc freed", NPUSHMEM_E_ARGUMENT, {"npushmem_free"});
    npushmem_free(behind);
}

// A put that is in flight when another PE enters realloc still arrives in the object.
void test_put_before_realloc(Checker& check, const Job& job) {
    constexpr std::size_t count = 1U << 17;
    for (int round = 1; round <= 3; ++round) {
        auto* object = static_cast<long*>(npushmem_calloc(count, sizeof(long)));
        void* behind = npushmem_malloc(64);  // so that the object has to move
        const std::vector<long> source(count, job.me * 100 + round);
        npushmem_long_put_nbi(object, source.data(), count, job.right());
        object = static_cast<long*>(npushmem_realloc(object, 2 * count * sizeof(long)));
        const long expected = job.left() * 100 + round;
        const auto lost = std::count_if(object, object + count, [&](long seen) { return seen != expected; });
        check.equal("elements put before realloc that were lost", long{0}, static_cast<long>(lost));
        npushmem_free(object);
        npushmem_free(behind);
    }
    check.no_error("put before realloc");
}

// Allocates until the heap is full, then frees all: no memory is lost.
void test_exhaustion(Checker& check) {
    const auto before = heap_now(check);
    check.that("more than the heap gives NULL", npushmem_malloc(before.capacity + 1) == nullptr);
    check.failed_with("more than the heap", NPUSHMEM_E_MEMORY,
                      {"npushmem_malloc", std::to_string(before.capacity + 1), std::to_string(before.capacity),
                       "NPUSHMEM_SYMMETRIC_SIZE"});
    check.that("the largest size gives NULL", npushmem_malloc(~std::size_t{0}) == nullptr);
    check.failed_with("the largest size", NPUSHMEM_E_MEMORY, {"npushmem_malloc"});
    const std::size_t piece = before.capacity / 10;
    std::vector<void*> pieces;
    while (void* object = npushmem_malloc(piece)) pieces.push_back(object);
    check.failed_with("the heap that is used up", NPUSHMEM_E_MEMORY, {std::to_string(piece)});
    check.that("at least nine tenths were given out", pieces.size() >= 9);
    for (std::size_t i = 0; i < pieces.size(); i += 2) npushmem_free(pieces[i]);
    for (std::size_t i = 1; i < pieces.size(); i += 2) npushmem_free(pieces[i]);
    const auto after = heap_now(check);
    check.equal("bytes in use after all was freed", before.used, after.used);
    check.equal("largest free block after all was freed", before.largest_free, after.largest_free);
    void* all = npushmem_malloc(after.largest_free);
    check.that("the largest free block can be had", all != nullptr);
    npushmem_free(all);
    check.no_error("after exhaustion");
}

// One PE gives a different pointer: it reports the pointer's error, and the others name that PE.
void test_free_by_one(Checker& check, const Job& job, char* object) {
    if (job.npes < 2) return;
    long own = 0;
    npushmem_free(job.me == 1 ? static_cast<void*>(&own) : object);
    if (job.me == 1)
        check.failed_with("free of an own variable", NPUSHMEM_E_NOT_SYMMETRIC,
                          {fmt::format("npushmem_free: address {} is not in the symmetric heap", fmt::ptr(&own))});
    else
        check.failed_with("free where PE 1 gives an own variable", NPUSHMEM_E_MISMATCH,
                          {"PE 1 calls free of 0x", "which is not the beginning of a symmetric object there",
                           "calls free of the object at offset 0x"});
    if (job.me == 1)
        check.that("realloc of an own variable gives NULL", npushmem_realloc(&own, 512) == nullptr);
    else
        check.that("realloc where PE 1 gives an own variable", npushmem_realloc(object, 512) == nullptr);
    check.failed_with("realloc", job.me == 1 ? NPUSHMEM_E_NOT_SYMMETRIC : NPUSHMEM_E_MISMATCH, {"npushmem_realloc"});
}

void test_wrong_free(Checker& check, const Job& job) {
    int local = 0;
    npushmem_free(&local);
    check.failed_with(
        "free of a local variable", NPUSHMEM_E_NOT_SYMMETRIC,
        {fmt::format("npushmem_free: address {}", fmt::ptr(&local)), "symmetric heap", "npushmem_malloc"});
    auto* object = static_cast<char*>(npushmem_malloc(256));
    npushmem_free(object + 64);
    check.failed_with("free of the middle of an object", NPUSHMEM_E_ARGUMENT, {"npushmem_free", "inside", "256"});
    check.that("realloc of the middle gives NULL", npushmem_realloc(object + 64, 8) == nullptr);
    check.failed_with("realloc of the middle of an object", NPUSHMEM_E_ARGUMENT,
                      {fmt::format("npushmem_realloc: {} is not the beginning", fmt::ptr(object + 64))});
    test_free_by_one(check, job, object);
    test_symmetric(check, job, "an object that was not freed", object, 256);
    npushmem_free(object);
    check.no_error("free");
    npushmem_free(object);
    check.failed_with("free twice", NPUSHMEM_E_ARGUMENT, {"npushmem_free", "twice"});
}

// Every PE reports both PEs' arguments, and the heap stays unchanged.
void test_differing_calls(Checker& check, const Job& job) {
    if (job.npes < 2) return;
    const auto before = heap_now(check).used;
    check.that("differing sizes give NULL", npushmem_malloc(job.me == 1 ? 128 : 64) == nullptr);
    check.failed_with("differing sizes", NPUSHMEM_E_MISMATCH, {"malloc of 128 bytes", "malloc of 64 bytes", "PE 1"});
    void* object = npushmem_malloc(64);
    check.that("the next call works", object != nullptr);
    check.no_error("the call after differing sizes");
    if (job.me == 0)
        npushmem_free(object);
    else
        check.that("calloc instead of free gives NULL", npushmem_calloc(1, 64) == nullptr);
    check.failed_with("differing calls", NPUSHMEM_E_MISMATCH, {"free of the object", "calloc of 64 bytes"});
    if (job.me == 0)
        check.that("realloc instead of align", npushmem_realloc(object, 96) == nullptr);
    else
        check.that("align instead of realloc", npushmem_align(128, 96) == nullptr);
    check.failed_with("realloc and align", NPUSHMEM_E_MISMATCH, {"realloc of 96", "align of 96 bytes aligned to 128"});
    npushmem_free(object);
    check.no_error("the end of differing calls");
    check.equal("bytes in use after differing calls", before, heap_now(check).used);
}

void test_heap(Checker& check, const Job& job) {
    const auto before = heap_now(check).used;
    test_malloc(check, job);
    test_align(check, job);
    test_hints(check, job);
    test_calloc(check, job);
    test_realloc(check, job);
    test_put_before_realloc(check, job);
    test_wrong_free(check, job);
    test_differing_calls(check, job);
    test_exhaustion(check);
    check.equal("bytes in use at the end", before, heap_now(check).used);
}

}  // namespace
}  // namespace npushmem::api_test

int main() { return npushmem::api_test::run_family("heap", npushmem::api_test::test_heap); }
