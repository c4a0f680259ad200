// SPDX-License-Identifier: BSD-3-Clause
// Turns a Bootstrap class into the table of bootstrap.h; trampolines as in transport_export.hpp.
#pragma once

#include <concepts>

#include "npushmem/plugin/bootstrap.hpp"
#include "npushmem/plugin/transport_export.hpp"

namespace npushmem::detail {

struct BootstrapTrampolines {
    static Bootstrap& of(void* self) { return *static_cast<Bootstrap*>(self); }

    static void close(void* self) noexcept { delete &of(self); }
    static std::int32_t allgather(void* self, const void* send, std::uint64_t bytes, void* receive,
                                  npushmem_error* error) noexcept {
        return guarded(error, [&] {
            const auto total = bytes * static_cast<std::uint64_t>(of(self).nranks());
            return of(self).allgather({static_cast<const std::byte*>(send), bytes},
                                      {static_cast<std::byte*>(receive), total});
        });
    }
    static std::int32_t barrier(void* self, npushmem_error* error) noexcept {
        return guarded(error, [&] { return of(self).barrier(); });
    }
    static void abort(void* self, const char* reason) noexcept {
        (void)guarded(nullptr, [&] {
            of(self).abort(reason);
            return Status{};
        });
    }
    static std::int32_t check(void* self, npushmem_error* error) noexcept {
        return guarded(error, [&] { return of(self).check(); });
    }
};

template <class Class>
std::int32_t open_bootstrap(const npushmem_host* host, const npushmem_bootstrap_params* params, void** self,
                            std::int32_t* rank, std::int32_t* nranks, npushmem_error* error,
                            const char* name) noexcept {
    return guarded(error, [&]() -> Status {
        Result<std::unique_ptr<Bootstrap>> made = Class::open(Host{host, name}, full_size(*params));
        if (!made.ok()) return made.status();
        if (made.value() == nullptr) return {Code::plugin_refused, "open of the plugin returned no instance"};
        *rank = made.value()->rank();
        *nranks = made.value()->nranks();
        *self = std::move(made).value().release();
        return {};
    });
}

template <class Class>
concept MakesUniqueIds = requires(const Host& host, std::span<std::byte, NPUSHMEM_UNIQUEID_BYTES> id) {
    { Class::get_uniqueid(host, id) } -> std::same_as<Status>;
};

template <class Class>
std::int32_t make_uniqueid(const npushmem_host* host, void* id, npushmem_error* error, const char* name) noexcept {
    return guarded(error, [&]() -> Status {
        if constexpr (MakesUniqueIds<Class>) {
            std::span<std::byte, NPUSHMEM_UNIQUEID_BYTES> out{static_cast<std::byte*>(id), NPUSHMEM_UNIQUEID_BYTES};
            return Class::get_uniqueid(Host{host, name}, out);
        } else {
            return {Code::unsupported, std::string("bootstrap '") + name + "' makes no unique ids"};
        }
    });
}

template <class Class>
concept RecognisesItsJobs = requires(const Host& host, const npushmem_bootstrap_params& params, std::string& why) {
    { Class::recognise(host, params, why) } -> std::same_as<int>;
};

template <class Class>
std::int32_t recognise_job(const npushmem_host* host, const npushmem_bootstrap_params* params, npushmem_error* why,
                           const char* name) noexcept {
    std::int32_t confidence = 0;
    std::string seen;
    (void)guarded(why, [&]() -> Status {
        if constexpr (RecognisesItsJobs<Class>)
            confidence = Class::recognise(Host{host, name}, full_size(*params), seen);
        return {};
    });
    if (confidence > 0) (void)report(Code::ok, seen, why);
    return confidence;
}

template <class Class>
concept StopsWaitingForRanks = requires(const Host& host, std::span<const std::byte, NPUSHMEM_UNIQUEID_BYTES> id,
                                        const std::string& how) {
    { Class::rank_ended(host, id, 0, 0, how) } -> std::same_as<Status>;
};

template <class Class>
std::int32_t rank_ended(const npushmem_host* host, const void* id, std::int32_t rank, std::int32_t nranks,
                        const char* how, npushmem_error* error, const char* name) noexcept {
    return guarded(error, [&]() -> Status {
        if constexpr (StopsWaitingForRanks<Class>) {
            std::span<const std::byte, NPUSHMEM_UNIQUEID_BYTES> bytes{static_cast<const std::byte*>(id),
                                                                      NPUSHMEM_UNIQUEID_BYTES};
            return Class::rank_ended(Host{host, name}, bytes, rank, nranks, how);
        } else {
            return {Code::unsupported, std::string("bootstrap '") + name + "' waits for every rank until its time-out"};
        }
    });
}

}  // namespace npushmem::detail

// Class: the author's class. Name: a string literal, the plugin's name. Config: an array of npushmem_config_row with
// static storage, or a null pointer and count 0.
#define NPUSHMEM_EXPORT_BOOTSTRAP_WITH_CONFIG(Class, Name, Summary, Config, ConfigCount)                         \
    extern "C" NPUSHMEM_PLUGIN_EXPORT const npushmem_bootstrap_v1* NPUSHMEM_BOOTSTRAP_ENTRY(void) {              \
        using T = ::npushmem::detail::BootstrapTrampolines;                                                      \
        static const npushmem_bootstrap_v1 table = [] {                                                          \
            npushmem_bootstrap_v1 t{};                                                                           \
            t.struct_size = sizeof t;                                                                            \
            t.major = NPUSHMEM_BOOTSTRAP_MAJOR;                                                                  \
            t.minor = NPUSHMEM_BOOTSTRAP_MINOR;                                                                  \
            t.name = Name;                                                                                       \
            t.summary = Summary;                                                                                 \
            t.config = (Config);                                                                                 \
            t.config_count = (ConfigCount);                                                                      \
            t.open = [](const npushmem_host* host, const npushmem_bootstrap_params* params, void** self,         \
                        std::int32_t* rank, std::int32_t* nranks, npushmem_error* error) -> std::int32_t {       \
                return ::npushmem::detail::open_bootstrap<Class>(host, params, self, rank, nranks, error, Name); \
            };                                                                                                   \
            t.close = T::close;                                                                                  \
            t.allgather = T::allgather;                                                                          \
            t.barrier = T::barrier;                                                                              \
            t.abort = T::abort;                                                                                  \
            t.check = T::check;                                                                                  \
            t.get_uniqueid = [](const npushmem_host* host, void* id, npushmem_error* error) -> std::int32_t {    \
                return ::npushmem::detail::make_uniqueid<Class>(host, id, error, Name);                          \
            };                                                                                                   \
            t.recognise = [](const npushmem_host* host, const npushmem_bootstrap_params* params,                 \
                             npushmem_error* why) -> std::int32_t {                                              \
                return ::npushmem::detail::recognise_job<Class>(host, params, why, Name);                        \
            };                                                                                                   \
            t.rank_ended = [](const npushmem_host* host, const void* id, std::int32_t rank, std::int32_t nranks, \
                              const char* how, npushmem_error* error) -> std::int32_t {                          \
                return ::npushmem::detail::rank_ended<Class>(host, id, rank, nranks, how, error, Name);          \
            };                                                                                                   \
            return t;                                                                                            \
        }();                                                                                                     \
        return &table;                                                                                           \
    }                                                                                                            \
    static_assert(true, "")

#define NPUSHMEM_EXPORT_BOOTSTRAP(Class, Name, Summary) \
    NPUSHMEM_EXPORT_BOOTSTRAP_WITH_CONFIG(Class, Name, Summary, nullptr, 0)
