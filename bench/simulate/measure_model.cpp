// The node's parameters by two processes over a shared page, without the library: what the hardware and the kernel
// take.
#include <sched.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <vector>

#include "bench/simulate/model.hpp"

namespace npushmem::simulate {
namespace {

using Clock = std::chrono::steady_clock;
constexpr int batches = 21;
constexpr std::uint64_t per_batch = 400;

struct alignas(128) Word {
    std::atomic<std::uint64_t> value;
};

struct Page {
    Word there;
    Word back;
    Word lines[16];
};

class SharedPage {
public:
    SharedPage() : memory_(mmap(nullptr, sizeof(Page), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0)) {}
    SharedPage(const SharedPage&) = delete;
    SharedPage& operator=(const SharedPage&) = delete;
    ~SharedPage() {
        if (memory_ != MAP_FAILED) munmap(memory_, sizeof(Page));
    }
    [[nodiscard]] bool made() const { return memory_ != MAP_FAILED; }
    [[nodiscard]] Page& page() const { return *static_cast<Page*>(memory_); }

private:
    void* memory_;
};

// The processors that this process may use.
std::vector<int> usable() {
    cpu_set_t set;
    std::vector<int> out;
    if (sched_getaffinity(0, sizeof set, &set) != 0) return out;
    for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu)
        if (CPU_ISSET(cpu, &set)) out.push_back(cpu);
    return out;
}

void bind(int cpu) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    (void)sched_setaffinity(0, sizeof set, &set);
}

// Acquire and release as the library's signals have them.
void wait_for(Word& word, std::uint64_t value, bool yielding) {
    while (word.value.load(std::memory_order_acquire) < value)
        if (yielding) sched_yield();
}

double median(std::vector<double> values) {
    std::sort(values.begin(), values.end());
    return values[values.size() / 2];
}

// Nanoseconds of one of `per_batch` repetitions, the median of many batches.
template <class Batch>
double time_of(Batch&& batch) {
    std::vector<double> times;
    for (int i = 0; i < batches; ++i) {
        const auto begin = Clock::now();
        batch();
        times.push_back(std::chrono::duration<double, std::nano>(Clock::now() - begin).count() / per_batch);
    }
    return median(std::move(times));
}

void answer(Page& page, bool yielding) {
    for (std::uint64_t i = 1; i <= batches * per_batch; ++i) {
        wait_for(page.there, i, yielding);
        page.back.value.store(i);
    }
}

double hand_over(Page& page, bool yielding) {
    std::uint64_t count = 0;
    return time_of([&] {
               for (std::uint64_t i = 0; i < per_batch; ++i) {
                   page.there.value.store(++count);
                   wait_for(page.back, count, yielding);
               }
           }) /
           2;
}

// Runs `other` in a second process while this one measures; both bound as given.
template <class Other, class Mine>
Result<double> with_other(int my_cpu, int other_cpu, Other&& other, Mine&& mine) {
    cpu_set_t before;
    sched_getaffinity(0, sizeof before, &before);
    const pid_t child = fork();
    if (child < 0)
        return Status{Code::system, std::string("cannot start a process to measure with: ") + std::strerror(errno)};
    if (child == 0) {
        bind(other_cpu);
        other();
        _exit(0);
    }
    bind(my_cpu);
    const double time = mine();
    sched_setaffinity(0, sizeof before, &before);
    int status = 0;
    waitpid(child, &status, 0);
    return time;
}

// A store with its fence to a line that nobody else wants, and to lines that another process keeps reading.
double store_time(Page& page, std::size_t lines) {
    return time_of([&] {
        for (std::uint64_t i = 0; i < per_batch; ++i) page.lines[i % lines].value.store(i);
    });
}

}  // namespace

Result<Model> measure_model(Model otherwise) {
    const std::vector<int> cpus = usable();
    const SharedPage shared;
    if (cpus.empty() || !shared.made())
        return Status{Code::system, std::string("cannot measure this machine: ") + std::strerror(errno)};
    Page& page = shared.page();
    const int here = cpus.front();
    const int there = cpus.back();
    Model model = otherwise;
    auto turn = with_other(
        here, here, [&] { answer(page, true); }, [&] { return hand_over(page, true); });
    if (!turn.ok()) return turn.status();
    model.turn = turn.value();
    if (cpus.size() < 2) return model;  // nobody to hand a word to
    page.there.value = page.back.value = 0;
    auto over = with_other(
        here, there, [&] { answer(page, false); }, [&] { return hand_over(page, false); });
    if (!over.ok()) return over.status();
    std::atomic<std::uint64_t>& end = page.there.value;
    end = 0;
    const auto read_on = [&] {
        std::uint64_t sum = 0;
        while (end.load() == 0)
            for (const Word& line : page.lines) sum += line.value.load(std::memory_order_relaxed);
        end = sum == 0 ? 2 : 3;  // so that the loads are not left out
    };
    auto gap = with_other(here, there, read_on, [&] {
        const double time = store_time(page, std::size(page.lines));
        end = 1;
        return time;
    });
    if (!gap.ok()) return gap.status();
    model.node.overhead = store_time(page, 1);
    model.node.gap = gap.value();
    model.node.latency = std::max(0.0, over.value() - 2 * model.node.overhead);
    return model;
}

}  // namespace npushmem::simulate
