// SPDX-License-Identifier: BSD-3-Clause
#include "core/plugin/loader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <exception>

#include "core/plugin/shared_library.hpp"

namespace npushmem {
namespace {

// Tables of all versions are far smaller; a larger size means that the pointer is not a table's.
constexpr std::uint32_t max_table_bytes = 16 * 1024;
constexpr int oldest_major = 0;
constexpr int newest_major = 64;

std::string entry_name(PluginKind kind, int major) {
    return fmt::format("npushmem_{}_entry_v{}", name_of(kind), major);
}

Status refused(std::string reason) { return {Code::plugin_refused, std::move(reason)}; }

// Prefixes the file and the stage to the reason, which contains versions and remedy.
Status at_stage(const FoundPlugin& found, LoadStage stage, const Status& why) {
    return {why.code(), fmt::format("{} plugin '{}' refused at stage '{}': {} [{}]", name_of(found.kind), found.name,
                                    name_of(stage), why.message(), found.path)};
}

std::string version_remedy(PluginKind kind, int theirs, int ours) {
    return fmt::format("it uses version {} of the {} interface, this runtime uses version {}: it is too {}; {}", theirs,
                       name_of(kind), ours, theirs < ours ? "old" : "new",
                       theirs < ours ? "rebuild it with this runtime's headers" : "use a newer npushmem");
}

// In a file of several plugins the names of the entry symbols end in those of the plugins.
std::string entry_ending(std::string plugin) {
    std::ranges::replace(plugin, '-', '_');
    return "_" + plugin;
}

std::optional<SharedLibrary::Symbol> find_entry(const SharedLibrary& library, const FoundPlugin& found, int major) {
    const auto named = library.find((entry_name(found.kind, major) + entry_ending(found.name)).c_str());
    if (named && named->own) return named;
    const auto common = library.find(entry_name(found.kind, major).c_str());
    return common ? common : named;
}

// The entry symbol is missing: checks for that of another major version.
Status no_entry(const SharedLibrary& library, const FoundPlugin& found, int ours, LoadStage& stage) {
    for (int major = oldest_major; major <= newest_major; ++major) {
        const auto other = find_entry(library, found, major);
        if (major == ours || !other || !other->own) continue;
        stage = LoadStage::major;
        return refused(version_remedy(found.kind, major, ours));
    }
    std::string why = "it is not an npushmem plugin, or it lacks the export macro at the end of a source file";
    for (const PluginKind otherwise : all_plugin_kinds)
        if (otherwise != found.kind && find_entry(library, {otherwise, found.name, {}, {}}, 1).has_value())
            why = fmt::format("it is a {} plugin, rename the file", name_of(otherwise));
    return refused(
        fmt::format("it does not export {}, nor the same with {} behind it, as a file of several plugins "
                    "does; {}",
                    entry_name(found.kind, ours), entry_ending(found.name), why));
}

Result<void*> own_entry(const SharedLibrary& library, const FoundPlugin& found, int ours, LoadStage& stage) {
    const auto symbol = find_entry(library, found, ours);
    if (!symbol) return no_entry(library, found, ours, stage);
    if (!symbol->own)
        return refused(
            fmt::format("{} is defined by {}, which it depends on, and not by itself: a plugin must not link "
                        "another plugin",
                        entry_name(found.kind, ours), symbol->owner));
    return symbol->address;
}

template <class Table>
Result<const Table*> table_from(void* entry) {
    try {
        const Table* table = reinterpret_cast<const Table* (*)()>(entry)();
        if (table == nullptr) return refused("its entry function returned no table");
        return table;
    } catch (const std::exception& thrown) {
        return refused(fmt::format("its entry function threw: {}", thrown.what()));
    } catch (...) {
        return refused("its entry function threw an object that is not a std::exception");
    }
}

Status cannot_be_read(std::string_view what, const void* address) {
    return refused(fmt::format("{} is at {}, where no memory can be read", what, fmt::ptr(address)));
}

// Only the header may be read before the table is known to be valid.
template <class Table>
Result<TableHeader> header_of(const Table* table) {
    TableHeader header{};
    if (!is_readable(table, sizeof header)) return cannot_be_read("its table", table);
    std::memcpy(&header, static_cast<const void*>(table), sizeof header);
    return header;
}

template <class Table>
Status check_texts(const Table& table) {
    ReadableTexts texts;
    if (table.name != nullptr && !texts.contain(table.name)) return cannot_be_read("its table's name", table.name);
    if (table.summary != nullptr && !texts.contain(table.summary))
        return cannot_be_read("its table's summary", table.summary);
    return {};
}

template <class Table>
Status check_major(const TableHeader& header) {
    using Traits = TableTraits<Table>;
    return header.major == Traits::major ? Status{}
                                         : refused(version_remedy(Traits::kind, header.major, Traits::major));
}

template <class Table>
Status check_size(const TableHeader& header) {
    using Traits = TableTraits<Table>;
    const auto version = fmt::format("table version {}.{}", header.major, header.minor);
    if (header.struct_size < Traits::min_bytes)
        return refused(
            fmt::format("its {} has {} bytes; the mandatory functions alone need {}: rebuild it with the "
                        "published headers",
                        version, header.struct_size, Traits::min_bytes));
    if (header.struct_size > max_table_bytes || header.struct_size % alignof(Table) != 0)
        return refused(
            fmt::format("its {} claims {} bytes, which cannot be true (this runtime's has {}): struct_size "
                        "must be sizeof of the table",
                        version, header.struct_size, sizeof(Table)));
    return {};
}

// Returns the host's full-size copy of the plugin's table.
template <class Table>
Result<Table> copy_of(const Table* given, std::size_t bytes) {
    if (!is_readable(given, bytes)) return cannot_be_read("the end of its table", given);
    Table table{};
    std::memcpy(&table, given, std::min(bytes, sizeof table));
    table.struct_size = sizeof table;
    return table;
}

template <class Table>
Status check_name(const Table& table, const FoundPlugin& found) {
    if (table.name == nullptr) return refused("its table has no name");
    if (found.name == table.name) return {};
    return refused(fmt::format("its table has the name '{}', its file '{}': rename the file to {}", table.name,
                               found.name, plugin_file_name(found.kind, table.name)));
}

Status refused_if(std::string complaint) { return complaint.empty() ? Status{} : refused(std::move(complaint)); }

template <class Table>
Status check_functions(const Table& table) {
    const std::string missing = TableTraits<Table>::missing_function(table);
    return missing.empty() ? Status{} : refused(fmt::format("it lacks the mandatory function '{}'", missing));
}

// The stages between the table and `open`, in order; `stage` advances with them.
template <class Table>
Result<Table> validated_table(const Table* given, const FoundPlugin& found, LoadStage& stage) {
    using Traits = TableTraits<Table>;
    const auto pass = [&stage](LoadStage next) { stage = next; };
    const auto header = header_of(given);
    if (!header.ok()) return header.status();
    pass(LoadStage::major);
    if (Status s = check_major<Table>(header.value()); !s.ok()) return s;
    pass(LoadStage::size);
    if (Status s = check_size<Table>(header.value()); !s.ok()) return s;
    auto copied = copy_of(given, header.value().struct_size);
    if (!copied.ok()) return copied.status();
    Table& table = copied.value();
    pass(LoadStage::name);
    if (Status s = check_texts(table); !s.ok()) return s;
    if (Status s = check_name(table, found); !s.ok()) return s;
    pass(LoadStage::functions);
    if (Status s = check_functions(table); !s.ok()) return s;
    pass(LoadStage::capabilities);
    if (Status s = refused_if(Traits::capability_conflict(table)); !s.ok()) return s;
    pass(LoadStage::configuration);
    if (Status s = refused_if(config_row_error(table.config, table.config_count)); !s.ok()) return s;
    Traits::fill_defaults(table);
    return copied;
}

template <class Table>
Result<Table> table_in(const SharedLibrary& library, const FoundPlugin& found, LoadStage& stage) {
    stage = LoadStage::entry;
    auto entry = own_entry(library, found, TableTraits<Table>::major, stage);
    if (!entry.ok()) return entry.status();
    auto given = table_from<Table>(entry.value());
    return given.ok() ? validated_table(given.value(), found, stage) : Result<Table>(given.status());
}

template <class Table>
using Loaded = Result<std::shared_ptr<const LoadedPlugin<Table>>>;

template <class Table>
Loaded<Table> load_file(const FoundPlugin& found, LoadStage& stage) {
    stage = LoadStage::opened;
    auto library = SharedLibrary::open(found.path);
    if (!library.ok()) return at_stage(found, stage, library.status());
    auto table = table_in<Table>(library.value(), found, stage);
    if (!table.ok()) return at_stage(found, stage, table.status());
    const std::uint16_t minor = table.value().minor;
    return std::make_shared<const LoadedPlugin<Table>>(found, std::move(library).value(), table.value(), minor);
}

template <class Table>
Loaded<Table> load_given(const Table* given) {
    const FoundPlugin found{TableTraits<Table>::kind, given->name, "in this program", {}};
    LoadStage stage = LoadStage::entry;
    auto table = validated_table(given, found, stage);
    if (!table.ok()) return at_stage(found, stage, table.status());
    return std::make_shared<const LoadedPlugin<Table>>(found, SharedLibrary(), table.value(), table.value().minor);
}

const std::vector<const npushmem_transport_v1*>& given_of(const PluginFinder& finder, const npushmem_transport_v1*) {
    return finder.given().transports;
}
const std::vector<const npushmem_bootstrap_v1*>& given_of(const PluginFinder& finder, const npushmem_bootstrap_v1*) {
    return finder.given().bootstraps;
}
const std::vector<const npushmem_collectives_v1*>& given_of(const PluginFinder& finder,
                                                            const npushmem_collectives_v1*) {
    return finder.given().collectives;
}

template <class Table>
Loaded<Table> load(const PluginFinder& finder, std::string_view name_or_path) {
    for (const Table* given : given_of(finder, static_cast<const Table*>(nullptr)))
        if (given->name == name_or_path) return load_given(given);
    auto found = finder.find(TableTraits<Table>::kind, name_or_path);
    if (!found.ok()) return found.status();
    LoadStage stage{};
    return load_file<Table>(found.value(), stage);
}

}  // namespace

Result<std::shared_ptr<const LoadedTransport>> load_transport(const PluginFinder& finder,
                                                              std::string_view name_or_path) {
    return load<npushmem_transport_v1>(finder, name_or_path);
}

Result<std::shared_ptr<const LoadedBootstrap>> load_bootstrap(const PluginFinder& finder,
                                                              std::string_view name_or_path) {
    return load<npushmem_bootstrap_v1>(finder, name_or_path);
}

Result<std::shared_ptr<const LoadedCollectives>> load_collectives(const PluginFinder& finder,
                                                                  std::string_view name_or_path) {
    return load<npushmem_collectives_v1>(finder, name_or_path);
}

Result<std::shared_ptr<const LoadedTransport>> load_transport_file(const FoundPlugin& found, LoadStage& stage) {
    return load_file<npushmem_transport_v1>(found, stage);
}

Result<std::shared_ptr<const LoadedBootstrap>> load_bootstrap_file(const FoundPlugin& found, LoadStage& stage) {
    return load_file<npushmem_bootstrap_v1>(found, stage);
}

Result<std::shared_ptr<const LoadedCollectives>> load_collectives_file(const FoundPlugin& found, LoadStage& stage) {
    return load_file<npushmem_collectives_v1>(found, stage);
}

}  // namespace npushmem
