// Contexts: made over a team, ended, asked for their team; sessions.
#include <fmt/core.h>

#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "core/api/access.hpp"
#include "core/api/checks.hpp"
#include "core/api/context_use.hpp"
#include "core/api/contexts.hpp"
#include "core/api/teams.hpp"
#include "core/base/full_fence.hpp"
#include "npushmem.h"

namespace npushmem::api {

namespace {

// A context, what its members point into, and what it has on the way to PEs that are not mapped.
struct Made {
    std::unique_ptr<Context> context;
    Members members;
    std::unique_ptr<RemoteAccess> remote;
    std::unique_ptr<ContextUse> use;  // null: not looked at
};

struct Contexts {
    std::mutex lock;  // of everything here; nobody waits while holding it
    std::unordered_map<const Context*, Made> live;
    // With NPUSHMEM_CHECK: so that no new one gets the address of one that was destroyed; and what else was taken for
    // a context, by its handle.
    std::unordered_map<const Context*, Made> destroyed;
    std::unordered_map<const Context*, std::unique_ptr<Context>> foreign;
};

// Never destroyed: as the library itself.
Contexts& contexts() {
    static Contexts* const instance = new Contexts;
    return *instance;
}

const Context* address_of(npushmem_ctx_t handle) { return reinterpret_cast<const Context*>(handle); }

constexpr long known_options = NPUSHMEM_CTX_SERIALIZED | NPUSHMEM_CTX_PRIVATE | NPUSHMEM_CTX_NOSTORE;

int create(const char* function, npushmem_team_t handle, long options, npushmem_ctx_t* ctx) {
    const auto team = team_of(handle);
    Status checked = team.status();
    if (checked.ok() && ctx == nullptr) checked = {Code::argument, "ctx is NULL"};
    if (checked.ok() && (options & ~known_options) != 0)
        checked = {Code::argument,
                   fmt::format("options {:#x} has bits that are no option; known are {:#x}", options, known_options)};
    if (!checked.ok()) {
        fail_returned(function, checked);
        return static_cast<int>(checked.code());
    }
    Made made{std::make_unique<Context>(), team.value()->members(),
              std::make_unique<RemoteAccess>(runtime()->remote_peers()), nullptr};
    constexpr long promises = NPUSHMEM_CTX_SERIALIZED | NPUSHMEM_CTX_PRIVATE;
    if (runtime()->settings().check && (options & promises) != 0)
        made.use = std::make_unique<ContextUse>(options, runtime()->my_pe());
    Context& context = *made.context;
    context.map = handle == NPUSHMEM_TEAM_WORLD ? default_context.map : team.value()->map();
    hide_from_fast_paths(*runtime(), context.map);
    context.members = made.members.range();
    context.team = handle;
    context.options = options;
    context.state = Context::State::alive;
    context.remote = made.remote.get();
    context.use = made.use.get();
    *ctx = reinterpret_cast<npushmem_ctx_t>(&context);
    const std::lock_guard guard(contexts().lock);
    contexts().live.emplace(&context, std::move(made));
    return 0;
}

// Takes those of which `ends` is true from those that live.
template <class Ends>
std::vector<Made> take(Ends&& ends) {
    std::vector<Made> taken;
    const std::lock_guard guard(contexts().lock);
    auto& live = contexts().live;
    for (auto one = live.begin(); one != live.end();) {
        const auto here = one++;
        if (ends(*here->first)) taken.push_back(std::move(live.extract(here).mapped()));
    }
    return taken;
}

// That one; nothing when it does not live.
Made take(const Context* context) {
    const std::lock_guard guard(contexts().lock);
    auto found = contexts().live.extract(context);
    return found ? std::move(found.mapped()) : Made{};
}

Status use_of(const Context& context) { return ContextUse::Call(context).status(); }

// Where calls are checked its memory is kept, as that of a context without members, so that whoever uses it gets a
// report; and the note of who uses it, which a call of another thread may be about to write.
Status end(Made made) {
    Status done = made.remote->quiet();
    full_fence();  // for what was stored to mapped PEs
    made.remote.reset();
    *made.context = {};
    made.context->state = Context::State::destroyed;
    if (!runtime()->settings().check) return done;
    const std::lock_guard guard(contexts().lock);
    const Context* const address = made.context.get();
    contexts().destroyed.emplace(address, std::move(made));
    return done;
}

void report_unusable(const char* function, npushmem_ctx_t ctx) {
    const Context& context = context_of(ctx);
    const Status checked = runtime() != nullptr ? check_context(context) : not_running();
    if (!checked.ok()) fail(function, checked);
}

}  // namespace

const Context& find_context(npushmem_ctx_t handle) {
    if (handle == NPUSHMEM_CTX_INVALID || runtime() == nullptr) return no_context;
    Contexts& all = contexts();
    const Context* const address = address_of(handle);
    const std::lock_guard guard(all.lock);
    if (const auto found = all.live.find(address); found != all.live.end()) return *found->second.context;
    if (const auto found = all.destroyed.find(address); found != all.destroyed.end()) return *found->second.context;
    auto& stranger = all.foreign[address];
    if (!stranger) stranger = std::make_unique<Context>();
    stranger->state = Context::State::foreign;
    return *stranger;
}

Status check_context(const Context& context) {
    switch (context.state) {
        case Context::State::alive: return {};
        case Context::State::destroyed: return {Code::argument, "the context has been destroyed"};
        case Context::State::foreign:
            return {Code::argument,
                    "ctx is no context: npushmem_ctx_create and npushmem_team_create_ctx have not made it"};
        case Context::State::none: break;
    }
    return {Code::argument, "the context is NPUSHMEM_CTX_INVALID"};
}

Status end_contexts_of(npushmem_team_t team) {
    Status first;
    for (Made& made : take([&](const Context& context) { return context.team == team; })) {
        Status ended = end(std::move(made));
        if (first.ok()) first = std::move(ended);
    }
    return first;
}

Status complete_contexts() {
    std::vector<RemoteAccess*> open;
    {
        const std::lock_guard guard(contexts().lock);
        for (const auto& [address, made] : contexts().live) open.push_back(made.remote.get());
    }
    Status first;
    for (RemoteAccess* const remote : open) {
        Status done = remote->quiet();
        if (first.ok()) first = std::move(done);
    }
    return first;
}

void end_contexts() {
    const std::lock_guard guard(contexts().lock);
    contexts().live.clear();
    contexts().destroyed.clear();
    contexts().foreign.clear();
}

}  // namespace npushmem::api

using namespace npushmem;
using namespace npushmem::api;

extern "C" {

int npushmem_ctx_create(long options, npushmem_ctx_t* ctx) {
    return create(__func__, NPUSHMEM_TEAM_WORLD, options, ctx);
}

int npushmem_team_create_ctx(npushmem_team_t team, long options, npushmem_ctx_t* ctx) {
    if (team == NPUSHMEM_TEAM_INVALID) return static_cast<int>(Code::argument);
    return create(__func__, team, options, ctx);
}

void npushmem_ctx_destroy(npushmem_ctx_t ctx) {
    if (ctx == NPUSHMEM_CTX_INVALID) return;
    if (ctx == NPUSHMEM_CTX_DEFAULT) return fail(__func__, {Code::argument, "the default context cannot be destroyed"});
    if (runtime() == nullptr) return fail(__func__, not_running());
    // Whether handles are trusted or not: a context that does not exist cannot be freed.
    Made made = take(address_of(ctx));
    if (!made.context)
        return fail(__func__, {Code::argument, fmt::format("the context {} does not exist, or not any more",
                                                           static_cast<const void*>(ctx))});
    Status ended = use_of(*made.context);
    Status done = end(std::move(made));
    if (ended.ok()) ended = std::move(done);
    if (!ended.ok()) fail(__func__, ended);
}

int npushmem_ctx_get_team(npushmem_ctx_t ctx, npushmem_team_t* team) {
    if (team == nullptr) return returned(__func__, {Code::argument, "team is NULL"});
    *team = NPUSHMEM_TEAM_INVALID;
    if (ctx == NPUSHMEM_CTX_INVALID) return static_cast<int>(Code::argument);
    const Context& context = context_of(ctx);
    const Status checked = runtime() != nullptr ? check_context(context) : not_running();
    if (checked.ok()) *team = context.team;
    return returned(__func__, checked);
}

// Transfers begin when they are asked for, so there is nothing to gather.
void npushmem_ctx_session_start(npushmem_ctx_t ctx, long, const npushmem_ctx_session_config_t*, long) {
    if (ctx != NPUSHMEM_CTX_INVALID) report_unusable(__func__, ctx);
}

void npushmem_ctx_session_stop(npushmem_ctx_t ctx) {
    if (ctx != NPUSHMEM_CTX_INVALID) report_unusable(__func__, ctx);
}

}  // extern "C"
