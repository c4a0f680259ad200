// Contexts: made over a team, ended, asked for their team; sessions.
#include <fmt/core.h>

#include <mutex>
#include <unordered_map>
#include <vector>

#include "core/api/access.hpp"
#include "core/api/checks.hpp"
#include "core/api/contexts.hpp"
#include "core/api/teams.hpp"
#include "npushmem.h"

namespace npushmem::api {

namespace {

struct Contexts {
    std::mutex lock;
    std::unordered_map<const Context*, std::unique_ptr<Context>> live;  // under lock
    std::vector<std::unique_ptr<Context>> destroyed;                    // with NPUSHMEM_CHECK; under lock
};

// Never destroyed: as the library itself.
Contexts& contexts() {
    static Contexts* const instance = new Contexts;
    return *instance;
}

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
    auto made = std::make_unique<Context>();
    made->map = handle == NPUSHMEM_TEAM_WORLD ? default_context.map : team.value()->map();
    hide_from_fast_paths(*runtime(), made->map);
    made->members = team.value()->members();
    made->team = handle;
    made->options = options;
    *ctx = reinterpret_cast<npushmem_ctx_t>(made.get());
    const std::lock_guard guard(contexts().lock);
    contexts().live.emplace(made.get(), std::move(made));
    return 0;
}

// Takes it from those that live; false when it is none of them. Where calls are checked its memory is kept, as that of
// a context without members, so that whoever uses it gets a report.
bool destroy(const Context* context) {
    const std::lock_guard guard(contexts().lock);
    auto found = contexts().live.extract(context);
    if (found.empty()) return false;
    if (!runtime()->settings().check) return true;
    *found.mapped() = {};
    contexts().destroyed.push_back(std::move(found.mapped()));
    return true;
}

}  // namespace

void end_contexts() {
    const std::lock_guard guard(contexts().lock);
    contexts().live.clear();
    contexts().destroyed.clear();
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
    npushmem_ctx_quiet(ctx);
    if (runtime() == nullptr) return fail(__func__, not_running());
    if (!destroy(reinterpret_cast<const Context*>(ctx)))
        fail(__func__, {Code::argument,
                        fmt::format("the context {} does not exist, or not any more", static_cast<const void*>(ctx))});
}

int npushmem_ctx_get_team(npushmem_ctx_t ctx, npushmem_team_t* team) {
    if (team == nullptr) {
        fail_returned(__func__, {Code::argument, "team is NULL"});
        return static_cast<int>(Code::argument);
    }
    *team = context_of(ctx).team;
    return *team != NPUSHMEM_TEAM_INVALID ? 0 : static_cast<int>(Code::argument);
}

// Transfers begin when they are asked for, so there is nothing to gather.
void npushmem_ctx_session_start(npushmem_ctx_t, long, const npushmem_ctx_session_config_t*, long) {}

void npushmem_ctx_session_stop(npushmem_ctx_t) {}

}  // extern "C"
