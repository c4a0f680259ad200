#include "transports/network/progress_thread.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <system_error>

namespace npushmem::network {
namespace {

using Clock = std::chrono::steady_clock;

// While the program drives the transport, and where there is no descriptor.
constexpr std::chrono::milliseconds nap{1};

}  // namespace

Result<std::unique_ptr<ProgressThread>> ProgressThread::start(Work work) {
    const int stop = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (stop < 0)
        return Status{Code::system, fmt::format("no eventfd for the progress thread: {}", std::strerror(errno))};
    std::unique_ptr<ProgressThread> out(new ProgressThread(std::move(work), stop));
    // The program's signals are for the program's threads.
    sigset_t all;
    sigset_t before;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before);
    Status failure;
    try {
        out->thread_ = std::thread([thread = out.get()] { thread->run(); });
    } catch (const std::system_error& error) {
        failure = {Code::system, fmt::format("cannot start the progress thread: {}", error.what())};
    }
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
    if (!failure.ok()) return failure;
    ::pthread_setname_np(out->thread_.native_handle(), "npushmem-net");
    return out;
}

ProgressThread::~ProgressThread() {
    const std::uint64_t one = 1;
    (void)!::write(stop_, &one, sizeof one);
    if (thread_.joinable()) thread_.join();
    ::close(stop_);
}

bool ProgressThread::wait(int descriptor, std::chrono::milliseconds longest) {
    std::array<pollfd, 2> wanted{pollfd{stop_, POLLIN, 0}, pollfd{descriptor, POLLIN, 0}};
    (void)::poll(wanted.data(), descriptor >= 0 ? 2 : 1, static_cast<int>(longest.count()));
    return wanted[0].revents == 0;
}

void ProgressThread::run() {
    auto next_tick = Clock::now() + work_.tick_length;
    std::uint64_t seen = work_.driven_by_others();
    bool going_on = true;
    while (going_on) {
        if (Clock::now() >= next_tick) {
            work_.tick();
            next_tick = Clock::now() + work_.tick_length;
        }
        const std::uint64_t now = work_.driven_by_others();
        if (std::exchange(seen, now) != now) {
            going_on = wait(-1, nap);
            continue;
        }
        const int descriptor = work_.drive();
        going_on = wait(descriptor, descriptor >= 0 ? work_.tick_length : nap);
    }
}

}  // namespace npushmem::network
