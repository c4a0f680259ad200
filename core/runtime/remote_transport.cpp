#include "core/runtime/remote_transport.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/parse.hpp"
#include "core/runtime/start_exchange.hpp"

namespace npushmem {

namespace {

std::vector<std::string> names_in(std::string_view list) {
    std::vector<std::string> names;
    while (!list.empty()) {
        const std::size_t comma = std::min(list.find(','), list.size());
        const std::string name(trimmed(list.substr(0, comma)));
        if (!name.empty()) names.push_back(name);
        list.remove_prefix(std::min(comma + 1, list.size()));
    }
    return names;
}

// Returns the first PE that answers no; -1: all answer yes.
Result<int> first_refusing_pe(Bootstrap& bootstrap, bool yes) {
    const auto answers = gather(bootstrap, static_cast<std::uint8_t>(yes ? 1 : 0));
    if (!answers.ok()) return answers.status();
    const auto no = std::find(answers.value().begin(), answers.value().end(), 0);
    return no == answers.value().end() ? -1 : static_cast<int>(no - answers.value().begin());
}

}  // namespace

Result<RemoteTransportChoice> choose_remote_transport(
    const Settings& settings, bool served, Bootstrap& bootstrap,
    const std::function<Result<OwnedTransport>(const std::string& name)>& open) {
    RemoteTransportChoice out;
    const bool wanted = lowercase(settings.remote_transport) == "auto" && !served;
    auto decided = first_refusing_pe(bootstrap, wanted);
    if (!decided.ok()) return decided.status();
    if (decided.value() >= 0) {
        if (wanted)
            out.explanation = fmt::format(
                "none: PE {} selected its own, so NPUSHMEM_REMOTE_TRANSPORT=auto chose nothing", decided.value());
        return out;
    }
    std::string tried;
    for (const std::string& name : names_in(settings.remote_order)) {
        auto opened = open(name);
        auto refused = first_refusing_pe(bootstrap, opened.ok());
        if (!refused.ok()) return refused.status();
        if (refused.value() < 0) {
            out.transport = std::move(opened).value();
            out.explanation =
                fmt::format("{} (NPUSHMEM_REMOTE_TRANSPORT=auto{}{})", name, tried.empty() ? "" : "; not ", tried);
            return out;
        }
        if (!tried.empty()) tried += "; not ";
        tried += opened.ok() ? fmt::format("{}: PE {} cannot open it", name, refused.value())
                             : fmt::format("{}: {}", name, opened.status().message());
    }
    out.explanation = fmt::format("none (NPUSHMEM_REMOTE_TRANSPORT=auto tried {})",
                                  tried.empty() ? "nothing: NPUSHMEM_REMOTE_ORDER is empty" : tried);
    return out;
}

RemoteModeChoice choose_remote_mode(std::string_view ibgda, bool other_hosts, const HostOccupancy& share) {
    if (!other_hosts)
        return {npu::RemoteMode::direct, "direct to PEs that are not mapped (their transports work within a host)"};
    const bool automatic = ibgda == "auto";
    const bool room = 2 * share.pes <= share.cores;
    const bool proxied = automatic ? room : ibgda == "0";
    const std::string why = automatic ? fmt::format("; auto: {} PEs with a proxy each {} {:g} CPUs", share.pes,
                                                    room ? "have room on" : "would share", share.cores)
                                      : std::string();
    const std::string by = fmt::format("(NPUSHMEM_IB_ENABLE_IBGDA={}{})", ibgda, why);
    if (proxied) return {npu::RemoteMode::proxy, "by a proxy thread to PEs that are not mapped " + by};
    return {npu::RemoteMode::direct, "direct to PEs that are not mapped, each core by itself " + by};
}

}  // namespace npushmem
