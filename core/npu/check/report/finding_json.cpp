// SPDX-License-Identifier: BSD-3-Clause
// Findings as JSON.
#include "npushmem/npu/hazard.hpp"

#if !__has_include(<nlohmann/json.hpp>)

namespace npushmem::npu {
std::string Finding::json() const {
    return R"({"error": "this npushmem was built without nlohmann-json: install nlohmann-json3-dev and build again"})";
}
}  // namespace npushmem::npu

#else

#include <fmt/format.h>

#include <array>
#include <nlohmann/json.hpp>

namespace npushmem::npu {
namespace {

using Json = nlohmann::ordered_json;

// In the order of KernelEvent::Kind.
constexpr std::array kind_names{"command", "load",    "store",    "atomic",       "signal",
                                "wait",    "waiting", "set_flag", "wait_flag",    "pipe_barrier",
                                "dcci",    "fence",   "quiet",    "core_barrier", "team_barrier"};

Json address_json(std::uintptr_t address) { return address == 0 ? Json() : Json(fmt::format("{:#x}", address)); }

void add_place(Json& json, const SourceLocation& where, const std::string& elsewhere) {
    if (!elsewhere.empty()) {
        json["place"] = elsewhere;  // of another process: "file:line"
    } else {
        json["file"] = where.file_name();
        json["line"] = where.line();
    }
}

Json side_json(const FindingSide& side) {
    if (side.what == nullptr) return {};
    Json json{{"operation", side.what}, {"pe", side.pe}, {"core", side.core}, {"pipe", name_of(side.pipe)}};
    add_place(json, side.where, side.elsewhere);
    json["address"] = address_json(side.address);
    json["bytes"] = side.bytes;
    json["event"] = side.event;
    return json;
}

Json memory_json(const EventMemory& memory) {
    if (memory.address == 0) return {};
    return {{"address", address_json(memory.address)}, {"bytes", memory.bytes}, {"pe", memory.pe}};
}

Json event_json(const KernelEvent& event) {
    Json json{{"number", event.number}, {"kind", kind_names.at(static_cast<std::size_t>(event.kind))},
              {"text", event.text()},   {"pe", event.pe},
              {"core", event.core},     {"pipe", name_of(event.pipe)}};
    add_place(json, event.where, event.elsewhere == nullptr ? "" : event.elsewhere);
    json["landed"] = event.landed;
    json["cause"] = event.cause;
    json["read"] = memory_json(event.read);
    json["written"] = memory_json(event.written);
    json["value"] = event.value;
    json["times"] = event.times;
    return json;
}

}  // namespace

std::string Finding::json() const {
    Json all{{"hazard", id_of(hazard)}, {"hint", hint()},          {"kernel", kernel},
             {"detail", detail},        {"allocation", place},     {"advice", advice_for(hazard)},
             {"times", times},          {"here", side_json(here)}, {"other", side_json(other)}};
    Json list = Json::array();
    for (const KernelEvent& event : events) list.push_back(event_json(event));
    all["events"] = std::move(list);
    return all.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace npushmem::npu

#endif
