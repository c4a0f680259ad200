// SPDX-License-Identifier: BSD-3-Clause
// Turns a Collectives class into the table of collectives.h; trampolines as in transport_export.hpp.
#pragma once

#include "npushmem/plugin/collectives.hpp"
#include "npushmem/plugin/transport_export.hpp"

namespace npushmem::detail {

struct CollectivesTrampolines {
    static Collectives& of(void* self) { return *static_cast<Collectives*>(self); }

    static void close(void* self) noexcept { delete &of(self); }
    static std::uint64_t supports(void* self, std::uint32_t collective, std::uint32_t operation) noexcept {
        std::uint64_t set = 0;
        (void)guarded(nullptr, [&] {
            set = of(self).supports(collective, operation);
            return Status{};
        });
        return set;
    }
    static std::int32_t create_team(void* self, const npushmem_coll_team* team, std::uint64_t* id,
                                    npushmem_error* error) noexcept {
        return guarded(error, [&]() -> Status {
            auto made = of(self).create_team(full_size(*team));
            if (made.ok()) *id = made.value();
            return made.status();
        });
    }
    static void destroy_team(void* self, std::uint64_t id) noexcept {
        (void)guarded(nullptr, [&] {
            of(self).destroy_team(id);
            return Status{};
        });
    }
    static std::int32_t start(void* self, std::uint64_t team, const npushmem_coll_call* call, std::uint64_t* request,
                              npushmem_error* error) noexcept {
        return guarded(error, [&] { return of(self).start(team, full_size(*call), *request); });
    }
    static std::int32_t test(void* self, std::uint64_t request, npushmem_error* error) noexcept {
        return guarded(error, [&] { return of(self).test(request); });
    }
    static void abandon(void* self, std::uint64_t request) noexcept {
        (void)guarded(nullptr, [&] {
            of(self).abandon(request);
            return Status{};
        });
    }
    static const char* describe(void* self) noexcept { return of(self).description().c_str(); }

    // All but the names and `open`.
    static void fill(npushmem_collectives_v1& t) {
        t.struct_size = sizeof t;
        t.major = NPUSHMEM_COLLECTIVES_MAJOR;
        t.minor = NPUSHMEM_COLLECTIVES_MINOR;
        t.close = close;
        t.supports = supports;
        t.create_team = create_team;
        t.destroy_team = destroy_team;
        t.start = start;
        t.test = test;
        t.abandon = abandon;
        t.describe = describe;
    }
};

template <class Class>
std::int32_t open_collectives(const npushmem_host* host, const npushmem_collectives_params* params, void** self,
                              npushmem_error* error, const char* name) noexcept {
    return guarded(error, [&]() -> Status {
        Result<std::unique_ptr<Collectives>> made = Class::open(Host{host, name}, full_size(*params));
        if (!made.ok()) return made.status();
        if (made.value() == nullptr) return {Code::plugin_refused, "open of the plugin returned no instance"};
        *self = std::move(made).value().release();
        return {};
    });
}

}  // namespace npushmem::detail

// Class: the author's class. Name: a string literal, the plugin's name. Config: an array of npushmem_config_row with
// static storage, or a null pointer and count 0.
#define NPUSHMEM_EXPORT_COLLECTIVES_WITH_CONFIG(Class, Name, Summary, Config, ConfigCount)                 \
    extern "C" NPUSHMEM_PLUGIN_EXPORT const npushmem_collectives_v1* NPUSHMEM_COLLECTIVES_ENTRY(void) {    \
        static const npushmem_collectives_v1 table = [] {                                                  \
            npushmem_collectives_v1 t{};                                                                   \
            ::npushmem::detail::CollectivesTrampolines::fill(t);                                           \
            t.name = Name;                                                                                 \
            t.summary = Summary;                                                                           \
            t.config = (Config);                                                                           \
            t.config_count = (ConfigCount);                                                                \
            t.open = [](const npushmem_host* host, const npushmem_collectives_params* params, void** self, \
                        npushmem_error* error) -> std::int32_t {                                           \
                return ::npushmem::detail::open_collectives<Class>(host, params, self, error, Name);       \
            };                                                                                             \
            return t;                                                                                      \
        }();                                                                                               \
        return &table;                                                                                     \
    }                                                                                                      \
    static_assert(true, "")

#define NPUSHMEM_EXPORT_COLLECTIVES(Class, Name, Summary) \
    NPUSHMEM_EXPORT_COLLECTIVES_WITH_CONFIG(Class, Name, Summary, nullptr, 0)
