// SPDX-License-Identifier: BSD-3-Clause
// The C entry points of the MoE library over the runtime.
#include "npushmem/moe.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/api/moe_handle.hpp"
#include "core/api/teams.hpp"
#include "npushmemx.h"

namespace npushmem::api {
namespace {

using namespace moe_calls;

moe::CombineConfig config_from(const npushmemx_moe_config_t& given) {
    moe::CombineConfig config;
    config.experts = given.experts;
    config.top_k = given.top_k;
    config.hidden = given.hidden;
    config.max_tokens = given.max_tokens;
    config.input = moe::ElementType{given.input_type};
    config.output = moe::ElementType{given.output_type};
    config.mode = moe::CombineMode{given.mode};
    config.rows_per = moe::RowsPer{given.rows};
    config.dispatch_type = moe::NarrowType{given.dispatch_type};
    config.narrow_input = given.dispatch_input == NPUSHMEMX_MOE_INPUT_QUANTIZED;
    config.combine_type = moe::NarrowType{given.combine_type};
    config.scale_block = given.scale_block;
    config.capacity = given.capacity;
    config.expert_alignment = given.expert_alignment == 0 ? 1 : given.expert_alignment;
    config.ring_place = moe::RingPlace{given.ring};
    config.audit = given.audit != 0;
    config.timeout = std::chrono::nanoseconds(std::max<std::int64_t>(given.timeout_ns, 0));
    return config;
}

Status check_copy(std::int32_t copy) {
    if (copy >= NPUSHMEMX_MOE_COPY_AUTO && copy <= NPUSHMEMX_MOE_COPY_STREAMING) return {};
    return {Code::argument, fmt::format("moe: copy is {}, must be from {} to {}", copy, NPUSHMEMX_MOE_COPY_AUTO,
                                        NPUSHMEMX_MOE_COPY_STREAMING)};
}

// `rows`: of `row` bytes, that a PE receives in a call.
moe::CopyRoute route_of(std::int32_t copy, moe::Rows rows, moe::Bytes row) {
    switch (copy) {
        case NPUSHMEMX_MOE_COPY_STAGED: return moe::CopyRoute::staged;
        case NPUSHMEMX_MOE_COPY_ORDINARY: return moe::CopyRoute::direct;
        case NPUSHMEMX_MOE_COPY_STREAMING: return moe::CopyRoute::streaming;
        default: return moe::choose_route(row, moe::bytes_of(rows, row));
    }
}

// Of a configuration that may be invalid.
void choose_routes(moe::CombineConfig& config, std::int32_t copy, int ranks) {
    if (!config.validate().ok()) return;
    const moe::CombineConfig transport = config.transport(ranks);
    config.route = route_of(copy, transport.chunk_slots(), config.returned_row());
    config.in_place = copy == NPUSHMEMX_MOE_COPY_AUTO && moe::choose_in_place(config.row_bytes());
    config.dispatch_route = route_of(copy, transport.slots(), config.dispatched_row());
}

std::int32_t copy_of(moe::CopyRoute route) {
    switch (route) {
        case moe::CopyRoute::staged: return NPUSHMEMX_MOE_COPY_STAGED;
        case moe::CopyRoute::streaming: return NPUSHMEMX_MOE_COPY_STREAMING;
        case moe::CopyRoute::direct: break;
    }
    return NPUSHMEMX_MOE_COPY_ORDINARY;
}

// Without padding, so that every further field changes the size.
static_assert(offsetof(npushmemx_moe_config_t, dispatch_input) == 88 && sizeof(npushmemx_moe_config_t) == 104);

// The caller's configuration. Programs that were compiled before the structure had a team, `rows` or dispatch_input get
// the defaults of what follows. (Before dispatch_input, dispatch_type was reserved.)
Result<npushmemx_moe_config_t> read_config(const npushmemx_moe_config_t* given) {
    if (given == nullptr) return Status{Code::argument, "config is NULL"};
    const std::uint32_t size = given->struct_size;
    if (size != sizeof(npushmemx_moe_config_t) && size != offsetof(npushmemx_moe_config_t, dispatch_input) &&
        size != offsetof(npushmemx_moe_config_t, rows) && size != offsetof(npushmemx_moe_config_t, team)) {
        return Status{Code::argument,
                      "config.struct_size is not sizeof(npushmemx_moe_config_t); begin with "
                      "NPUSHMEMX_MOE_CONFIG_INITIALIZER"};
    }
    npushmemx_moe_config_t config = NPUSHMEMX_MOE_CONFIG_INITIALIZER;
    std::memcpy(&config, given, size);
    return config;
}

// What the configuration of the layer does not show any more.
Status check_rest(const npushmemx_moe_config_t& given) {
    if (given.dispatch_input == NPUSHMEMX_MOE_INPUT_TYPE || given.dispatch_input == NPUSHMEMX_MOE_INPUT_QUANTIZED)
        return {};
    return {Code::argument, fmt::format("moe: dispatch_input is {}, must be from {} to {}", given.dispatch_input,
                                        NPUSHMEMX_MOE_INPUT_TYPE, NPUSHMEMX_MOE_INPUT_QUANTIZED)};
}

// The same configuration for the ranks that go on.
moe::CombineConfig config_for(const moe::CombineConfig& config, const moe::RankMask& mask, std::int32_t copy,
                              int ranks) {
    moe::CombineConfig remaining = config;
    remaining.experts = mask.experts();
    choose_routes(remaining, copy, ranks);
    return remaining;
}

Status create(const npushmemx_moe_config_t* config_of_caller, npushmemx_moe_t** handle) {
    if (runtime() == nullptr) return not_running();
    if (handle == nullptr) return {Code::argument, "handle is NULL"};
    *handle = nullptr;
    const auto read = read_config(config_of_caller);
    if (!read.ok()) return read.status();
    const npushmemx_moe_config_t& given = read.value();
    const auto team = team_of(given.team);
    if (!team.ok()) return team.status().within("config.team");
    moe::CombineConfig config = config_from(given);
    const Members& ranks = team.value()->members();
    choose_routes(config, given.copy, ranks.count());
    runtime()->npu().note_host_access();  // the layers of all PEs agree by plain stores to each other's memory
    Status own = check_copy(given.copy);
    if (own.ok()) own = check_rest(given);
    auto made = TeamLayer::create(given.team, *team.value(), config, own);
    if (!made.ok()) return made.status();
    const moe::RankMask none(moe::ExpertPlacement(config.experts, ranks.count()));
    *handle = new npushmemx_moe{config, given.copy, ranks, current_world, none, {}, std::move(made).value(), {},
                                {},     nullptr,    {}};
    return {};
}

// The ranks of the handle that are members of the team: all its living ones.
Result<std::vector<std::int32_t>> remaining_ranks(const npushmemx_moe& handle, const Members& members) {
    std::vector<std::int32_t> remaining;
    for (int rank = 0; rank < handle.ranks.count(); ++rank) {
        const int pe = handle.ranks.at(rank);
        if (members.index_of(pe) == static_cast<int>(remaining.size())) {
            remaining.push_back(rank);
        } else if (members.index_of(pe) >= 0 || !runtime()->liveness().is_acknowledged(pe)) {
            return Status{
                Code::argument,
                fmt::format("moe: PE {}, rank {} of the layer, lives and is not member {} of the team; give the "
                            "team that npushmemx_team_shrink makes of the layer's",
                            pe, rank, remaining.size())};
        }
    }
    if (static_cast<int>(remaining.size()) == members.count()) return remaining;
    return Status{Code::argument, fmt::format("moe: the team has {} members, {} of which are ranks of the layer",
                                              members.count(), remaining.size())};
}

// Nobody accesses the memory of the layer any more. After a death a layer may exist on some PEs only, because a mask
// has failed on others: then each PE frees what it has.
void destroy_layer(npushmemx_moe& handle) {
    CollectiveHeap& heap = runtime()->collective_heap();
    if (heap.may_differ()) {
        if (handle.team_layer != nullptr) handle.team_layer->memory().release_here();
        for (std::byte* const memory : std::exchange(handle.abandoned, {})) heap.free_here(memory);
    }
    handle.team_layer.reset();
}

// Ends the call in progress.
void end_call(npushmemx_moe& handle) {
    handle.x = nullptr;
    if (handle.team_layer == nullptr) return;
    (void)handle.team_layer->layer().wait();
    (void)handle.team_layer->memory().quiet();  // fails on the dead
}

// The old layer is destroyed first: both would need the memory. No call runs on it any more when all members are here.
Status mask_ranks(npushmemx_moe& handle, npushmem_team_t team_handle, const std::int32_t* substitutes) {
    const auto team = team_of(team_handle);
    if (!team.ok()) return team.status().within("team");
    const auto remaining = remaining_ranks(handle, team.value()->members());
    if (!remaining.ok()) return remaining.status();
    const moe::ExpertPlacement all(handle.config.experts, handle.ranks.count());
    const std::size_t count = substitutes != nullptr ? static_cast<std::size_t>(all.experts()) : 0;
    auto mask = moe::RankMask::create(all, remaining.value(), {substitutes, count});
    end_call(handle);
    if (Status s = HeapMemory(team_handle, *team.value()).barrier(); !s.ok()) return s;
    destroy_layer(handle);
    handle.mask = mask.ok() ? std::move(mask).value() : moe::RankMask(all);
    const moe::CombineConfig config = config_for(handle.config, handle.mask, handle.copy, team.value()->size());
    auto made = TeamLayer::create(team_handle, *team.value(), config, mask.status(), &handle.abandoned);
    if (!made.ok()) return made.status();
    handle.team_layer = std::move(made).value();
    return {};
}

// Returns this rank's tokens, or the error in its arguments.
Result<moe::RankRouting> routing_of(npushmemx_moe& handle, std::int64_t tokens, const std::int32_t* experts,
                                    const float* weights) {
    const moe::CombineConfig& config = handle.config;
    const int rank = handle.team_layer->memory().my_pe();
    if (tokens < 0 || (tokens > 0 && (experts == nullptr || weights == nullptr))) {
        return Status{Code::argument,
                      fmt::format("{} tokens with expert_ids {} and weights {}", tokens,
                                  static_cast<const void*>(experts), static_cast<const void*>(weights))};
    }
    // Checked before the product, which must not overflow.
    if (tokens > config.max_tokens)
        return Status{Code::range,
                      fmt::format("routing of rank {}: {} tokens, above the max_tokens {} given at creation", rank,
                                  tokens, config.max_tokens)};
    const auto count = static_cast<std::size_t>(tokens) * static_cast<std::size_t>(config.top_k);
    const moe::RankRouting own{{experts, count}, {weights, count}};
    if (!handle.mask.masks_any()) return own;
    if (Status s = moe::check_routing(own, config.experts, config.top_k, rank); !s.ok()) return s;
    handle.experts.resize(count);
    std::ranges::transform(own.experts, handle.experts.begin(),
                           [&](std::int32_t expert) { return handle.mask.to_layer(expert); });
    return moe::RankRouting{handle.experts, own.weights};
}

// Errors in the arguments go through the collective call, so that they reach all PEs.
Status set_routing(moe::Combine& combine, const Result<moe::RankRouting>& own) {
    return own.ok() ? combine.set_routing(own.value()) : combine.set_routing({}, own.status());
}

// The wait for the started dispatch sets *x.
Status start_dispatch(npushmemx_moe& handle, const void* in, const Result<moe::RankRouting>& own, void** x) {
    moe::Layer& layer = handle.team_layer->layer();
    Status started = own.ok() ? layer.start_dispatch(static_cast<const std::byte*>(in), own.value())
                              : layer.start_dispatch(nullptr, {}, own.status());
    if (started.ok()) handle.x = x;
    return started;
}

Status set_plan(const npushmemx_moe& handle, const std::int32_t* offsets, const std::int32_t* lengths,
                const std::uint32_t* slots, std::int64_t rows) {
    moe::Combine& combine = handle.team_layer->layer().combine();
    if (rows < 0 || offsets == nullptr || lengths == nullptr || (rows > 0 && slots == nullptr)) {
        return combine.set_plan({}, {Code::argument, fmt::format("{} rows, or a table that is NULL", rows)});
    }
    const std::span<const std::uint32_t> of_rows(slots, static_cast<std::size_t>(rows));
    const std::size_t entries = static_cast<std::size_t>(combine.plan().local_experts * handle.mask.ranks());
    if (!handle.mask.masks_any()) return combine.set_plan({{offsets, entries}, {lengths, entries}, of_rows});
    const auto narrowed = handle.mask.narrowed({offsets, entries}, {lengths, entries});
    if (!narrowed.ok()) return combine.set_plan({}, narrowed.status());
    return combine.set_plan({narrowed.value().offsets, narrowed.value().lengths, of_rows});
}

npushmemx_moe_plan_t plan_of(npushmemx_moe& handle) {
    const moe::Combine& combine = handle.team_layer->layer().combine();
    const moe::CombinePlan& plan = combine.plan();
    npushmemx_moe_plan_t shown{plan.local_experts,
                               plan.first_expert,
                               plan.ranks,
                               copy_of(combine.config().route),
                               static_cast<std::int64_t>(plan.rows.value()),
                               static_cast<std::int64_t>(combine.tokens().value()),
                               plan.offset_table.data(),
                               plan.length_table.data(),
                               plan.slots.data()};
    if (!handle.mask.masks_any()) return shown;
    auto tables = handle.mask.widened(plan.offset_table, plan.length_table);
    if (tables != handle.tables) handle.tables = std::move(tables);  // those of an earlier call stay valid
    shown.first_expert = handle.mask.first_expert(handle.team_layer->memory().my_pe());
    shown.ranks = handle.mask.ranks();
    shown.offset_table = handle.tables.offsets.data();
    shown.length_table = handle.tables.lengths.data();
    return shown;
}

struct Conversion {
    const void* wide;
    const void* narrow;
};

// Calls convert_row(config, row) for each row, if the layer has rows with scales and the memory is valid.
template <class ConvertRow>
int convert(const char* function, const npushmemx_moe* handle, const Conversion& memory, std::int64_t rows,
            const ConvertRow& convert_row) {
    if (handle == nullptr) return refuse(function, {Code::argument, "handle is NULL"});
    const moe::CombineConfig& config = handle->config;
    if (config.dispatch_type == moe::NarrowType::none) {
        return refuse(function, {Code::unsupported,
                                 "moe: the rows of this handle have no scales; create it with config.dispatch_type = "
                                 "NPUSHMEMX_MOE_E4M3, NPUSHMEMX_MOE_E5M2 or NPUSHMEMX_MOE_INT8"});
    }
    if (rows < 0 || rows > std::numeric_limits<std::int32_t>::max())
        return refuse(function, {Code::argument, fmt::format("rows is {}, must be from 0 to {}", rows,
                                                             std::numeric_limits<std::int32_t>::max())});
    const auto count = static_cast<std::uint64_t>(rows);
    const moe::Extent wide{"the rows of the input type", static_cast<const std::byte*>(memory.wide),
                           config.row_bytes() * count};
    const moe::Extent narrow{"the quantized rows", static_cast<const std::byte*>(memory.narrow),
                             config.narrow().row() * count};
    Status status = check_address(wide, size_of(config.input));
    if (status.ok()) status = check_address(narrow, moe::ElementSize{sizeof(float)});
    if (status.ok()) status = check_apart(wide, narrow);
    if (!status.ok()) return refuse(function, status);
    for (std::size_t row = 0; row < count; ++row) convert_row(config, row);
    return 0;
}

Status get_received(const npushmemx_moe& handle, npushmemx_moe_received_t& received) {
    if (Status s = check_layer(handle); !s.ok()) return s;
    moe::Layer& layer = handle.team_layer->layer();
    const moe::RankRows* rows = layer.combine().rank_rows();
    if (rows == nullptr) {
        return {Code::unsupported,
                "moe: this handle was created with one row per choice, so the received rows are those of the plan; "
                "create it with config.rows = NPUSHMEMX_MOE_ROW_PER_RANK"};
    }
    received = {static_cast<std::int64_t>(layer.combine().received().value()), layer.x(), rows->source.data(),
                rows->weights.data()};
    return {};
}

}  // namespace
}  // namespace npushmem::api

using namespace npushmem;
using namespace npushmem::api;

extern "C" {

int npushmemx_moe_create(const npushmemx_moe_config_t* config, npushmemx_moe_t** handle) {
    const Status created = create(config, handle);
    return created.ok() ? 0 : refuse(__func__, created);
}

int npushmemx_moe_set_routing(npushmemx_moe_t* handle, int64_t tokens, const int32_t* expert_ids,
                              const float* weights) {
    return on_idle(__func__, handle, [&](moe::Layer& layer) {
        moe::Combine& combine = layer.combine();
        return set_routing(combine, routing_of(*handle, tokens, expert_ids, weights));
    });
}

int npushmemx_moe_set_plan(npushmemx_moe_t* handle, const int32_t* offset_table, const int32_t* length_table,
                           const uint32_t* slots, int64_t rows) {
    return on_idle(__func__, handle,
                   [&](moe::Layer&) { return set_plan(*handle, offset_table, length_table, slots, rows); });
}

int npushmemx_moe_get_plan(const npushmemx_moe_t* handle, npushmemx_moe_plan_t* plan) {
    if (handle == nullptr || plan == nullptr) return refuse(__func__, {Code::argument, "handle or plan is NULL"});
    if (const Status s = check_layer(*handle); !s.ok()) return refuse(__func__, s);
    // The tables that a mask widens are part of the handle.
    *plan = plan_of(const_cast<npushmemx_moe&>(*handle));
    return 0;
}

int npushmemx_moe_get_expert_rows(const npushmemx_moe_t* handle, int64_t* rows) {
    if (handle == nullptr || rows == nullptr) return refuse(__func__, {Code::argument, "handle or rows is NULL"});
    if (const Status s = check_layer(*handle); !s.ok()) return refuse(__func__, s);
    const moe::CombinePlan& plan = handle->team_layer->layer().combine().plan();
    for (std::int32_t expert = 0; expert < plan.local_experts; ++expert)
        rows[expert] = static_cast<std::int64_t>(plan.rows_of_expert(expert).value());
    return 0;
}

int npushmemx_moe_get_received(const npushmemx_moe_t* handle, npushmemx_moe_received_t* received) {
    if (handle == nullptr || received == nullptr)
        return refuse(__func__, {Code::argument, "handle or received is NULL"});
    const Status status = get_received(*handle, *received);
    return status.ok() ? 0 : refuse(__func__, status);
}

int64_t npushmemx_moe_row_bytes(const npushmemx_moe_t* handle) {
    if (handle == nullptr) return refuse(__func__, {Code::argument, "handle is NULL"}), 0;
    return static_cast<int64_t>(handle->config.dispatched_row().value());
}

int npushmemx_moe_quantize(const npushmemx_moe_t* handle, const void* in, int64_t rows, void* quantized) {
    return convert(__func__, handle, {in, quantized}, rows, [&](const moe::CombineConfig& config, std::size_t row) {
        best_narrow(config.dispatch_type, config.input)
            .quantize(config.narrow(), static_cast<const std::byte*>(in) + row * config.row_bytes().value(),
                      static_cast<std::byte*>(quantized) + row * config.narrow().row().value());
    });
}

int npushmemx_moe_dequantize(const npushmemx_moe_t* handle, const void* quantized, int64_t rows, void* out) {
    return convert(__func__, handle, {out, quantized}, rows, [&](const moe::CombineConfig& config, std::size_t row) {
        best_narrow(config.dispatch_type, config.input)
            .dequantize(config.narrow(), static_cast<const std::byte*>(quantized) + row * config.narrow().row().value(),
                        static_cast<std::byte*>(out) + row * config.row_bytes().value());
    });
}

int npushmemx_moe_get_traffic(const npushmemx_moe_t* handle, npushmemx_moe_traffic_t* traffic) {
    if (handle == nullptr || traffic == nullptr) return refuse(__func__, {Code::argument, "handle or traffic is NULL"});
    if (const Status s = check_layer(*handle); !s.ok()) return refuse(__func__, s);
    const moe::CombineTraffic t = handle->team_layer->layer().combine().traffic();
    *traffic = {t.calls, t.signals, t.tails, t.heads, t.splits, t.waits};
    return 0;
}

int npushmemx_moe_dispatch(npushmemx_moe_t* handle, int64_t tokens, const void* in, const int32_t* expert_ids,
                           const float* weights, void** x) {
    return on_idle(__func__, handle, [&](moe::Layer&) {
        Status started = start_dispatch(*handle, in, routing_of(*handle, tokens, expert_ids, weights), x);
        return started.ok() ? wait(*handle) : started;
    });
}

int npushmemx_moe_dispatch_nbi(npushmemx_moe_t* handle, int64_t tokens, const void* in, const int32_t* expert_ids,
                               const float* weights, void** x) {
    return on_idle(__func__, handle, [&](moe::Layer&) {
        return start_dispatch(*handle, in, routing_of(*handle, tokens, expert_ids, weights), x);
    });
}

int npushmemx_moe_combine(npushmemx_moe_t* handle, const void* x, void* out) {
    return on_handle(__func__, handle, [&](moe::Layer& layer) {
        return layer.combine_rows(static_cast<const std::byte*>(x), static_cast<std::byte*>(out));
    });
}

int npushmemx_moe_combine_nbi(npushmemx_moe_t* handle, const void* x, void* out) {
    return on_handle(__func__, handle, [&](moe::Layer& layer) {
        return layer.start_combine(static_cast<const std::byte*>(x), static_cast<std::byte*>(out));
    });
}

int npushmemx_moe_wait(npushmemx_moe_t* handle) {
    return on_handle(__func__, handle, [&](moe::Layer&) { return wait(*handle); });
}

int npushmemx_moe_reset(npushmemx_moe_t* handle) {
    return on_handle(__func__, handle, [&](moe::Layer& layer) {
        handle->x = nullptr;  // of a dispatch in progress, which no caller awaits any more
        return layer.reset();
    });
}

int npushmemx_moe_mask_ranks(npushmemx_moe_t* handle, npushmem_team_t team, const int32_t* substitutes) {
    if (handle == nullptr) return refuse(__func__, {Code::argument, "handle is NULL"});
    const CurrentWorld in_world(*handle->world);
    const Status status = runtime() != nullptr ? mask_ranks(*handle, team, substitutes) : not_running();
    handle->error = status.message();
    return status.ok() ? 0 : refuse(__func__, status);
}

const char* npushmemx_moe_error(const npushmemx_moe_t* handle) {
    return handle != nullptr ? handle->error.c_str() : "";
}

void npushmemx_moe_destroy(npushmemx_moe_t* handle) {
    if (handle == nullptr) return;
    const CurrentWorld in_world(*handle->world);
    if (runtime() != nullptr && runtime()->collective_heap().may_differ()) {
        end_call(*handle);
        if (runtime()->collective_heap().barrier().ok()) destroy_layer(*handle);
    }
    delete handle;
}

}  // extern "C"
