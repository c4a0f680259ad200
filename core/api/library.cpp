#include "core/api/library.hpp"

#include <fmt/core.h>
#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <mutex>

#include "core/api/active_sets.hpp"
#include "core/api/checks.hpp"
#include "core/api/contexts.hpp"
#include "core/api/launcher_note.hpp"
#include "core/base/strings.hpp"
#include "core/runtime/plugin_sources.hpp"

namespace npushmem::api {

constinit DefaultContext default_context;
constinit const Context no_context;

namespace {

struct Library {
    std::mutex lock;  // held while starting and stopping
    std::unique_ptr<Runtime> runtime;
    // What `runtime` points to, for readers without the lock. Release when it changes, acquire when it is read.
    std::atomic<Runtime*> current{nullptr};
    int starts = 0;
    StartRequest request;  // of the start that succeeded
    std::atomic<int> reports{0};
    std::atomic<Names> names{Names::npushmem};
    std::atomic<int> thread_level{0};
    std::atomic<bool> start_failed{false};  // the last one did
    std::mutex text_lock;                   // of the line below
    std::string speaker;                    // of the last runtime, for what is reported after its end
    std::once_flag watches_process;
    pid_t process = 0;  // that started; a child of fork ends alone
    pthread_t starter{};
};

// Never destroyed: functions of the API may be called while the program exits.
Library& library() {
    static Library* const instance = new Library;
    return *instance;
}

Status& thread_failure() {
    thread_local Status failure;
    return failure;
}

constexpr int most_reports = 50;

}  // namespace

void use_names(Names names) { library().names.store(names, std::memory_order_relaxed); }
bool program_speaks_openshmem() { return library().names.load(std::memory_order_relaxed) == Names::openshmem; }

// Relaxed: a number of its own, which tells nothing about other memory.
int thread_level() { return library().thread_level.load(std::memory_order_relaxed); }
void note_thread_level(int requested) {
    const std::lock_guard guard(library().lock);
    library().thread_level.store(std::max(requested, thread_level()), std::memory_order_relaxed);
}

Runtime* runtime() { return library().current.load(std::memory_order_acquire); }

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

StaticData* static_data() { return runtime() != nullptr ? runtime()->statics().data() : nullptr; }

// A child of fork gets its own copy of the executable's variables, as the kernel gives it of all that is not shared.
// What the fork of this thread has prepared: by the time it is over, another thread may have ended the library.
thread_local StaticData* forked = nullptr;

void watch_forks() {
    pthread_atfork(
        [] {
            forked = static_data();
            if (forked != nullptr) forked->before_fork();
        },
        [] {
            if (forked != nullptr) forked->after_fork_in_parent();
        },
        [] {
            if (forked != nullptr) forked->after_fork_in_child();
        });
}

// What OpenSHMEM has happen when a program that ends well has not called shmem_finalize: the others may still be in the
// last barrier, of which this PE has left. One that ends badly is not held up. Nothing is done where the exit comes out
// of a start or an end, nor from another thread than the one that started, which may be inside the library.
void finalize_at_exit(int status, void* /*none*/) {
    Library& lib = library();
    {
        const std::unique_lock guard(lib.lock, std::try_to_lock);
        if (!guard || status != 0 || lib.starts == 0 || lib.process != getpid() || !program_speaks_openshmem() ||
            pthread_equal(lib.starter, pthread_self()) == 0)
            return;
        lib.starts = 1;
    }
    if (const Status stopped = stop(); !stopped.ok()) fail("npushmem_finalize, called at the program's end", stopped);
}

void watch_process() {
    watch_forks();
    (void)on_exit(finalize_at_exit, nullptr);  // fails for want of memory only; then nothing happens at the end
}

Status start_first(Library& lib, const StartRequest& request) {
    auto config = Config::read(ProcessEnvironment{});
    if (!config.ok()) return config.status();
    PluginSources sources;
    auto started = Runtime::start(std::move(config).value(), sources, request);
    if (!started.ok()) return started.status();
    lib.runtime = std::move(started).value();
    std::call_once(lib.watches_process, watch_process);
    lib.process = getpid();
    lib.starter = pthread_self();
    lib.request = request;
    lib.starts = 1;
    lib.reports = 0;
    return {};
}

void remember(Library& lib, const Status& started) {
    lib.start_failed.store(!started.ok(), std::memory_order_relaxed);
    const std::lock_guard guard(lib.text_lock);
    if (started.ok()) lib.speaker = fmt::format("pe {}/{}", lib.runtime->my_pe(), lib.runtime->npes());
}

std::string speaker_of(Library& lib) {
    const std::lock_guard guard(lib.text_lock);
    return lib.speaker;
}

}  // namespace

namespace {

void use_default_context(Runtime& up) {
    default_context.map = up.fast_map();
    hide_from_fast_paths(up, default_context.map);
    default_context.members = {0, 1, up.npes()};
    default_context.team = NPUSHMEM_TEAM_WORLD;
    default_context.state = Context::State::alive;
    default_context.remote = &up.remote();
    if (!up.settings().check) default_context.trusted_above = reinterpret_cast<std::uintptr_t>(NPUSHMEM_CTX_DEFAULT);
}

}  // namespace

Status start(const StartRequest& request) {
    Library& lib = library();
    const std::lock_guard guard(lib.lock);
    if (lib.starts > 0) return start_again(lib, request);
    Status started = start_first(lib, request);
    remember(lib, started);
    if (!started.ok()) return started;
    use_default_context(*lib.runtime);
    lib.current.store(lib.runtime.get(), std::memory_order_release);
    return {};
}

Status stop() {
    Library& lib = library();
    const std::lock_guard guard(lib.lock);
    if (lib.starts == 0) return not_running();
    if (--lib.starts > 0) return {};
    const Status completed = complete_contexts();
    Status finished = lib.runtime->finish();
    if (finished.ok()) finished = completed;
    lib.current.store(nullptr, std::memory_order_release);
    default_context = {};
    end_contexts();
    forget_active_sets();
    lib.runtime.reset();
    return finished;
}

Status not_running() {
    if (library().start_failed.load(std::memory_order_relaxed))
        return {Code::not_initialized,
                "the library is not initialised, because its start failed, as was reported then; nothing but "
                "npushmem_init can be called"};
    return {Code::not_initialized,
            "the library is not initialised; call npushmem_init first, and nothing after npushmem_finalize"};
}

namespace {

// NPUSHMEM_ON_ERROR, also when there is no runtime that has read it.
std::string reaction(const Runtime* up) {
    if (up != nullptr) return up->settings().on_error;
    return lowercase(trimmed(ProcessEnvironment{}.get("NPUSHMEM_ON_ERROR").value_or("job")));
}

// Failures after which the PEs no longer agree on anything, unlike a mistake in one call.
bool loses_the_job(Code code) {
    return code == Code::peer_dead || code == Code::timeout || code == Code::aborted || code == Code::protocol;
}

void log_failure(const Runtime* up, const Status& failure) {
    Library& lib = library();
    const int reported = lib.reports.fetch_add(1, std::memory_order_relaxed);
    Log fallback;
    if (up == nullptr) fallback.set_speaker(speaker_of(lib));
    const Log& log = up != nullptr ? up->log() : fallback;
    if (reported < most_reports) log.line(LogLevel::error, "api", failure.message());
    if (reported == most_reports) log.line(LogLevel::error, "api", "further failures are not logged");
}

void react(Runtime* up, const Status& failure, bool lost) {
    const std::string how = reaction(up);
    if (how == "exit") {
        if (up != nullptr) up->abort(failure.message());
        _exit(EXIT_FAILURE);
    }
    // A malformed word as well: the job that could not start because of it must not end as a success.
    if (lost && how != "report") (void)note_failure(EXIT_FAILURE);
}

}  // namespace

namespace {

// In the words that the user knows.
void remember_failure(std::string_view function, const Status& status) {
    Status failure = status.within(function);
    if (program_speaks_openshmem()) failure = {failure.code(), in_openshmem_names(failure.message())};
    thread_failure() = std::move(failure);
}

}  // namespace

void fail(std::string_view function, const Status& status) {
    remember_failure(function, status);
    Runtime* up = runtime();
    log_failure(up, thread_failure());
    react(up, thread_failure(), loses_the_job(status.code()));
}

int returned(std::string_view function, const Status& status) {
    if (!status.ok()) fail_returned(function, status);
    return static_cast<int>(status.code());
}

void fail_returned(std::string_view function, const Status& status) {
    remember_failure(function, status);
    log_failure(runtime(), thread_failure());
    react(runtime(), thread_failure(), false);
}

void fail_start(std::string_view function, const Status& status) {
    remember_failure(function, status);
    log_failure(runtime(), thread_failure());
    react(runtime(), thread_failure(), true);
}

void fail_program(std::string_view function, const Status& status) {
    fail_start(function, status);
    if (reaction(nullptr) != "report") std::exit(EXIT_FAILURE);
}

const Status& last_failure() { return thread_failure(); }

void clear_failure() { thread_failure() = {}; }

}  // namespace npushmem::api
