// SPDX-License-Identifier: BSD-3-Clause
#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>

#include "core/base/parse.hpp"
#include "core/base/streams.hpp"
#include "core/tools/run/exit_record.hpp"
#include "core/tools/run/job_preparation.hpp"
#include "core/tools/run/processes.hpp"
#include "core/tools/run/remote_launch.hpp"
#include "core/tools/run/start_job.hpp"

namespace npushmem::run {

namespace {

constexpr std::string_view request_opening = "npushmem-launch 3 ";
constexpr std::int64_t longest_body = 64LL << 20;

std::vector<std::string> texts_of(std::string_view body) {
    std::vector<std::string> out;
    while (!body.empty()) {
        const auto end = std::min(body.find('\0'), body.size());
        out.emplace_back(body.substr(0, end));
        body.remove_prefix(std::min(end + 1, body.size()));
    }
    return out;
}

// `wrong` keeps the first bad number.
int number(const std::string& text, Status& wrong) {
    const auto parsed = parse_integer(text, 0, 1 << 24);
    if (!parsed.ok() && wrong.ok())
        wrong = {Code::protocol, fmt::format("'{}' is not a number of the launch request", text)};
    return parsed.ok() ? static_cast<int>(parsed.value()) : 0;
}

}  // namespace

std::string LaunchRequest::encode() const {
    std::vector<std::string> texts{folder, record_mark};
    for (const int fact : {pes.numbering.first, pes.numbering.step, pes.count, npes, static_cast<int>(bind),
                           tag_output ? 1 : 0, verbose ? 1 : 0, static_cast<int>(environment.size())})
        texts.push_back(std::to_string(fact));
    texts.insert(texts.end(), environment.begin(), environment.end());
    texts.insert(texts.end(), command.begin(), command.end());
    std::string body;
    for (const auto& text : texts) body.append(text).push_back('\0');
    return fmt::format("{}{}\n{}", request_opening, body.size(), body);
}

Result<std::size_t> LaunchRequest::body_bytes(std::string_view first_line) {
    const bool known = first_line.starts_with(request_opening);
    const auto bytes = parse_integer(known ? first_line.substr(request_opening.size()) : "", 1, longest_body);
    if (bytes.ok()) return static_cast<std::size_t>(bytes.value());
    return Status{Code::protocol,
                  fmt::format("standard input began with '{}' instead of a launch request of npushmem-run; are "
                              "both of one version, and does the remote shell print something?",
                              first_line.substr(0, 60))};
}

Result<LaunchRequest> LaunchRequest::decode(std::string_view body) {
    const auto texts = texts_of(body);
    constexpr std::size_t facts = 10;
    if (texts.size() <= facts) return Status{Code::protocol, "the launch request is truncated"};
    Status wrong;
    LaunchRequest made;
    made.folder = texts[0];
    made.record_mark = texts[1];
    made.pes = {{number(texts[2], wrong), number(texts[3], wrong)}, number(texts[4], wrong)};
    made.npes = number(texts[5], wrong);
    made.bind = static_cast<Bind>(number(texts[6], wrong));
    made.tag_output = texts[7] == "1";
    made.verbose = texts[8] == "1";
    const auto variables = static_cast<std::size_t>(number(texts[9], wrong));
    if (!wrong.ok()) return wrong;
    if (texts.size() <= facts + variables || made.pes.count < 1 || made.bind > Bind::device)
        return Status{Code::protocol, "the launch request is truncated"};
    const auto command = texts.begin() + static_cast<std::ptrdiff_t>(facts + variables);
    made.environment.assign(texts.begin() + static_cast<std::ptrdiff_t>(facts), command);
    made.command.assign(command, texts.end());
    return made;
}

namespace {

int host_agent_failed(const Status& status) {
    write_error(fmt::format("npushmem-run --host-agent: {}\n", status.message()));
    return exit_launcher_failed;
}

// Reads byte by byte: the bytes after the line must stay in the pipe.
std::string read_line() {
    std::string line;
    constexpr std::size_t longest = 128;
    for (char c = 0; line.size() < longest && ::read(STDIN_FILENO, &c, 1) == 1 && c != '\n';) line.push_back(c);
    return line;
}

Result<LaunchRequest> read_request() {
    const auto bytes = LaunchRequest::body_bytes(read_line());
    if (!bytes.ok()) return bytes.status();
    std::string body(bytes.value(), '\0');
    for (std::size_t have = 0; have < body.size();) {
        const ssize_t got = ::read(STDIN_FILENO, body.data() + have, body.size() - have);
        if (got == 0 || (got < 0 && errno != EINTR)) return Status{Code::protocol, "the launch request is truncated"};
        have += got > 0 ? static_cast<std::size_t>(got) : 0;
    }
    return LaunchRequest::decode(body);
}

Options options_of(const LaunchRequest& request) {
    Options options;
    options.npes = request.pes.count;
    options.job_npes = request.npes;
    options.bind = request.bind;
    options.tag_output = request.tag_output;
    options.verbose = request.verbose;
    options.command = request.command;
    options.record_mark = request.record_mark;
    for (const auto& entry : request.environment) {
        const auto equals = entry.find('=');
        options.exports.push_back({entry.substr(0, equals), entry.substr(equals + 1)});
    }
    return options;
}

// Runs in the child, which does not use the request's pipe: PE 0's input is empty.
int run_here(const LaunchRequest& request, const sigset_t& mask, const char* const* environment) {
    const FileDescriptor null(::open("/dev/null", O_RDWR | O_CLOEXEC));
    (void)::dup2(null.get(), STDIN_FILENO);
    const Options options = options_of(request);
    auto plan = prepare_job(options, environment);
    if (const auto* exit = std::get_if<EarlyExit>(&plan)) {
        write_error(exit->text);
        return exit->status;
    }
    std::get<JobPlan>(plan).numbering = request.pes.numbering;
    std::get<JobPlan>(plan).signal_mask = mask;
    return run_job(options, std::get<JobPlan>(std::move(plan)));
}

// False at the end of the input.
bool forward_next_signal(int job) {
    char number = 0;
    if (::read(STDIN_FILENO, &number, 1) != 1) return false;
    (void)::kill(job, number);
    return true;
}

// Signals arrive on standard input. A signal to all processes of the host reaches the job directly. The job also
// receives the signals that are sent before it is ready. Returns the previous mask.
sigset_t block_agent_signals() {
    const sigset_t signals = set_of(agent_signals);
    sigset_t before;
    (void)::sigprocmask(SIG_BLOCK, &signals, &before);
    return before;
}

int wait_for_job(int job) {
    const FileDescriptor process = open_pidfd(job);
    if (!process.valid()) (void)::kill(job, SIGKILL);
    for (bool ordered = true; process.valid();) {
        std::array<pollfd, 2> events{pollfd{process.get(), POLLIN, 0}, pollfd{ordered ? STDIN_FILENO : -1, POLLIN, 0}};
        (void)::poll(events.data(), events.size(), -1);
        if (events[0].revents != 0) break;
        if (events[1].revents == 0 || forward_next_signal(job)) continue;
        ordered = false;
        (void)::kill(job, SIGKILL);  // its supervisor then ends all PEs
    }
    int status = 0;
    const bool known = ::waitpid(job, &status, 0) == job;
    return !known || WIFSIGNALED(status) ? exit_launcher_failed : WEXITSTATUS(status);
}

}  // namespace

int run_host_agent(const char* const* environment) {
    const auto request = read_request();
    if (!request.ok()) return host_agent_failed(request.status());
    if (::chdir(request.value().folder.c_str()) != 0)
        return host_agent_failed({Code::system, fmt::format("cannot enter the folder {}: {}", request.value().folder,
                                                            std::strerror(errno))});
    const sigset_t mask = block_agent_signals();
    const int job = ::fork();
    if (job < 0) return host_agent_failed({Code::system, fmt::format("fork: {}", std::strerror(errno))});
    if (job == 0) ::_exit(run_here(request.value(), mask, environment));
    return wait_for_job(job);
}

}  // namespace npushmem::run
