// SPDX-License-Identifier: BSD-3-Clause
// The worlds that a program makes beside the default one.
#include <fmt/core.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <span>
#include <string_view>

#include "core/api/access.hpp"
#include "core/api/contexts.hpp"
#include "core/api/library.hpp"
#include "npushmem.h"
#include "npushmemx.h"

using namespace npushmem;
using namespace npushmem::api;

namespace {

npushmemx_world_t handle_of(const World& world) {
    return reinterpret_cast<npushmemx_world_t>(static_cast<std::uintptr_t>(world.number));
}
// No world has the number that stands for a handle which is none.
std::uint32_t number_of(npushmemx_world_t handle) {
    const auto number = reinterpret_cast<std::uintptr_t>(handle);
    return number < UINT32_MAX ? static_cast<std::uint32_t>(number) : UINT32_MAX;
}

Status read_settings(const char* const* settings, std::map<std::string, std::string>& into) {
    for (; settings != nullptr && *settings != nullptr; ++settings) {
        const std::string_view text(*settings);
        const auto equals = text.find('=');
        if (!text.starts_with("NPUSHMEM_") || equals == std::string_view::npos)
            return {Code::argument, fmt::format("attr has the setting '{}'; expected NPUSHMEM_NAME=value", text)};
        into[std::string(text.substr(0, equals))] = text.substr(equals + 1);
    }
    return {};
}

// The library checks the rest of a table when it opens the plugin.
template <class Table>
Status take_table(const Table* table, const char* kind, std::vector<const Table*>& into) {
    if (table->struct_size < sizeof(std::uint32_t) * 4 || table->name == nullptr)
        return {Code::argument,
                fmt::format("attr has the table of a {} without a size or a name; pass what its entry function returns",
                            kind)};
    into.push_back(table);
    return {};
}

template <class Table>
Status take_tables(const Table* const* tables, const char* kind, std::vector<const Table*>& into) {
    for (; tables != nullptr && *tables != nullptr; ++tables)
        if (Status taken = take_table(*tables, kind, into); !taken.ok()) return taken;
    return {};
}

// A structure of a later version has more members, of which this library can only accept that they are zero.
Status check_form(const npushmemx_world_attr_t* attr) {
    constexpr std::uint32_t known = sizeof(npushmemx_world_attr_t);
    constexpr std::uint32_t max_size = 4096;
    if (attr == nullptr) return {Code::argument, "attr is NULL"};
    if (attr->struct_size < known || attr->struct_size > max_size || attr->init.struct_size != sizeof attr->init)
        return {Code::argument,
                fmt::format("attr.struct_size is {} and attr.init.struct_size is {}, expected {} and {}; set attr by "
                            "NPUSHMEMX_WORLD_ATTR_INITIALIZER",
                            attr->struct_size, attr->init.struct_size, known, sizeof attr->init)};
    if (attr->reserved != 0) return {Code::argument, fmt::format("attr.reserved is {}; set it to 0", attr->reserved)};
    const std::span bytes(reinterpret_cast<const std::byte*>(attr), attr->struct_size);
    if (std::ranges::any_of(bytes.subspan(known), [](std::byte byte) { return byte != std::byte{0}; }))
        return {Code::unsupported,
                fmt::format("attr has a member behind the {} bytes that this library knows; update the library, or "
                            "leave the member zero",
                            known)};
    return {};
}

Status read_attribute(const npushmemx_world_attr_t* attr, WorldRequest& into) {
    if (Status form = check_form(attr); !form.ok()) return form;
    if (attr->init.nranks < 1)
        return {Code::argument, "attr has no rank; call npushmemx_set_attr_uniqueid_args for attr.init first"};
    into.start.compiled_with = {attr->init.version_major, attr->init.version_minor, attr->init.version_patch};
    into.start.rank = attr->init.rank;
    into.start.nranks = attr->init.nranks;
    std::memcpy(into.start.uniqueid.emplace().data(), attr->init.uniqueid.bytes, sizeof attr->init.uniqueid.bytes);
    if (attr->bootstrap != nullptr)
        if (Status taken = take_table(attr->bootstrap, "bootstrap", into.plugins.bootstraps); !taken.ok()) return taken;
    into.variables["NPUSHMEM_BOOTSTRAP"] = attr->bootstrap != nullptr ? attr->bootstrap->name : "uid";
    Status taken = take_tables(attr->transports, "transport", into.plugins.transports);
    if (taken.ok()) taken = take_tables(attr->collectives, "library of collectives", into.plugins.collectives);
    if (!taken.ok()) return taken;
    return read_settings(attr->settings, into.variables);
}

Status create(const npushmemx_world_attr_t* attr, npushmemx_world_t* world) {
    if (world == nullptr) return {Code::argument, "world is NULL"};
    *world = nullptr;
    WorldRequest request;
    if (Status read = read_attribute(attr, request); !read.ok()) return read;
    const auto made = create_world(request);
    if (made.ok()) *world = handle_of(*find_world(made.value()).value());
    return made.status();
}

Status make_current(npushmemx_world_t world, npushmemx_world_t* before) {
    const auto found = find_world(number_of(world));
    if (!found.ok()) return found.status();
    if (before != nullptr) *before = handle_of(*current_world);
    current_world = found.value();
    return {};
}

Status context_of_world(npushmemx_world_t world, npushmem_ctx_t* ctx) {
    if (ctx == nullptr) return {Code::argument, "ctx is NULL"};
    *ctx = NPUSHMEM_CTX_INVALID;
    const auto found = find_world(number_of(world));
    if (!found.ok()) return found.status();
    const Context* const context = found.value()->context.load(std::memory_order_relaxed);
    *ctx = context == &default_context ? NPUSHMEM_CTX_DEFAULT
                                       : reinterpret_cast<npushmem_ctx_t>(const_cast<Context*>(context));
    return {};
}

}  // namespace

extern "C" {

int npushmemx_world_create(const npushmemx_world_attr_t* attr, npushmemx_world_t* world) {
    return code_of_call(__func__, [&] { return create(attr, world); });
}

int npushmemx_world_destroy(npushmemx_world_t world) {
    return code_of_call(__func__, [world] { return end_world(number_of(world), WorldEnd::finalize); });
}

int npushmemx_world_abort(npushmemx_world_t world) {
    return code_of_call(__func__, [&] { return end_world(number_of(world), WorldEnd::abort); });
}

int npushmemx_world_make_current(npushmemx_world_t world, npushmemx_world_t* before) {
    return code_of_call(__func__, [&] { return make_current(world, before); });
}

int npushmemx_world_context(npushmemx_world_t world, npushmem_ctx_t* ctx) {
    return code_of_call(__func__, [&] { return context_of_world(world, ctx); });
}

}  // extern "C"
