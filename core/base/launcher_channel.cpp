// SPDX-License-Identifier: BSD-3-Clause
#include "core/base/launcher_channel.hpp"

#include <fmt/core.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <ctime>
#include <limits>
#include <utility>

#include "core/base/config.hpp"
#include "core/base/parse.hpp"

namespace npushmem {

namespace {

constexpr char field_separator = '\x1f';

std::int64_t number_in(std::string_view text) {
    const auto parsed = parse_integer(text, -1, std::numeric_limits<std::int64_t>::max());
    return parsed.ok() ? parsed.value() : -1;
}

// Parses "3:5"; returns -1 for a missing number.
std::pair<std::int64_t, std::int64_t> numbers_in(std::string_view text) {
    const auto colon = std::min(text.find(':'), text.size());
    return {number_in(text.substr(0, colon)), number_in(text.substr(std::min(colon + 1, text.size())))};
}

// Parses "descriptor:device:inode"; -1 if the descriptor no longer refers to that file.
int descriptor_in(std::string_view text, mode_t type) {
    const auto colon = std::min(text.find(':'), text.size());
    const auto descriptor = number_in(text.substr(0, colon));
    const auto [device, inode] = numbers_in(text.substr(std::min(colon + 1, text.size())));
    struct stat found {};
    if (descriptor < 0 || descriptor > std::numeric_limits<int>::max()) return -1;
    if (::fstat(static_cast<int>(descriptor), &found) != 0 || (found.st_mode & S_IFMT) != type) return -1;
    const bool same = found.st_dev == static_cast<dev_t>(device) && found.st_ino == static_cast<ino_t>(inode);
    return same ? static_cast<int>(descriptor) : -1;
}

std::string without_controls(std::string text) {
    for (char& c : text)
        if (c == LauncherRecord::begin || c == LauncherRecord::end || c == field_separator) c = ' ';
    return text;
}

ssize_t write_once(int descriptor, std::string_view bytes) {
    ssize_t written = -1;
    do written = ::write(descriptor, bytes.data(), bytes.size());
    while (written < 0 && errno == EINTR);
    return written;
}

struct LauncherVariables {
    const std::string channel = ProcessEnvironment{}.get("NPUSHMEM_LAUNCHER_FD").value_or("");
    const int pe = static_cast<int>(number_in(ProcessEnvironment{}.get("NPUSHMEM_PE").value_or("-1")));

    static const LauncherVariables& of_process() {
        static const LauncherVariables variables;
        return variables;
    }
};

// At the file size limit the write fails and raises SIGXFSZ, which would end the PE.
ssize_t append_without_signal(int log, std::string_view bytes) {
    sigset_t signal;
    sigset_t before;
    sigemptyset(&signal);
    sigaddset(&signal, SIGXFSZ);
    (void)::pthread_sigmask(SIG_BLOCK, &signal, &before);
    const ssize_t written = write_once(log, bytes);
    const timespec no_time{};
    if (written < 0 && errno == EFBIG && sigismember(&before, SIGXFSZ) == 0)
        (void)::sigtimedwait(&signal, nullptr, &no_time);
    (void)::pthread_sigmask(SIG_SETMASK, &before, nullptr);
    return written;
}

}  // namespace

std::string LauncherRecord::encode() const {
    return fmt::format("{}{}{}{}{}{}{}{}", begin, static_cast<char>(kind), pe, field_separator,
                       without_controls(prefix), field_separator, without_controls(text), end);
}

std::optional<LauncherRecord> LauncherRecord::decode(std::string_view record) {
    record.remove_prefix(std::min(record.rfind(begin), record.size()));
    const auto first = record.find(field_separator);
    const auto second = first == std::string_view::npos ? first : record.find(field_separator, first + 1);
    if (record.size() < 3 || second == std::string_view::npos) return std::nullopt;
    LauncherRecord made;
    made.kind = static_cast<Kind>(record[1]);
    if (std::string_view("lmferok").find(record[1]) == std::string_view::npos) return std::nullopt;
    made.pe = static_cast<int>(number_in(record.substr(2, first - 2)));
    made.prefix = record.substr(first + 1, second - first - 1);
    made.text = record.substr(second + 1);
    return made;
}

LauncherChannel::LauncherChannel(std::string_view description) {
    const auto parts = split(description, ',');
    if (!parts.empty()) pipe_ = descriptor_in(parts[0], S_IFIFO);
    if (parts.size() != 4) return;
    log_ = descriptor_in(parts[1], S_IFREG);
    counter_ = number_in(parts[2]);
    const auto [device, inode] = numbers_in(parts[3]);
    stderr_device_ = static_cast<std::uint64_t>(device);
    stderr_inode_ = static_cast<std::uint64_t>(inode);
}

LauncherChannel LauncherChannel::of_process() { return LauncherChannel(LauncherVariables::of_process().channel); }

int LauncherChannel::own_pe() { return LauncherVariables::of_process().pe; }

// A short write to a pipe is atomic: lines of PEs never mix.
bool LauncherChannel::request(std::string_view line) const {
    return pipe_ >= 0 && write_once(pipe_, line) == static_cast<ssize_t>(line.size());
}

bool LauncherChannel::append(const LauncherRecord& record) const {
    if (log_ < 0 || pipe_ < 0) return false;
    const std::string bytes = record.encode();
    if (append_without_signal(log_, bytes) != static_cast<ssize_t>(bytes.size())) return false;
    // Wakes the launcher. Unread bytes in the pipe already wake it, and the pipe keeps room for requests.
    int unread = 0;
    if (::ioctl(pipe_, FIONREAD, &unread) != 0 || unread == 0) (void)request("wake\n");
    return true;
}

std::int64_t* LauncherChannel::map_failed_calls() const {
    if (log_ < 0 || counter_ < 0 || counter_ % static_cast<std::int64_t>(sizeof(std::int64_t)) != 0) return nullptr;
    const auto page = ::sysconf(_SC_PAGESIZE);
    void* const mapped = ::mmap(nullptr, static_cast<std::size_t>(page), PROT_READ | PROT_WRITE, MAP_SHARED, log_,
                                counter_ / page * page);
    if (mapped == MAP_FAILED) return nullptr;
    return reinterpret_cast<std::int64_t*>(static_cast<std::byte*>(mapped) + counter_ % page);
}

bool LauncherChannel::has_launcher_stderr() const {
    struct stat found {};
    return ::fstat(STDERR_FILENO, &found) == 0 && found.st_dev == stderr_device_ && found.st_ino == stderr_inode_;
}

}  // namespace npushmem
