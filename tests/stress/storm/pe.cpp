// SPDX-License-Identifier: BSD-3-Clause
// A PE of the storm's jobs. It makes calls of every family, checks their results, and injects the faults of
// STORM_FAULTS, "<pe>|<point>|<kind>|<delay in us>|<amount>" separated by semicolons. The points inside start-up and
// finalize are the debug lines of the library, each of which follows a step: this program's `write` receives them.
// Reports "<pe> <word> <pid> <ns>" on the pipe STORM_REPORT: fault, stopped, verified, finalized.
#include <fcntl.h>
#include <fmt/format.h>
#include <npushmem/plugin/abi.h>
#include <npushmemx.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <string>
#include <string_view>
#include <vector>

namespace {

std::string variable(const char* name) {
    const char* value = std::getenv(name);
    return value == nullptr ? "" : value;
}

int launched_pe() {
    for (const char* name : {"NPUSHMEM_PE", "PMI_RANK", "PMIX_RANK", "PMI_ID"})
        if (!variable(name).empty()) return std::atoi(variable(name).c_str());
    return 0;
}

std::vector<std::string> split(const std::string& text, char separator) {
    std::vector<std::string> out;
    for (std::size_t begin = 0; begin <= text.size();) {
        const std::size_t end = std::min(text.find(separator, begin), text.size());
        out.push_back(text.substr(begin, end - begin));
        begin = end + 1;
    }
    return out;
}

struct OwnFault {
    std::string point;
    std::string kind;
    int delay_us = 0;
    int amount = 0;
};

// Read before the first fault and never destroyed: handlers of signals and exits use it.
struct State {
    int pe = launched_pe();
    int report_to = ::open(variable("STORM_REPORT").c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC);
    int launcher = std::atoi(variable("STORM_LAUNCHER").c_str());
    OwnFault fault;
    bool injected = false;
};
State& state() {
    static State* const instance = new State;
    return *instance;
}

void report(const char* word) {
    timespec now{};
    ::clock_gettime(CLOCK_MONOTONIC, &now);
    char line[96];
    const auto end = fmt::format_to_n(line, sizeof line, "{} {} {} {}\n", state().pe, word, ::getpid(),
                                      static_cast<long long>(now.tv_sec) * 1'000'000'000 + now.tv_nsec);
    (void)!::syscall(SYS_write, state().report_to, line, end.size);
}

void set_limit(__rlimit_resource resource, rlim_t value) {
    rlimit limit{};
    ::getrlimit(resource, &limit);
    limit.rlim_cur = std::min(value, limit.rlim_max);
    ::setrlimit(resource, &limit);
}

rlim_t address_space_in_use() {
    char text[64]{};
    const int file = ::open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
    (void)!::read(file, text, sizeof text - 1);
    ::close(file);
    return static_cast<rlim_t>(std::strtoull(text, nullptr, 10)) * 4096;
}

// Returns true if there was a connection.
bool cut_links() {
    constexpr int max_descriptor = 256;
    bool cut = false;
    for (int fd = 3; fd < max_descriptor; ++fd) {
        sockaddr_storage name{};
        socklen_t bytes = sizeof name;
        if (::getpeername(fd, reinterpret_cast<sockaddr*>(&name), &bytes) == 0 && name.ss_family != AF_UNIX)
            cut = ::shutdown(fd, SHUT_RDWR) == 0 || cut;
    }
    return cut;
}

// exit() in a handler, as programs do although the standard forbids it.
void exit_with_3(int /*signal*/) { std::exit(3); }
void exit_with_0(int /*signal*/) { std::exit(0); }
void exit_in_handler(void (*handler)(int)) {
    std::signal(SIGUSR2, handler);
    std::raise(SIGUSR2);
}

void inject_exhaustion(const std::string& kind, int amount) {
    constexpr rlim_t mib = 1U << 20;
    if (kind == "pe-descriptors") {
        const int next = ::dup(0);
        set_limit(RLIMIT_NOFILE, static_cast<rlim_t>(next + amount % 8));
        ::close(next);
    }
    if (kind == "pe-memory") set_limit(RLIMIT_AS, address_space_in_use() + static_cast<rlim_t>(amount % 16) * mib);
    if (kind == "pe-file-size") set_limit(RLIMIT_FSIZE, static_cast<rlim_t>(amount) * mib);
}

void inject() {
    const std::string& kind = state().fault.kind;
    state().injected = true;
    report(kind.starts_with("stop") ? "stopped" : "fault");
    if (kind == "kill" || kind == "two-kills" || kind == "survive-kill" || kind == "survive-two-kills")
        std::raise(SIGKILL);
    if (kind == "segv") std::raise(SIGSEGV);
    if (kind == "term") std::raise(SIGTERM);
    if (kind == "abort") std::abort();
    if (kind == "exit3" || kind == "survive-exit3") std::exit(3);
    if (kind == "exit0") std::exit(0);
    if (kind == "_exit3") ::_exit(3);
    if (kind == "_exit0") ::_exit(0);
    if (kind == "handler3") exit_in_handler(exit_with_3);
    if (kind == "handler0") exit_in_handler(exit_with_0);
    if (kind.starts_with("stop")) std::raise(SIGSTOP);
    if (kind == "launcher-kill") ::kill(state().launcher, SIGKILL);
    if (kind == "launcher-term") ::kill(state().launcher, SIGTERM);
    if (kind == "launcher-int") ::kill(state().launcher, SIGINT);
    if (kind == "supervisor-kill") ::kill(::getppid(), SIGKILL);
    if (kind == "all-kill") ::pause();
    if (kind == "cut" && cut_links()) report("cut");
    inject_exhaustion(kind, state().fault.amount);
}

void inject_at_alarm(int /*signal*/) { inject(); }

void at_point(std::string_view point) {
    if (state().injected || point != state().fault.point) return;
    if (state().fault.delay_us == 0) return inject();
    struct sigaction action {};
    action.sa_handler = inject_at_alarm;
    action.sa_flags = SA_RESTART;
    ::sigaction(SIGALRM, &action, nullptr);
    const itimerval once{{0, 0}, {0, state().fault.delay_us}};
    ::setitimer(ITIMER_REAL, &once, nullptr);
    state().fault.point.clear();
}

// "npushmem pe 1/4 debug start: bootstrap: done\n"
void at_log_line(std::string_view line) {
    constexpr std::string_view begin = " debug ";
    constexpr std::string_view end = ": done\n";
    const auto first = line.find(begin);
    if (first == line.npos || !line.ends_with(end)) return;
    line.remove_prefix(first + begin.size());
    line.remove_suffix(end.size());
    at_point(line);
}

void read_fault() {
    for (const auto& entry : split(variable("STORM_FAULTS"), ';')) {
        const auto fields = split(entry, '|');
        if (fields.size() != 5 || std::atoi(fields[0].c_str()) != state().pe) continue;
        state().fault = {fields[1], fields[2], std::atoi(fields[3].c_str()), std::atoi(fields[4].c_str())};
        ::setenv("NPUSHMEM_DEBUG", "debug", 1);
        ::setenv("NPUSHMEM_DEBUG_SUBSYS", "start,finalize", 1);
    }
}

[[noreturn]] void fail(const char* step, const std::string& why) {
    const std::string line = fmt::format("storm: PE {} fails in {}: {}\n", state().pe, step, why);
    (void)!::write(STDERR_FILENO, line.data(), line.size());
    // Unlike a returned code, a failed call without a result tells the launcher that this PE is not the cause.
    if (npushmemx_last_error(nullptr) == NPUSHMEM_E_PEER_DEAD) npushmem_barrier_all();
    std::_Exit(9);
}

// A call failed because of a death that the PE survives.
struct Interrupted {};

bool survives_deaths = false;

void check(const char* step, bool good = true) {
    const char* message = "";
    const int code = npushmemx_last_error(&message);
    if (code == NPUSHMEM_E_PEER_DEAD && survives_deaths) throw Interrupted{};
    if (code != 0) fail(step, message);
    if (!good) fail(step, "wrong result");
}

constexpr int words = 8192;
long local[words];  // not allocated: memory may be exhausted

// Memory of one round of calls. Every PE writes to its right neighbour.
struct Area {
    long data[words];
    long counter;
    long flag;
    long lock;
    long sum;
    long signalled;
    std::uint64_t signal;
};

class Round {
public:
    void run() {
        allocate();
        transfer();
        synchronize();
        collect();
        at_point("free");
        npushmem_free(area_);
        check("free");
    }

private:
    void allocate() {
        at_point("malloc");
        area_ = static_cast<Area*>(npushmem_calloc(1, sizeof(Area)));
        check("malloc", area_ != nullptr);
    }

    void transfer() {
        at_point("put");
        std::fill(std::begin(local), std::end(local), 100 + me_);
        npushmem_long_put(area_->data, local, words, right_);
        check("put");
        at_point("barrier");
        npushmem_barrier_all();
        check("barrier", area_->data[0] == 100 + left_ && area_->data[words - 1] == 100 + left_);
        at_point("get");
        npushmem_long_get(local, area_->data, words, right_);
        check("get", local[words - 1] == 100 + me_);
    }

    void synchronize() {
        at_point("atomic");
        (void)npushmem_long_atomic_fetch_add(&area_->counter, 1, 0);
        check("atomic");
        at_point("signal");
        const long value = me_;
        npushmem_long_put_signal(&area_->signalled, &value, 1, &area_->signal, 1, NPUSHMEM_SIGNAL_OP_SET, right_);
        (void)npushmem_signal_wait_until(&area_->signal, NPUSHMEM_CMP_EQ, 1);
        check("signal", area_->signalled == left_);
        at_point("wait");
        npushmem_long_p(&area_->flag, 1, right_);
        npushmem_long_wait_until(&area_->flag, NPUSHMEM_CMP_EQ, 1);
        check("wait");
    }

    void collect() {
        at_point("reduce");
        npushmem_long_sum_reduce(NPUSHMEM_TEAM_WORLD, &area_->sum, &area_->flag, 1);
        check("reduce", area_->sum == n_);
        at_point("lock");
        npushmem_set_lock(&area_->lock);
        npushmem_clear_lock(&area_->lock);
        check("lock");
        at_point("team");
        npushmem_team_t team = NPUSHMEM_TEAM_INVALID;
        npushmem_team_split_strided(NPUSHMEM_TEAM_WORLD, 0, 1, n_, nullptr, 0, &team);
        check("team");
        npushmem_team_sync(team);
        npushmem_team_destroy(team);
        check("team");
        at_point("quiet");
        npushmem_quiet();
        npushmem_barrier_all();
        check("quiet", me_ != 0 || area_->counter == n_);
    }

    int me_ = npushmem_my_pe();
    int n_ = npushmem_n_pes();
    int right_ = (me_ + 1) % n_;
    int left_ = (me_ + n_ - 1) % n_;
    Area* area_ = nullptr;
};

// The work of the living after a death, with memory that was allocated while all lived.
class Survivors {
public:
    Survivors() {
        memory_ = static_cast<long*>(npushmem_calloc(4, sizeof(long)));
        if (memory_ == nullptr) fail("malloc of the survivors", "a PE died in the start");
        npushmem_barrier_all();
        npushmemx_clear_error();  // a PE may die once all have left the allocation
    }

    // Every living PE calls this, whether a death has interrupted its work or not. Only team_shrink has the same result
    // on all of them, so the work ends when it finds nobody dead.
    void finish_work(bool worked) {
        npushmem_team_t team = NPUSHMEM_TEAM_WORLD;
        for (;;) {
            npushmem_quiet();
            npushmemx_clear_error();
            npushmem_team_t next = NPUSHMEM_TEAM_INVALID;
            if (npushmemx_team_shrink(team, &next) != 0) {
                check("team_shrink");
                fail("team_shrink", "no report");
            }
            if (npushmem_team_n_pes(next) == npushmem_team_n_pes(team)) {
                if (!worked) fail("team_shrink", "nobody has died, but a death has interrupted this PE");
                return;
            }
            team = next;
            worked = work(team);
        }
    }

private:
    // False: a death interrupted it.
    bool work(npushmem_team_t team) {
        const int size = npushmem_team_n_pes(team);
        const int index = npushmem_team_my_pe(team);
        try {
            memory_[0] = index + 1;
            (void)npushmem_long_sum_reduce(team, memory_ + 1, memory_, 1);
            check("reduce of the survivors", memory_[1] == static_cast<long>(size) * (size + 1) / 2);
            const int right = npushmem_team_translate_pe(team, (index + 1) % size, NPUSHMEM_TEAM_WORLD);
            npushmem_long_p(memory_ + 2, 100 * size + index, right);
            npushmem_quiet();
            (void)npushmem_team_sync(team);
            check("sync of the survivors", memory_[2] == 100 * size + (index + size - 1) % size);
            return true;
        } catch (const Interrupted&) {
            return false;
        }
    }

    long* memory_ = nullptr;
};

void do_rounds() {
    Round().run();
    Round().run();
}

void survive_rounds() {
    Survivors survivors;
    survives_deaths = true;
    bool worked = false;
    try {
        do_rounds();
        worked = true;
    } catch (const Interrupted&) {
    }
    survivors.finish_work(worked);
    survives_deaths = false;
}

}  // namespace

// Replaces the C library's, also in calls of the library's log.
extern "C" [[gnu::visibility("default")]] ssize_t write(int fd, const void* data, std::size_t bytes) {
    const std::string_view text(static_cast<const char*>(data), bytes);
    if (text.find(" debug ") != text.npos) {
        at_log_line(text);
        return static_cast<ssize_t>(bytes);
    }
    return ::syscall(SYS_write, fd, data, bytes);
}

int main() {
    read_fault();
    at_point("before-init");
    npushmem_init();
    check("init");
    variable("NPUSHMEM_ON_PEER_DEATH") == "survive" ? survive_rounds() : do_rounds();
    report("verified");
    at_point("before-finalize");
    npushmem_finalize();
    check("finalize");
    report("finalized");
    at_point("after-finalize");
    return 0;
}
