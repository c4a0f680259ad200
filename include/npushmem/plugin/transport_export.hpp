// SPDX-License-Identifier: BSD-3-Clause
// Turns a Transport class into the table of transport.h. Trampolines are noexcept: an exception that escapes an
// author's class becomes a code and a message, never an unwinding through the boundary.
#pragma once

#include <cstring>
#include <exception>
#include <new>

#include "npushmem/plugin/transport.hpp"

#if defined(__GNUC__)
#define NPUSHMEM_PLUGIN_EXPORT __attribute__((visibility("default")))
#else
#define NPUSHMEM_PLUGIN_EXPORT
#endif

namespace npushmem::detail {

// Runs `body`, which returns a Status; fills `error`.
template <class Body>
std::int32_t guarded(npushmem_error* error, Body&& body) noexcept {
    try {
        return report(body(), error);
    } catch (const std::bad_alloc&) {
        return report(Code::memory, "the plugin ran out of memory", error);
    } catch (const std::exception& caught) {
        return report(Code::system, caught.what(), error);
    } catch (...) {
        return report(Code::system, "the plugin threw something that is no std::exception", error);
    }
}

// Runs `body`, which returns a Code. Passes an exception to `thrown(Code, what)`.
template <class Body, class Thrown>
std::int32_t guarded_code(Body&& body, Thrown&& thrown) noexcept {
    const auto failed = [&thrown](Code code, std::string_view what) {
        thrown(code, what);
        return static_cast<std::int32_t>(code);
    };
    try {
        return static_cast<std::int32_t>(body());
    } catch (const std::bad_alloc&) {
        return failed(Code::memory, "the plugin ran out of memory");
    } catch (const std::exception& caught) {
        return failed(Code::system, caught.what());
    } catch (...) {
        return failed(Code::system, "something that is no std::exception");
    }
}

// Copies the other side's structure into one of this side's size: missing fields are zero, unknown ones are dropped.
template <class Struct>
Struct full_size(const Struct& given) noexcept {
    Struct out{};
    std::memcpy(&out, &given, given.struct_size < sizeof out ? given.struct_size : sizeof out);
    out.struct_size = sizeof out;
    return out;
}

// Copies variable-length bytes into a caller's buffer; `*bytes` is the capacity, then the length.
inline Status copy_out(const Bytes& from, void* to, std::uint32_t* bytes, const char* what) {
    if (from.size() > *bytes)
        return {Code::range, std::string(what) + " of " + std::to_string(from.size()) + " bytes exceeds the limit of " +
                                 std::to_string(*bytes)};
    if (!from.empty()) std::memcpy(to, from.data(), from.size());
    *bytes = static_cast<std::uint32_t>(from.size());
    return {};
}

// The table's functions over any Transport; only `open` differs between classes. One class, although it has more than
// twenty functions: each is the entry of the table for one method of Transport, and they have no state.
struct TransportTrampolines {
    static Transport& of(void* self) { return *static_cast<Transport*>(self); }

    // Runs a call that returns a Code; poll_event delivers the message of an exception.
    template <class Body>
    static std::int32_t guarded_call(void* self, int pe, const char* function, Body&& body) noexcept {
        return guarded_code(
            body, [&](Code code, std::string_view what) { of(self).thrown_.record(code, pe, function, what); });
    }

    // The same for calls whose failure the host does not report: a stored event would fail a later, unrelated call.
    template <class Body>
    static std::int32_t guarded_call_without_event(Body&& body) noexcept {
        return guarded_code(body, [](Code, std::string_view) {});
    }

    static void close(void* self) noexcept { delete &of(self); }

    // A host of an earlier minor version gives a shorter structure.
    static std::int32_t reach(void* self, const npushmem_peer* peer, npushmem_reach* out) noexcept {
        npushmem_reach whole{};
        const bool fits = out->struct_size >= sizeof whole;
        npushmem_reach& full = fits ? *out : whole;
        full.struct_size = out->struct_size;
        full.capabilities = 0;
        const auto explain = [&full](std::string_view why) {
            full.why[why.copy(full.why, sizeof full.why - 1)] = '\0';
        };
        const std::int32_t code = guarded_code(
            [&] {
                const Reach reach = of(self).reach(full_size(*peer));
                full.capabilities = reach.capabilities;
                full.atomic_32 = reach.atomic_32;
                full.atomic_64 = reach.atomic_64;
                full.latency_ns = reach.latency_ns;
                full.bytes_per_second = reach.bytes_per_second;
                explain(reach.why);
                return Code::ok;
            },
            [&](Code, std::string_view what) { explain(what); });
        if (!fits) std::memcpy(out, &full, out->struct_size);
        return code;
    }
    static std::int32_t register_memory(void* self, const npushmem_memory* memory, std::uint64_t* region, void* handle,
                                        std::uint32_t* handle_bytes, npushmem_error* error) noexcept {
        return guarded(error, [&]() -> Status {
            auto made = of(self).register_memory(full_size(*memory));
            if (!made.ok()) return made.status();
            *region = made.value().region;
            Status copied = copy_out(made.value().handle, handle, handle_bytes, "a memory handle");
            if (!copied.ok()) (void)of(self).deregister_memory(*region);
            return copied;
        });
    }
    static std::int32_t deregister_memory(void* self, std::uint64_t region) noexcept {
        return guarded_call_without_event([&] { return of(self).deregister_memory(region); });
    }
    static std::int32_t import_memory(void* self, std::int32_t pe, const void* handle, std::uint32_t handle_bytes,
                                      std::uint64_t* remote, npushmem_error* error) noexcept {
        return guarded(error, [&]() -> Status {
            auto made = of(self).import_memory(pe, {static_cast<const std::byte*>(handle), handle_bytes});
            if (made.ok()) *remote = made.value();
            return made.status();
        });
    }
    static std::int32_t release_memory(void* self, std::uint64_t remote) noexcept {
        return guarded_call_without_event([&] { return of(self).release_memory(remote); });
    }
    static std::int32_t map(void* self, std::uint64_t remote, void** base, npushmem_error* error) noexcept {
        return guarded(error, [&]() -> Status {
            auto mapped = of(self).map(remote);
            if (mapped.ok()) *base = mapped.value();
            return mapped.status();
        });
    }
    static std::int32_t devices(void* self, void* out, std::uint32_t device_bytes, std::uint32_t* count,
                                npushmem_error* error) noexcept {
        return guarded(error, [&]() -> Status {
            auto found = of(self).devices();
            if (!found.ok()) return found.status();
            const auto& list = found.value();
            const std::size_t size = device_bytes < sizeof(npushmem_device) ? device_bytes : sizeof(npushmem_device);
            for (std::uint32_t i = 0; i < *count && i < list.size(); ++i) {
                npushmem_device device = list[i];
                device.struct_size = static_cast<std::uint32_t>(size);
                std::memcpy(static_cast<std::byte*>(out) + std::size_t{i} * device_bytes, &device, size);
            }
            *count = static_cast<std::uint32_t>(list.size());
            return {};
        });
    }
    static std::int32_t use_devices(void* self, const std::uint32_t* index, std::uint32_t count,
                                    npushmem_error* error) noexcept {
        return guarded(error, [&] { return of(self).use_devices({index, count}); });
    }
    static std::int32_t address(void* self, void* out, std::uint32_t* bytes, npushmem_error* error) noexcept {
        return guarded(error, [&]() -> Status {
            auto made = of(self).address();
            return made.ok() ? copy_out(made.value(), out, bytes, "an endpoint address") : made.status();
        });
    }
    static std::int32_t connect(void* self, const npushmem_peer* peer, npushmem_error* error) noexcept {
        return guarded(error, [&] { return of(self).connect(full_size(*peer)); });
    }
    static std::int32_t create_queue(void* self, std::uint64_t* queue, npushmem_error* error) noexcept {
        return guarded(error, [&]() -> Status {
            auto made = of(self).create_queue();
            if (made.ok()) *queue = made.value();
            return made.status();
        });
    }
    static std::int32_t destroy_queue(void* self, std::uint64_t queue) noexcept {
        return guarded_call_without_event([&] { return of(self).destroy_queue(queue); });
    }
    static std::int32_t put(void* self, std::uint64_t queue, const npushmem_rma* op, std::uint64_t* token) noexcept {
        return guarded_call(self, op->pe, "put", [&] { return of(self).put(queue, *op, token); });
    }
    static std::int32_t get(void* self, std::uint64_t queue, const npushmem_rma* op, std::uint64_t* token) noexcept {
        return guarded_call(self, op->pe, "get", [&] { return of(self).get(queue, *op, token); });
    }
    static std::int32_t atomic(void* self, std::uint64_t queue, const npushmem_atomic* op,
                               std::uint64_t* token) noexcept {
        return guarded_call(self, op->pe, "atomic", [&] { return of(self).atomic(queue, *op, token); });
    }
    static std::int32_t put_signal(void* self, std::uint64_t queue, const npushmem_put_signal* op,
                                   std::uint64_t* token) noexcept {
        return guarded_call(self, op->data.pe, "put_signal", [&] { return of(self).put_signal(queue, *op, token); });
    }
    static std::int32_t put_strided(void* self, std::uint64_t queue, const npushmem_put_strided* op,
                                    std::uint64_t* token) noexcept {
        return guarded_call(self, op->block.pe, "put_strided", [&] { return of(self).put_strided(queue, *op, token); });
    }
    static std::int32_t fence(void* self, std::uint64_t queue) noexcept {
        return guarded_call(self, -1, "fence", [&] { return of(self).fence(queue); });
    }
    static std::int32_t quiet(void* self, std::uint64_t queue) noexcept {
        return guarded_call(self, -1, "quiet", [&] { return of(self).quiet(queue); });
    }
    static std::int32_t test(void* self, std::uint64_t queue, std::uint64_t token) noexcept {
        return guarded_call(self, -1, "test", [&] { return of(self).test(queue, token); });
    }
    static std::int32_t progress(void* self) noexcept {
        return guarded_call(self, -1, "progress", [&] { return of(self).progress(); });
    }
    // First the message of an exception, if there is one.
    static std::int32_t poll_event(void* self, npushmem_event* out) noexcept {
        return guarded_call(self, -1, "poll_event", [&] {
            const auto next = [self](npushmem_event& event) {
                return of(self).thrown_.poll(event) ? Code::ok : of(self).poll_event(event);
            };
            if (out->struct_size == sizeof *out) return next(*out);
            npushmem_event event{};
            event.struct_size = out->struct_size < sizeof event ? out->struct_size : sizeof event;
            const Code code = next(event);
            if (code == Code::ok) std::memcpy(out, &event, event.struct_size);
            return code;
        });
    }
    static std::int32_t forget(void* self, std::int32_t pe) noexcept {
        return guarded_call_without_event([&] { return of(self).forget(pe); });
    }
    static std::int32_t report_arrivals(void* self, void (*arrived)(void* context), void* context) noexcept {
        return guarded_call_without_event([&] { return of(self).report_arrivals(arrived, context); });
    }

    // All functions but `open`; tests also show a Transport object to a decorator's class through them.
    static void fill(npushmem_transport_v1& t) noexcept {
        t.struct_size = sizeof t;
        t.major = NPUSHMEM_TRANSPORT_MAJOR;
        t.minor = NPUSHMEM_TRANSPORT_MINOR;
        t.close = close;
        t.reach = reach;
        t.register_memory = register_memory;
        t.deregister_memory = deregister_memory;
        t.import_memory = import_memory;
        t.release_memory = release_memory;
        t.create_queue = create_queue;
        t.destroy_queue = destroy_queue;
        t.fence = fence;
        t.quiet = quiet;
        t.devices = devices;
        t.use_devices = use_devices;
        t.map = map;
        t.put = put;
        t.get = get;
        t.atomic = atomic;
        t.put_signal = put_signal;
        t.address = address;
        t.connect = connect;
        t.test = test;
        t.progress = progress;
        t.poll_event = poll_event;
        t.forget = forget;
        t.put_strided = put_strided;
        t.report_arrivals = report_arrivals;
    }
};

template <class Class>
std::int32_t open_transport(const npushmem_host* host, const npushmem_transport_params* params, void** self,
                            npushmem_error* error, const char* name) noexcept {
    return guarded(error, [&]() -> Status {
        Result<std::unique_ptr<Transport>> made = Class::open(Host{host, name}, full_size(*params));
        if (!made.ok()) return made.status();
        *self = std::move(made).value().release();
        if (*self == nullptr) return {Code::plugin_refused, "open of the plugin returned no instance"};
        return {};
    });
}

}  // namespace npushmem::detail

// Class: the author's class. Name: a string literal, the plugin's name. Capabilities: NPUSHMEM_CAP_x of the plugin.
// Config: an array of npushmem_config_row with static storage, or a null pointer and count 0.
#define NPUSHMEM_EXPORT_TRANSPORT_WITH_CONFIG(Class, Name, Summary, Capabilities, Config, ConfigCount)   \
    extern "C" NPUSHMEM_PLUGIN_EXPORT const npushmem_transport_v1* NPUSHMEM_TRANSPORT_ENTRY(void) {      \
        static const npushmem_transport_v1 table = [] {                                                  \
            npushmem_transport_v1 t{};                                                                   \
            ::npushmem::detail::TransportTrampolines::fill(t);                                           \
            t.name = Name;                                                                               \
            t.summary = Summary;                                                                         \
            t.capabilities = (Capabilities);                                                             \
            t.config = (Config);                                                                         \
            t.config_count = (ConfigCount);                                                              \
            t.open = [](const npushmem_host* host, const npushmem_transport_params* params, void** self, \
                        npushmem_error* error) -> std::int32_t {                                         \
                return ::npushmem::detail::open_transport<Class>(host, params, self, error, Name);       \
            };                                                                                           \
            return t;                                                                                    \
        }();                                                                                             \
        return &table;                                                                                   \
    }                                                                                                    \
    static_assert(true, "")

#define NPUSHMEM_EXPORT_TRANSPORT(Class, Name, Summary, Capabilities) \
    NPUSHMEM_EXPORT_TRANSPORT_WITH_CONFIG(Class, Name, Summary, Capabilities, nullptr, 0)
