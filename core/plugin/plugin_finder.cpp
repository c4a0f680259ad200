// SPDX-License-Identifier: BSD-3-Clause
#include "core/plugin/plugin_finder.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <link.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <system_error>

#include "core/base/parse.hpp"

#ifndef NPUSHMEM_INSTALLED_PLUGIN_DIR
#define NPUSHMEM_INSTALLED_PLUGIN_DIR "/usr/local/lib/npushmem"
#endif
#ifndef NPUSHMEM_BIN_TO_LIB
#define NPUSHMEM_BIN_TO_LIB "../lib"
#endif

namespace npushmem {
namespace {

namespace fs = std::filesystem;

// One spelling per directory.
std::string normal(const fs::path& directory) {
    std::error_code error;
    fs::path out = fs::weakly_canonical(directory, error);
    if (error) out = directory.lexically_normal();
    return out.string();
}

// A directory under two names is searched once.
void append_once(std::vector<std::string>& list, std::string text) {
    const auto is_same = [&](const std::string& other) {
        std::error_code error;  // of a directory that does not exist
        return other == text || fs::equivalent(other, text, error);
    };
    if (std::none_of(list.begin(), list.end(), is_same)) list.push_back(std::move(text));
}

// Returns the dynamic linker's name of the library that contains `address`; "" for the main program. dladdr would
// search all symbols of the library too.
std::string name_of_object_with(std::uintptr_t address) {
    struct Search {
        std::uintptr_t address;
        std::string name;
    } search{address, {}};
    const auto visit = [](dl_phdr_info* object, std::size_t /*bytes*/, void* context) {
        Search& wanted = *static_cast<Search*>(context);
        const auto contains = [&](const ElfW(Phdr) & part) {
            return part.p_type == PT_LOAD && wanted.address - (object->dlpi_addr + part.p_vaddr) < part.p_memsz;
        };
        if (std::none_of(object->dlpi_phdr, object->dlpi_phdr + object->dlpi_phnum, contains)) return 0;
        wanted.name = object->dlpi_name == nullptr ? "" : object->dlpi_name;
        return 1;
    };
    (void)dl_iterate_phdr(visit, &search);
    return search.name;
}

}  // namespace

std::string directory_of_this_library() {
    const std::string name = name_of_object_with(reinterpret_cast<std::uintptr_t>(&directory_of_this_library));
    std::error_code error;
    const fs::path file = name.empty() ? fs::read_symlink("/proc/self/exe", error) : fs::path(name);
    if (error) return {};
    // std::filesystem would examine each folder twice.
    const std::unique_ptr<char, decltype([](char* text) { std::free(text); })> real(::realpath(file.c_str(), nullptr));
    return (real != nullptr ? fs::path(real.get()) : file).parent_path().string();
}

std::vector<std::string> plugin_search_path(std::string_view user_path) {
    return plugin_search_path_from(user_path, directory_of_this_library());
}

std::vector<std::string> plugin_search_path_from(std::string_view user_path, std::string_view own_directory) {
    std::vector<std::string> out;
    for (const auto& directory : split(user_path, ':'))
        if (!directory.empty()) append_once(out, normal(directory));
    if (const fs::path own = own_directory; !own.empty()) {
        // Programs that contain this code may have their libraries in lib64 or lib/<architecture>.
        for (const char* const beside : {".", "../lib", NPUSHMEM_BIN_TO_LIB})
            append_once(out, (own / beside / "npushmem").lexically_normal().string());
    }
    append_once(out, NPUSHMEM_INSTALLED_PLUGIN_DIR);
    return out;
}

std::vector<std::string> missing_directories(std::string_view user_path) {
    std::vector<std::string> out;
    for (const auto& directory : split(user_path, ':')) {
        std::error_code error;
        if (directory.empty() || fs::is_directory(directory, error)) continue;
        out.push_back(fmt::format("NPUSHMEM_PLUGIN_PATH names '{}', which is not a directory", directory));
    }
    return out;
}

}  // namespace npushmem

namespace npushmem {

namespace {

constexpr std::array<std::string_view, 10> stage_names{"found", "opened",    "entry",        "major",         "size",
                                                       "name",  "functions", "capabilities", "configuration", "open"};
constexpr std::string_view suffix = ".so";

std::string prefix_of(PluginKind kind) { return "libnpushmem_" + std::string(name_of(kind)) + "_"; }

bool is_lower(char c) { return c >= 'a' && c <= 'z'; }
bool is_name_character(char c) { return is_lower(c) || (c >= '0' && c <= '9') || c == '_' || c == '-'; }

}  // namespace

std::string_view name_of(PluginKind kind) {
    constexpr std::array<std::string_view, std::size(all_plugin_kinds)> names{"transport", "bootstrap", "collectives"};
    return names.at(static_cast<std::size_t>(kind));
}

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

namespace {

namespace fs = std::filesystem;

bool is_file(const fs::path& path) {
    std::error_code error;
    return fs::is_regular_file(path, error);
}

// Describes why a path is not a regular file.
std::string what_is_at(const fs::path& path) {
    std::error_code error;
    const fs::file_status status = fs::status(path, error);
    std::error_code ignored;
    const bool link = fs::is_symlink(fs::symlink_status(path, ignored));
    if (status.type() == fs::file_type::not_found)
        return link ? "it is a link to a file that does not exist" : "there is no such file";
    if (error) return error.message();
    return status.type() == fs::file_type::directory ? "it is a directory" : "it is not a regular file";
}

std::vector<std::string> names_of(const std::vector<FoundPlugin>& plugins) {
    std::vector<std::string> out;
    out.reserve(plugins.size());
    for (const auto& plugin : plugins) out.push_back(plugin.name);
    return out;
}

std::string with_state(const std::string& directory) {
    std::error_code error;
    return fs::is_directory(directory, error) ? directory : directory + " (no such directory)";
}

std::string listed(const std::vector<std::string>& directories) {
    std::vector<std::string> out(directories.size());
    std::ranges::transform(directories, out.begin(), with_state);
    return out.empty() ? "no directory" : fmt::format("{}", fmt::join(out, ", "));
}

// Adds the plugins of one directory; names already listed hide them.
void scan_directory(PluginKind kind, const std::string& directory, std::map<std::string, FoundPlugin>& found) {
    std::error_code error;
    for (fs::directory_iterator entry(directory, error), end; !error && entry != end; entry.increment(error)) {
        const std::string name = plugin_name_in(kind, entry->path().filename().string());
        if (name.empty()) continue;
        std::string path = fs::absolute(entry->path()).string();
        auto [place, inserted] = found.try_emplace(name, FoundPlugin{kind, name, path, {}});
        if (inserted) continue;
        // As in find(), only a regular file hides later ones.
        if (!is_file(place->second.path) && is_file(path)) std::swap(place->second.path, path);
        place->second.shadowed.push_back(std::move(path));
    }
}

}  // namespace

Result<FoundPlugin> PluginFinder::find(PluginKind kind, std::string_view name_or_path) const {
    if (name_or_path.find('/') != std::string_view::npos) return find_path(kind, name_or_path);
    if (!is_plugin_name(name_or_path)) return missing(kind, name_or_path);
    for (const auto& directory : directories_) {
        const fs::path path = fs::path(directory) / plugin_file_name(kind, name_or_path);
        if (is_file(path)) return FoundPlugin{kind, std::string(name_or_path), fs::absolute(path).string(), {}};
    }
    return missing(kind, name_or_path);
}

Result<FoundPlugin> PluginFinder::find_path(PluginKind kind, std::string_view path) const {
    const fs::path file = fs::absolute(path);
    if (!is_file(file))
        return Status{Code::plugin_missing,
                      fmt::format("cannot load {} plugin '{}': {}", name_of(kind), path, what_is_at(file))};
    std::string name = plugin_name_in(kind, file.filename().string());
    if (name.empty())
        return Status{Code::plugin_missing,
                      fmt::format("cannot load {0} plugin '{1}': a {0} plugin's file must be called "
                                  "libnpushmem_{0}_<name>.so with a lower-case <name>; rename it",
                                  name_of(kind), path)};
    return FoundPlugin{kind, std::move(name), file.string(), {}};
}

std::vector<AbsentPlugin> absent_plugins(const std::vector<std::string>& folders) {
    std::vector<AbsentPlugin> out;
    for (const auto& folder : folders) {
        std::ifstream list(fs::path(folder) / "absent-plugins.txt");
        std::string kind;
        AbsentPlugin next{};
        while (list >> kind >> next.name && std::getline(list >> std::ws, next.why)) {
            next.kind = PluginKind::transport;
            for (const PluginKind known : all_plugin_kinds)
                if (kind == name_of(known)) next.kind = known;
            out.push_back(next);
        }
    }
    return out;
}

Status PluginFinder::missing(PluginKind kind, std::string_view name) const {
    const std::vector<FoundPlugin> all = scan(kind);
    for (const auto& plugin : all)
        if (plugin.name == name)
            return {Code::plugin_missing, fmt::format("cannot load {} plugin '{}': {}: {}", name_of(kind), name,
                                                      plugin.path, what_is_at(plugin.path))};
    for (const AbsentPlugin& absent : absent_plugins(directories_))
        if (absent.kind == kind && absent.name == name)
            return {Code::plugin_missing,
                    fmt::format("{} plugin '{}' is not installed: {}", name_of(kind), name, absent.why)};
    const std::vector<std::string> present = names_of(all);
    const std::string similar = nearest(name, present);
    std::string text = fmt::format("there is no {} plugin '{}'", name_of(kind), name);
    text += similar.empty() ? "." : fmt::format("; did you mean '{}'?", similar);
    text += fmt::format(" Looked for {} in: {}.", plugin_file_name(kind, name), listed(directories_));
    text += present.empty() ? " No such plugin is there;" : fmt::format(" There: {};", fmt::join(present, ", "));
    text += " set NPUSHMEM_PLUGIN_PATH to the directory that has it";
    return {Code::plugin_missing, std::move(text)};
}

std::vector<FoundPlugin> PluginFinder::scan(PluginKind kind) const {
    std::map<std::string, FoundPlugin> found;
    for (const auto& directory : directories_) scan_directory(kind, directory, found);
    std::vector<FoundPlugin> out;
    out.reserve(found.size());
    for (auto& [name, plugin] : found) out.push_back(std::move(plugin));
    return out;
}

}  // namespace npushmem
