#include "core/plugin/plugin_kind.hpp"

#include <algorithm>
#include <array>

namespace npushmem {
namespace {

constexpr std::array<std::string_view, 10> stage_names{"found", "opened",    "entry",        "major",         "size",
                                                       "name",  "functions", "capabilities", "configuration", "open"};
constexpr std::string_view suffix = ".so";

std::string prefix_of(PluginKind kind) { return "libnpushmem_" + std::string(name_of(kind)) + "_"; }

bool is_lower(char c) { return c >= 'a' && c <= 'z'; }
bool is_name_character(char c) { return is_lower(c) || (c >= '0' && c <= '9') || c == '_' || c == '-'; }

}  // namespace

std::string_view name_of(PluginKind kind) { return kind == PluginKind::transport ? "transport" : "bootstrap"; }

std::string_view name_of(LoadStage stage) { return stage_names.at(static_cast<std::size_t>(stage)); }

std::string plugin_file_name(PluginKind kind, std::string_view name) {
    return prefix_of(kind).append(name).append(suffix);
}

std::string plugin_name_in(PluginKind kind, std::string_view file) {
    const std::string prefix = prefix_of(kind);
    if (!file.starts_with(prefix) || !file.ends_with(suffix) || file.size() < prefix.size() + suffix.size()) return {};
    const std::string_view name = file.substr(prefix.size(), file.size() - prefix.size() - suffix.size());
    return is_plugin_name(name) ? std::string(name) : std::string();
}

bool is_plugin_name(std::string_view name) {
    return !name.empty() && is_lower(name.front()) && std::all_of(name.begin(), name.end(), is_name_character);
}

}  // namespace npushmem
