// SPDX-License-Identifier: BSD-3-Clause
// Tables of plugins, their configuration rows, names of plugin files, and lists of absent plugins.
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "core/plugin/plugin_table.hpp"
#include "core/tools/info/reports.hpp"
#include "tests/fuzz/targets.hpp"

namespace npushmem::fuzz {
namespace {

// Each word of a table is a pointer to a function, which is never called, or null: one bit of the input each.
template <class Table>
void check_table(Taker& in) {
    Table table{};
    const Input bits = in.bytes(sizeof table / sizeof(void*) / 8 + 1);
    const auto placeholder = reinterpret_cast<std::uintptr_t>(&plugin_tables);
    for (std::size_t i = 1; i < sizeof table / sizeof(void*) && i / 8 < bits.size(); ++i)
        if ((bits[i / 8] & std::byte{1} << (i % 8)) != std::byte{0})
            std::memcpy(reinterpret_cast<std::byte*>(&table) + i * sizeof(void*), &placeholder, sizeof placeholder);
    table.summary = nullptr;
    if constexpr (std::is_same_v<Table, npushmem_transport_v1>) {
        const Input capabilities = in.bytes(sizeof table.capabilities);
        table.capabilities = 0;
        std::memcpy(&table.capabilities, capabilities.data(), capabilities.size());
        require(!capability_names(table.capabilities).empty(), "capabilities without names");
    }
    (void)TableTraits<Table>::capability_conflict(table);
    TableTraits<Table>::fill_defaults(table);
    require(table.summary != nullptr, "a completed table has no summary");
}

// Four lines for each row; the line "-" gives a null pointer.
void check_rows(Taker& in) {
    std::vector<std::array<std::string, 4>> texts;
    while (!in.empty() && texts.size() < 64) texts.push_back({in.line(), in.line(), in.line(), in.line()});
    std::vector<npushmem_config_row> rows;
    const auto pointer = [](const std::string& text) { return text == "-" ? nullptr : text.c_str(); };
    for (const auto& [name, value, type, meaning] : texts)
        rows.push_back({pointer(name), pointer(value), pointer(type), pointer(meaning)});
    const std::string error = config_row_error(rows.data(), static_cast<std::uint32_t>(rows.size()));
    for (const auto& row : rows)
        require(!error.empty() || (row.name != nullptr && *row.name != '\0' && row.meaning != nullptr),
                "an incomplete row is accepted");
}

void check_name(std::string_view file) {
    for (const PluginKind kind : {PluginKind::transport, PluginKind::bootstrap}) {
        const std::string name = plugin_name_in(kind, file);
        if (name.empty()) continue;
        require(is_plugin_name(name), "an impossible name of a plugin: " + name);
        require(plugin_file_name(kind, name) == file, "the name of a plugin's file changes");
    }
    const auto folders = plugin_search_path_from(file, "");
    for (const auto& folder : folders)
        require(std::ranges::count(folders, folder) == 1, "a folder is searched twice: " + folder);
}

// The file is in a folder of this process.
void check_absent_plugins(std::string_view text) {
    std::string folder = (std::filesystem::temp_directory_path() / "npushmem-fuzz-XXXXXX").string();
    require(::mkdtemp(folder.data()) != nullptr, "no temporary folder");
    std::ofstream(folder + "/absent-plugins.txt") << text;
    const auto absent = absent_plugins({folder});
    std::filesystem::remove_all(folder);
    for (const auto& plugin : absent) require(!plugin.name.empty(), "an absent plugin has no name");
}

}  // namespace

// The first byte selects the check.
void plugin_tables(Input input) {
    Taker in(input);
    switch (in.byte() % 5) {
        case 0: return check_table<npushmem_transport_v1>(in);
        case 1: return check_table<npushmem_bootstrap_v1>(in);
        case 2: return check_rows(in);
        case 3: return check_name(text_of(in.rest()));
        default: return check_absent_plugins(text_of(in.rest()));
    }
}

}  // namespace npushmem::fuzz
