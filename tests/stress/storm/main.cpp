// SPDX-License-Identifier: BSD-3-Clause
// Injects faults into jobs, by a seed, at every stage, under every launcher and over every selection of transports, and
// checks what the jobs report and leave behind.
#include <fmt/format.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <csignal>
#include <filesystem>
#include <set>

#include "core/base/parse.hpp"
#include "tests/stress/storm/surroundings.hpp"
#include "tests/stress/storm/table.hpp"
#include "tests/stress/storm/verdict.hpp"

namespace npushmem::storm {
namespace {

struct Options {
    std::uint64_t seed = 1;
    std::uint64_t first = 0;
    std::uint64_t faults = 200;
    double seconds = 0;
    int stall = 5;
    std::string only;
    bool verbose = false;
};

Transports on_one_host(const std::string& selection) {
    return {selection, {"NPUSHMEM_TRANSPORTS=" + selection}, false};
}

bool has_rdma_device() {
    std::error_code ignored;
    return std::filesystem::directory_iterator("/sys/class/infiniband", ignored) !=
           std::filesystem::directory_iterator();
}

Surroundings surroundings() {
    Surroundings out;
    out.launchers = {{"npushmem-run", true, true, true, {"-n"}, {}},
                     {"npushmem-run --hosts", true, false, true, {"--hosts", "a,b", "--rsh", "env -u", "-n"}, {}},
                     {"plain-shells", false, false, true, {STORM_PLAIN_SHELLS}, {}}};
    const std::string hydra = STORM_HYDRA;
    const std::string openmpi = STORM_OPENMPI;
    if (!hydra.empty()) out.launchers.push_back({"mpiexec.hydra", false, false, false, {hydra, "-n"}, {}});
    if (!openmpi.empty())
        out.launchers.push_back({"mpirun.openmpi", false, false, false, {openmpi, "--oversubscribe", "-n"}, {}});
    for (const auto& selection : split("self,p2p self,nomap(p2p) self,fault(p2p) hccs " STORM_UNMAPPED_SELF, ' '))
        out.transports.push_back(on_one_host(selection));
    // With entries in the host's table of NICs.
    out.transports.push_back({"self,p2p,nics",
                              {"NPUSHMEM_TRANSPORTS=self,p2p,nics", "NPUSHMEM_PLUGIN_PATH=" STORM_NICS_FOLDER,
                               "NPUSHMEM_TOPO_FILE=" STORM_TOPOLOGY, "NPUSHMEM_NICS_NAMES=mlx5_0,mlx5_1,mlx5_2,mlx5_3"},
                              false});
    for (const auto& network : split(STORM_NETWORKS, ' ')) {
        if (network.empty()) continue;
        if (network == "verbs" && !has_rdma_device()) {
            fmt::print("skipped: transport verbs: this host has no RDMA device\n");
            continue;
        }
        out.transports.push_back(on_one_host("self," + network));
        out.transports.push_back({"2 hosts, " + network, {"NPUSHMEM_REMOTE_TRANSPORT=" + network}, true});
    }
    return out;
}

// A new folder for the pipes and temporary files of jobs; empty on failure.
std::string make_folder() {
    std::error_code ignored;
    std::string name = (std::filesystem::temp_directory_path(ignored) / "npushmem-storm-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) return {};
    std::filesystem::permissions(name, std::filesystem::perms::all, ignored);
    return name;
}

void clear(const std::string& folder) {
    std::error_code ignored;
    for (const auto& entry : std::filesystem::directory_iterator(folder, ignored))
        std::filesystem::remove_all(entry.path(), ignored);
}

class Storm {
public:
    Storm(Options options, std::string folder) : options_(std::move(options)), folder_(std::move(folder)) {}

    int run() {
        const std::string why_not = enter_private_namespaces();
        if (!why_not.empty()) fmt::print("no private namespaces ({}): sockets are not checked\n", why_not);
        is_private_ = why_not.empty();
        const auto begin = std::chrono::steady_clock::now();
        for (std::uint64_t i = 0; i < options_.faults; ++i) {
            run_one(options_.first + i);
            const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
            if (options_.seconds > 0 && took.count() > options_.seconds) break;
        }
        fmt::print("\n{}", table_.text());
        return defects_ == 0 ? 0 : 1;
    }

private:
    void run_one(std::uint64_t number) {
        const Fault fault = choose_fault(surroundings_, options_.seed, number, options_.only);
        if (options_.verbose) fmt::print("{}: {}\n", number, fault.text());
        std::fflush(stdout);
        const JobResult result = run_job(programs_, fault, folder_, std::chrono::seconds(options_.stall), is_private_);
        clear_folders();
        if (!result.skipped.empty()) {
            if (skipped_.emplace(fault.kind->name).second)
                fmt::print("skipped: {}: {}\n", fault.kind->name, result.skipped);
            return;
        }
        const auto defects = judge(fault, result);
        const std::string_view known = defects.empty() ? "" : known_cause(fault, result);
        using Outcome = Table::Outcome;
        table_.add(fault, result, defects.empty() ? Outcome::good : known.empty() ? Outcome::defect : Outcome::known);
        if (Table::is_late(fault, result) && defects.empty())
            fmt::print("LATE, {:.1f} s after the fault: {} --seed {} --first {} --faults 1\n",
                       std::chrono::duration<double>(result.took).count(), fault.text(), options_.seed, number);
        if (!defects.empty()) report(number, fault, result, defects, known);
    }

    void clear_folders() const {
        clear(folder_);
        if (is_private_) clear("/dev/shm");
    }

    void report(std::uint64_t number, const Fault& fault, const JobResult& result,
                const std::vector<std::string>& defects, std::string_view known) {
        if (known.empty()) ++defects_;
        fmt::print("{} --seed {} --first {} --faults 1{}: {}\n", known.empty() ? "DEFECT" : "KNOWN DEFECT",
                   options_.seed, number, options_.only.empty() ? "" : " --only '" + options_.only + "'", fault.text());
        for (const auto& defect : defects) fmt::print("    {}\n", defect);
        if (!known.empty()) fmt::print("    because {}\n", known);
        fmt::print("  status {}, after {:.3f} s:\n{}\n", result.status,
                   std::chrono::duration<double>(result.took).count(), result.output);
        std::fflush(stdout);
    }

    Options options_;
    std::string folder_;
    Programs programs_{STORM_PE, STORM_RUN};
    Surroundings surroundings_ = surroundings();
    bool is_private_ = false;
    Table table_;
    std::set<std::string> skipped_;  // kinds that are not possible here
    int defects_ = 0;
};

int main(int argc, char** argv) {
    Options options;
    CLI::App app("Injects faults into jobs and checks what they report and leave behind.", "npushmem-storm");
    app.add_option("--seed", options.seed, "seed of all choices")->capture_default_str();
    app.add_option("--first", options.first, "number of the first fault")->capture_default_str();
    app.add_option("--faults", options.faults, "how many")->capture_default_str();
    app.add_option("--seconds", options.seconds, "end earlier after this time; 0: no limit")->capture_default_str();
    app.add_option("--stall", options.stall, "a job that ends more seconds after its fault has a defect")
        ->capture_default_str();
    app.add_option("--only", options.only, "only faults whose text contains this");
    app.add_flag("-v,--verbose", options.verbose, "print each fault before it is injected");
    CLI11_PARSE(app, argc, argv);
    ::prctl(PR_SET_CHILD_SUBREAPER, 1);
    const std::string folder = make_folder();
    if (folder.empty()) {
        fmt::print("no folder for temporary files\n");
        return 2;
    }
    const int status = Storm(std::move(options), folder).run();
    std::error_code ignored;
    std::filesystem::remove_all(folder, ignored);
    return status;
}

}  // namespace
}  // namespace npushmem::storm

int main(int argc, char** argv) { return npushmem::storm::main(argc, argv); }
