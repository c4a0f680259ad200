// The vocabulary of loading: kinds of plugins, the stages that a file passes, and what a refusal says.
#pragma once

#include <string>
#include <string_view>

namespace npushmem {

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

}  // namespace npushmem
