// SPDX-License-Identifier: BSD-3-Clause
#include "core/api/contexts.hpp"

#include <fmt/core.h>

#include <cstring>
#include <memory>
#include <mutex>
#include <new>
#include <unordered_map>
#include <vector>

#include "core/api/access.hpp"
#include "core/api/teams.hpp"
#include "core/base/parking.hpp"
#include "npushmem.h"

namespace npushmem::api {

// Zeros use no memory before a slot is used, and are a context that reaches no PE.
alignas(context_slot_bytes) std::byte context_slots[(max_contexts + 1) * context_slot_bytes];

Context* ContextSlots::acquire(std::size_t min_unused) {
    const bool fresh = used_ < max_contexts && unused_.size() <= min_unused;
    if (fresh) return new (context_slots + used_++ * context_slot_bytes) Context;
    if (unused_.empty()) return nullptr;
    Context* const context = unused_.front();
    unused_.pop_front();
    *context = {};
    return context;
}

void ContextSlots::release(Context& context) {
    context = {};
    context.state = Context::State::destroyed;
    unused_.push_back(&context);
}

void ContextSlots::clear() { std::memset(context_slots, 0, used_ * context_slot_bytes); }

ContextUse::Call::Call(const Context& context) : use_(context.use) {
    if (use_ == nullptr) return;
    const int others = use_->active_calls_.fetch_add(1, std::memory_order_relaxed);
    const char* wrong = nullptr;
    if ((use_->options_ & NPUSHMEM_CTX_PRIVATE) != 0 && std::this_thread::get_id() != use_->owner_thread_)
        wrong = "was made with NPUSHMEM_CTX_PRIVATE, by another thread; each thread makes its own";
    else if (others > 0)
        wrong = "was made with NPUSHMEM_CTX_SERIALIZED or _PRIVATE, and another thread is inside a call on it";
    if (wrong != nullptr)
        status_ = {Code::argument, fmt::format("the context {}, on PE {}, {}", static_cast<const void*>(&context),
                                               use_->my_pe_, wrong)};
}

ContextUse::Call::~Call() {
    if (use_ != nullptr) use_->active_calls_.fetch_sub(1, std::memory_order_relaxed);
}

}  // namespace npushmem::api

// Contexts: creation over a team, destruction, look-up of their team; sessions.
namespace npushmem::api {

namespace {

// A context, the objects that its members point to, and its access to PEs that are not mapped.
struct LiveContext {
    Context* context = nullptr;
    Members members;
    std::unique_ptr<RemoteAccess> remote;
    std::unique_ptr<ContextUse> use;  // null: not checked
};

struct Contexts {
    std::mutex lock;  // for all members; no thread waits while it holds the lock
    ContextSlots slots;
    std::unordered_map<npushmem_ctx_t, LiveContext> live;
    // With NPUSHMEM_CHECK: uses of destroyed contexts, which calls of other threads may still write.
    std::vector<std::unique_ptr<ContextUse>> retired_uses;
};

// Never destroyed, as the library itself.
Contexts& contexts() {
    static Contexts* const instance = new Contexts;
    return *instance;
}

// The number of contexts that must be destroyed after one before its slot is reused. With NPUSHMEM_CHECK: the maximum
// number of contexts.
constexpr std::size_t min_destroyed = 1024;

Context* acquire_slot(bool check) {
    const std::lock_guard guard(contexts().lock);
    return contexts().slots.acquire(check ? max_contexts : min_destroyed);
}

std::size_t number_of_contexts() {
    const std::lock_guard guard(contexts().lock);
    return contexts().live.size();
}

constexpr long known_options = NPUSHMEM_CTX_SERIALIZED | NPUSHMEM_CTX_PRIVATE | NPUSHMEM_CTX_NOSTORE;

Status create(npushmem_team_t handle, long options, npushmem_ctx_t* ctx) {
    const auto team = team_of(handle);
    if (!team.ok()) return team.status();
    if (ctx == nullptr) return {Code::argument, "ctx is NULL"};
    if ((options & ~known_options) != 0)
        return {Code::argument,
                fmt::format("options {:#x} has bits that are no option; known are {:#x}", options, known_options)};
    LiveContext made{acquire_slot(runtime()->settings().check), team.value()->members(),
                     std::make_unique<RemoteAccess>(runtime()->transports().remote_peers()), nullptr};
    if (made.context == nullptr)
        return {Code::memory, fmt::format("cannot make a context besides the {} existing ones; destroy some first",
                                          number_of_contexts())};
    constexpr long promises = NPUSHMEM_CTX_SERIALIZED | NPUSHMEM_CTX_PRIVATE;
    const bool checked_use = runtime()->settings().check && (options & promises) != 0;
    if (checked_use) made.use = std::make_unique<ContextUse>(options, runtime()->my_pe());
    Context& context = *made.context;
    context.map = handle == NPUSHMEM_TEAM_WORLD ? runtime()->slices().fast_map() : team.value()->map();
    disable_fast_paths(*runtime(), context.map);
    if (checked_use) context.map.all_mapped = 0;  // so that fence and quiet check the use
    context.members = made.members.range();
    context.team = handle;
    context.state = Context::State::alive;
    context.remote = made.remote.get();
    context.use = made.use.get();
    context.world = current_world;
    *ctx = reinterpret_cast<npushmem_ctx_t>(&context);
    const std::lock_guard guard(contexts().lock);
    contexts().live.emplace(*ctx, std::move(made));
    return {};
}

// Removes the live contexts for which `ends` is true.
template <class Ends>
std::vector<LiveContext> take(Ends&& ends) {
    std::vector<LiveContext> taken;
    const std::lock_guard guard(contexts().lock);
    auto& live = contexts().live;
    for (auto one = live.begin(); one != live.end();) {
        const auto here = one++;
        if (ends(*here->second.context)) taken.push_back(std::move(live.extract(here).mapped()));
    }
    return taken;
}

// Removes this context; returns nothing if it does not live.
LiveContext take(npushmem_ctx_t handle) {
    const std::lock_guard guard(contexts().lock);
    auto found = contexts().live.extract(handle);
    return found ? std::move(found.mapped()) : LiveContext{};
}

Status use_of(const Context& context) { return ContextUse::Call(context).status(); }

Status end(LiveContext made) {
    Status done = made.remote->quiet();
    full_fence();  // for stores to mapped PEs
    const std::lock_guard guard(contexts().lock);
    contexts().slots.release(*made.context);
    if (made.use) contexts().retired_uses.push_back(std::move(made.use));
    return done;
}

void report_unusable(const char* function, npushmem_ctx_t ctx) {
    const ActingContext context(context_of(ctx));
    run_call(function, [&] { return runtime() != nullptr ? check_context(*context) : not_running(); });
}

}  // namespace

namespace {

constexpr Context invalid() {
    Context context;
    context.state = Context::State::invalid;
    return context;
}

struct UnknownHandle {
    Context context;
    npushmem_ctx_t handle;
};

UnknownHandle& unknown() {
    thread_local UnknownHandle instance{};
    return instance;
}

// Returns the program's handle.
const void* handle_of(const Context& context) {
    return &context == &unknown().context ? static_cast<const void*>(unknown().handle) : &context;
}

// The world of the context is the thread's current one.
Status destroy(const Context& context, npushmem_ctx_t ctx) {
    if (&context == current_world->context.load(std::memory_order_relaxed))
        return {Code::argument, "the default context of a world cannot be destroyed"};
    if (runtime() == nullptr) return not_running();
    LiveContext made = take(ctx);
    if (made.context == nullptr) return check_context(context);
    Status ended = use_of(*made.context);
    Status done = end(std::move(made));
    return ended.ok() ? done : ended;
}

}  // namespace

constinit const Context no_context = invalid();

const Context& unknown_context(npushmem_ctx_t handle) {
    if (handle == NPUSHMEM_CTX_INVALID) return no_context;
    unknown().handle = handle;
    return unknown().context;
}

Status check_context(const Context& context) {
    switch (context.state) {
        case Context::State::alive: return {};
        case Context::State::destroyed:
            return {Code::argument, fmt::format("the context {} has been destroyed", handle_of(context))};
        case Context::State::invalid: return {Code::argument, "the context is NPUSHMEM_CTX_INVALID"};
        case Context::State::none: break;
    }
    return {Code::argument,
            fmt::format("{} is not a context: it was not made by npushmem_ctx_create or npushmem_team_create_ctx",
                        handle_of(context))};
}

Status destroy_contexts_of(npushmem_team_t team) {
    Status first;
    const auto is_of_team = [&](const Context& context) {
        return context.team == team && context.world == current_world;
    };
    for (LiveContext& made : take(is_of_team)) {
        Status ended = end(std::move(made));
        if (first.ok()) first = std::move(ended);
    }
    return first;
}

Status complete_contexts(const World& world) {
    std::vector<RemoteAccess*> open;
    {
        const std::lock_guard guard(contexts().lock);
        for (const auto& [handle, made] : contexts().live)
            if (made.context->world == &world) open.push_back(made.remote.get());
    }
    Status first;
    for (RemoteAccess* const remote : open) {
        Status done = remote->quiet();
        if (first.ok()) first = std::move(done);
    }
    return first;
}

void destroy_contexts(const World& world) {
    const std::vector<LiveContext> ended = take([&](const Context& context) { return context.world == &world; });
    const std::lock_guard guard(contexts().lock);
    for (const LiveContext& made : ended) contexts().slots.release(*made.context);
    // Calls of other worlds may still write the retired uses.
    if (contexts().live.empty()) contexts().retired_uses.clear();
}

Context* acquire_world_context() { return acquire_slot(false); }

void release_world_context(Context& context) {
    const std::lock_guard guard(contexts().lock);
    contexts().slots.release(context);
}

void clear_contexts() { contexts().slots.clear(); }

}  // namespace npushmem::api

using namespace npushmem;
using namespace npushmem::api;

extern "C" {

int npushmem_ctx_create(long options, npushmem_ctx_t* ctx) {
    return code_of_call(__func__, [&] { return create(NPUSHMEM_TEAM_WORLD, options, ctx); });
}

int npushmem_team_create_ctx(npushmem_team_t team, long options, npushmem_ctx_t* ctx) {
    if (team == NPUSHMEM_TEAM_INVALID) return static_cast<int>(Code::argument);
    return code_of_call(__func__, [&] { return create(team, options, ctx); });
}

void npushmem_ctx_destroy(npushmem_ctx_t ctx) {
    if (ctx == NPUSHMEM_CTX_INVALID) return;
    const auto refuse = [] { return Status{Code::argument, "the default context cannot be destroyed"}; };
    if (ctx == NPUSHMEM_CTX_DEFAULT) return static_cast<void>(run_call(__func__, refuse));
    const ActingContext context(context_of(ctx));
    run_call(__func__, [&] { return destroy(*context, ctx); });
}

int npushmem_ctx_get_team(npushmem_ctx_t ctx, npushmem_team_t* team) {
    if (team != nullptr) *team = NPUSHMEM_TEAM_INVALID;
    if (team != nullptr && ctx == NPUSHMEM_CTX_INVALID) return static_cast<int>(Code::argument);
    const ActingContext context(context_of(ctx));
    return code_of_call(__func__, [&]() -> Status {
        if (team == nullptr) return {Code::argument, "team is NULL"};
        Status checked = runtime() != nullptr ? check_context(*context) : not_running();
        if (checked.ok()) *team = (*context).team;
        return checked;
    });
}

// Transfers begin when they are requested, so sessions need no action.
void npushmem_ctx_session_start(npushmem_ctx_t ctx, long, const npushmem_ctx_session_config_t*, long) {
    if (ctx != NPUSHMEM_CTX_INVALID) report_unusable(__func__, ctx);
}

void npushmem_ctx_session_stop(npushmem_ctx_t ctx) {
    if (ctx != NPUSHMEM_CTX_INVALID) report_unusable(__func__, ctx);
}

}  // extern "C"
