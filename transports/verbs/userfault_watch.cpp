#include "transports/verbs/userfault_watch.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cinttypes>
#include <cstdio>
#include <fstream>
#include <string>
#include <system_error>
#include <vector>

#include "transports/verbs/port_list.hpp"

namespace npushmem::verbs {
namespace {

constexpr std::uint64_t wanted = UFFD_FEATURE_EVENT_UNMAP | UFFD_FEATURE_EVENT_REMAP | UFFD_FEATURE_EVENT_REMOVE;

Status refused(const char* what) { return {Code::unsupported, fmt::format("{}: {}", what, text_of_error(errno))}; }

}  // namespace

Result<std::unique_ptr<UserfaultWatch>> UserfaultWatch::open() {
    const auto made = ::syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK | UFFD_USER_MODE_ONLY);
    if (made < 0) return refused("userfaultfd");
    const int stop = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    std::unique_ptr<UserfaultWatch> out(new UserfaultWatch(static_cast<int>(made), stop));
    if (stop < 0) return refused("eventfd");
    uffdio_api api{};
    api.api = UFFD_API;
    api.features = wanted;
    if (::ioctl(out->descriptor_, UFFDIO_API, &api) != 0) return refused("userfaultfd's events of memory");
    return out;
}

UserfaultWatch::~UserfaultWatch() {
    const std::uint64_t one = 1;
    if (stop_ >= 0) (void)!::write(stop_, &one, sizeof one);
    if (thread_.joinable()) thread_.join();
    ::close(descriptor_);
    if (stop_ >= 0) ::close(stop_);
}

bool UserfaultWatch::start_thread() {
    if (thread_.joinable()) return true;
    sigset_t all;
    sigset_t before;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before);  // the program's signals are for the program's threads
    try {
        thread_ = std::thread([this] { run(); });
        ::pthread_setname_np(thread_.native_handle(), "npushmem-memory");
    } catch (const std::system_error&) {
    }
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
    return thread_.joinable();
}

void UserfaultWatch::run() {
    std::array<pollfd, 2> awaited{pollfd{stop_, POLLIN, 0}, pollfd{descriptor_, POLLIN, 0}};
    while (awaited[0].revents == 0) {
        if (::poll(awaited.data(), awaited.size(), -1) <= 0) continue;
        const std::lock_guard guard(lock_);
        read_events();
    }
}

void UserfaultWatch::read_events() {
    std::array<uffd_msg, 16> events;
    for (;;) {
        const ssize_t got = ::read(descriptor_, events.data(), sizeof events);
        if (got <= 0) return;
        for (std::size_t i = 0; i < static_cast<std::size_t>(got) / sizeof events[0]; ++i) {
            const uffd_msg& event = events[i];
            if (event.event == UFFD_EVENT_REMAP)
                note({event.arg.remap.from, event.arg.remap.from + event.arg.remap.len});
            else if (event.event == UFFD_EVENT_UNMAP || event.event == UFFD_EVENT_REMOVE)
                note({event.arg.remove.start, event.arg.remove.end});
        }
    }
}

bool UserfaultWatch::watch(const AddressRange& pages) {
    if (!start_thread() || !is_private_anonymous(pages)) return false;
    uffdio_register request{};
    request.range = {pages.begin, pages.end - pages.begin};
    request.mode = UFFDIO_REGISTER_MODE_WP;
    return ::ioctl(descriptor_, UFFDIO_REGISTER, &request) == 0;
}

// A call that is wrong whatever happens, but tells of a change first.
bool UserfaultWatch::change_is_going_on() const {
    uffdio_writeprotect nothing{};
    return ::ioctl(descriptor_, UFFDIO_WRITEPROTECT, &nothing) != 0 && errno == EAGAIN;
}

UserfaultWatch::Position UserfaultWatch::now() {
    const std::lock_guard guard(lock_);
    return count_;
}

// With the lock nobody else reads an event: one that is not read yet is a change that is going on.
bool UserfaultWatch::changes(Position& position, const Gone& gone) {
    std::unique_lock guard(lock_);
    const bool going_on = change_is_going_on();
    if (going_on) read_events();
    if (position == count_) return !going_on;
    const std::array<AddressRange, remembered> found = gone_;
    const Position last = count_;
    guard.unlock();
    const bool forgotten = last - position > remembered;
    for (; !forgotten && position != last; ++position) gone(found[position % remembered]);
    position = last;
    return !going_on && !forgotten;
}

bool is_private_anonymous(const AddressRange& pages) {
    std::ifstream list("/proc/self/maps");
    std::string line;
    std::uintptr_t reached = pages.begin;
    while (reached < pages.end && std::getline(list, line)) {
        std::uintptr_t begin = 0;
        std::uintptr_t end = 0;
        std::array<char, 5> rights{};
        std::uint64_t inode = 0;
        if (std::sscanf(line.c_str(), "%" SCNxPTR "-%" SCNxPTR " %4s %*s %*s %" SCNu64, &begin, &end, rights.data(),
                        &inode) != 4)
            return false;
        if (end <= reached) continue;
        if (begin > reached || rights[3] != 'p' || inode != 0) return false;
        reached = end;
    }
    return reached >= pages.end;
}

}  // namespace npushmem::verbs
