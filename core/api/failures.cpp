// SPDX-License-Identifier: BSD-3-Clause
#include "core/api/failures.hpp"

#include <fmt/core.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cctype>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <utility>

#include "core/api/library.hpp"
#include "core/base/launcher_channel.hpp"
#include "core/base/parse.hpp"

namespace npushmem::api {

namespace {

bool write_line(std::string_view verb, int status, std::string_view rest = {}) {
    return LauncherChannel::of_process().request(
        fmt::format("{} {} {}{}\n", verb, LauncherChannel::own_pe(), status, rest));
}

}  // namespace

bool report_exit(int status, bool openshmem) { return write_line("exit", status, openshmem ? " shmem" : ""); }

bool report_job_failure(int status) { return write_line("failed", status); }

void report_failed_calls(int by) {
    static std::int64_t* const counter = LauncherChannel::of_process().map_failed_calls();
    if (counter != nullptr) std::atomic_ref(*counter).fetch_add(by, std::memory_order_relaxed);
}

namespace {

void end_local_pes(const Runtime& runtime) {
    const int me = runtime.my_pe();
    for (const int pe : runtime.job().layout().pes_of(runtime.job().layout().host_of(me))) {
        const ProcessId process = runtime.job().pes().process(pe);
        if (pe != me && process.pid != getpid() && runtime.job().sees_process_of(pe) && is_alive(process))
            kill(process.pid, SIGTERM);
    }
}

}  // namespace

void exit_job(Runtime* runtime, int status) {
    if (runtime != nullptr) {
        // Reports to the launcher first, so that it does not take a PE that ends because of the abort for the cause.
        const bool reported = report_exit(status, uses_openshmem_names());
        runtime->job().abort(fmt::format("PE {} called npushmem_global_exit({})", runtime->my_pe(), status));
        if (!reported) end_local_pes(*runtime);
    }
    // Not exit(): other threads of this process may be inside the library.
    std::fflush(nullptr);
    _exit(status);
}

namespace {

constexpr std::string_view function_prefix = "npushmem_";
constexpr std::string_view constant_prefix = "NPUSHMEM_";
// Prefixes of the constants that the standard also has. Otherwise NPUSHMEM_ begins a variable's name.
constexpr std::string_view families[] = {"TEAM_", "CTX_", "CMP_", "SIGNAL_", "MALLOC_", "THREAD_", "SYNC_"};

// Prefixes of the symbols that plugins export. They have no other name.
constexpr std::string_view plugin_prefixes[] = {"npushmem_transport_", "npushmem_bootstrap_"};

bool belongs_to_a_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

// Returns OpenSHMEM's form of the word.
std::string translated(std::string_view word) {
    for (const auto prefix : plugin_prefixes)
        if (word.starts_with(prefix)) return std::string(word);
    if (word.starts_with(function_prefix)) return "shmem_" + std::string(word.substr(function_prefix.size()));
    if (!word.starts_with(constant_prefix)) return std::string(word);
    const std::string_view rest = word.substr(constant_prefix.size());
    if (rest.starts_with("SIGNAL_OP_")) return "SHMEM_SIGNAL_" + std::string(rest.substr(10));
    for (const auto family : families)
        if (rest.starts_with(family)) return "SHMEM_" + std::string(rest);
    return std::string(word);
}

}  // namespace

std::string to_openshmem_names(std::string_view text) {
    std::string out;
    while (!text.empty()) {
        std::size_t end = 0;
        while (end < text.size() && belongs_to_a_word(text[end])) ++end;
        if (end > 0) {
            out += translated(text.substr(0, end));
        } else {
            out += text[0];
            end = 1;
        }
        text.remove_prefix(end);
    }
    return out;
}

namespace {

Status& thread_failure() {
    thread_local Status failure;
    return failure;
}

// Failed calls of this thread that the job counts, since its failure was last cleared.
int& thread_unchecked_failures() {
    thread_local int unchecked = 0;
    return unchecked;
}

// Relaxed: the choice publishes no other memory.
std::atomic<ApiNames>& api_names() {
    static constinit std::atomic<ApiNames> names{ApiNames::npushmem};
    return names;
}

}  // namespace

void set_api_names(ApiNames names) { api_names().store(names, std::memory_order_relaxed); }
bool uses_openshmem_names() { return api_names().load(std::memory_order_relaxed) == ApiNames::openshmem; }

// Never destroyed: the program may call API functions while it exits.
FailureLog& failure_log() {
    static FailureLog* const instance = new FailureLog;
    return *instance;
}

void FailureLog::record_start(std::string prefix) {
    reports_.store(0, std::memory_order_relaxed);
    start_failed_.store(false, std::memory_order_relaxed);
    not_running_logged_.store(false, std::memory_order_relaxed);
    const std::lock_guard guard(lock_);
    prefix_ = std::move(prefix);
}

void FailureLog::record_failed_start() {
    start_failed_.store(true, std::memory_order_relaxed);
    not_running_logged_.store(false, std::memory_order_relaxed);
}

// After a failed start one line reports that nothing can be called; more lines would hide the cause.
bool FailureLog::repeats_not_running(const Status& failure) {
    return failure.code() == Code::not_initialized && start_failed() &&
           not_running_logged_.exchange(true, std::memory_order_relaxed);
}

std::string FailureLog::prefix() {
    const std::lock_guard guard(lock_);
    return prefix_;
}

void FailureLog::log(const Log* running, const Status& failure) {
    constexpr int max_reports = 50;
    if (repeats_not_running(failure)) return;
    const int reported = reports_.fetch_add(1, std::memory_order_relaxed);
    Log fallback;
    if (running == nullptr) fallback.set_prefix(prefix());
    const Log& log = running != nullptr ? *running : fallback;
    if (reported < max_reports) log.line(LogLevel::error, "api", failure.message());
    if (reported == max_reports) log.line(LogLevel::error, "api", "further failures are not logged");
}

namespace {

// Returns NPUSHMEM_ON_ERROR, also if no runtime has read it.
std::string on_error_policy(const Runtime* up) {
    if (up != nullptr) return up->settings().on_error;
    return lowercase(trimmed(given_variable("NPUSHMEM_ON_ERROR", ProcessEnvironment{}).value_or("job")));
}

// Failures after which the PEs have no consistent state, unlike a wrong argument.
bool is_fatal_to_job(const Runtime* up, Code code) {
    if (code == Code::peer_dead) return up == nullptr || !up->settings().survives_deaths;
    return code == Code::timeout || code == Code::aborted || code == Code::protocol;
}

const Log* log_of(const Runtime* up) { return up != nullptr ? &up->log() : nullptr; }

void apply_on_error(Runtime* up, const Status& failure, bool lost) {
    const std::string how = on_error_policy(up);
    if (how == "exit") {
        if (up != nullptr) up->job().abort(failure.message());
        _exit(EXIT_FAILURE);
    }
    // Includes a malformed value: a job that it prevents from starting must not succeed. But a child of a PE has no
    // part in the job's start.
    if (lost && !is_forked_child() && how != "report") (void)report_job_failure(EXIT_FAILURE);
}

void count_unchecked_failure(const Runtime* up) {
    if (on_error_policy(up) == "report") return;
    ++thread_unchecked_failures();
    report_failed_calls(1);
}

// Returns the report in the names that the user knows.
void record_failure(std::string_view function, const Status& status) {
    Status failure = status.within(function);
    if (uses_openshmem_names()) failure = {failure.code(), to_openshmem_names(failure.message())};
    thread_failure() = std::move(failure);
}

}  // namespace

void fail(std::string_view function, const Status& status) {
    fail_by_value(function, status);
    count_unchecked_failure(runtime());
}

void fail_by_value(std::string_view function, const Status& status) {
    record_failure(function, status);
    Runtime* up = runtime();
    failure_log().log(log_of(up), thread_failure());
    apply_on_error(up, thread_failure(), is_fatal_to_job(up, status.code()));
}

int report_code(std::string_view function, const Status& status) {
    if (!status.ok()) fail_returned(function, status);
    return static_cast<int>(status.code());
}

void fail_returned(std::string_view function, const Status& status) {
    record_failure(function, status);
    failure_log().log(log_of(runtime()), thread_failure());
    apply_on_error(runtime(), thread_failure(), false);
}

void fail_start(std::string_view function, const Status& status) {
    record_failure(function, status);
    failure_log().log(log_of(runtime()), thread_failure());
    apply_on_error(runtime(), thread_failure(), true);
}

void fail_program(std::string_view function, const Status& status) {
    fail_start(function, status);
    end_program();
}

void end_program() {
    if (on_error_policy(nullptr) != "report") std::exit(EXIT_FAILURE);
}

const Status& last_failure() {
    if (const int known = std::exchange(thread_unchecked_failures(), 0); known > 0) report_failed_calls(-known);
    return thread_failure();
}

void clear_failure() {
    thread_unchecked_failures() = 0;
    thread_failure() = {};
}

void forget_unchecked_failures() { thread_unchecked_failures() = 0; }

}  // namespace npushmem::api
