// SPDX-License-Identifier: BSD-3-Clause
#include "core/api/library.hpp"

#include <fmt/core.h>
#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <mutex>

#include "core/api/access.hpp"
#include "core/api/call_stack.hpp"
#include "core/api/collectives.hpp"
#include "core/api/contexts.hpp"
#include "core/runtime/plugin_sources.hpp"
#include "core/runtime/startup.hpp"

namespace npushmem::api {

constinit Context default_context;

namespace {

struct Library {
    std::mutex lock;  // held while starting and stopping
    std::unique_ptr<Runtime> runtime;
    // The target of `runtime`, for readers without the lock. Release on change, acquire on read.
    std::atomic<Runtime*> current{nullptr};
    int starts = 0;
    StartRequest request;  // of the successful start
    std::atomic<int> thread_level{0};
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

}  // namespace

bool is_forked_child() { return library().forked_child.load(std::memory_order_relaxed); }

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
    forget_unchecked_failures();  // the parent's failures are not the child's
}

void before_fork() {
    forked = static_data();
    if (forked != nullptr) forked->before_fork();
    failure_log().lock_before_fork();
}

void after_fork_in_parent() {
    failure_log().unlock_after_fork();
    if (forked != nullptr) forked->after_fork_in_parent();
}

void after_fork_in_child() {
    failure_log().unlock_after_fork();
    if (forked != nullptr) forked->after_fork_in_child();
    detach_forked_child();
}

void install_fork_handlers() { (void)pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child); }

// Finalizes for a program that exits with success without calling shmem_finalize, as OpenSHMEM requires: the other PEs
// may still be in the last barrier. A program that fails exits at once. Does nothing if the exit comes from a start or
// an end, from a signal handler that interrupted a call of the library, or from another thread than the one that
// started, which may be inside the library: the finalize would wait for a lock that its own thread holds.
void finalize_at_exit(int status, void* /*none*/) {
    Library& lib = library();
    if (is_forked_child()) return;
    {
        const std::unique_lock guard(lib.lock, std::try_to_lock);
        if (!guard || status != 0 || lib.starts == 0 || lib.process != getpid() || !uses_openshmem_names() ||
            pthread_equal(lib.starter, pthread_self()) == 0 || is_inside_earlier_call())
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
    config.value().request_bootstrap(request.bootstrap);
    std::call_once(lib.fork_handlers_installed, install_fork_handlers);
    PluginSources sources;
    auto started = start_runtime(std::move(config).value(), sources, request);
    if (!started.ok()) return started.status();
    lib.runtime = std::move(started).value();
    std::call_once(lib.exit_handler_installed, install_exit_handler);
    lib.starter = pthread_self();
    lib.request = request;
    lib.starts = 1;
    return {};
}

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
    if (started.ok())
        failure_log().record_start(fmt::format("pe {}/{}", lib.runtime->my_pe(), lib.runtime->npes()));
    else
        failure_log().record_failed_start();
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
    if (failure_log().start_failed())
        return {Code::not_initialized,
                "the library is not initialised, because its start failed, as was reported then; nothing but "
                "npushmem_init can be called"};
    return {Code::not_initialized,
            "the library is not initialised; call npushmem_init first, and nothing after npushmem_finalize"};
}

}  // namespace npushmem::api
