#include "core/plugin/plugin_finder.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <system_error>

#include "core/base/strings.hpp"

namespace npushmem {
namespace {

namespace fs = std::filesystem;

bool is_file(const fs::path& path) {
    std::error_code error;
    return fs::is_regular_file(path, error);
}

// What is wrong with a path at which no regular file is.
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

// Adds the plugins of one directory; names already there hide them.
void scan_directory(PluginKind kind, const std::string& directory, std::map<std::string, FoundPlugin>& found) {
    std::error_code error;
    for (fs::directory_iterator entry(directory, error), end; !error && entry != end; entry.increment(error)) {
        const std::string name = plugin_name_in(kind, entry->path().filename().string());
        if (name.empty()) continue;
        std::string path = fs::absolute(entry->path()).string();
        auto [place, inserted] = found.try_emplace(name, FoundPlugin{kind, name, path, {}});
        if (inserted) continue;
        // As find() does: what is no regular file hides none.
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

Status PluginFinder::missing(PluginKind kind, std::string_view name) const {
    const std::vector<FoundPlugin> all = scan(kind);
    for (const auto& plugin : all)
        if (plugin.name == name)
            return {Code::plugin_missing, fmt::format("cannot load {} plugin '{}': {}: {}", name_of(kind), name,
                                                      plugin.path, what_is_at(plugin.path))};
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
