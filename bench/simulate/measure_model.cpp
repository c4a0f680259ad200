// SPDX-License-Identifier: BSD-3-Clause
// Measures the node's parameters with two processes over a shared page, without the library.
#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <vector>

#include "bench/simulate/model.hpp"

namespace npushmem::simulate {
namespace {

using Clock = std::chrono::steady_clock;
// Time of each measurement; few batches fit when other programs use the processors.
constexpr std::chrono::milliseconds budget{100};
constexpr std::size_t max_batches = 201;
constexpr std::uint64_t per_batch = 50;
constexpr std::uint64_t polls_per_check = 4096;

struct alignas(128) Word {
    std::atomic<std::uint64_t> value;
};

struct Page {
    Word there;
    Word back;
    Word stop;  // not 0: the measurement has ended
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

bool bind(int cpu) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    return sched_setaffinity(0, sizeof set, &set) == 0;
}

// The other process. It ends at the latest with this one.
class Partner {
public:
    template <class Work>
    Partner(int cpu, Page& page, Work&& work) : page_(page) {
        const pid_t parent = getpid();
        page_.stop.value = 0;
        process_ = fork();
        if (process_ != 0) return;
        const bool ready = prctl(PR_SET_PDEATHSIG, SIGKILL) == 0 && getppid() == parent && bind(cpu);
        if (ready) work();
        _exit(ready ? 0 : 1);
    }
    Partner(const Partner&) = delete;
    Partner& operator=(const Partner&) = delete;
    ~Partner() {
        page_.stop.value = 1;
        if (process_ > 0 && !exited_) waitpid(process_, nullptr, 0);
    }

    [[nodiscard]] bool started() const { return process_ > 0; }
    // Returns false if the process has ended early.
    bool is_running() {
        if (!exited_ && waitpid(process_, nullptr, WNOHANG) == process_) exited_ = true;
        return !exited_;
    }

private:
    Page& page_;
    pid_t process_;
    bool exited_ = false;
};

// Acquire and release as in the library's signals. Checks `on` from time to time, and returns false if it is false.
template <class On>
bool wait_for(const Word& word, std::uint64_t value, bool yielding, On&& on) {
    for (std::uint64_t polls = 1; word.value.load(std::memory_order_acquire) < value; ++polls) {
        if (yielding) sched_yield();
        if (polls % (yielding ? 16 : polls_per_check) == 0 && !on()) return false;
    }
    return true;
}

// Returns the median nanoseconds of one of `per_batch` repetitions over all batches within the time limit; 0 if a batch
// fails.
template <class Batch>
double time_of(Batch&& batch) {
    std::vector<double> times;
    const auto end = Clock::now() + budget;
    do {
        const auto begin = Clock::now();
        if (!batch()) return 0;
        times.push_back(std::chrono::duration<double, std::nano>(Clock::now() - begin).count() / per_batch);
    } while (Clock::now() < end && times.size() < max_batches);
    std::sort(times.begin(), times.end());
    return times[times.size() / 2];
}

void answer(Page& page, bool yielding) {
    const auto on = [&] { return page.stop.value.load() == 0; };
    for (std::uint64_t i = 1; wait_for(page.there, i, yielding, on); ++i) page.back.value.store(i);
}

void read_on(const Page& page) {
    volatile std::uint64_t sum = 0;  // keeps the compiler from removing the loads
    while (page.stop.value.load() == 0)
        for (const Word& line : page.lines) sum = sum + line.value.load(std::memory_order_relaxed);
}

// From one process to the other.
double one_way_time(Page& page, bool yielding, Partner& partner) {
    std::uint64_t count = 0;
    return time_of([&] {
               for (std::uint64_t i = 0; i < per_batch; ++i) {
                   page.there.value.store(++count);
                   if (!wait_for(page.back, count, yielding, [&] { return partner.is_running(); })) return false;
               }
               return true;
           }) /
           2;
}

// A store and a fence to a line that no other process uses, or to lines that another process reads all the time.
double store_time(Page& page, std::size_t lines) {
    return time_of([&] {
        for (std::uint64_t i = 0; i < per_batch; ++i) page.lines[i % lines].value.store(i);
        return true;
    });
}

// Nanoseconds for each byte of a copy that no first-level cache holds.
double copy_time() {
    const std::vector<std::byte> from(1U << 20, std::byte{1});
    std::vector<std::byte> to(from.size());
    volatile std::byte last{};  // keeps the compiler from removing the copies
    const double of_a_word = time_of([&] {
        std::memcpy(to.data(), from.data(), to.size());
        last = to.back();
        return true;
    });
    return of_a_word * per_batch / static_cast<double>(from.size());
}

// Measures with `work` in another process; both processes are bound as given. Restores the previous binding at the end.
template <class Work, class Mine>
Result<double> with_partner(Page& page, int my_cpu, int other_cpu, Work&& work, Mine&& mine) {
    page.there.value = page.back.value = 0;
    cpu_set_t before;
    if (sched_getaffinity(0, sizeof before, &before) != 0 || !bind(my_cpu))
        return Status{Code::system, std::string("cannot bind to a processor to measure: ") + std::strerror(errno)};
    double time = 0;
    {
        Partner partner(other_cpu, page, work);
        if (partner.started()) time = mine(partner);
    }
    sched_setaffinity(0, sizeof before, &before);
    if (time > 0) return time;
    return Status{Code::system, "cannot start and bind a process to measure with, or it has ended"};
}

}  // namespace

Result<Model> measure_model(Model defaults) {
    const std::vector<int> cpus = usable();
    const SharedPage shared;
    if (cpus.empty() || !shared.made())
        return Status{Code::system, std::string("cannot measure this machine: ") + std::strerror(errno)};
    Page& page = shared.page();
    const int here = cpus.front();
    const int there = cpus.back();
    Model model = defaults;
    auto turn = with_partner(
        page, here, here, [&] { answer(page, true); },
        [&](Partner& partner) { return one_way_time(page, true, partner); });
    if (!turn.ok()) return turn.status();
    model.turn = turn.value();
    model.node.per_byte = copy_time();
    if (cpus.size() < 2) return model;  // there is no second processor
    auto over = with_partner(
        page, here, there, [&] { answer(page, false); },
        [&](Partner& partner) { return one_way_time(page, false, partner); });
    if (!over.ok()) return over.status();
    auto gap = with_partner(
        page, here, there, [&] { read_on(page); }, [&](Partner&) { return store_time(page, std::size(page.lines)); });
    if (!gap.ok()) return gap.status();
    model.node.overhead = store_time(page, 1);
    model.node.gap = gap.value();
    model.node.latency = std::max(0.0, over.value() - 2 * model.node.overhead);
    return model;
}

}  // namespace npushmem::simulate
