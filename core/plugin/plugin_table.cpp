// SPDX-License-Identifier: BSD-3-Clause
// The checks and stubs of the transport table.
#include "core/plugin/plugin_table.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <set>
#include <vector>

#include "core/base/config.hpp"
#include "core/plugin/shared_library.hpp"
#include "npushmem/plugin/status.hpp"

namespace npushmem {

namespace {

struct NamedBit {
    std::uint64_t bit;
    const char* name;
};

constexpr std::array<NamedBit, 13> capability_bits{{{NPUSHMEM_CAP_MAP, "map"},
                                                    {NPUSHMEM_CAP_PUT, "put"},
                                                    {NPUSHMEM_CAP_GET, "get"},
                                                    {NPUSHMEM_CAP_ATOMIC, "atomic"},
                                                    {NPUSHMEM_CAP_PUT_SIGNAL, "put_signal"},
                                                    {NPUSHMEM_CAP_ORDERED, "ordered"},
                                                    {NPUSHMEM_CAP_DEVICES, "devices"},
                                                    {NPUSHMEM_CAP_REMOTE, "remote"},
                                                    {NPUSHMEM_CAP_DECORATOR, "decorator"},
                                                    {NPUSHMEM_CAP_PINS, "pins"},
                                                    {NPUSHMEM_CAP_REPORTS_DEATH, "reports_death"},
                                                    {NPUSHMEM_CAP_TARGET_PROGRESS, "target_progress"},
                                                    {NPUSHMEM_CAP_PUT_STRIDED, "put_strided"}}};

constexpr std::uint64_t moves_data =
    NPUSHMEM_CAP_MAP | NPUSHMEM_CAP_PUT | NPUSHMEM_CAP_GET | NPUSHMEM_CAP_ATOMIC | NPUSHMEM_CAP_PUT_SIGNAL;

struct NamedPresence {
    const char* name;
    bool present;
};

// A capability and a function that it requires.
struct CapabilityFunction {
    std::uint64_t capability;
    const char* function;
    bool present;
};

std::string first_absent(std::span<const NamedPresence> functions) {
    const auto absent = std::find_if(functions.begin(), functions.end(), [](const auto& f) { return !f.present; });
    return absent == functions.end() ? "" : absent->name;
}

std::array<CapabilityFunction, 8> capability_functions(const npushmem_transport_v1& t) {
    return {{{NPUSHMEM_CAP_MAP, "map", t.map != nullptr},
             {NPUSHMEM_CAP_PUT, "put", t.put != nullptr},
             {NPUSHMEM_CAP_GET, "get", t.get != nullptr},
             {NPUSHMEM_CAP_ATOMIC, "atomic", t.atomic != nullptr},
             {NPUSHMEM_CAP_PUT_SIGNAL, "put_signal", t.put_signal != nullptr},
             {NPUSHMEM_CAP_PUT_STRIDED, "put_strided", t.put_strided != nullptr},
             {NPUSHMEM_CAP_DEVICES, "devices", t.devices != nullptr},
             {NPUSHMEM_CAP_DEVICES, "use_devices", t.use_devices != nullptr}}};
}

// Stubs. They do not know the plugin's name: the caller adds it.
std::int32_t unsupported(const char* what, npushmem_error* error) { return report(Code::unsupported, what, error); }

std::int32_t no_devices(void*, void*, std::uint32_t, std::uint32_t* count, npushmem_error*) {
    *count = 0;
    return NPUSHMEM_OK;
}
std::int32_t use_no_devices(void*, const std::uint32_t*, std::uint32_t count, npushmem_error* error) {
    return count == 0 ? NPUSHMEM_OK : unsupported("this transport has no devices to use", error);
}
std::int32_t no_map(void*, std::uint64_t, void**, npushmem_error* error) {
    return unsupported("this transport cannot map a peer's memory", error);
}
std::int32_t no_rma(void*, std::uint64_t, const npushmem_rma*, std::uint64_t*) { return NPUSHMEM_E_UNSUPPORTED; }
std::int32_t no_atomic(void*, std::uint64_t, const npushmem_atomic*, std::uint64_t*) { return NPUSHMEM_E_UNSUPPORTED; }
std::int32_t no_put_signal(void*, std::uint64_t, const npushmem_put_signal*, std::uint64_t*) {
    return NPUSHMEM_E_UNSUPPORTED;
}
std::int32_t no_put_strided(void*, std::uint64_t, const npushmem_put_strided*, std::uint64_t*) {
    return NPUSHMEM_E_UNSUPPORTED;
}
std::int32_t empty_address(void*, void*, std::uint32_t* bytes, npushmem_error*) {
    *bytes = 0;
    return NPUSHMEM_OK;
}
std::int32_t connected_already(void*, const npushmem_peer*, npushmem_error*) { return NPUSHMEM_OK; }
// A missing `test` means that every token is 0.
std::int32_t always_complete(void*, std::uint64_t, std::uint64_t token) {
    return token == 0 ? NPUSHMEM_OK : NPUSHMEM_E_ARGUMENT;
}
std::int32_t no_progress(void*) { return NPUSHMEM_AGAIN; }
std::int32_t no_event(void*, npushmem_event*) { return NPUSHMEM_AGAIN; }
std::int32_t nothing_to_forget(void*, std::int32_t) { return NPUSHMEM_OK; }
std::int32_t no_reports(void*, void (*)(void*), void*) { return NPUSHMEM_E_UNSUPPORTED; }

template <class Function>
void fill(Function*& place, Function* stub) {
    if (place == nullptr) place = stub;
}

}  // namespace

std::string capability_names(std::uint64_t capabilities) {
    std::string out;
    const auto append = [&out](std::string_view name) { out.append(out.empty() ? "" : ", ").append(name); };
    for (const auto& [bit, name] : capability_bits) {
        if ((capabilities & bit) != 0) append(name);
        capabilities &= ~bit;
    }
    if (capabilities != 0) append(fmt::format("{:#x}", capabilities));
    return out.empty() ? "none" : out;
}

std::string TableTraits<npushmem_transport_v1>::missing_function(const npushmem_transport_v1& t) {
    const std::array<NamedPresence, 11> mandatory{{{"open", t.open != nullptr},
                                                   {"close", t.close != nullptr},
                                                   {"reach", t.reach != nullptr},
                                                   {"register_memory", t.register_memory != nullptr},
                                                   {"deregister_memory", t.deregister_memory != nullptr},
                                                   {"import_memory", t.import_memory != nullptr},
                                                   {"release_memory", t.release_memory != nullptr},
                                                   {"create_queue", t.create_queue != nullptr},
                                                   {"destroy_queue", t.destroy_queue != nullptr},
                                                   {"fence", t.fence != nullptr},
                                                   {"quiet", t.quiet != nullptr}}};
    return first_absent(mandatory);
}

std::string TableTraits<npushmem_transport_v1>::capability_conflict(const npushmem_transport_v1& t) {
    for (const auto& [capability, function, present] : capability_functions(t))
        if ((t.capabilities & capability) != 0 && !present)
            return fmt::format("it declares the capability '{}' but has no function '{}'", capability_names(capability),
                               function);
    if ((t.capabilities & moves_data) == 0)
        return fmt::format("its capabilities ({}) include no way to move data: at least one of {} is needed",
                           capability_names(t.capabilities), capability_names(moves_data));
    return {};
}

void TableTraits<npushmem_transport_v1>::fill_defaults(npushmem_transport_v1& t) {
    fill(t.devices, no_devices);
    fill(t.use_devices, use_no_devices);
    fill(t.map, no_map);
    fill(t.put, no_rma);
    fill(t.get, no_rma);
    fill(t.atomic, no_atomic);
    fill(t.put_signal, no_put_signal);
    fill(t.address, empty_address);
    fill(t.connect, connected_already);
    fill(t.test, always_complete);
    fill(t.progress, no_progress);
    fill(t.poll_event, no_event);
    fill(t.forget, nothing_to_forget);
    fill(t.put_strided, no_put_strided);
    fill(t.report_arrivals, no_reports);
    if (t.summary == nullptr) t.summary = "";
}

bool TableTraits<npushmem_transport_v1>::is_forget_missing(const npushmem_transport_v1& t) {
    return t.forget == nullptr || t.forget == nothing_to_forget;
}

// The checks and stubs of the bootstrap table, and the check of configuration rows, which all tables share.
namespace {

constexpr std::uint32_t max_rows = 1024;

void no_abort(void*, const char*) {}
std::int32_t no_failure(void*, npushmem_error*) { return NPUSHMEM_OK; }
std::int32_t no_uniqueid(const npushmem_host*, void*, npushmem_error* error) {
    return report(Code::unsupported, "this bootstrap makes no unique ids", error);
}

std::int32_t waits_for_every_rank(const npushmem_host*, const void*, std::int32_t, std::int32_t, const char*,
                                  npushmem_error* error) {
    return report(Code::unsupported, "this bootstrap waits for every rank until its timeout", error);
}

std::int32_t no_recognise(const npushmem_host*, const npushmem_bootstrap_params*, npushmem_error*) { return 0; }

std::string unreadable_row(const npushmem_config_row* rows, std::uint32_t count) {
    if (!is_readable(rows, count * sizeof *rows))
        return fmt::format("its {} configuration rows are at {}, where no memory can be read", count, fmt::ptr(rows));
    ReadableTexts texts;
    for (std::uint32_t i = 0; i < count; ++i)
        for (const char* text : {rows[i].name, rows[i].default_value, rows[i].type, rows[i].meaning})
            if (text != nullptr && !texts.contain(text))
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
            "configuration row {}: '{}' is not a valid variable name (capitals, digits and '_', without the "
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

namespace {

void nothing_to_abandon(void*, std::uint64_t) {}
const char* no_description(void*) { return ""; }

}  // namespace

std::string TableTraits<npushmem_collectives_v1>::missing_function(const npushmem_collectives_v1& t) {
    const std::array<NamedPresence, 7> mandatory{{{"open", t.open != nullptr},
                                                  {"close", t.close != nullptr},
                                                  {"supports", t.supports != nullptr},
                                                  {"create_team", t.create_team != nullptr},
                                                  {"destroy_team", t.destroy_team != nullptr},
                                                  {"start", t.start != nullptr},
                                                  {"test", t.test != nullptr}}};
    return first_absent(mandatory);
}

// What the library supports is known after `open` only.
std::string TableTraits<npushmem_collectives_v1>::capability_conflict(const npushmem_collectives_v1&) { return {}; }

void TableTraits<npushmem_collectives_v1>::fill_defaults(npushmem_collectives_v1& t) {
    fill(t.abandon, nothing_to_abandon);
    fill(t.describe, no_description);
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
