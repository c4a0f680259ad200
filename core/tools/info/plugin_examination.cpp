// SPDX-License-Identifier: BSD-3-Clause
#include "core/tools/info/plugin_examination.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstring>

#include "core/base/parse.hpp"
#include "core/tools/run/processes.hpp"

namespace npushmem::info {

namespace {

using Clock = std::chrono::steady_clock;

constexpr auto not_refused = static_cast<std::uint64_t>(LoadStage::open) + 1;

// Fields end with a NUL; no text of a plugin contains one.
class FieldReader {
public:
    explicit FieldReader(std::string_view bytes) : rest_(bytes) {}

    std::string text() {
        const auto end = rest_.find('\0');
        if (end == std::string_view::npos) {
            complete_ = false;
            return {};
        }
        std::string field(rest_.substr(0, end));
        rest_.remove_prefix(end + 1);
        return field;
    }
    std::uint64_t number() {
        std::uint64_t value = 0;
        const std::string field = text();
        const auto [end, error] = std::from_chars(field.data(), field.data() + field.size(), value);
        complete_ = complete_ && error == std::errc{} && end == field.data() + field.size();
        return value;
    }
    [[nodiscard]] bool complete() const { return complete_; }
    [[nodiscard]] bool at_end() const { return complete_ && rest_.empty(); }

private:
    std::string_view rest_;
    bool complete_ = true;
};

// The stage that the child has reached, in memory that both processes share.
class SharedStage {
public:
    SharedStage()
        : place_(::mmap(nullptr, sizeof(LoadStage), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0)) {}
    SharedStage(const SharedStage&) = delete;
    SharedStage& operator=(const SharedStage&) = delete;
    ~SharedStage() {
        if (mapped()) ::munmap(place_, sizeof(LoadStage));
    }

    [[nodiscard]] bool mapped() const { return place_ != MAP_FAILED; }
    [[nodiscard]] LoadStage& stage() const { return *static_cast<LoadStage*>(place_); }

private:
    void* place_;
};

[[noreturn]] void examine_and_exit(const FoundPlugin& found, LoadStage& stage, int results) {
    (void)::prctl(PR_SET_PDEATHSIG, SIGKILL);
    (void)::setpgid(0, 0);
    const std::string bytes = encode_entry(examine_plugin(found, stage));
    for (std::string_view rest = bytes; !rest.empty();) {
        const ssize_t written = ::write(results, rest.data(), rest.size());
        if (written < 0 && errno != EINTR) ::_exit(EXIT_FAILURE);
        rest.remove_prefix(written > 0 ? static_cast<std::size_t>(written) : 0);
    }
    ::_exit(EXIT_SUCCESS);
}

struct Results {
    std::string bytes;
    bool in_time = false;
};

// Appends the bytes that are in the pipe, without waiting. False: all writers have closed it.
bool drain(int pipe, std::string& bytes) {
    std::array<char, 4096> piece;
    ssize_t got = 0;
    while ((got = ::read(pipe, piece.data(), piece.size())) > 0)
        bytes.append(piece.data(), static_cast<std::size_t>(got));
    return got < 0;
}

// Reads until the child ends. The end of the pipe does not matter: a plugin may close the pipe and continue, or start a
// process that keeps it open.
Results read_results(int child, int results, Clock::time_point deadline) {
    Results out;
    std::array<pollfd, 2> watched{pollfd{child, POLLIN, 0}, pollfd{results, POLLIN, 0}};
    while (!out.in_time) {
        const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now()).count();
        const int ready = ::poll(watched.data(), watched.size(), static_cast<int>(std::max<std::int64_t>(left, 0)));
        if (ready < 0 && errno == EINTR) continue;
        if (ready <= 0) return out;
        out.in_time = watched[0].revents != 0;
        if (!drain(results, out.bytes)) watched[1].fd = -1;
    }
    return out;
}

// The child keeps its pid, which is also its process group, until waitpid.
int end_child(pid_t child) {
    int status = 0;
    (void)::kill(child, SIGKILL);
    (void)::kill(-child, SIGKILL);  // processes that the plugin has started
    while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    return status;
}

std::string describe_termination(int status, bool in_time, std::chrono::milliseconds limit) {
    if (!in_time) return fmt::format("has not ended within {}", format_duration(limit));
    if (!WIFSIGNALED(status)) return fmt::format("has ended the process with status {}", WEXITSTATUS(status));
    return fmt::format("has ended the process with signal {} ({})", WTERMSIG(status), ::strsignal(WTERMSIG(status)));
}

PluginEntry refused_entry(const FoundPlugin& found, LoadStage stage, const std::string& reason) {
    PluginEntry entry{};
    entry.found = found;
    entry.refusal = Refusal{stage, fmt::format("{} plugin '{}' refused at stage '{}': {} [{}]", name_of(found.kind),
                                               found.name, name_of(stage), reason, found.path)};
    return entry;
}

PluginEntry not_examined(const FoundPlugin& found, const char* what) {
    return refused_entry(found, LoadStage::found,
                         fmt::format("it cannot be examined: {}: {}", what, std::strerror(errno)));
}

}  // namespace

std::string encode_entry(const PluginEntry& entry) {
    std::string out;
    const auto append = [&out](std::string_view field) {
        out.append(field.substr(0, field.find('\0'))).push_back('\0');
    };
    for (const std::uint64_t number : {std::uint64_t{entry.major}, std::uint64_t{entry.minor}, entry.capabilities})
        append(std::to_string(number));
    append(entry.summary);
    append(std::to_string(entry.variables.size()));
    for (const auto& [name, default_value, type, meaning] : entry.variables)
        for (const auto* field : {&name, &default_value, &type, &meaning}) append(*field);
    append(std::to_string(entry.refusal ? static_cast<std::uint64_t>(entry.refusal->stage) : not_refused));
    append(entry.refusal ? entry.refusal->text : "");
    return out;
}

PluginEntry decode_entry(const FoundPlugin& found, std::string_view bytes, bool& complete) {
    FieldReader in(bytes);
    PluginEntry entry{};
    entry.found = found;
    entry.major = static_cast<std::uint16_t>(in.number());
    entry.minor = static_cast<std::uint16_t>(in.number());
    entry.capabilities = in.number();
    entry.summary = in.text();
    for (std::uint64_t left = in.number(); left > 0 && in.complete(); --left) {
        PluginVariable variable;
        for (auto* field : {&variable.name, &variable.default_value, &variable.type, &variable.meaning})
            *field = in.text();
        entry.variables.push_back(std::move(variable));
    }
    const std::uint64_t refused_at = in.number();
    const std::string reason = in.text();
    complete = in.at_end() && refused_at <= not_refused;
    if (complete && refused_at < not_refused) entry.refusal = Refusal{static_cast<LoadStage>(refused_at), reason};
    return entry;
}

PluginEntry examine_in_child(const FoundPlugin& found, std::chrono::milliseconds limit) {
    const auto deadline = Clock::now() + limit;
    const SharedStage shared;
    std::array<int, 2> ends{-1, -1};
    if (!shared.mapped()) return not_examined(found, "mmap");
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) return not_examined(found, "pipe");
    const FileDescriptor reading(ends[0]);
    FileDescriptor writing(ends[1]);
    if (::fcntl(reading.get(), F_SETFL, O_NONBLOCK) != 0) return not_examined(found, "fcntl");
    const pid_t child = ::fork();
    if (child == 0) examine_and_exit(found, shared.stage(), writing.get());
    if (child < 0) return not_examined(found, "fork");
    writing.reset();
    const FileDescriptor process = open_pidfd(child);
    const int error = errno;
    const Results results = process.valid() ? read_results(process.get(), reading.get(), deadline) : Results{};
    const int status = end_child(child);
    errno = error;
    if (!process.valid()) return not_examined(found, "pidfd_open");
    bool complete = false;
    PluginEntry entry = decode_entry(found, results.bytes, complete);
    if (complete && results.in_time && status == 0) return entry;
    return refused_entry(found, shared.stage(), "loading it " + describe_termination(status, results.in_time, limit));
}

}  // namespace npushmem::info
