#include "core/tools/run/part.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>

#include "core/base/standard_streams.hpp"
#include "core/tools/run/exit_codes.hpp"
#include "core/tools/run/forwarded_signals.hpp"
#include "core/tools/run/job_preparation.hpp"
#include "core/tools/run/part_order.hpp"
#include "core/tools/run/pidfd.hpp"
#include "core/tools/run/start_job.hpp"

namespace npushmem::run {
namespace {

int part_failed(const Status& status) {
    write_error(fmt::format("npushmem-run --part: {}\n", status.message()));
    return exit_launcher_failed;
}

// Byte by byte: what follows the line must stay in the pipe.
std::string read_line() {
    std::string line;
    constexpr std::size_t longest = 128;
    for (char c = 0; line.size() < longest && ::read(STDIN_FILENO, &c, 1) == 1 && c != '\n';) line.push_back(c);
    return line;
}

Result<PartOrder> read_order() {
    const auto bytes = PartOrder::body_bytes(read_line());
    if (!bytes.ok()) return bytes.status();
    std::string body(bytes.value(), '\0');
    for (std::size_t have = 0; have < body.size();) {
        const ssize_t got = ::read(STDIN_FILENO, body.data() + have, body.size() - have);
        if (got == 0 || (got < 0 && errno != EINTR)) return Status{Code::protocol, "the order is cut off"};
        have += got > 0 ? static_cast<std::size_t>(got) : 0;
    }
    return PartOrder::decode(body);
}

Options options_of(const PartOrder& order) {
    Options options;
    options.npes = order.part.count;
    options.job_npes = order.npes;
    options.bind = order.bind;
    options.tag_output = order.tag_output;
    options.verbose = order.verbose;
    options.command = order.command;
    options.record_mark = order.record_mark;
    for (const auto& entry : order.environment) {
        const auto equals = entry.find('=');
        options.exports.push_back({entry.substr(0, equals), entry.substr(equals + 1)});
    }
    return options;
}

// In the child, which has no use for the order's pipe: PE 0's input is empty.
int run_here(const PartOrder& order, const char* const* environment) {
    const Fd null(::open("/dev/null", O_RDWR | O_CLOEXEC));
    (void)::dup2(null.get(), STDIN_FILENO);
    const Options options = options_of(order);
    auto plan = prepare_job(options, environment);
    if (const auto* exit = std::get_if<EarlyExit>(&plan)) {
        write_error(exit->text);
        return exit->status;
    }
    std::get<JobPlan>(plan).numbering = order.part.numbering;
    return run_job(options, std::get<JobPlan>(std::move(plan)));
}

// False at the end of the input.
bool pass_signal_on(int job) {
    char number = 0;
    if (::read(STDIN_FILENO, &number, 1) != 1) return false;
    (void)::kill(job, number);
    return true;
}

int attend(int job) {
    // Signals come from standard input. One that is sent to all processes of the host reaches the job as well.
    const sigset_t signals = set_of(forwarded_signals);
    (void)::sigprocmask(SIG_BLOCK, &signals, nullptr);
    const Fd process = open_pidfd(job);
    if (!process.open()) (void)::kill(job, SIGKILL);
    for (bool ordered = true; process.open();) {
        std::array<pollfd, 2> events{pollfd{process.get(), POLLIN, 0}, pollfd{ordered ? STDIN_FILENO : -1, POLLIN, 0}};
        (void)::poll(events.data(), events.size(), -1);
        if (events[0].revents != 0) break;
        if (events[1].revents == 0 || pass_signal_on(job)) continue;
        ordered = false;
        (void)::kill(job, SIGKILL);  // its keeper then ends all that it has started
    }
    int status = 0;
    const bool known = ::waitpid(job, &status, 0) == job;
    return !known || WIFSIGNALED(status) ? exit_launcher_failed : WEXITSTATUS(status);
}

}  // namespace

int run_part(const char* const* environment) {
    const auto order = read_order();
    if (!order.ok()) return part_failed(order.status());
    if (::chdir(order.value().folder.c_str()) != 0)
        return part_failed(
            {Code::system, fmt::format("cannot enter the folder {}: {}", order.value().folder, std::strerror(errno))});
    const int job = ::fork();
    if (job < 0) return part_failed({Code::system, fmt::format("fork: {}", std::strerror(errno))});
    if (job == 0) ::_exit(run_here(order.value(), environment));
    return attend(job);
}

}  // namespace npushmem::run
