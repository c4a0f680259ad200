// Which barrier a kernel or a stream gets when it does not name one.
#include <fmt/format.h>

#include <charconv>

#include "npushmem/npu/barrier.hpp"
#include "npushmem/npu/launch.hpp"

namespace npushmem::npu {
namespace {

// Up to here reading everybody costs less than signalling some in rounds: v3 polls eight words at once.
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
                      const std::source_location& where) {
    const BarrierChoice taken = choice.resolved(team.size);
    if (taken.variant == BarrierVariant::v1) return sync_v1(core, team, state, where);
    if (taken.variant == BarrierVariant::v2) return sync_v2(core, team, state, taken.radix, where);
    sync_v3(core, team, state, where);
}

void barrier_with_choice(Core& core, const BarrierChoice& choice, const TeamView& team, BarrierState* state,
                         const std::source_location& where) {
    core.quiet(where);
    sync_with_choice(core, choice, team, state, where);
}

Status barrier_on_device(Stream& stream, const TeamView& team, BarrierState* state) {
    return barrier_on_device(stream, team, state, stream.barrier_choice());
}

Status barrier_on_device(Stream& stream, const TeamView& team, BarrierState* state, const BarrierChoice& choice) {
    constexpr std::source_location no_line;  // there is no line of the program's
    LaunchConfig config(1, no_line);
    config.name = "barrier";
    return launch(stream, config, [=](Core& core) { barrier_with_choice(core, choice, team, state, no_line); });
}

}  // namespace npushmem::npu
