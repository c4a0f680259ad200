// SPDX-License-Identifier: BSD-3-Clause
// Buffers of the program that become symmetric: every kind of memory, every family of operations, and misuse.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <numeric>
#include <string>
#include <vector>

#include "npushmem.h"
#include "npushmem/plugin/abi.h"
#include "npushmemx.h"
#include "tests/integration/api/programs/checker.hpp"

namespace npushmem::api_test {
namespace {

const std::size_t page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));

// Memory of one kind; for files with the descriptor.
struct Memory {
    long* address = nullptr;
    std::size_t bytes = 0;
    int file = -1;
    std::function<void()> release;
};

Memory mapped(std::size_t bytes, int flags, int file, off_t offset = 0) {
    void* const address = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, flags, file, offset);
    return {address == MAP_FAILED ? nullptr : static_cast<long*>(address), bytes, file,
            [address, bytes] { munmap(address, bytes); }};
}

Memory anonymous(std::size_t bytes) { return mapped(bytes, MAP_PRIVATE | MAP_ANONYMOUS, -1); }

Memory of_malloc(std::size_t bytes) {
    void* const address = std::aligned_alloc(page, bytes);
    return {static_cast<long*>(address), bytes, -1, [address] { std::free(address); }};
}

// The buffer begins on the third page of the file.
Memory of_file(int file, std::size_t bytes) {
    const auto offset = static_cast<off_t>(2 * page);
    if (ftruncate(file, offset + static_cast<off_t>(bytes)) != 0) return {};
    return mapped(bytes, MAP_SHARED, file, offset);
}

Memory of_memfd(std::size_t bytes) { return of_file(memfd_create("own", MFD_CLOEXEC), bytes); }

std::string named_file() {
    std::string path = std::filesystem::temp_directory_path().string() + "/own-buffer-XXXXXX";
    close(mkstemp(path.data()));
    return path;
}

// A file whose descriptor is closed again: the name leads to it.
Memory of_named_file(std::size_t bytes) {
    const std::string path = named_file();
    const int file = open(path.c_str(), O_RDWR | O_CLOEXEC);
    Memory memory = of_file(file, bytes);
    close(file);
    memory.file = -1;
    memory.release = [path, unmap = memory.release] {
        unmap();
        unlink(path.c_str());
    };
    return memory;
}

Memory private_of_file(std::size_t bytes) {
    const std::string path = named_file();
    const int file = open(path.c_str(), O_RDWR | O_CLOEXEC);
    Memory memory = ftruncate(file, static_cast<off_t>(bytes)) == 0 ? mapped(bytes, MAP_PRIVATE, file) : Memory{};
    close(file);
    unlink(path.c_str());
    memory.file = -1;
    return memory;
}

struct Kind {
    const char* name;
    Memory (*make)(std::size_t bytes);
};
constexpr Kind kinds[] = {{"anonymous", anonymous},
                          {"malloc", of_malloc},
                          {"memfd", of_memfd},
                          {"named file", of_named_file},
                          {"private file", private_of_file}};

long value_at(int pe, std::size_t i) { return static_cast<long>(pe) * 1'000'000 + static_cast<long>(i); }

// One buffer, registered: its own address, its symmetric one, and the number of its elements.
struct Registered {
    std::string what;
    Memory memory;
    long* there = nullptr;
    std::size_t count = 0;
};

Registered make_registered(Checker& check, const Job& job, const Kind& kind, std::size_t bytes) {
    Registered made{kind.name, kind.make(bytes), nullptr, bytes / sizeof(long)};
    if (!check.that(made.what + ": no memory", made.memory.address != nullptr)) return made;
    for (std::size_t i = 0; i < made.count; ++i) made.memory.address[i] = value_at(job.me, i);
    made.there = static_cast<long*>(npushmemx_buffer_register_symmetric(made.memory.address, bytes, 0));
    check.no_error("registration of " + made.what);
    check.that(made.what + ": the symmetric address is another one",
               made.there != nullptr && made.there != made.memory.address);
    return made;
}

void unregister(Checker& check, const Registered& one) {
    check.equal(one.what + ": unregister", 0, npushmemx_buffer_unregister_symmetric(one.there, one.memory.bytes));
    check.no_error("end of the registration of " + one.what);
}

void test_contents(Checker& check, const Job& job, const Registered& one) {
    std::size_t differing = 0;
    for (std::size_t i = 0; i < one.count; ++i) differing += one.there[i] != value_at(job.me, i);
    check.equal(one.what + ": elements that registration changed", std::size_t{0}, differing);
    one.memory.address[1] = -7;
    check.equal(one.what + ": a store to the program's address", -7L, one.there[1]);
    one.there[1] = value_at(job.me, 1);
    check.equal(one.what + ": a store to the symmetric address", value_at(job.me, 1), one.memory.address[1]);
    npushmem_barrier_all();
}

void test_put_and_get(Checker& check, const Job& job, const Registered& one) {
    std::vector<long> got(one.count);
    npushmem_long_get(got.data(), one.there, one.count, job.right());
    std::size_t differing = 0;
    for (std::size_t i = 0; i < one.count; ++i) differing += got[i] != value_at(job.right(), i);
    check.equal(one.what + ": elements of get", std::size_t{0}, differing);
    check.equal(one.what + ": g", value_at(job.right(), 5), npushmem_long_g(one.there + 5, job.right()));
    npushmem_barrier_all();
    npushmem_long_p(one.there + one.count - 1, job.me, job.right());
    const std::vector<long> block(600, job.me + 100);
    npushmem_long_put(one.there + 8, block.data(), 300, job.right());
    npushmem_long_put_nbi(one.there + 308, block.data(), 150, job.right());
    npushmem_long_iput(one.there + 458, block.data(), 2, 1, 10, job.right());
    npushmem_barrier_all();
    check.equal(one.what + ": p, to the last element", long{job.left()}, one.memory.address[one.count - 1]);
    for (const std::size_t i : {8U, 307U, 308U, 457U, 458U, 460U, 476U})
        check.equal(fmt::format("{}: put, element {}", one.what, i), job.left() + 100L, one.memory.address[i]);
    check.equal(one.what + ": iput, between its elements", value_at(job.me, 459), one.memory.address[459]);
    npushmem_barrier_all();
}

void test_atomics_and_signals(Checker& check, const Job& job, const Registered& one) {
    one.there[0] = 0;
    auto* const signal = reinterpret_cast<std::uint64_t*>(one.there + 2);
    *signal = 0;
    npushmem_barrier_all();
    for (int i = 0; i < 20; ++i) npushmem_long_atomic_add(one.there, 1, 0);
    (void)npushmem_long_atomic_fetch_add(one.there, 1, job.npes - 1);
    const std::vector<long> block(16, job.me + 7);
    npushmem_long_put_signal(one.there + 16, block.data(), 16, signal, 3, NPUSHMEM_SIGNAL_OP_ADD, job.right());
    check.equal(one.what + ": signal", std::uint64_t{3}, npushmem_signal_wait_until(signal, NPUSHMEM_CMP_EQ, 3));
    check.equal(one.what + ": data before its signal", job.left() + 7L, one.memory.address[31]);
    npushmem_barrier_all();
    const long expected = (job.me == 0 ? 20L * job.npes : 0) + (job.me == job.npes - 1 ? job.npes : 0);
    check.equal(one.what + ": sum of the atomics", expected, one.memory.address[0]);
    npushmem_barrier_all();
}

void test_collectives(Checker& check, const Job& job, const Registered& one) {
    constexpr std::size_t count = 40;
    long* const source = one.there;
    long* const dest = one.there + 128;
    const long pes_sum = static_cast<long>(job.npes) * (job.npes - 1) / 2;
    std::iota(source, source + count, job.me);
    npushmem_barrier_all();
    npushmem_long_sum_reduce(NPUSHMEM_TEAM_WORLD, dest, source, count);
    check.equal(one.what + ": reduce", pes_sum + 39L * job.npes, one.memory.address[128 + 39]);
    npushmem_barrier_all();
    npushmem_long_fcollect(NPUSHMEM_TEAM_WORLD, dest, source, 4);
    for (int pe = 0; pe < job.npes; ++pe)
        check.equal(fmt::format("{}: fcollect of PE {}", one.what, pe), pe + 3L, dest[4 * pe + 3]);
    npushmem_barrier_all();
    npushmem_long_broadcast(NPUSHMEM_TEAM_WORLD, dest, source, count, job.npes - 1);
    check.equal(one.what + ": broadcast", job.npes - 1 + 39L, dest[39]);
    npushmem_barrier_all();
}

void test_ptr(Checker& check, const Job& job, const Registered& one) {
    check.that(one.what + ": ptr to the own part", npushmem_ptr(one.there, job.me) == one.there);
    one.there[0] = job.me + 1;
    npushmem_barrier_all();
    if (const auto* theirs = static_cast<const long*>(npushmem_ptr(one.there, job.right())))
        check.equal(one.what + ": a load through ptr", job.right() + 1L, *theirs);
    check.no_error("ptr");
    check.equal(one.what + ": accessible", 1, npushmem_addr_accessible(one.there, job.right()));
    npushmem_barrier_all();
}

// The program's memory is its own again: stores are not seen by others, and its file has the data.
void test_afterwards(Checker& check, const Job& job, const Registered& one) {
    check.equal(one.what + ": a put in flight when the registration ends", job.left() + 50L, one.memory.address[9]);
    if (one.memory.file < 0) return;
    long in_file = 0;
    check.that("read", pread(one.memory.file, &in_file, sizeof in_file,
                             static_cast<off_t>(2 * page + 9 * sizeof in_file)) == sizeof in_file);
    check.equal(one.what + ": the same in the file", job.left() + 50L, in_file);
}

std::uint64_t heap_used() {
    npushmemx_heap_info_t info{};
    npushmemx_heap_info(&info);
    return info.used;
}

void test_kind(Checker& check, const Job& job, const Kind& kind, std::size_t bytes) {
    const std::uint64_t before = heap_used();
    const Registered one = make_registered(check, job, kind, bytes);
    if (one.there == nullptr) return;
    test_contents(check, job, one);
    test_put_and_get(check, job, one);
    test_atomics_and_signals(check, job, one);
    test_collectives(check, job, one);
    test_ptr(check, job, one);
    const std::array<long, 2> late{job.me + 50L, job.me + 50L};
    npushmem_long_put_nbi(one.there + 8, late.data(), 2, job.right());
    unregister(check, one);
    test_afterwards(check, job, one);
    check.equal(one.what + ": bytes of the heap in use afterwards", before, heap_used());
    // The heap's memory at the same place is other memory now.
    auto* const object = static_cast<long*>(npushmem_calloc(one.count, sizeof(long)));
    one.memory.address[9] = -1;
    check.equal(one.what + ": an object of the heap after the registration", 0L, object == nullptr ? 0 : object[9]);
    check.equal(one.what + ": the buffer after the registration", -1L, one.memory.address[9]);
    npushmem_free(object);
    one.memory.release();
    if (one.memory.file >= 0) close(one.memory.file);
}

// Each PE registers memory of another kind, several at a time, and ends the registrations in another order.
void test_mixed_kinds(Checker& check, const Job& job) {
    std::vector<Registered> all;
    for (std::size_t i = 0; i < std::size(kinds); ++i)
        all.push_back(make_registered(check, job, kinds[(i + static_cast<std::size_t>(job.me)) % std::size(kinds)],
                                      (2 + i) * page));
    for (const Registered& one : all) {
        if (one.there == nullptr) return;
        test_contents(check, job, one);
        test_put_and_get(check, job, one);
    }
    for (const std::size_t i : {1U, 0U, 4U, 2U, 3U}) {
        unregister(check, all[i]);
        all[i].memory.release();
        if (all[i].memory.file >= 0) close(all[i].memory.file);
    }
}

// Expects a registration to fail on all PEs.
void refused(Checker& check, const char* what, void* address, std::size_t bytes, int flags, int code,
             std::initializer_list<std::string_view> words) {
    check.that(std::string(what) + " gives NULL",
               npushmemx_buffer_register_symmetric(address, bytes, flags) == nullptr);
    check.failed_with(what, code, words);
}

void test_refused_memory(Checker& check, const Job& job) {
    const Memory memory = anonymous(4 * page);
    auto* const begin = reinterpret_cast<char*>(memory.address);
    refused(check, "null", nullptr, page, 0, NPUSHMEM_E_ARGUMENT, {"npushmemx_buffer_register_symmetric"});
    refused(check, "no bytes", begin, 0, 0, NPUSHMEM_E_ARGUMENT, {"buffer of 0 bytes"});
    refused(check, "an unaligned address", begin + 64, page, 0, NPUSHMEM_E_ARGUMENT, {"whole pages", "aligned_alloc"});
    refused(check, "an unaligned length", begin, page + 8, 0, NPUSHMEM_E_ARGUMENT, {"whole pages", "aligned_alloc"});
    refused(check, "a flag", begin, page, 4, NPUSHMEM_E_ARGUMENT, {"flags are 0x4"});
    refused(check, "an overflow", begin, ~std::size_t{0} / page * page, 0, NPUSHMEM_E_RANGE, {"address space"});
    mprotect(begin + page, page, PROT_READ);
    refused(check, "memory that is read-only in part", begin, 4 * page, 0, NPUSHMEM_E_ARGUMENT,
            {"cannot be read and written"});
    munmap(begin + 2 * page, page);
    refused(check, "memory that is not mapped in part", begin + 2 * page, 2 * page, 0, NPUSHMEM_E_ARGUMENT, {""});
    const Memory shared = mapped(page, MAP_SHARED | MAP_ANONYMOUS, -1);
    refused(check, "shared memory without a file", shared.address, page, 0, NPUSHMEM_E_ARGUMENT, {"memfd_create"});
    const int short_file = memfd_create("short", MFD_CLOEXEC);
    check.equal("truncate", 0, ftruncate(short_file, static_cast<off_t>(page)));
    const Memory beyond = mapped(2 * page, MAP_SHARED, short_file);
    refused(check, "more than the file", beyond.address, 2 * page, 0, NPUSHMEM_E_RANGE, {"beyond the end", "short"});
    alignas(1 << 16) std::array<char, 1 << 17> local{};
    refused(check, "a stack", local.data(), 1 << 16, 0, NPUSHMEM_E_ARGUMENT, {"stack"});
    void* const heap = npushmem_align(page, page);
    refused(check, "the heap", heap, page, 0, NPUSHMEM_E_ARGUMENT, {"symmetric memory already"});
    npushmem_free(heap);
    npushmemx_heap_info_t info{};
    npushmemx_heap_info(&info);
    const std::size_t too_large = info.capacity / page * page + page;
    const Memory large = anonymous(too_large);
    refused(check, "more than the heap", large.address, too_large, 0, NPUSHMEM_E_MEMORY, {"NPUSHMEM_SYMMETRIC_SIZE"});
    if (job.npes > 1) {
        refused(check, "lengths that differ", begin, job.me == 1 ? 2 * page : page, 0, NPUSHMEM_E_MISMATCH, {"PE 1"});
        if (job.me == 1)
            refused(check, "a call that differs", begin, page, 0, NPUSHMEM_E_MISMATCH, {"malloc of 64 bytes"});
        else
            check.that("malloc beside a registration", npushmem_malloc(64) == nullptr);
        npushmemx_clear_error();
        // The other PEs undo what they have done.
        if (job.me == 1)
            refused(check, "one PE without memory", nullptr, page, 0, NPUSHMEM_E_ARGUMENT, {"no memory"});
        else
            refused(check, "another PE without memory", begin, page, 0, NPUSHMEM_E_ARGUMENT, {"PE 1", "undone"});
    }
    for (const Memory& each : {shared, beyond, large}) each.release();
    munmap(begin, 2 * page);
    munmap(begin + 3 * page, page);
    close(short_file);
}

void test_refused_calls(Checker& check, const Job& job) {
    const Registered one = make_registered(check, job, kinds[0], 3 * page);
    if (one.there == nullptr) return;
    char* const begin = reinterpret_cast<char*>(one.memory.address);
    refused(check, "the same buffer again", begin, 3 * page, 0, NPUSHMEM_E_ARGUMENT, {"overlaps"});
    refused(check, "a part of the buffer", begin + page, page, 0, NPUSHMEM_E_ARGUMENT, {"overlaps"});
    npushmem_long_p(one.memory.address, 1, job.right());
    check.failed_with("the program's address", NPUSHMEM_E_NOT_SYMMETRIC,
                      {"registered buffer", fmt::format("{}", fmt::ptr(one.there))});
    check.equal("not accessible", 0, npushmem_addr_accessible(one.memory.address, job.right()));
    npushmem_free(one.there);
    check.failed_with("free of a buffer", NPUSHMEM_E_ARGUMENT, {"npushmemx_buffer_unregister_symmetric"});
    check.that("realloc of a buffer", npushmem_realloc(one.there, 8) == nullptr);
    check.failed_with("realloc of a buffer", NPUSHMEM_E_ARGUMENT, {"npushmemx_buffer_unregister_symmetric"});
    const auto fails = [&](const char* what, void* address, std::size_t bytes, std::string_view word) {
        check.equal(what, NPUSHMEM_E_ARGUMENT, npushmemx_buffer_unregister_symmetric(address, bytes));
        check.failed_with(what, NPUSHMEM_E_ARGUMENT, {"npushmemx_buffer_unregister_symmetric", word});
    };
    fails("unregister by the program's address", begin, 3 * page, "not the symmetric address");
    fails("unregister in the middle", reinterpret_cast<char*>(one.there) + page, page, "not the symmetric address");
    fails("unregister of another size", one.there, page, fmt::format("with {} bytes", 3 * page));
    test_contents(check, job, one);
    unregister(check, one);
    fails("unregister twice", one.there, 3 * page, "not the symmetric address");
    one.memory.release();
}

// The program has unmapped its buffer, or mapped other memory there: the end of the registration leaves that alone.
void test_replaced_pages(Checker& check, const Job& job) {
    const Registered one = make_registered(check, job, kinds[0], 4 * page);
    if (one.there == nullptr) return;
    char* const begin = reinterpret_cast<char*>(one.memory.address);
    void* const other =
        mmap(begin + page, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    check.that("other pages", other == begin + page);
    begin[page] = 77;
    munmap(begin + 2 * page, page);
    one.there[0] = 5;
    one.there[3 * page / sizeof(long)] = 6;
    unregister(check, one);
    check.equal("a page of the buffer", 5L, one.memory.address[0]);
    check.equal("a page that the program mapped", char{77}, begin[page]);
    check.equal("a page after these", 6L, one.memory.address[3 * page / sizeof(long)]);
    unsigned char resident = 0;
    check.equal("a page that the program unmapped", -1, mincore(begin + 2 * page, page, &resident));
    for (const std::size_t i : {0U, 1U, 3U}) munmap(begin + i * page, page);
}

void test_local_registration(Checker& check, const Job& job) {
    const Memory memory = anonymous(16 * page);
    char* const begin = reinterpret_cast<char*>(memory.address);
    auto* const there = static_cast<long*>(npushmem_calloc(4 * page, 1));
    check.equal("register", 0, npushmemx_buffer_register(begin + 8, 4 * page));
    check.equal("register another", 0, npushmemx_buffer_register(begin + 8 * page, 4 * page));
    check.no_error("local registration");
    memory.address[1] = job.me + 3;
    npushmem_long_put(there, memory.address + 1, 4 * page / sizeof(long), job.right());
    npushmem_barrier_all();
    check.equal("a put from a registered buffer", job.left() + 3L, there[0]);
    const auto fails = [&](const char* what, int code, std::string_view word) {
        check.equal(what, NPUSHMEM_E_ARGUMENT, code);
        check.failed_with(what, NPUSHMEM_E_ARGUMENT, {"npushmemx_buffer_", word});
    };
    fails("an overlap from below", npushmemx_buffer_register(begin, 16), "overlap");
    fails("an overlap from above", npushmemx_buffer_register(begin + 4 * page, page), "overlap");
    fails("null", npushmemx_buffer_register(nullptr, 8), "no memory");
    fails("no bytes", npushmemx_buffer_register(begin + 15 * page, 0), "no memory");
    munmap(begin + 15 * page, page);
    fails("memory that is not mapped", npushmemx_buffer_register(begin + 14 * page, 2 * page), "not mapped");
    fails("unregister in the middle", npushmemx_buffer_unregister(begin + 16), "no buffer");
    check.equal("unregister", 0, npushmemx_buffer_unregister(begin + 8));
    fails("unregister twice", npushmemx_buffer_unregister(begin + 8), "no buffer");
    npushmemx_buffer_unregister_all();
    fails("unregister after all", npushmemx_buffer_unregister(begin + 8 * page), "no buffer");
    check.equal("register again", 0, npushmemx_buffer_register(begin, 15 * page));
    check.no_error("local registration, at the end");
    npushmem_free(there);
    npushmemx_buffer_unregister_all();
    munmap(begin, 15 * page);
}

// Stays registered until finalize; see main.
Registered& last_buffer() {
    static Registered one;
    return one;
}

void test_buffers(Checker& check, const Job& job) {
    for (const Kind& kind : kinds) test_kind(check, job, kind, 3 * page);
    for (const Kind& kind : {kinds[0], kinds[2]}) test_kind(check, job, kind, 2U << 20);
    test_mixed_kinds(check, job);
    test_refused_memory(check, job);
    test_refused_calls(check, job);
    test_replaced_pages(check, job);
    test_local_registration(check, job);
    last_buffer() = make_registered(check, job, kinds[0], 2 * page);
    npushmem_barrier_all();
}

// A buffer that is registered at finalize keeps its contents, in private memory.
bool survives_finalize() {
    const Registered& one = last_buffer();
    if (one.there == nullptr) return true;  // reported already
    std::FILE* const maps = std::fopen("/proc/self/maps", "r");
    std::array<char, 512> line{};
    const std::string begin = fmt::format("{:x}-", reinterpret_cast<std::uintptr_t>(one.memory.address));
    bool is_private = true;
    while (std::fgets(line.data(), line.size(), maps) != nullptr)
        if (std::string(line.data()).starts_with(begin))
            is_private = std::string(line.data()).find("memfd") == std::string::npos;
    std::fclose(maps);
    const bool kept = one.memory.address[7] % 1'000'000 == 7;
    if (!is_private || !kept)
        fmt::print(stderr, "after finalize the buffer is {} and {}\n", is_private ? "private" : "shared",
                   kept ? "kept" : "lost");
    return is_private && kept;
}

}  // namespace
}  // namespace npushmem::api_test

int main() {
    const int status = npushmem::api_test::run_family("buffers", npushmem::api_test::test_buffers);
    return npushmem::api_test::survives_finalize() ? status : 1;
}
