// SPDX-License-Identifier: BSD-3-Clause
// What the user sees of a job: its output, and the messages of the launcher.
#pragma once

#include <optional>
#include <string>

#include "core/tools/run/channel.hpp"
#include "core/tools/run/dispatching_poller.hpp"
#include "core/tools/run/exit_record.hpp"
#include "core/tools/run/job_log.hpp"
#include "core/tools/run/job_preparation.hpp"
#include "core/tools/run/job_streams.hpp"
#include "core/tools/run/options.hpp"

namespace npushmem::run {

// Writes the launcher's standard output and error: tagged output of PEs, diagnostics, and frames of records. It never
// blocks before show_all().
class JobOutput {
public:
    // `poller` and `log` must outlive the object.
    JobOutput(const Options& options, const JobPlan& plan, DispatchingPoller& poller, JobLog& log);

    [[nodiscard]] bool tags_lines() const { return tagged_.has_value(); }
    // Only if tags_lines().
    Status tag(int pe, FileDescriptor output, FileDescriptor errors) {
        return tagged_->add(pe, std::move(output), std::move(errors));
    }
    // A line of a PE, or a message, which is shown after the reports of PEs.
    void add(const LauncherRecord& record, Diagnostics::Time now) { diagnostics_.add(record, now); }
    void add_frames(const std::string& frames) { errors_.text() += frames; }

    // When show() has something to do although nothing has happened.
    [[nodiscard]] std::optional<Diagnostics::Time> deadline() const { return diagnostics_.deadline(); }
    // Writes the lines that are due, as far as the readers accept them now.
    void show(Diagnostics::Time now);
    // All PEs have ended: takes the rest of their output.
    void finish_tags();
    // Writes everything. Waits for a slow reader, as any program does, until abandon().
    void show_all();
    void abandon() { abandoned_ = true; }

    // Output of the job could not be written. Standard error carries output of the job only if it is tagged.
    [[nodiscard]] bool is_lost() const { return output_.broken() || (tagged_ && errors_.broken()); }
    // The errno of the failure of standard output; 0: none.
    [[nodiscard]] int output_error() const { return output_.error(); }

private:
    void write();
    void write(OutputSink& sink, bool& watched);

    DispatchingPoller& poller_;
    JobLog& log_;
    OutputSink output_;
    OutputSink errors_;
    bool output_watched_ = false;
    bool errors_watched_ = false;
    Diagnostics diagnostics_;
    std::optional<TaggedOutput> tagged_;
    bool abandoned_ = false;
};

// Words the messages about the processes that a launcher has started. A process is a PE, or the host agent on a host of
// the job, by its index.
class ProcessMessages {
public:
    // The arguments must outlive the object.
    ProcessMessages(const Options& options, const JobPlan& plan);

    [[nodiscard]] const std::string& host() const { return host_; }
    // "PE 3".
    [[nodiscard]] std::string name_of(int index) const;
    [[nodiscard]] std::string started(const Message& message) const;
    // `attempt`: the step that failed.
    [[nodiscard]] std::string not_started(const Message& message, const std::string& attempt) const;
    [[nodiscard]] static std::string not_tagged(int pe, const Status& status);
    [[nodiscard]] std::string ended(int index, const ExitRecord& end) const;
    [[nodiscard]] std::string job_ended(double seconds, int status) const;

private:
    const Options& options_;
    const JobPlan& plan_;
    std::string host_;
};

}  // namespace npushmem::run
