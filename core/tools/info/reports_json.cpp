// SPDX-License-Identifier: BSD-3-Clause
#include "core/tools/info/reports_json.hpp"

namespace npushmem::info {

std::string describe(const Reports& reports) {
    std::string text;
    if (reports.version) text += describe_version();
    if (reports.variables != nullptr) text += describe_variables(*reports.variables);
    if (reports.plugins) text += describe(*reports.plugins);
    if (reports.barriers) text += describe(*reports.barriers);
    if (reports.topology) text += describe(*reports.topology);
    if (reports.checks) text += describe(*reports.checks);
    if (reports.summary) text += describe(*reports.summary);
    if (reports.jobs) text += describe(*reports.jobs);
    return text;
}

}  // namespace npushmem::info

#if !__has_include(<nlohmann/json.hpp>)

namespace npushmem::info {
// parse_options() refuses --json.
std::string to_json(const Reports&) { return {}; }
}  // namespace npushmem::info

#else

#include <fmt/format.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "core/base/version.hpp"
#include "core/plugin/plugin_table.hpp"
#include "npushmem.h"
#include "topology/policy/nic_claim.hpp"

namespace npushmem::info {

namespace {

using Json = nlohmann::ordered_json;

Json json_or_null(const std::string& text) { return text.empty() ? Json() : Json(text); }

Json version_json() {
    return {{"library", fmt::format("{}.{}.{}", library_version.major, library_version.minor, library_version.patch)},
            {"openshmem", fmt::format("{}.{}", NPUSHMEM_MAJOR_VERSION, NPUSHMEM_MINOR_VERSION)},
            {"transport_interface", fmt::format("{}.{}", NPUSHMEM_TRANSPORT_MAJOR, NPUSHMEM_TRANSPORT_MINOR)},
            {"bootstrap_interface", fmt::format("{}.{}", NPUSHMEM_BOOTSTRAP_MAJOR, NPUSHMEM_BOOTSTRAP_MINOR)}};
}

Json variables_json(const Config& config) {
    Json rows = Json::array();
    for (const EffectiveValue& row : config.effective())
        rows.push_back({{"name", row.variable()},
                        {"value", !row.is_default() && is_secret(row.name) ? Json() : Json(row.value)},
                        {"default", row.default_value},
                        {"from_environment", row.from_environment},
                        {"standard", json_or_null(row.standard)},
                        {"file", json_or_null(row.place)},
                        {"subsystem", row.subsystem},
                        {"type", row.type},
                        {"meaning", row.meaning}});
    Json warnings = missing_directories(config.settings().plugin_path);
    for (const std::string& sentence : config.unknown_variables()) warnings.push_back(sentence);
    return {{"rows", rows}, {"warnings", warnings}};
}

Json plugin_json(const PluginEntry& entry) {
    Json variables = Json::array();
    for (const PluginVariable& variable : entry.variables)
        variables.push_back({{"name", "NPUSHMEM_" + variable.name},
                             {"default", variable.default_value},
                             {"type", variable.type},
                             {"meaning", variable.meaning}});
    const Json refusal =
        entry.refusal ? Json{{"stage", name_of(entry.refusal->stage)}, {"reason", entry.refusal->text}} : Json();
    const bool has_capabilities = entry.usable() && entry.found.kind == PluginKind::transport;
    return {{"kind", name_of(entry.found.kind)},
            {"name", entry.found.name},
            {"path", entry.found.path},
            {"hides", entry.found.shadowed},
            {"summary", json_or_null(entry.summary)},
            {"interface", entry.usable() ? Json(fmt::format("{}.{}", entry.major, entry.minor)) : Json()},
            {"capabilities", has_capabilities ? Json(capability_names(entry.capabilities)) : Json()},
            {"variables", variables},
            {"refused", refusal}};
}

Json plugins_json(const PluginReport& report) {
    Json folders = Json::array();
    for (const std::string& folder : report.folders)
        folders.push_back({{"path", folder}, {"exists", std::filesystem::is_directory(folder)}});
    Json found = Json::array();
    for (const PluginEntry& entry : report.entries) found.push_back(plugin_json(entry));
    Json absent = Json::array();
    for (const AbsentPlugin& one : report.absent)
        absent.push_back({{"kind", name_of(one.kind)}, {"name", one.name}, {"reason", one.why}});
    return {{"folders", folders}, {"found", found}, {"absent", absent}};
}

Json barriers_json(const BarrierReport& report) {
    Json algorithms = Json::array();
    for (const barrier::AlgorithmInfo& info : barrier::Algorithms::table)
        algorithms.push_back({{"name", info.name}, {"has_radix", info.has_radix}, {"summary", info.summary}});
    return {{"algorithms", algorithms},
            {"choice",
             {{"algorithm", name_of(report.choice.plan)},
              {"reason", report.choice.why},
              {"pes", report.pes},
              {"hosts", report.nodes},
              {"usable_cores", report.cores}}}};
}

Json nic_json(const topology::Nic& nic, const topology::Machine& machine) {
    Json ports = Json::array();
    for (const topology::NicPort& port : nic.ports)
        ports.push_back({{"number", port.number},
                         {"state", topology::name_of(port.state)},
                         {"bits_per_second", port.bits_per_second}});
    return {{"name", nic.name},
            {"kind", nic.kind == topology::NicKind::rdma ? "verbs" : "network"},
            {"pci_address", nic.pci ? Json(machine.pci[*nic.pci].address) : Json()},
            {"numa_node", nic.numa ? Json(machine.numa_nodes[*nic.numa].os_index) : Json()},
            {"ports", ports}};
}

const char* name_of_kind(topology::PciKind kind) {
    switch (kind) {
        case topology::PciKind::host_bridge: return "host bridge";
        case topology::PciKind::bridge: return "bridge";
        case topology::PciKind::device: return "device";
    }
    return "unknown";
}

Json pci_json(const topology::Machine& machine) {
    Json out = Json::array();
    for (const topology::PciObject& object : machine.pci)
        out.push_back({{"address", object.address},
                       {"kind", name_of_kind(object.kind)},
                       {"parent", object.parent ? Json(machine.pci[*object.parent].address) : Json()},
                       {"numa_node", object.numa ? Json(machine.numa_nodes[*object.numa].os_index) : Json()},
                       {"class", object.class_id},
                       {"vendor", object.vendor},
                       {"device", object.device}});
    return out;
}

Json machine_json(const topology::Machine& machine) {
    Json packages = Json::array();
    for (const auto& package : machine.packages)
        packages.push_back({{"number", package.os_index}, {"model", package.model}, {"cpus", package.cpus}});
    Json nodes = Json::array();
    for (const auto& node : machine.numa_nodes)
        nodes.push_back({{"number", node.os_index}, {"bytes", node.memory_bytes}, {"cpus", node.cpus}});
    Json caches = Json::array();
    for (const auto& cache : machine.caches)
        caches.push_back({{"level", cache.level}, {"bytes", cache.bytes}, {"cpus", cache.cpus}});
    Json nics = Json::array();
    for (const auto& nic : machine.nics) nics.push_back(nic_json(nic, machine));
    Json accelerators = Json::array();
    for (const auto& accelerator : machine.accelerators) accelerators.push_back(machine.pci[accelerator.pci].address);
    return {{"source", machine.source},      {"host_name", machine.host_name},
            {"cores", machine.cores.size()}, {"packages", packages},
            {"numa_nodes", nodes},           {"caches", caches},
            {"pci", pci_json(machine)},      {"nics", nics},
            {"accelerators", accelerators},  {"notes", machine.notes}};
}

Json assigned_nics_json(const std::vector<topology::PeAssignment>& pes) {
    Json out = Json::array();
    for (const auto& pe : pes) {
        Json ports = Json::array();
        for (const auto& nic : pe.nics)
            ports.push_back({{"name", nic.nic},
                             {"port", nic.port},
                             {"distance", topology::name_of(nic.distance)},
                             {"rail", nic.rail_number},
                             {"bits_per_second", nic.bits_per_second},
                             {"shared_with", nic.shared_with}});
        out.push_back({{"pe", pe.pe}, {"device", pe.device}, {"reason", pe.reason}, {"ports", ports}});
    }
    return out;
}

Json routes_of_json(const std::vector<RouteLine>& routes) {
    Json out = Json::array();
    for (const RouteLine& line : routes)
        out.push_back({{"pes", line.pes},
                       {"transport", line.transport},
                       {"nics", json_or_null(line.nics)},
                       {"reason", line.why}});
    return out;
}

Json topology_json(const TopologyReport& report) {
    const JobView& job = report.job;
    Json claims = Json::array();
    for (const topology::NicClaim& claim : report.claims)
        claims.push_back({{"job", claim.job},
                          {"pe", claim.pe},
                          {"process", claim.process.pid},
                          {"npu", claim.number},
                          {"device", json_or_null(claim.device)},
                          {"nic", claim.nic},
                          {"port", claim.port},
                          {"first", claim.first},
                          {"distance", topology::name_of(claim.distance)},
                          {"this_machine", claim.machine == report.machine_key}});
    return {{"machine", machine_json(job.machine)},
            {"job", {{"pes", job.pes()}, {"hosts", job.hosts.size()}}},
            {"nic_assignment",
             {{"method", job.hosts.front().method},
              {"pes", assigned_nics_json(job.hosts.front().pes)},
              {"notes", job.hosts.front().notes}}},
            {"routes", routes_of_json(routes_of(job))},
            {"claims", claims},
            {"kernels",
             {{"mode", report.kernels.mode == npu::RemoteMode::proxy ? "proxy" : "direct"},
              {"reason", report.kernels.text}}}};
}

Json doctor_json(const std::vector<Check>& checks) {
    Json out = Json::array();
    for (const Check& check : checks)
        out.push_back({{"subject", check.subject},
                       {"severity", name_of(check.severity)},
                       {"found", check.found},
                       {"affects", check.affects},
                       {"remedy", json_or_null(check.remedy)}});
    return {{"checks", out}, {"problems", count(checks, Severity::problem)}, {"notes", count(checks, Severity::note)}};
}

Json names_json(const PluginNames& names) {
    return {{"found", names.found}, {"absent", names.absent}, {"refused", names.refused}};
}

Json summary_json(const Summary& summary) {
    const JobPreview& job = summary.job;
    return {{"library", json_or_null(summary.library)},
            {"plugin_folders", summary.plugin_folders},
            {"machine",
             {{"host_name", summary.host_name},
              {"usable_cores", summary.usable_cores},
              {"cpus", summary.cpus},
              {"memory_available", summary.memory.available},
              {"memory_total", summary.memory.total},
              {"kernel", summary.kernel},
              {"nics", summary.nics},
              {"accelerators", summary.accelerators}}},
            {"transports", names_json(summary.transports)},
            {"bootstraps", names_json(summary.bootstraps)},
            {"collectives", names_json(summary.collectives)},
            {"environment", {{"set", summary.variables}, {"unknown", summary.unknown}}},
            {"job",
             {{"pes", job.pes},
              {"routes", routes_of_json(job.routes)},
              {"remote_transport", json_or_null(job.remote.name)},
              {"remote_reason", job.remote.why},
              {"barrier", json_or_null(job.barrier)},
              {"nics", assigned_nics_json(job.nics)}}},
            {"problems", summary.problems},
            {"notes", summary.notes},
            {"ready", summary.first_problem.empty()},
            {"first_problem", json_or_null(summary.first_problem)}};
}

Json wait_json(const PeWait& wait, std::int64_t now) {
    return {{"seconds", static_cast<double>(now - wait.since) * 1e-9},
            {"call", json_or_null(std::string(text_of(wait.call)))},
            {"call_number", wait.call_number},
            {"team", json_or_null(std::string(text_of(wait.team)))},
            {"condition", std::string(text_of(wait.what))},
            {"peer", wait.peer},
            {"offset", wait.object}};
}

Json jobs_json(const JobsReport& report) {
    Json jobs = Json::array();
    for (const JobInProgress& job : report.jobs) {
        Json pes = Json::array();
        for (const PeInProgress& pe : job.pes)
            pes.push_back({{"pe", pe.progress.pe},
                           {"process", pe.process},
                           {"state", state_text(pe.progress)},
                           {"world_calls", pe.progress.world_calls},
                           {"wait", pe.progress.wait ? wait_json(*pe.progress.wait, report.now) : Json()}});
        jobs.push_back({{"program", job.program},
                        {"npes", job.npes},
                        {"first_process", job.first.pid},
                        {"pes", pes},
                        {"disagreements", disagreements_of(job)}});
    }
    return {{"running", jobs}, {"notes", report.notes}};
}

}  // namespace

std::string to_json(const Reports& reports) {
    Json document{{"version", version_json()}};
    if (reports.variables != nullptr) document["variables"] = variables_json(*reports.variables);
    if (reports.plugins) document["plugins"] = plugins_json(*reports.plugins);
    if (reports.barriers) document["barriers"] = barriers_json(*reports.barriers);
    if (reports.topology) document["topology"] = topology_json(*reports.topology);
    if (reports.checks) document["doctor"] = doctor_json(*reports.checks);
    if (reports.summary) document["summary"] = summary_json(*reports.summary);
    if (reports.jobs) document["jobs"] = jobs_json(*reports.jobs);
    return document.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace npushmem::info

#endif
