// SPDX-License-Identifier: BSD-3-Clause
#include "transports/verbs/userfault_watch.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <functional>
#include <optional>

#include "core/base/service_thread.hpp"
#include "transports/verbs/ports.hpp"

namespace npushmem::verbs {
namespace {

constexpr std::size_t longest_line = 8192;  // a path has at most 4096 bytes plus escapes

std::optional<ProcessMapping> parsed(const char* line) {
    ProcessMapping out;
    std::array<char, 5> rights{};
    std::uint64_t inode = 0;
    if (std::sscanf(line, "%" SCNxPTR "-%" SCNxPTR " %4s %*s %*s %" SCNu64, &out.pages.begin, &out.pages.end,
                    rights.data(), &inode) != 4)
        return std::nullopt;
    out.private_anonymous = rights[3] == 'p' && inode == 0;
    return out;
}

// False when `each` returned false. Leaves the incomplete last line.
bool take_lines(std::array<char, longest_line>& text, std::size_t& used,
                const std::function<bool(const ProcessMapping&)>& each) {
    char* line = text.data();
    char* const end = line + used;
    for (char* stop = line; (stop = static_cast<char*>(std::memchr(line, '\n', static_cast<std::size_t>(end - line))));
         line = stop + 1) {
        *stop = '\0';
        if (const auto mapping = parsed(line); mapping && !each(*mapping)) return false;
    }
    used = static_cast<std::size_t>(end - line);
    std::memmove(text.data(), line, used);
    return true;
}

}  // namespace

void for_each_mapping(const std::function<bool(const ProcessMapping&)>& each) {
    const int list = ::open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
    if (list < 0) return;
    std::array<char, longest_line> text;
    std::size_t used = 0;
    for (ssize_t got = 1; got > 0 && used < text.size();) {
        got = ::read(list, text.data() + used, text.size() - used);
        if (got <= 0) break;
        used += static_cast<std::size_t>(got);
        if (!take_lines(text, used, each)) break;
    }
    ::close(list);
}

bool is_private_anonymous(const AddressRange& pages) {
    std::uintptr_t reached = pages.begin;
    for_each_mapping([&](const ProcessMapping& mapping) {
        if (mapping.pages.end <= reached) return true;
        if (mapping.pages.begin > reached || !mapping.private_anonymous) return false;
        reached = mapping.pages.end;
        return reached < pages.end;
    });
    return reached >= pages.end;
}

namespace {

// A feature of Linux 5.18. It is requested as the sign of a kernel that counts changes in progress: before 5.15 the end
// of one change hid the others.
constexpr std::uint64_t exact_address = 1 << 11;
constexpr std::uint64_t wanted =
    UFFD_FEATURE_EVENT_UNMAP | UFFD_FEATURE_EVENT_REMAP | UFFD_FEATURE_EVENT_REMOVE | exact_address;

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
    if (::ioctl(out->descriptor_, UFFDIO_API, &api) != 0)
        return refused("userfaultfd's memory events (they need Linux 5.18)");
    if (Status s = out->check_usable(); !s.ok()) return s;
    return out;
}

// On some processors the kernel has the events, but cannot watch memory without protecting it.
Status UserfaultWatch::check_usable() const {
    const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
    void* const at = ::mmap(nullptr, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED) return refused("mmap of a page to test userfaultfd");
    const auto begin = reinterpret_cast<std::uintptr_t>(at);
    Status out;
    if (!register_range({begin, begin + page})) out = refused("userfaultfd on a page of memory");
    (void)unregister_range({begin, begin + page});
    ::munmap(at, page);
    return out;
}

// The joining thread may unmap a watched stack, so it must not wait for an event reader.
UserfaultWatch::~UserfaultWatch() {
    unwatch_all();
    const std::uint64_t one = 1;
    if (stop_ >= 0) (void)!::write(stop_, &one, sizeof one);
    if (thread_.joinable()) thread_.join();
    ::close(descriptor_);
    if (stop_ >= 0) ::close(stop_);
}

bool UserfaultWatch::start_thread() {
    if (thread_.joinable()) return true;
    auto thread = start_service_thread("npushmem-memory", [this] { run(); });
    if (!thread.ok()) return false;
    thread_ = std::move(thread).value();
    return true;
}

void UserfaultWatch::run() {
    std::array<pollfd, 2> awaited{pollfd{stop_, POLLIN, 0}, pollfd{descriptor_, POLLIN, 0}};
    while (awaited[0].revents == 0)
        if (::poll(awaited.data(), awaited.size(), -1) > 0) read_events();
    drain();
}

// Stops watching all memory: changes in progress end, and no change starts. A change whose event was read ends without
// a further event.
void UserfaultWatch::drain() {
    pollfd awaited{descriptor_, POLLIN, 0};
    while (is_change_in_progress()) {
        constexpr int poll_interval = 1;  // ms
        (void)::poll(&awaited, 1, poll_interval);
        read_events();
    }
}

// A change ends in the kernel when its event has been read. A caller that then finds no change in progress must find
// `reading_` true, or the change in `changes_`.
void UserfaultWatch::read_events() {
    std::array<uffd_msg, 16> events;
    reading_.store(true, std::memory_order_seq_cst);  // partner: the load in changes()
    for (ssize_t got = 0; (got = ::read(descriptor_, events.data(), sizeof events)) > 0;)
        for (std::size_t i = 0; i < static_cast<std::size_t>(got) / sizeof events[0]; ++i) {
            const uffd_msg& event = events[i];
            if (event.event == UFFD_EVENT_UNMAP || event.event == UFFD_EVENT_REMOVE)
                record_change({event.arg.remove.start, event.arg.remove.end});
            if (event.event != UFFD_EVENT_REMAP) continue;
            record_change({event.arg.remap.from, event.arg.remap.from + event.arg.remap.len});
            record_change({event.arg.remap.to, event.arg.remap.to + event.arg.remap.len});
            unwatch_mapping_at(event.arg.remap.to);
        }
    reading_.store(false, std::memory_order_seq_cst);  // partner: the load in changes()
}

// A reader that finds `count_` below the number of a change plus `max_changes` has read that change completely: its
// slot is overwritten only after `count_` has reached that sum.
void UserfaultWatch::record_change(const AddressRange& range) {
    const std::uint64_t number = count_.load(std::memory_order_relaxed);  // only this thread writes it
    Change& change = changes_[number % max_changes];
    change.begin.store(range.begin, std::memory_order_seq_cst);  // partner: the loads in changes()
    change.end.store(range.end, std::memory_order_seq_cst);
    count_.store(number + 1, std::memory_order_seq_cst);  // partner: the load in now()
}

// Moved memory keeps its watch, also on the part by which it grows.
void UserfaultWatch::unwatch_mapping_at(std::uintptr_t address) const {
    const auto unwatch = [&](const ProcessMapping& mapping) {
        if (mapping.pages.end <= address) return true;
        if (mapping.pages.begin <= address) (void)unregister_range(mapping.pages);
        return false;
    };
    for_each_mapping(std::ref(unwatch));  // a reference: takes no memory
}

bool UserfaultWatch::register_range(const AddressRange& pages) const {
    uffdio_register request{};
    request.range = {pages.begin, pages.end - pages.begin};
    request.mode = UFFDIO_REGISTER_MODE_WP;
    return ::ioctl(descriptor_, UFFDIO_REGISTER, &request) == 0;
}

bool UserfaultWatch::unregister_range(const AddressRange& pages) const {
    uffdio_range range{pages.begin, pages.end - pages.begin};
    return ::ioctl(descriptor_, UFFDIO_UNREGISTER, &range) == 0;
}

bool UserfaultWatch::watch(const AddressRange& pages) {
    if (!start_thread() || !is_private_anonymous(pages)) return false;
    const bool again = std::find(watched_.begin(), watched_.end(), pages) != watched_.end();
    if (!again && watched_.size() >= max_watched) unwatch_all();
    if (!again) watched_.push_back(pages);
    return register_range(pages);
}

// Operates on whole mappings: a mapping that has grown is watched beyond the requested range. Memory that belongs to
// another userfaultfd cannot be registered and is left to it: kernels let any process unregister it.
void UserfaultWatch::unwatch_all() {
    skipped_ += max_changes + 1;  // invalidates everything watched so far
    std::sort(watched_.begin(), watched_.end(), [](const auto& a, const auto& b) { return a.begin < b.begin; });
    auto next = watched_.begin();
    const auto was_watched = [&](const AddressRange& pages) {
        next = std::find_if(next, watched_.end(), [&](const auto& each) { return each.end > pages.begin; });
        auto at = next;
        while (at != watched_.end() && at->begin < pages.end && !at->overlaps(pages)) ++at;
        return at != watched_.end() && at->overlaps(pages);
    };
    for_each_mapping([&](const ProcessMapping& each) {
        if (each.private_anonymous && was_watched(each.pages) && register_range(each.pages))
            (void)unregister_range(each.pages);
        return true;
    });
    watched_.clear();
}

// An invalid call, which reports a change in progress before its own error.
bool UserfaultWatch::is_change_in_progress() const {
    uffdio_writeprotect nothing{};
    return ::ioctl(descriptor_, UFFDIO_WRITEPROTECT, &nothing) != 0 && errno == EAGAIN;
}

UserfaultWatch::Position UserfaultWatch::now() {
    return skipped_ + count_.load(std::memory_order_seq_cst);  // partner: the store in record_change()
}

// The order matters: a change that has ended is being read or is recorded.
MemoryWatch::ChangesResult UserfaultWatch::changes(Position& position, const ChangeHandler& handler) {
    const bool in_progress =
        is_change_in_progress() || reading_.load(std::memory_order_seq_cst);  // partner: read_events()
    const Position last = now();
    for (; position != last; ++position) {
        const Change& change = changes_[(position - skipped_) % max_changes];
        const AddressRange range{
            change.begin.load(std::memory_order_seq_cst),  // partner: the stores in record_change()
            change.end.load(std::memory_order_seq_cst)};
        if (now() - position >= max_changes) {
            position = last;
            return ChangesResult::overflow;
        }
        handler(range);
    }
    return in_progress ? ChangesResult::in_progress : ChangesResult::all;
}

}  // namespace npushmem::verbs
