// SPDX-License-Identifier: BSD-3-Clause
#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "core/npu/barrier/barrier_execution.hpp"
#include "core/npu/source_line.hpp"
#include "npushmem/npu/barrier.hpp"
#include "npushmem/npu/launch.hpp"

namespace npushmem::npu::barrier {

int Members::index_of(int pe) const {
    if (list_ == nullptr) return team_.index_of(pe);
    const int* found = std::find(list_, list_ + size(), pe);
    return found == list_ + size() ? -1 : static_cast<int>(found - list_);
}

void BarrierExecution::reject(int pe) const {
    const TeamView& team = members_.team();
    throw KernelError(Code::argument,
                      fmt::format("barrier: PE {} is not a member of the team of {} PEs from {} by {} ({})", pe,
                                  team.size, team.start, team.stride, text_of(where_)));
}

}  // namespace npushmem::npu::barrier

namespace npushmem::npu {

void sync_servers(Core& core, const TeamView& team, int per_server, ServerBarrierState* state,
                  const SourceLocation& where) {
    if (per_server < 1 || team.size % per_server != 0) {
        throw KernelError(Code::argument,
                          fmt::format("barrier across servers: {} PEs is not a multiple of {} PEs per server ({})",
                                      team.size, per_server, text_of(where)));
    }
    const int mine = team.index_of(core.my_pe());
    if (mine < 0) {
        throw KernelError(Code::argument, fmt::format("barrier across servers: PE {} is not a member of the team ({})",
                                                      core.my_pe(), text_of(where)));
    }
    const int leader = mine - mine % per_server;
    const TeamView server{team.pe(leader), team.stride, per_server};
    const TeamView leaders{team.start, team.stride * per_server, team.size / per_server};
    sync_v3(core, server, &state->server, where);
    if (mine == leader) sync_v1(core, leaders, &state->leaders, where);
    // The other PEs of the server wait here for their leader.
    sync_v3(core, server, &state->server, where);
}

void barrier_servers(Core& core, const TeamView& team, int per_server, ServerBarrierState* state,
                     const SourceLocation& where) {
    core.quiet(where);
    sync_servers(core, team, per_server, state, where);
}

namespace {

// Up to this size, reading all members costs less than signalling some of them in rounds: v3 polls eight words at once.
constexpr int max_members_for_v3 = 16;

}  // namespace

Result<BarrierChoice> BarrierChoice::parse(std::string_view text) {
    const std::size_t colon = text.find(':');
    const std::string_view name = text.substr(0, colon);
    if (text == "auto") return BarrierChoice{};
    if (text == "v1") return BarrierChoice{BarrierVariant::v1};
    if (text == "v3") return BarrierChoice{BarrierVariant::v3};
    int radix = barrier_v2_max_radix;
    bool ok = name == "v2";
    if (ok && colon != std::string_view::npos) {
        const char* end = text.data() + text.size();
        const auto [stop, error] = std::from_chars(text.data() + colon + 1, end, radix);
        ok = error == std::errc{} && stop == end && radix >= 2 && radix <= barrier_v2_max_radix;
    }
    if (ok) return BarrierChoice{BarrierVariant::v2, radix};
    return Status{Code::config, fmt::format("NPU barrier '{}' must be v1, v2, v2:<radix, 2 to {}>, v3 or auto", text,
                                            barrier_v2_max_radix)};
}

BarrierChoice BarrierChoice::resolved(int size) const {
    if (variant != BarrierVariant::automatic) return *this;
    return {size <= max_members_for_v3 ? BarrierVariant::v3 : BarrierVariant::v2, radix};
}

void sync_with_choice(Core& core, const BarrierChoice& choice, const TeamView& team, BarrierState* state,
                      const SourceLocation& where) {
    const BarrierChoice taken = choice.resolved(team.size);
    if (taken.variant == BarrierVariant::v1) return sync_v1(core, team, state, where);
    if (taken.variant == BarrierVariant::v2) return sync_v2(core, team, state, taken.radix, where);
    sync_v3(core, team, state, where);
}

void barrier_with_choice(Core& core, const BarrierChoice& choice, const TeamView& team, BarrierState* state,
                         const SourceLocation& where) {
    core.quiet(where);
    sync_with_choice(core, choice, team, state, where);
}

Status barrier_on_device(Stream& stream, const TeamView& team, BarrierState* state) {
    return barrier_on_device(stream, team, state, stream.barrier_choice());
}

Status barrier_on_device(Stream& stream, const TeamView& team, BarrierState* state, const BarrierChoice& choice) {
    constexpr SourceLocation no_line;  // the barrier has no source line in the program
    LaunchConfig config(1, no_line);
    config.name = "barrier";
    return launch(stream, config, [=](Core& core) { barrier_with_choice(core, choice, team, state, no_line); });
}

}  // namespace npushmem::npu
