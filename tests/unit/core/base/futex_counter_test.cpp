#include "core/base/futex_counter.hpp"

#include <gmock/gmock.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <thread>
#include <vector>

#include "core/base/parking.hpp"

namespace npushmem {
namespace {

using namespace std::chrono_literals;

struct alignas(FutexCounter::bytes) Memory {
    std::byte bytes[FutexCounter::bytes] = {};
};

// Longer than anybody has to wait for a waker, shorter than a test may take.
constexpr std::chrono::seconds too_long{30};

// Whether a waker has ended each sleep.
bool sleep_until(FutexCounter line, std::uint64_t wanted) {
    SystemWaitOs os;
    FutexParking parking(line);
    for (;;) {
        parking.announce();
        const bool reached = line.value() >= wanted;
        const auto begin = os.now();
        if (!reached) parking.park(os, too_long);
        parking.retract();
        if (reached) return true;
        if (os.now() - begin >= too_long) return false;
    }
}

void store_when_asleep(FutexCounter line, std::uint32_t sleepers, std::uint64_t value) {
    while (line.sleepers() < sleepers) std::this_thread::yield();
    line.store(value);
    wake_sleepers(line);
}

TEST(FutexCounter, AWriterWakesManySleepers) {
    Memory memory;
    const FutexCounter line(memory.bytes);
    constexpr int count = 9;
    std::vector<std::thread> sleepers;
    sleepers.reserve(count);
    for (int i = 0; i < count; ++i) sleepers.emplace_back([&] { EXPECT_TRUE(sleep_until(line, 1)); });
    store_when_asleep(line, count, 1);
    for (std::thread& sleeper : sleepers) sleeper.join();
    EXPECT_EQ(line.sleepers(), 0U);
}

TEST(FutexCounter, WakesAcrossProcessesAndMappings) {
    const int file = memfd_create("test-line", 0);
    ASSERT_GE(file, 0);
    ASSERT_EQ(ftruncate(file, 4096), 0);
    const auto map = [&] {
        return static_cast<std::byte*>(mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0));
    };
    std::byte* here = map();
    ASSERT_NE(here, MAP_FAILED);
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
        std::byte* there = map();
        _exit(there != MAP_FAILED && sleep_until(FutexCounter(there), 7) ? 0 : 1);
    }
    store_when_asleep(FutexCounter(here), 1, 7);
    int status = -1;
    EXPECT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
    munmap(here, 4096);
    close(file);
}

TEST(FutexCounter, AnotherValueThanExpectedIsNotSleptOn) {
    Memory memory;
    FutexCounter line(memory.bytes);
    line.store(5);
    SystemWaitOs os;
    line.sleep(os, 4, 1h);
    line.sleep(os, 5, 1ns);
    EXPECT_EQ(line.wake(2), 0U);
}

}  // namespace
}  // namespace npushmem
