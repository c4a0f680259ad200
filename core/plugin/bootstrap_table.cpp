// The checks and the stubs of the bootstrap table, and the check of configuration rows that both tables share.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "core/base/config.hpp"
#include "core/plugin/plugin_table.hpp"
#include "core/plugin/readable_memory.hpp"
#include "npushmem/plugin/status.hpp"

namespace npushmem {
namespace {

constexpr std::uint32_t max_rows = 1024;

void no_abort(void*, const char*) {}
std::int32_t no_failure(void*, npushmem_error*) { return NPUSHMEM_OK; }
std::int32_t no_uniqueid(const npushmem_host*, void*, npushmem_error* error) {
    return report(Code::unsupported, "this bootstrap makes no unique ids", error);
}

std::int32_t waits_for_every_rank(const npushmem_host*, const void*, std::int32_t, std::int32_t, const char*,
                                  npushmem_error* error) {
    return report(Code::unsupported, "this bootstrap waits for every rank until its time-out", error);
}

std::int32_t no_recognise(const npushmem_host*, const npushmem_bootstrap_params*, npushmem_error*) { return 0; }

std::string unreadable_row(const npushmem_config_row* rows, std::uint32_t count) {
    if (!is_readable(rows, count * sizeof *rows))
        return fmt::format("its {} configuration rows are at {}, where no memory can be read", count, fmt::ptr(rows));
    for (std::uint32_t i = 0; i < count; ++i)
        for (const char* text : {rows[i].name, rows[i].default_value, rows[i].type, rows[i].meaning})
            if (text != nullptr && !is_readable_text(text))
                return fmt::format("configuration row {} has a text at {}, where no memory can be read", i + 1,
                                   fmt::ptr(text));
    return {};
}

bool is_variable_name(std::string_view name) {
    return !name.empty() && std::all_of(name.begin(), name.end(), [](char c) {
        return (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
    });
}

std::string row_error(const npushmem_config_row& row, std::uint32_t number, std::set<std::string>& seen) {
    if (row.name == nullptr || row.default_value == nullptr || row.type == nullptr || row.meaning == nullptr)
        return fmt::format("configuration row {} lacks its name, default, type or meaning", number);
    if (!is_variable_name(row.name))
        return fmt::format(
            "configuration row {}: '{}' is no variable's name (capitals, digits and '_', without the "
            "prefix NPUSHMEM_)",
            number, row.name);
    if (!seen.insert(row.name).second) return fmt::format("configuration variable {} is declared twice", row.name);
    const Status parsed = check_typed(row.type, row.default_value);
    if (!parsed.ok())
        return fmt::format("configuration variable {} of type '{}' has the default '{}': {}", row.name, row.type,
                           row.default_value, parsed.message());
    return {};
}

}  // namespace

std::string TableTraits<npushmem_bootstrap_v1>::missing_function(const npushmem_bootstrap_v1& t) {
    if (t.open == nullptr) return "open";
    if (t.close == nullptr) return "close";
    if (t.allgather == nullptr) return "allgather";
    return t.barrier == nullptr ? "barrier" : "";
}

std::string TableTraits<npushmem_bootstrap_v1>::capability_conflict(const npushmem_bootstrap_v1&) { return {}; }

void TableTraits<npushmem_bootstrap_v1>::fill_defaults(npushmem_bootstrap_v1& t) {
    if (t.abort == nullptr) t.abort = no_abort;
    if (t.check == nullptr) t.check = no_failure;
    if (t.get_uniqueid == nullptr) t.get_uniqueid = no_uniqueid;
    if (t.recognise == nullptr) t.recognise = no_recognise;
    if (t.rank_ended == nullptr) t.rank_ended = waits_for_every_rank;
    if (t.summary == nullptr) t.summary = "";
}

std::string config_row_error(const npushmem_config_row* rows, std::uint32_t count) {
    if (rows == nullptr) return count == 0 ? "" : fmt::format("it claims {} configuration rows but has none", count);
    if (count > max_rows)
        return fmt::format("it claims {} configuration rows; more than {} is taken for garbage", count, max_rows);
    if (std::string unreadable = unreadable_row(rows, count); !unreadable.empty()) return unreadable;
    std::set<std::string> seen;
    for (std::uint32_t i = 0; i < count; ++i)
        if (std::string fault = row_error(rows[i], i + 1, seen); !fault.empty()) return fault;
    return {};
}

}  // namespace npushmem
