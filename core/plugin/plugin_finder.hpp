// Finds plugin files by name, without opening any.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/plugin/plugin_kind.hpp"
#include "npushmem/plugin/status.hpp"

namespace npushmem {

struct FoundPlugin {
    PluginKind kind;
    std::string name;
    std::string path;                   // absolute
    std::vector<std::string> shadowed;  // files of the same name in later directories; scan() fills it, find() does not
};

// An immutable value; any thread.
class PluginFinder {
public:
    explicit PluginFinder(std::vector<std::string> directories) : directories_(std::move(directories)) {}

    [[nodiscard]] const std::vector<std::string>& directories() const { return directories_; }

    // By name: one look-up per directory, the first that has the file wins. Something with a '/' is a file's path, and
    // is taken whatever the search path says. Code::plugin_missing says where was looked and what is there instead.
    [[nodiscard]] Result<FoundPlugin> find(PluginKind kind, std::string_view name_or_path) const;

    // Everything whose file name is that of a plugin of this kind, sorted by name. Reads directories.
    [[nodiscard]] std::vector<FoundPlugin> scan(PluginKind kind) const;

private:
    [[nodiscard]] Result<FoundPlugin> find_path(PluginKind kind, std::string_view path) const;
    [[nodiscard]] Status missing(PluginKind kind, std::string_view name) const;

    std::vector<std::string> directories_;
};

}  // namespace npushmem
