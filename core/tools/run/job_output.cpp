// SPDX-License-Identifier: BSD-3-Clause
#include "core/tools/run/job_output.hpp"

#include <fmt/format.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "core/base/host_facts.hpp"

namespace npushmem::run {
namespace {

std::string remedy_for(int error) {
    if (error == ENOEXEC) return "; is it a script without a #! line, or a program for another machine?";
    if (error == ENOENT) return "; the interpreter that it names does not exist";
    if (error == EAGAIN || error == ENOMEM)
        return "; see the limits of processes (ulimit -u, pids of the control group) and of memory";
    if (error == EMFILE) return "; see the limit of open files (ulimit -n)";
    return "";
}

}  // namespace

JobOutput::JobOutput(const Options& options, const JobPlan& plan, DispatchingPoller& poller, JobLog& log)
    : poller_(poller),
      log_(log),
      output_(STDOUT_FILENO),
      errors_(STDERR_FILENO),
      diagnostics_(options.npes, options.tag_output) {
    if (plan.pipe_output) tagged_.emplace(poller, output_, errors_);
}

void JobOutput::show(Diagnostics::Time now) {
    errors_.text() += diagnostics_.take(now);
    write();
}

void JobOutput::finish_tags() {
    if (tagged_) tagged_->finish();
}

void JobOutput::show_all() {
    errors_.text() += diagnostics_.take_all();
    write();
    while (!abandoned_ && !(output_.idle() && errors_.idle())) {
        poller_.run_once(std::nullopt);
        write();
    }
}

void JobOutput::write() {
    write(output_, output_watched_);
    write(errors_, errors_watched_);
    if (errors_.idle() && diagnostics_.empty()) log_.mark_shown();
    if (tagged_) tagged_->resume();
}

void JobOutput::write(OutputSink& sink, bool& watched) {
    sink.flush();
    if (sink.idle() == !watched) return;
    if (watched)
        poller_.remove(sink.fd());
    else
        watched = poller_.add(sink.fd(), EPOLLOUT, [](std::uint32_t) {}).ok();
    if (sink.idle()) watched = false;
}

ProcessMessages::ProcessMessages(const Options& options, const JobPlan& plan)
    : options_(options), plan_(plan), host_(host_name()) {}

std::string ProcessMessages::name_of(int index) const {
    if (plan_.hosts.empty()) return fmt::format("PE {}", plan_.numbering.of(index));
    return fmt::format("the host agent on host {}", plan_.hosts[static_cast<std::size_t>(index)]);
}

std::string ProcessMessages::started(const Message& message) const {
    const PePlan& place = plan_.pes[static_cast<std::size_t>(message.pe)];
    const std::string host = place.emulated_host < 0 ? "" : fmt::format(", emulated host {}", place.emulated_host);
    const std::string cpus = place.cpus.empty() ? "not bound" : "CPUs " + format_cpus(place.cpus);
    return fmt::format("{} started: pid {}, host {}{}, {}", name_of(message.pe), message.pid, host_, host, cpus);
}

std::string ProcessMessages::not_started(const Message& message, const std::string& attempt) const {
    const int npes = options_.job_npes > 0 ? options_.job_npes : options_.npes;
    const std::string of = plan_.hosts.empty() ? fmt::format(" of {}", npes) : "";
    return fmt::format("{}{} cannot be started: {} of '{}' failed: {}{}", name_of(message.pe), of, attempt,
                       plan_.program, std::strerror(message.value), remedy_for(message.value));
}

std::string ProcessMessages::not_tagged(int pe, const Status& status) {
    return fmt::format("the output of PE {} cannot be tagged: {}{}", pe, status.message(), remedy_for(EMFILE));
}

std::string ProcessMessages::ended(int index, const ExitRecord& end) const {
    if (plan_.hosts.empty()) return describe(end, host_, plan_.pes[static_cast<std::size_t>(index)].emulated_host);
    return fmt::format("{} {}", name_of(index), describe_termination(end));
}

std::string ProcessMessages::job_ended(double seconds, int status) const {
    const std::string what = options_.job_npes == 0
                                 ? fmt::format("the job of {} PEs", options_.npes)
                                 : fmt::format("host {}, {} of {} PEs,", host_, options_.npes, options_.job_npes);
    return fmt::format("{} took {:.3f} s; exit status {}", what, seconds, status);
}

}  // namespace npushmem::run
