// SPDX-License-Identifier: BSD-3-Clause
#include "core/api/library.hpp"

#include <fmt/core.h>
#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <deque>
#include <mutex>
#include <optional>

#include "core/api/access.hpp"
#include "core/api/call_stack.hpp"
#include "core/api/collectives.hpp"
#include "core/api/contexts.hpp"
#include "core/base/out_of_memory.hpp"
#include "core/runtime/plugin_sources.hpp"
#include "core/runtime/startup.hpp"
#include "npushmem/inline/map.h"

// Constant from the start: an executable may copy it before any constructor runs.
extern "C" const npushmemx_inline_map_t* const npushmemx_inline_v1 =
    reinterpret_cast<const npushmemx_inline_map_t*>(&npushmem::api::default_context.map);

namespace npushmem::api {

constinit Context default_context;
constinit World default_world{.context = &default_context};
thread_local constinit World* current_world = &default_world;

namespace {

// A world that the program made.
struct OwnWorld {
    World world;
    StartRequest request;
    std::unique_ptr<Runtime> runtime;  // null before and after the world runs
    Context* context = nullptr;        // the target of world.context while it runs
    std::atomic<int> starts{1};        // by create_world, and by calls of `start` in the world
    bool ends = false;                 // or has ended; under the lock of Library::worlds
};

struct Library {
    std::mutex lock;  // held while the default world starts and ends
    std::unique_ptr<Runtime> runtime;
    int starts = 0;
    StartRequest request;  // of the successful start
    std::atomic<int> thread_level{0};
    std::once_flag fork_handlers_installed;
    std::once_flag exit_handler_installed;
    std::atomic<pid_t> process{0};  // the process of the last start; a child of fork ends alone
    pthread_t starter{};
    std::atomic<int> jobs{0};               // worlds, from the beginning of a successful start to the end of the stop
    std::atomic<bool> forked_child{false};  // a PE made this process by fork

    std::mutex worlds_lock;       // for the following; nothing waits while it holds the lock
    std::deque<OwnWorld> worlds;  // by number, from 1; never removed, see World
    int unmapped_worlds = 0;      // of them, those with PEs that are not mapped
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

Runtime* runtime_unnoted() { return current_world->runtime.load(std::memory_order_acquire); }
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
    Runtime* const up = default_world.runtime.load(std::memory_order_acquire);
    return up != nullptr ? up->slices().statics().data() : nullptr;
}

// The state that this thread's fork has prepared: another thread may end the library before the fork returns. A child
// gets its own copy of the executable's variables, as of all memory that is not shared.
thread_local SymmetricGlobals* forked = nullptr;

void detach_from(World& world) {
    if (Runtime* const up = world.runtime.load(std::memory_order_relaxed); up != nullptr)
        up->slices().host_memory().hide_life_in_child();
    world.runtime.store(nullptr, std::memory_order_relaxed);
}

// A child of a PE is not a PE: it has the parent's connections, but not the threads that drive them. Its calls fail, as
// before a start. Threads that do not exist here may hold the locks, so the child touches nothing that needs one.
void detach_forked_child() {
    Library& lib = library();
    if (lib.jobs.load(std::memory_order_relaxed) == 0) return;
    lib.forked_child.store(true, std::memory_order_relaxed);
    detach_from(default_world);
    for (OwnWorld& own : lib.worlds) detach_from(own.world);
    default_context = {};
    clear_contexts();
    forget_unchecked_failures();  // the parent's failures are not the child's
}

void before_fork() {
    forked = static_data();
    if (forked != nullptr) forked->before_fork();
    failure_log().lock_before_fork();
    library().worlds_lock.lock();
}

void after_fork_in_parent() {
    library().worlds_lock.unlock();
    failure_log().unlock_after_fork();
    if (forked != nullptr) forked->after_fork_in_parent();
}

void after_fork_in_child() {
    library().worlds_lock.unlock();
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
    const CurrentWorld world(default_world);
    if (const Status stopped = stop(); !stopped.ok()) fail("npushmem_finalize, called at the program's end", stopped);
}

// Fails only if memory is short; then nothing happens at exit.
void install_exit_handler() { (void)on_exit(finalize_at_exit, nullptr); }

Result<std::unique_ptr<Runtime>> start_runtime_in(const Environment& environment, const StartRequest& request,
                                                  GivenPlugins plugins) {
    auto config = Config::read(environment);
    if (!config.ok()) return config.status();
    config.value().request_bootstrap(request.bootstrap);
    std::call_once(library().fork_handlers_installed, install_fork_handlers);
    PluginSources sources(environment, std::move(plugins));
    return start_runtime(std::move(config).value(), sources, request);
}

Status start_first(Library& lib, const StartRequest& request) {
    auto started = start_runtime_in(ProcessEnvironment{}, request, {});
    if (!started.ok()) return started.status();
    lib.runtime = std::move(started).value();
    std::call_once(lib.exit_handler_installed, install_exit_handler);
    lib.starter = pthread_self();
    lib.request = request;
    lib.starts = 1;
    return {};
}

// The world's context, without a member that others read meanwhile.
Context world_context(Runtime& up, World& world) {
    Context context;
    context.map = up.slices().fast_map();
    context.map.all_mapped = 0;
    disable_fast_paths(up, context.map);
    context.members = {0, 1, up.npes()};
    context.team = NPUSHMEM_TEAM_WORLD;
    context.state = Context::State::alive;
    context.remote = &up.transports().remote();
    context.world = &world;
    return context;
}

bool maps_all_pes(const Runtime& up) { return up.slices().fast_map().all_mapped != 0; }

// Under the lock of the worlds. See default_context.
void set_default_maps_all(const Library& lib) {
    const Runtime* const up = default_world.runtime.load(std::memory_order_relaxed);
    const bool all = lib.unmapped_worlds == 0 && up != nullptr && maps_all_pes(*up);
    __atomic_store_n(&default_context.map.all_mapped, all ? 1U : 0U, __ATOMIC_RELAXED);
}

// While the other worlds run, threads read this context's map. Whichever of the fields they see changed, objects of
// other worlds are not in it.
void use_default_context(Library& lib, Runtime* up) {
    const std::lock_guard guard(lib.worlds_lock);
    default_context = up != nullptr ? world_context(*up, default_world) : Context{};
    default_world.runtime.store(up, std::memory_order_release);
    set_default_maps_all(lib);
}

// The current world of this thread, if the program made it.
OwnWorld* current_own_world() {
    Library& lib = library();
    const std::lock_guard guard(lib.worlds_lock);
    return current_world->number == 0 ? nullptr : &lib.worlds[current_world->number - 1];
}

// A program that starts the library itself may run in a world that another part of the process made.
Status start_in(OwnWorld& own, const StartRequest& request) {
    if (runtime_unnoted() == nullptr) return not_running();
    if (request.uniqueid && !same_job(own.request, request))
        return {Code::argument, fmt::format("the thread's current world runs as PE {} of {}, with another unique id, "
                                            "rank or number of ranks",
                                            own.request.rank, own.request.nranks)};
    own.starts.fetch_add(1, std::memory_order_relaxed);
    return {};
}

Status stop_in(OwnWorld& own) {
    if (runtime_unnoted() == nullptr) return not_running();
    if (own.starts.fetch_sub(1, std::memory_order_relaxed) > 1) return {};
    own.starts.store(1, std::memory_order_relaxed);
    return {Code::state,
            "the thread's current world was made by npushmemx_world_create; end it by "
            "npushmemx_world_destroy"};
}

}  // namespace

Status start(const StartRequest& request) try {
    Library& lib = library();
    if (is_forked_child()) return not_running();
    if (OwnWorld* const own = current_own_world()) return start_in(*own, request);
    const std::lock_guard guard(lib.lock);
    if (lib.starts > 0) return start_again(lib, request);
    lib.process = getpid();
    lib.jobs.fetch_add(1, std::memory_order_relaxed);
    Status started = start_first(lib, request);
    if (started.ok())
        failure_log().record_start(fmt::format("pe {}/{}", lib.runtime->my_pe(), lib.runtime->npes()));
    else
        failure_log().record_failed_start();
    if (started.ok())
        use_default_context(lib, lib.runtime.get());
    else
        lib.jobs.fetch_sub(1, std::memory_order_relaxed);
    return started;
} catch (const std::bad_alloc&) {
    end_without_memory("npushmem_init");
}

Status stop() try {
    Library& lib = library();
    if (is_forked_child()) return not_running();
    if (OwnWorld* const own = current_own_world()) return stop_in(*own);
    const std::lock_guard guard(lib.lock);
    if (lib.starts == 0) return not_running();
    if (--lib.starts > 0) return {};
    const Status completed = complete_contexts(default_world);
    Status finished = lib.runtime->finish();
    if (finished.ok()) finished = completed;
    use_default_context(lib, nullptr);
    destroy_contexts(default_world);
    clear_active_sets(default_world);
    lib.runtime.reset();
    lib.jobs.fetch_sub(1, std::memory_order_relaxed);
    return finished;
} catch (const std::bad_alloc&) {
    end_without_memory("npushmem_finalize");
}

namespace {

// The environment with the variables of one world instead.
class WorldEnvironment final : public Environment {
public:
    explicit WorldEnvironment(const std::map<std::string, std::string>& variables) : variables_(variables) {}

    [[nodiscard]] std::optional<std::string> get(const std::string& name) const override {
        const auto given = variables_.find(name);
        return given != variables_.end() ? std::optional(given->second) : process_.get(name);
    }
    [[nodiscard]] std::map<std::string, std::string> npushmem_variables() const override {
        std::map<std::string, std::string> all = variables_;
        all.merge(process_.npushmem_variables());
        return all;
    }

private:
    const std::map<std::string, std::string>& variables_;
    ProcessEnvironment process_;
};

// The other PEs find this one gone, as if its process had ended.
void abandon(Runtime& up, const Status& why) {
    up.job().abort(why.message());
    up.slices().publish_finalized();
}

// Ends what is left of a world; `own` becomes one that has ended.
void forget_world(Library& lib, OwnWorld& own) {
    {
        const std::lock_guard guard(lib.worlds_lock);
        const Runtime* const up = own.world.runtime.load(std::memory_order_relaxed);
        if (up != nullptr && !maps_all_pes(*up)) --lib.unmapped_worlds;
        own.ends = true;
        own.world.runtime.store(nullptr, std::memory_order_release);
        own.world.context.store(&no_context, std::memory_order_relaxed);
        set_default_maps_all(lib);
    }
    destroy_contexts(own.world);
    clear_active_sets(own.world);
    if (own.context != nullptr) release_world_context(*own.context);
    own.context = nullptr;
    own.runtime.reset();
    if (current_world == &own.world) current_world = &default_world;
    lib.jobs.fetch_sub(1, std::memory_order_relaxed);
}

Status use_world_context(Library& lib, OwnWorld& own) {
    own.context = acquire_world_context();
    if (own.context == nullptr)
        return {Code::memory, "there is no room for the context of another world; destroy contexts or worlds first"};
    *own.context = world_context(*own.runtime, own.world);
    own.context->map.all_mapped = maps_all_pes(*own.runtime) ? 1 : 0;
    const std::lock_guard guard(lib.worlds_lock);
    own.world.context.store(own.context, std::memory_order_relaxed);
    own.world.runtime.store(own.runtime.get(), std::memory_order_release);
    if (!maps_all_pes(*own.runtime)) ++lib.unmapped_worlds;
    set_default_maps_all(lib);
    return {};
}

}  // namespace

Result<std::uint32_t> create_world(const WorldRequest& request) {
    Library& lib = library();
    if (is_forked_child()) return not_running();
    std::unique_lock guard(lib.worlds_lock);
    OwnWorld& own = lib.worlds.emplace_back();
    own.world.number = static_cast<std::uint32_t>(lib.worlds.size());
    own.world.context.store(&no_context, std::memory_order_relaxed);
    own.request = request.start;
    own.request.world = own.world.number;
    own.ends = true;  // until it runs, the program cannot use it
    lib.process = getpid();
    lib.jobs.fetch_add(1, std::memory_order_relaxed);
    guard.unlock();
    auto started = start_runtime_in(WorldEnvironment(request.variables), own.request, request.plugins);
    Status used = started.status();
    if (started.ok()) {
        own.runtime = std::move(started).value();
        used = use_world_context(lib, own);
        if (!used.ok()) abandon(*own.runtime, used);
    }
    if (!used.ok()) {
        forget_world(lib, own);
        return used;
    }
    guard.lock();
    own.ends = false;
    return own.world.number;
}

namespace {

// Returns a world that the program made and that runs. Under the lock of the worlds.
Result<OwnWorld*> find_own_world(Library& lib, std::uint32_t number) {
    if (number == 0 || number > lib.worlds.size())
        return Status{Code::argument, fmt::format("there is no world {}: {} were made", number, lib.worlds.size())};
    OwnWorld& own = lib.worlds[number - 1];
    if (own.ends) return Status{Code::argument, fmt::format("the world {} has been destroyed", number)};
    return &own;
}

}  // namespace

Result<World*> find_world(std::uint32_t number) {
    if (number == 0) return &default_world;
    const std::lock_guard guard(library().worlds_lock);
    const auto own = find_own_world(library(), number);
    return own.ok() ? Result<World*>(&own.value()->world) : Result<World*>(own.status());
}

Status end_world(std::uint32_t number, WorldEnd how) {
    Library& lib = library();
    if (is_forked_child()) return not_running();
    if (number == 0) return {Code::argument, "the default world ends by npushmem_finalize"};
    std::unique_lock guard(lib.worlds_lock);
    const auto found = find_own_world(lib, number);
    if (!found.ok()) return found.status();
    OwnWorld& own = *found.value();
    own.ends = true;
    guard.unlock();
    Status done;
    if (how == WorldEnd::abort) {
        abandon(*own.runtime, {Code::aborted, "the program called npushmemx_world_abort"});
    } else {
        const Status completed = complete_contexts(own.world);
        done = own.runtime->finish();
        if (done.ok()) done = completed;
    }
    forget_world(lib, own);
    return done;
}

Status not_running() {
    if (!is_forked_child() && current_world->number != 0)
        return {Code::not_initialized, fmt::format("the world {}, the thread's current one, has been destroyed; make "
                                                   "another one current by npushmemx_world_make_current",
                                                   current_world->number)};
    if (is_forked_child())
        return {
            Code::not_initialized,
            fmt::format(
                "process {} was made by fork and is not a PE: only the PE itself, process {}, can call the library; "
                "let the child exec a program, or fork before npushmem_init",
                getpid(), library().process.load())};
    if (failure_log().start_failed())
        return {Code::not_initialized,
                "the library is not initialised, because its start failed, as was reported then; nothing but "
                "npushmem_init can be called"};
    return {Code::not_initialized,
            "the library is not initialised; call npushmem_init first, and nothing after npushmem_finalize"};
}

}  // namespace npushmem::api
