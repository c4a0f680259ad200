// SPDX-License-Identifier: BSD-3-Clause
// Finds plugin files by name along a search path, without opening any.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "npushmem/plugin/bootstrap.h"
#include "npushmem/plugin/collectives.h"
#include "npushmem/plugin/status.hpp"
#include "npushmem/plugin/transport.h"

namespace npushmem {

// Directories in order of preference, without repetitions:
//   1. those of `user_path` (the value of NPUSHMEM_PLUGIN_PATH, separated by colons);
//   2. beside this library, or beside the program that it was linked into: <dir>/npushmem, <dir>/../lib/npushmem;
//   3. the directory in which plugins are installed.
// Directories need not exist.
std::vector<std::string> plugin_search_path(std::string_view user_path);

// The same for a library in the directory `own`, for programs that do not link the library. "" for none.
std::vector<std::string> plugin_search_path_from(std::string_view user_path, std::string_view own);

// Returns a sentence for each directory of `user_path` that does not exist.
std::vector<std::string> missing_directories(std::string_view user_path);

// Returns the directory of the file that contains this code; "" if the system does not report it.
std::string directory_of_this_library();

enum class PluginKind { transport, bootstrap, collectives };
inline constexpr PluginKind all_plugin_kinds[] = {PluginKind::transport, PluginKind::bootstrap,
                                                  PluginKind::collectives};

// The stages of loading, in order. A refusal names the stage that failed.
enum class LoadStage {
    found,          // a file of that name exists in the search path
    opened,         // the dynamic linker accepts it
    entry,          // it defines the entry symbol itself
    major,          // built for this major version of the table
    size,           // the table's size is possible
    name,           // the table's name is the file's
    functions,      // all mandatory functions are present
    capabilities,   // each capability has its functions
    configuration,  // configuration rows and their values are valid
    open,           // the plugin's open succeeds
};

// The stage that failed, and a text for people that names the file, the versions and the remedy.
struct Refusal {
    LoadStage stage;
    std::string text;
};

std::string_view name_of(PluginKind kind);
std::string_view name_of(LoadStage stage);

// "p2p" → "libnpushmem_transport_p2p.so"
std::string plugin_file_name(PluginKind kind, std::string_view name);
// The reverse; "" if `file` is no such name.
std::string plugin_name_in(PluginKind kind, std::string_view file);
// Returns whether `name` has only lower-case letters, digits, '_' and '-', and starts with a letter.
bool is_plugin_name(std::string_view name);

struct FoundPlugin {
    PluginKind kind;
    std::string name;
    std::string path;                   // absolute
    std::vector<std::string> shadowed;  // files of the same name in later directories; filled by scan(), not by find()
};

// A plugin that is not installed, with the reason or the remedy.
struct AbsentPlugin {
    PluginKind kind;
    std::string name;
    std::string why;
};

// Reads the list that the build writes into a plugin folder, from each folder that has one.
std::vector<AbsentPlugin> absent_plugins(const std::vector<std::string>& folders);

// Plugins that the program contains. Each is used instead of a file of its name, and outlives its users.
struct GivenPlugins {
    std::vector<const npushmem_transport_v1*> transports;
    std::vector<const npushmem_bootstrap_v1*> bootstraps;
    std::vector<const npushmem_collectives_v1*> collectives;
};

// An immutable value; any thread.
class PluginFinder {
public:
    explicit PluginFinder(std::vector<std::string> directories, GivenPlugins given = {})
        : directories_(std::move(directories)), given_(std::move(given)) {}

    [[nodiscard]] const std::vector<std::string>& directories() const { return directories_; }
    [[nodiscard]] const GivenPlugins& given() const { return given_; }

    // Finds a plugin by name in the first directory that has its file. A string with a '/' is a file's path, which is
    // used whatever the search path contains. Code::plugin_missing lists the searched directories and the plugins in
    // them.
    [[nodiscard]] Result<FoundPlugin> find(PluginKind kind, std::string_view name_or_path) const;

    // Returns all files named as plugins of this kind, sorted by name. Reads directories.
    [[nodiscard]] std::vector<FoundPlugin> scan(PluginKind kind) const;

private:
    [[nodiscard]] Result<FoundPlugin> find_path(PluginKind kind, std::string_view path) const;
    [[nodiscard]] Status missing(PluginKind kind, std::string_view name) const;

    std::vector<std::string> directories_;
    GivenPlugins given_;
};

}  // namespace npushmem
