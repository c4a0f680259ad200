#include "transports/verbs/gid_choice.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>

namespace npushmem::verbs {
namespace {

bool is_ipv4(const ibv_gid& gid) {
    constexpr std::array<std::uint8_t, 12> mapped{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
    return std::memcmp(gid.raw, mapped.data(), mapped.size()) == 0;
}

const char* name_of_type(std::uint32_t type) {
    switch (type) {
        case IBV_GID_TYPE_IB: return "InfiniBand";
        case IBV_GID_TYPE_ROCE_V1: return "RoCE v1";
        case IBV_GID_TYPE_ROCE_V2: return "RoCE v2";
        default: return "unknown";
    }
}

std::string list(std::span<const ibv_gid_entry> table) {
    std::string out;
    for (const auto& entry : table) out += (out.empty() ? "" : ", ") + text_of(entry);
    return out.empty() ? "none" : out;
}

Result<ibv_gid_entry> by_index(std::span<const ibv_gid_entry> table, int index) {
    const auto found = std::find_if(table.begin(), table.end(), [index](const ibv_gid_entry& entry) {
        return entry.gid_index == static_cast<std::uint32_t>(index);
    });
    if (found != table.end()) return *found;
    return Status{Code::config,
                  fmt::format("NPUSHMEM_IB_GID_INDEX={}: the port has no such address, but {}", index, list(table))};
}

}  // namespace

std::string text_of(const ibv_gid& gid) {
    std::array<char, INET6_ADDRSTRLEN> text{};
    return ::inet_ntop(AF_INET6, gid.raw, text.data(), text.size()) != nullptr ? text.data() : "?";
}

std::string short_text_of(const ibv_gid& gid) {
    constexpr std::string_view prefix = "::ffff:";
    const std::string text = text_of(gid);
    return is_ipv4(gid) && text.starts_with(prefix) ? text.substr(prefix.size()) : text;
}

bool is_link_local(const ibv_gid& gid) { return gid.raw[0] == 0xfe && (gid.raw[1] & 0xc0) == 0x80; }

std::string text_of(const ibv_gid_entry& entry) {
    return fmt::format("{}: {} {}", entry.gid_index, name_of_type(entry.gid_type), text_of(entry.gid));
}

Result<ibv_gid_entry> choose_gid(std::span<const ibv_gid_entry> table, bool ethernet, const VerbsSettings& settings) {
    if (settings.gid_index >= 0) return by_index(table, settings.gid_index);
    if (!ethernet) return by_index(table, 0);
    const std::uint32_t type = settings.roce_version == 1 ? IBV_GID_TYPE_ROCE_V1 : IBV_GID_TYPE_ROCE_V2;
    const bool want_ipv4 = settings.family == AddressFamily::ipv4;
    const ibv_gid_entry* best = nullptr;
    for (const auto& entry : table) {
        const bool wanted = settings.range ? settings.range->has(entry.gid.raw) : is_ipv4(entry.gid) == want_ipv4;
        if (entry.gid_type != type || !wanted) continue;
        // Routers do not forward addresses of the link.
        if (best == nullptr || (is_link_local(best->gid) && !is_link_local(entry.gid))) best = &entry;
    }
    if (best != nullptr) return *best;
    const std::string which = settings.range ? "in NPUSHMEM_IB_ADDR_RANGE=" + settings.range->text()
                              : want_ipv4    ? "and IPv4"
                                             : "and IPv6";
    return Status{Code::config,
                  fmt::format("the port has no address of RoCE v{} {}, but {}; NPUSHMEM_IB_ROCE_VERSION_NUM, "
                              "NPUSHMEM_IB_ADDR_FAMILY or NPUSHMEM_IB_GID_INDEX choose another",
                              settings.roce_version, which, list(table))};
}

}  // namespace npushmem::verbs
