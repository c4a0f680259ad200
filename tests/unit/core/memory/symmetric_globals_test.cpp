// SPDX-License-Identifier: BSD-3-Clause
// The pages of a fake executable, memory of the test, are replaced by those of a file and restored.
#include "core/memory/symmetric_globals.hpp"

#include <gmock/gmock.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <csignal>
#include <cstring>
#include <thread>
#include <vector>

namespace npushmem {
namespace {

constexpr std::uint64_t page_size = 4096;
constexpr std::uint64_t one_mib = 1ULL << 20;

class SymmetricGlobalsTest : public ::testing::Test {
protected:
    ~SymmetricGlobalsTest() override {
        data.reset();
        if (variables != nullptr) munmap(variables, image.bytes);
        if (alias != nullptr) munmap(alias, image.bytes);
        if (file >= 0) close(file);
    }

    // `initialised` bytes appear to come from the program's file.
    void make_program(std::uint64_t bytes, std::uint64_t initialised) {
        variables = static_cast<std::byte*>(
            mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
        ASSERT_NE(variables, MAP_FAILED);
        image.begin = reinterpret_cast<std::uintptr_t>(variables);
        image.bytes = bytes;
        image.segments = {{{0, bytes}, initialised}};
        file = memfd_create("test-static-data", MFD_CLOEXEC);
        ASSERT_EQ(ftruncate(file, static_cast<off_t>(before + bytes)), 0);
        alias = static_cast<std::byte*>(
            mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, static_cast<off_t>(before)));
        ASSERT_NE(alias, MAP_FAILED);
    }

    Status share() {
        auto made = SymmetricGlobals::share(
            image, {file, before, [this](std::uint64_t offset, std::uint64_t bytes) {
                        committed += bytes;
                        return offset >= fails_from ? Status{Code::memory, "no room"} : Status{};
                    }});
        if (!made.ok()) return made.status();
        data = std::move(made).value();
        return {};
    }

    std::uint64_t bytes_in_file() const {
        struct stat facts {};
        EXPECT_EQ(fstat(file, &facts), 0);
        return static_cast<std::uint64_t>(facts.st_blocks) * 512;
    }

    static constexpr std::uint64_t before = 3 * page_size;  // in the file
    std::byte* variables = nullptr;
    std::byte* alias = nullptr;  // the same in the file
    int file = -1;
    ProgramImage image;
    std::unique_ptr<SymmetricGlobals> data;
    std::uint64_t committed = 0;
    std::uint64_t fails_from = ~std::uint64_t{0};
};

TEST_F(SymmetricGlobalsTest, KeepsContentsAndAddresses) {
    make_program(10 * page_size, 2 * page_size);
    std::strcpy(reinterpret_cast<char*>(variables + 100), "initialised");
    std::strcpy(reinterpret_cast<char*>(variables + 7 * page_size), "touched since");
    ASSERT_TRUE(share().ok());
    EXPECT_STREQ(reinterpret_cast<char*>(variables + 100), "initialised");
    EXPECT_STREQ(reinterpret_cast<char*>(variables + 7 * page_size), "touched since");
    EXPECT_EQ(variables[5 * page_size], std::byte{0});
    // One memory at two addresses, in both directions, also for pages untouched before.
    EXPECT_STREQ(reinterpret_cast<char*>(alias + 100), "initialised");
    alias[4 * page_size] = std::byte{9};
    EXPECT_EQ(variables[4 * page_size], std::byte{9});
    variables[9 * page_size + 5] = std::byte{8};
    EXPECT_EQ(alias[9 * page_size + 5], std::byte{8});
}

TEST_F(SymmetricGlobalsTest, KeepsPeersWritesAfterRestoration) {
    make_program(10 * page_size, page_size);
    ASSERT_TRUE(share().ok());
    alias[3 * page_size] = std::byte{1};
    ASSERT_TRUE(data->restore_private().ok());
    EXPECT_EQ(variables[3 * page_size], std::byte{1});
    alias[3 * page_size] = std::byte{2};
    EXPECT_EQ(variables[3 * page_size], std::byte{1}) << "private again";
    variables[0] = std::byte{5};
    EXPECT_NE(alias[0], std::byte{5});
    data.reset();
    EXPECT_EQ(variables[3 * page_size], std::byte{1}) << "once is enough";
}

TEST_F(SymmetricGlobalsTest, LeavesUntouchedPagesAlone) {
    constexpr std::uint64_t bytes = 1ULL << 30;
    make_program(bytes, page_size);
    for (std::uint64_t at = 0; at < bytes; at += 64 * one_mib) variables[at + 5 * page_size] = std::byte{1};
    ASSERT_TRUE(share().ok());
    for (std::uint64_t at = 0; at < bytes; at += 64 * one_mib) EXPECT_EQ(alias[at + 5 * page_size], std::byte{1});
    EXPECT_LE(bytes_in_file(), 2 * one_mib);
    EXPECT_LE(committed, 2 * one_mib);
    ASSERT_TRUE(data->restore_private().ok());
    for (std::uint64_t at = 0; at < bytes; at += 64 * one_mib) EXPECT_EQ(variables[at + 5 * page_size], std::byte{1});
    EXPECT_LE(bytes_in_file(), 2 * one_mib) << "looking for what to give back fills no holes";
    std::vector<unsigned char> resident(bytes / page_size);
    ASSERT_EQ(mincore(variables, bytes, resident.data()), 0);
    EXPECT_LE(std::ranges::count_if(resident, [](unsigned char each) { return (each & 1U) != 0; }), 64)
        << "pages of a private copy";
}

TEST_F(SymmetricGlobalsTest, ChangesNothingWithoutMemory) {
    make_program(12 * one_mib, page_size);
    variables[0] = std::byte{1};
    variables[9 * one_mib] = std::byte{2};
    fails_from = 8 * one_mib;  // the beginning has been replaced by then
    const Status shared = share();
    EXPECT_EQ(shared.code(), Code::memory);
    EXPECT_THAT(shared.message(), ::testing::AllOf(::testing::HasSubstr("no room"), ::testing::HasSubstr("12 MiB"),
                                                   ::testing::HasSubstr("NPUSHMEM_STATIC_DATA=0")));
    alias[0] = std::byte{7};
    EXPECT_EQ(variables[0], std::byte{1}) << "private again";
    EXPECT_EQ(variables[9 * one_mib], std::byte{2});
}

// Each writer counts in a page of its own; a write into a page that was copied but not replaced yet must not be lost.
TEST_F(SymmetricGlobalsTest, LosesNoWriteOfOtherThreads) {
#if defined(__SANITIZE_THREAD__)
    GTEST_SKIP() << "the thread sanitizer's own signal handling is inside the atomics that fault here";
#endif
    constexpr std::size_t writers = 3;
    constexpr int rounds = 50;
    make_program(16 * page_size, 4 * page_size);
    std::atomic<bool> stop{false};
    std::array<std::atomic<std::uint64_t>, writers> done{};
    std::vector<std::thread> threads;
    for (std::size_t i = 0; i < writers; ++i)
        threads.emplace_back([&, i] {
            std::atomic_ref counter(*reinterpret_cast<std::uint64_t*>(variables + (5 * i) * page_size));
            for (std::uint64_t count = 1; !stop.load(std::memory_order_relaxed); ++count) {
                counter.fetch_add(1, std::memory_order_relaxed);
                done[i].store(count, std::memory_order_relaxed);
            }
        });
    for (int round = 0; round < rounds; ++round) {
        EXPECT_TRUE(share().ok());
        EXPECT_TRUE(data->restore_private().ok());
        std::this_thread::yield();  // before the watch ends
        data.reset();
    }
    for (auto& one : done)
        while (one.load(std::memory_order_relaxed) == 0) std::this_thread::yield();
    stop = true;
    for (auto& thread : threads) thread.join();
    for (std::size_t i = 0; i < writers; ++i)
        EXPECT_EQ(*reinterpret_cast<std::uint64_t*>(variables + (5 * i) * page_size), done[i].load());
}

// What the handler of the next test writes.
std::atomic<std::uint64_t>* word_of_handler = nullptr;
std::atomic<std::uint64_t> calls_of_handler{0};

void add_in_handler(int /*signal*/) {
    word_of_handler->fetch_add(1, std::memory_order_relaxed);
    calls_of_handler.fetch_add(1, std::memory_order_release);
}

// The thread that replaces the pages runs handlers too, which write to them.
TEST_F(SymmetricGlobalsTest, LosesNoWriteOfAHandlerInItsOwnThread) {
#ifdef __SANITIZE_THREAD__
    GTEST_SKIP() << "the thread sanitizer's own signal handling is inside the atomics that fault here";
#endif
    constexpr std::uint64_t bytes = 2 * one_mib;
    make_program(bytes, bytes);
    word_of_handler = reinterpret_cast<std::atomic<std::uint64_t>*>(variables + one_mib);
    calls_of_handler = 0;
    struct sigaction ours {};
    struct sigaction previous {};
    ours.sa_handler = add_in_handler;
    ours.sa_flags = SA_RESTART;
    ASSERT_EQ(sigaction(SIGUSR1, &ours, &previous), 0);
    std::atomic<bool> done{false};
    const pthread_t replacing = pthread_self();
    std::thread sender([&] {
        while (!done.load(std::memory_order_relaxed)) {
            const std::uint64_t seen = calls_of_handler.load(std::memory_order_acquire);
            pthread_kill(replacing, SIGUSR1);
            while (calls_of_handler.load(std::memory_order_acquire) == seen && !done.load(std::memory_order_relaxed))
                std::this_thread::yield();
        }
    });
    Status status;
    for (int round = 0; round < 100 && status.ok(); ++round) {
        status = share();
        if (status.ok()) status = data->restore_private();
        data.reset();
    }
    done = true;
    sender.join();
    sigaction(SIGUSR1, &previous, nullptr);
    EXPECT_TRUE(status.ok()) << status.message();
    EXPECT_GT(calls_of_handler.load(), 0U);
    EXPECT_EQ(word_of_handler->load(), calls_of_handler.load());
}

TEST_F(SymmetricGlobalsTest, AChildOfForkHasItsOwn) {
    make_program(10 * page_size, page_size);
    auto& value = *reinterpret_cast<volatile int*>(variables + 2 * page_size);
    ASSERT_TRUE(share().ok());
    value = 1;
    data->before_fork();
    const pid_t child = fork();
    if (child == 0) {
        data->after_fork_in_child();
        while (*reinterpret_cast<volatile int*>(alias + 2 * page_size) != 2) sched_yield();  // the parent's
        const bool as_it_was = value == 1;
        value = 3;
        _exit(as_it_was ? 0 : 1);
    }
    data->after_fork_in_parent();
    value = 2;
    int status = -1;
    EXPECT_EQ(waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << "the child sees what its parent wrote afterwards";
    EXPECT_EQ(value, 2) << "the parent sees what its child wrote";
}

// Other handlers of the signal continue to work.
TEST(WriteFaultGuard, PassesOtherFaultsToTheirHandlers) {
    static std::byte* memory;
    static volatile int handled;
    memory = static_cast<std::byte*>(mmap(nullptr, 2 * page_size, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    ASSERT_NE(memory, MAP_FAILED);
    handled = 0;
    struct sigaction before {};
    struct sigaction own {};
    own.sa_sigaction = [](int, siginfo_t*, void*) {
        handled = handled + 1;
        mprotect(memory, page_size, PROT_READ | PROT_WRITE);
    };
    own.sa_flags = SA_SIGINFO;
    sigaction(SIGSEGV, &own, &before);
    {
        const WriteFaultGuard held(reinterpret_cast<std::uintptr_t>(memory + page_size), page_size);
        *reinterpret_cast<volatile std::byte*>(memory) = std::byte{1};
    }
    EXPECT_EQ(handled, 1);
    sigaction(SIGSEGV, &before, nullptr);
    munmap(memory, 2 * page_size);
}

}  // namespace
}  // namespace npushmem
