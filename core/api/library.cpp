#include "core/api/library.hpp"

#include <fmt/core.h>
#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cctype>
#include <cstdlib>
#include <mutex>
#include <utility>

#include "core/api/checks.hpp"
#include "core/api/collectives.hpp"
#include "core/api/contexts.hpp"
#include "core/api/launcher_report.hpp"
#include "core/base/parse.hpp"
#include "core/runtime/plugin_sources.hpp"
#include "core/runtime/startup.hpp"

namespace npushmem::api {

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

constinit Context default_context;

namespace {

struct Library {
    std::mutex lock;  // held while starting and stopping
    std::unique_ptr<Runtime> runtime;
    // The target of `runtime`, for readers without the lock. Release on change, acquire on read.
    std::atomic<Runtime*> current{nullptr};
    int starts = 0;
    StartRequest request;  // of the successful start
    std::atomic<int> reports{0};
    std::atomic<ApiNames> names{ApiNames::npushmem};
    std::atomic<int> thread_level{0};
    std::atomic<bool> start_failed{false};        // the last start failed
    std::atomic<bool> not_running_logged{false};  // a call after the failed start was reported
    std::mutex text_lock;                         // for log_prefix
    std::string log_prefix;                       // of the last runtime, for reports after its end
    std::once_flag fork_handlers_installed;
    std::once_flag exit_handler_installed;
    pid_t process = 0;  // the process of the last start; a child of fork ends alone
    pthread_t starter{};
    std::atomic<bool> in_job{false};        // from the beginning of a successful start to the end of the last stop
    std::atomic<bool> forked_child{false};  // a PE made this process by fork
};

// Never destroyed: the program may call API functions while it exits.
Library& library() {
    static Library* const instance = new Library;
    return *instance;
}

Status& thread_failure() {
    thread_local Status failure;
    return failure;
}

// Failed calls of this thread that the job counts, since its failure was last cleared.
int& thread_unchecked_failures() {
    thread_local int unchecked = 0;
    return unchecked;
}

constexpr int max_reports = 50;

}  // namespace

void set_api_names(ApiNames names) { library().names.store(names, std::memory_order_relaxed); }
bool uses_openshmem_names() { return library().names.load(std::memory_order_relaxed) == ApiNames::openshmem; }

// Relaxed: the number publishes no other memory.
int thread_level() { return library().thread_level.load(std::memory_order_relaxed); }
void raise_thread_level(int requested) {
    const std::lock_guard guard(library().lock);
    library().thread_level.store(std::max(requested, thread_level()), std::memory_order_relaxed);
}

Runtime* runtime_unnoted() { return library().current.load(std::memory_order_acquire); }
Runtime* runtime() {
    Runtime* const up = runtime_unnoted();
    if (up != nullptr) up->npu().note_host_call();
    return up;
}

namespace {

bool same_job(const StartRequest& a, const StartRequest& b) {
    return a.uniqueid == b.uniqueid && a.rank == b.rank && a.nranks == b.nranks;
}

Status start_again(Library& lib, const StartRequest& request) {
    if (!same_job(lib.request, request))
        return {Code::argument,
                fmt::format("the library runs already, as PE {} of {}, with another unique id, rank or number of "
                            "ranks; finalize it first",
                            lib.runtime->my_pe(), lib.runtime->npes())};
    ++lib.starts;
    return {};
}

SymmetricGlobals* static_data() {
    return runtime_unnoted() != nullptr ? runtime_unnoted()->slices().statics().data() : nullptr;
}

// The state that this thread's fork has prepared: another thread may end the library before the fork returns. A child
// gets its own copy of the executable's variables, as of all memory that is not shared.
thread_local SymmetricGlobals* forked = nullptr;

// A child of a PE is not a PE: it has the parent's connections, but not the threads that drive them. Its calls fail, as
// before a start. Threads that do not exist here may hold the locks, so the child touches nothing that needs one.
void detach_forked_child() {
    Library& lib = library();
    if (!lib.in_job.load(std::memory_order_relaxed)) return;
    lib.forked_child.store(true, std::memory_order_relaxed);
    lib.current.store(nullptr, std::memory_order_relaxed);
    default_context = {};
    clear_contexts();
    thread_unchecked_failures() = 0;  // the parent's failures are not the child's
}

void before_fork() {
    forked = static_data();
    if (forked != nullptr) forked->before_fork();
    library().text_lock.lock();
}

void after_fork_in_parent() {
    library().text_lock.unlock();
    if (forked != nullptr) forked->after_fork_in_parent();
}

void after_fork_in_child() {
    library().text_lock.unlock();
    if (forked != nullptr) forked->after_fork_in_child();
    detach_forked_child();
}

void install_fork_handlers() { (void)pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child); }

bool is_forked_child() { return library().forked_child.load(std::memory_order_relaxed); }

// Finalizes for a program that exits with success without calling shmem_finalize, as OpenSHMEM requires: the other PEs
// may still be in the last barrier. A program that fails exits at once. Does nothing if the exit comes from a start or
// an end, or from another thread than the one that started, which may be inside the library.
void finalize_at_exit(int status, void* /*none*/) {
    Library& lib = library();
    if (is_forked_child()) return;
    {
        const std::unique_lock guard(lib.lock, std::try_to_lock);
        if (!guard || status != 0 || lib.starts == 0 || lib.process != getpid() || !uses_openshmem_names() ||
            pthread_equal(lib.starter, pthread_self()) == 0)
            return;
        lib.starts = 1;
    }
    if (const Status stopped = stop(); !stopped.ok()) fail("npushmem_finalize, called at the program's end", stopped);
}

// Fails only if memory is short; then nothing happens at exit.
void install_exit_handler() { (void)on_exit(finalize_at_exit, nullptr); }

Status start_first(Library& lib, const StartRequest& request) {
    auto config = Config::read(ProcessEnvironment{});
    if (!config.ok()) return config.status();
    std::call_once(lib.fork_handlers_installed, install_fork_handlers);
    PluginSources sources;
    auto started = start_runtime(std::move(config).value(), sources, request);
    if (!started.ok()) return started.status();
    lib.runtime = std::move(started).value();
    std::call_once(lib.exit_handler_installed, install_exit_handler);
    lib.starter = pthread_self();
    lib.request = request;
    lib.starts = 1;
    lib.reports = 0;
    return {};
}

void record_start(Library& lib, const Status& started) {
    lib.start_failed.store(!started.ok(), std::memory_order_relaxed);
    lib.not_running_logged.store(false, std::memory_order_relaxed);
    const std::lock_guard guard(lib.text_lock);
    if (started.ok()) lib.log_prefix = fmt::format("pe {}/{}", lib.runtime->my_pe(), lib.runtime->npes());
}

std::string log_prefix_of(Library& lib) {
    const std::lock_guard guard(lib.text_lock);
    return lib.log_prefix;
}

}  // namespace

namespace {

void use_default_context(Runtime& up) {
    default_context.map = up.slices().fast_map();
    disable_fast_paths(up, default_context.map);
    default_context.members = {0, 1, up.npes()};
    default_context.team = NPUSHMEM_TEAM_WORLD;
    default_context.state = Context::State::alive;
    default_context.remote = &up.transports().remote();
}

}  // namespace

Status start(const StartRequest& request) {
    Library& lib = library();
    if (is_forked_child()) return not_running();
    const std::lock_guard guard(lib.lock);
    if (lib.starts > 0) return start_again(lib, request);
    lib.process = getpid();
    lib.in_job.store(true, std::memory_order_relaxed);
    Status started = start_first(lib, request);
    record_start(lib, started);
    lib.in_job.store(started.ok(), std::memory_order_relaxed);
    if (!started.ok()) return started;
    use_default_context(*lib.runtime);
    lib.current.store(lib.runtime.get(), std::memory_order_release);
    return {};
}

Status stop() {
    Library& lib = library();
    if (is_forked_child()) return not_running();
    const std::lock_guard guard(lib.lock);
    if (lib.starts == 0) return not_running();
    if (--lib.starts > 0) return {};
    const Status completed = complete_contexts();
    Status finished = lib.runtime->finish();
    if (finished.ok()) finished = completed;
    lib.current.store(nullptr, std::memory_order_release);
    default_context = {};
    destroy_contexts();
    clear_active_sets();
    lib.runtime.reset();
    lib.in_job.store(false, std::memory_order_relaxed);
    return finished;
}

Status not_running() {
    if (is_forked_child())
        return {
            Code::not_initialized,
            fmt::format(
                "process {} was made by fork and is not a PE: only the PE itself, process {}, can call the library; "
                "let the child exec a program, or fork before npushmem_init",
                getpid(), library().process)};
    if (library().start_failed.load(std::memory_order_relaxed))
        return {Code::not_initialized,
                "the library is not initialised, because its start failed, as was reported then; nothing but "
                "npushmem_init can be called"};
    return {Code::not_initialized,
            "the library is not initialised; call npushmem_init first, and nothing after npushmem_finalize"};
}

namespace {

// Returns NPUSHMEM_ON_ERROR, also if no runtime has read it.
std::string on_error_policy(const Runtime* up) {
    if (up != nullptr) return up->settings().on_error;
    return lowercase(trimmed(ProcessEnvironment{}.get("NPUSHMEM_ON_ERROR").value_or("job")));
}

// Failures after which the PEs have no consistent state, unlike a wrong argument.
bool is_fatal_to_job(Code code) {
    return code == Code::peer_dead || code == Code::timeout || code == Code::aborted || code == Code::protocol;
}

// After a failed start one line reports that nothing can be called; more lines would hide the cause.
bool repeats_not_running(Library& lib, const Status& failure) {
    return failure.code() == Code::not_initialized && lib.start_failed.load(std::memory_order_relaxed) &&
           lib.not_running_logged.exchange(true, std::memory_order_relaxed);
}

void log_failure(const Runtime* up, const Status& failure) {
    Library& lib = library();
    if (repeats_not_running(lib, failure)) return;
    const int reported = lib.reports.fetch_add(1, std::memory_order_relaxed);
    Log fallback;
    if (up == nullptr) fallback.set_prefix(log_prefix_of(lib));
    const Log& log = up != nullptr ? up->log() : fallback;
    if (reported < max_reports) log.line(LogLevel::error, "api", failure.message());
    if (reported == max_reports) log.line(LogLevel::error, "api", "further failures are not logged");
}

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

}  // namespace

namespace {

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
    log_failure(up, thread_failure());
    apply_on_error(up, thread_failure(), is_fatal_to_job(status.code()));
}

int report_code(std::string_view function, const Status& status) {
    if (!status.ok()) fail_returned(function, status);
    return static_cast<int>(status.code());
}

void fail_returned(std::string_view function, const Status& status) {
    record_failure(function, status);
    log_failure(runtime(), thread_failure());
    apply_on_error(runtime(), thread_failure(), false);
}

void fail_start(std::string_view function, const Status& status) {
    record_failure(function, status);
    log_failure(runtime(), thread_failure());
    apply_on_error(runtime(), thread_failure(), true);
}

void fail_program(std::string_view function, const Status& status) {
    fail_start(function, status);
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

}  // namespace npushmem::api
