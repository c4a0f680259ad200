// SPDX-License-Identifier: BSD-3-Clause
// The start report as JSON. The only file of the library that uses nlohmann-json.
#if !__has_include(<nlohmann/json.hpp>)

#include "core/runtime/selections.hpp"

namespace npushmem {
std::string to_json(const StartReport&) {
    return R"({"error": "this npushmem was built without nlohmann-json: install nlohmann-json3-dev and build again"})";
}
}  // namespace npushmem

#else

#include <fmt/core.h>

#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "core/base/version.hpp"
#include "core/plugin/transport_stack.hpp"
#include "core/runtime/selections.hpp"

namespace npushmem {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::pair<std::uint64_t, const char*> capability_names[] = {
    {NPUSHMEM_CAP_MAP, "mapped"},
    {NPUSHMEM_CAP_PUT, "put"},
    {NPUSHMEM_CAP_GET, "get"},
    {NPUSHMEM_CAP_ATOMIC, "atomic"},
    {NPUSHMEM_CAP_PUT_SIGNAL, "put_signal"},
    {NPUSHMEM_CAP_ORDERED, "ordered"},
    {NPUSHMEM_CAP_REMOTE, "remote"},
    {NPUSHMEM_CAP_REPORTS_DEATH, "reports_death"},
    {NPUSHMEM_CAP_TARGET_PROGRESS, "target_progress"},
    {NPUSHMEM_CAP_PUT_STRIDED, "put_strided"},
};

Json capabilities_json(const Reach& reach) {
    Json names = Json::array();
    for (const auto& [bit, name] : capability_names)
        if (reach.has(bit)) names.push_back(name);
    return names;
}

Json text_or_null(const std::string& text) { return text.empty() ? Json() : Json(text); }

Json bootstrap_json(const JobReport& job) {
    return {{"name", job.bootstrap.name},
            {"reason", text_or_null(job.bootstrap.why)},
            {"confidence", job.bootstrap.confidence},
            {"rank", job.rank},
            {"nranks", job.pes}};
}

// A name that a plugin's tests gave, and that is no selection, is its own only layer.
Json layers_json(const std::string& name) {
    Json layers = Json::array();
    const auto parsed = parse_transport_selection(name);
    if (!parsed.ok()) return Json::array({name});
    for (const auto& layer : parsed.value().front().layers) layers.push_back(layer.name);
    return layers;
}

Json transports_json(std::span<const TransportReport> transports) {
    Json out = Json::array();
    for (const TransportReport& one : transports)
        out.push_back({{"name", one.name},
                       {"layers", layers_json(one.name)},
                       {"reason", text_or_null(one.why)},
                       {"remote", one.remote},
                       {"in_use", one.in_use}});
    return out;
}

Json routes_json(const StartReport& report) {
    Json out = Json::array();
    for (const RouteRange& range : report.routes) {
        const Reach& reach = range.route.reach;
        out.push_back({{"first_pe", range.first},
                       {"last_pe", range.last},
                       {"transport", report.transports[static_cast<std::size_t>(range.route.transport)].name},
                       {"mapped", range.route.maps()},
                       {"capabilities", capabilities_json(reach)},
                       {"atomic_32", reach.atomic_32},
                       {"atomic_64", reach.atomic_64},
                       {"reason", reach.why}});
    }
    return out;
}

Json pe_nics_json(const HostNics& host, const topology::PeAssignment& pe) {
    Json ports = Json::array();
    const PeNics nics = nics_of(host, static_cast<int>(pe.pe), {static_cast<int>(pe.pe), false, {}});
    for (const NicReport& nic : nics.nics)
        ports.push_back({{"name", nic.choice.nic},
                         {"port", nic.choice.port},
                         {"pci_address", text_or_null(nic.pci_address)},
                         {"distance", topology::name_of(nic.choice.distance)},
                         {"rail", nic.choice.rail_number},
                         {"bits_per_second", nic.choice.bits_per_second},
                         {"shared_with", nic.choice.shared_with}});
    return {{"pe", pe.pe}, {"device", pe.device}, {"reason", pe.reason}, {"ports", ports}};
}

Json nics_json(const StartReport& report) {
    HostNics shown = report.nics;
    if (report.preview != nullptr) {
        shown.in_use = true;
        shown.assignment = report.preview->assignment;
    }
    Json pes = Json::array();
    for (const auto& pe : shown.assignment.pes) pes.push_back(pe_nics_json(shown, pe));
    const bool failed = report.preview != nullptr && !report.preview->failure.ok();
    return {{"transport", text_or_null(report.nics.transport)},
            {"method", text_or_null(shown.assignment.method)},
            {"failure", failed ? Json(report.preview->failure.message()) : Json()},
            {"pes", pes},
            {"notes", shown.assignment.notes}};
}

Json barrier_json(const JobReport& job) {
    const auto& info = barrier::Algorithms::info(job.barrier.plan.id);
    return {{"algorithm", info.name},
            {"radix", info.has_radix ? Json(job.barrier.plan.radix) : Json()},
            {"reason", job.barrier.why},
            {"pes", job.barrier_input.members},
            {"hosts", job.barrier_input.nodes},
            {"pes_per_core", job.barrier_input.pes_per_core},
            {"mapped", job.barrier_input.mapped}};
}

Json variables_json(const Config& config) {
    Json out = Json::array();
    for (const EffectiveValue& variable : config.effective())
        if (!variable.is_default())
            out.push_back({{"name", variable.variable()},
                           {"value", is_secret(variable.name) ? Json() : Json(variable.value)},
                           {"default", variable.default_value},
                           {"standard", text_or_null(variable.standard)},
                           {"file", text_or_null(variable.place)}});
    return out;
}

Json job_json(const JobReport& job) {
    return {{"pes", job.pes},
            {"hosts", job.host_names.size()},
            {"host_names", job.host_names},
            {"distribution", name_of(job.distribution)},
            {"even", job.even}};
}

}  // namespace

std::string to_json(const StartReport& report) {
    const JobReport& job = report.job;
    const Json kernels = job.kernels ? Json{{"mode", job.kernels->mode == npu::RemoteMode::proxy ? "proxy" : "direct"},
                                            {"reason", job.kernels->text}}
                                     : Json();
    const Json document{
        {"version", fmt::format("{}.{}.{}", library_version.major, library_version.minor, library_version.patch)},
        {"job", job_json(job)},
        {"heap", {{"bytes", job.heap_bytes}}},
        {"static_data", job.static_data},
        {"bootstrap", bootstrap_json(job)},
        {"between_hosts", text_or_null(job.between_hosts)},
        {"collectives", text_or_null(job.collectives)},
        {"transports", transports_json(report.transports)},
        {"routes", routes_json(report)},
        {"nics", nics_json(report)},
        {"kernels", kernels},
        {"barrier", barrier_json(job)},
        {"waiting", job.waiting},
        {"variables", variables_json(report.config)}};
    return document.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace npushmem

#endif
