// Where plugins are looked for.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "npushmem/plugin/status.hpp"

namespace npushmem {

// Directories in order of preference, without repetitions:
//   1. those of `user_path` (the value of NPUSHMEM_PLUGIN_PATH, separated by colons);
//   2. beside this library, or beside the program that it was linked into: <dir>/npushmem, <dir>/../lib/npushmem;
//   3. the directory in which plugins are installed.
// Directories need not exist.
std::vector<std::string> plugin_search_path(std::string_view user_path);

// The same as a library in `own` would search: what a program that does not link the library tells of it. "" for none.
std::vector<std::string> plugin_search_path_from(std::string_view user_path, std::string_view own);

// A sentence for each directory of `user_path` that does not exist.
std::vector<std::string> missing_directories(std::string_view user_path);

// The directory of the file that this code was loaded from; "" when the system does not tell.
std::string directory_of_this_library();

// The vocabulary of loading: kinds of plugins, the stages that a file passes, and what a refusal says.
enum class PluginKind { transport, bootstrap };

// In the order in which a file passes them. A refusal names the stage that it did not pass.
enum class LoadStage {
    found,          // a file of that name exists in the search path
    opened,         // the dynamic linker accepts it
    entry,          // it defines the entry symbol itself
    major,          // built for this major version of the table
    size,           // the table's size is possible
    name,           // the table's name is the file's
    functions,      // mandatory functions are there
    capabilities,   // each capability has its functions
    configuration,  // configuration rows are sane, and so are the values they have
    open,           // the plugin's own open accepts
};

// A refusal is a value: which stage, and a text for people that names the file, the versions and what to do.
struct Refusal {
    LoadStage stage;
    std::string text;
};

std::string_view name_of(PluginKind kind);
std::string_view name_of(LoadStage stage);

// "p2p" → "libnpushmem_transport_p2p.so"
std::string plugin_file_name(PluginKind kind, std::string_view name);
// The reverse; "" when `file` is no such file's name.
std::string plugin_name_in(PluginKind kind, std::string_view file);
// Lower-case letters, digits, '_' and '-', starting with a letter: what may stand in a file's name without surprises.
bool is_plugin_name(std::string_view name);

// Finds plugin files by name, without opening any.
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
