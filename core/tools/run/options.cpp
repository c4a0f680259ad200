// SPDX-License-Identifier: BSD-3-Clause
#include "core/tools/run/options.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <memory>

#include "core/base/parse.hpp"
#include "core/base/version.hpp"
#include "core/tools/common/cli_documents.hpp"
#include "core/tools/run/exit_record.hpp"
#include "npushmem/npu/checked_job.hpp"
#include "npushmem/plugin/status.hpp"

namespace npushmem::run {
namespace {

constexpr int max_pes = 1 << 20;

// CLI11 fills these. They are checked and converted afterwards, so that every message names the option and the value.
struct RawOptions {
    std::string npes = "1";
    std::string hosts;
    std::optional<std::string> rsh;
    bool local = false;
    std::string remote_run;
    bool agent_client = false;
    std::string nodes;
    std::string map_by = "block";
    std::vector<std::string> exports;
    std::string bind = "auto";
    std::string timeout;
    std::string npu_check;
    std::string npu_check_runs = "10000";
    bool tag_output = false;
    bool verbose = false;
};

const char* const footer =
    "The options of npushmem-run end at the program's name (or at --); everything after it belongs to the program.\n"
    "\n"
    "Every PE gets NPUSHMEM_PE, NPUSHMEM_NPES, NPUSHMEM_BOOTSTRAP and NPUSHMEM_UNIQUEID (and NPUSHMEM_EMULATED_HOST "
    "with\n"
    "--nodes) besides the launcher's environment. Standard input goes to PE 0. INT, TERM, HUP, QUIT, USR1, USR2, TSTP\n"
    "and CONT are forwarded to all PEs; a second INT or TERM kills them.\n"
    "\n"
    "Exit status: 0 when every PE exited with 0; otherwise that of the first PE that failed (128 + number for a "
    "signal).\n"
    "1 when every PE exited with 0, but calls of the library failed and the program did not ask for the failures\n"
    "(NPUSHMEM_ON_ERROR).\n"
    "Statuses of the launcher itself: 2 bad command line, 124 time limit passed, 125 launcher failed or its output is "
    "lost, 126\n"
    "program cannot be run, 127 program not found.\n"
    "\n"
    "Examples:\n"
    "  npushmem-run -n 8 ./app --its-own-option\n"
    "  npushmem-run -n 8 --nodes 2 -x NPUSHMEM_INFO=1 --tag-output ./app";

// The parts of the man page that the table of options does not contain.
ManText man_text() {
    return {
        "start the PEs of an npushmem job",
        "[--] program [arguments]",
        "Starts N processes of the program as the PEs of one job, on this host or on several, and waits for them. "
        "Options end at the program's name or at --; everything after it belongs to the program.\n\n"
        "Every PE gets the launcher's environment and the variables of section ENVIRONMENT. Standard input goes to PE "
        "0. The signals INT, TERM, HUP, QUIT, USR1, USR2, TSTP and CONT are forwarded to all PEs; a second INT or TERM "
        "kills them. When a PE fails, the launcher names it, sends TERM to the others, and kills those that do not "
        "end. With NPUSHMEM_ON_PEER_DEATH=survive the others go on; the exit status is the same.\n\n"
        "With --hosts the launcher starts itself on the hosts by the remote shell and sends the command and the "
        "environment over the shell's standard input. PEs then get the variables NPUSHMEM_*, SHMEM_*, SMA_*, PATH and "
        "LD_LIBRARY_PATH of the launcher and those of -x; all others are those of their host. In an allocation of "
        "Slurm, PBS or LSF its hosts are used unless --hosts or --local is given.",
        {{"0", "Every PE exited with 0."},
         {"1",
          "Every PE exited with 0, but calls of the library failed and the program did not ask for the failures "
          "(NPUSHMEM_ON_ERROR)."},
         {"2", "The command line is wrong."},
         {"124", "The time limit of --timeout passed."},
         {"125", "The launcher failed, or its output is lost."},
         {"126", "The program cannot be run."},
         {"127", "The program was not found."},
         {"other", "The status of the first PE that failed; 128 + the number of the signal that ended it."}},
        {{"NPUSHMEM_PE, NPUSHMEM_NPES", "Set for every PE: its number and the number of PEs."},
         {"NPUSHMEM_BOOTSTRAP", "Set to UID for every PE, unless it is set."},
         {"NPUSHMEM_UNIQUEID", "Set for every PE: how the PEs find each other. It contains the secret of the job."},
         {"NPUSHMEM_EMULATED_HOST", "Set for every PE with --nodes."},
         {"NPUSHMEM_*", "Configure the PEs. See npushmem-variables(7)."}},
        {{"npushmem-run -n 8 ./app --its-own-option", "Eight PEs on this host:"},
         {"npushmem-run -n 8 --nodes 2 -x NPUSHMEM_INFO=1 --tag-output ./app",
          "Two emulated hosts of four PEs each, which report what they chose:"},
         {"npushmem-run -n 8 --hosts a,b --rsh ssh ./app", "Four PEs on each of two hosts:"}},
        "npushmem-info(1), npushmem-perf(1), oshrun(1), npushmem(7), npushmem-variables(7)"};
}

// CLI11 does not know the words that belong to the program.
class HelpText final : public CLI::Formatter {
public:
    std::string make_usage(const CLI::App* /*app*/, std::string name) const override {
        return fmt::format("Usage: {} [OPTIONS] [--] program [arguments]\n", name);
    }
};

template <class Value>
using Choices = std::vector<std::pair<std::string, Value>>;

const Choices<MapBy> map_rules{{"block", MapBy::block}, {"round-robin", MapBy::round_robin}};
const Choices<Bind> bindings{{"auto", Bind::automatic},    {"none", Bind::none}, {"core", Bind::core},
                             {"hwthread", Bind::hwthread}, {"numa", Bind::numa}, {"share", Bind::share},
                             {"device", Bind::device}};

template <class Value>
std::vector<std::string> names_of(const Choices<Value>& choices) {
    std::vector<std::string> names;
    for (const auto& choice : choices) names.push_back(choice.first);
    return names;
}

void declare_kernel_checks(CLI::App& app, RawOptions& raw) {
    app.add_flag("--npu-check{lazy}", raw.npu_check,
                 "Check the kernels of the emulated NPU. The schedule after = is lazy (the default), eager, "
                 "random:<seed>, explore, explore:<deviations> or replay:<trace>; all but lazy and eager let one step "
                 "of all PEs' kernels run at a time. explore runs the program again for each schedule until one fails, "
                 "shows the output of the last run, and names the schedule for replay");
    app.add_option("--npu-check-runs", raw.npu_check_runs,
                   "Run the program at most so many times for --npu-check=explore; 10000 if not given. Up to 200 more "
                   "runs, but no more than N, look for a simpler schedule that fails, too")
        ->type_name("N");
}

void declare(CLI::App& app, RawOptions& raw) {
    app.prefix_command();
    app.set_help_flag("-h,--help", "Show this text");
    app.set_version_flag("-V,--version", fmt::format("npushmem-run {}.{}.{}", library_version.major,
                                                     library_version.minor, library_version.patch));
    app.add_option("-n,--npes,--np", raw.npes, "Number of PEs (processes) to start; 1 if not given; also -np")
        ->type_name("N");
    app.add_option("--hosts", raw.hosts,
                   "Run on these hosts, separated by commas; npushmem-run must exist there at the same path. PE 0's "
                   "standard input is empty then. Default: the hosts of the allocation (Slurm, PBS, LSF) in which this "
                   "runs, else this host")
        ->type_name("A,B,...");
    app.add_flag("--local", raw.local, "Run on this host only, also in an allocation of several");
    app.add_option("--rsh", raw.rsh,
                   "Remote shell: a command that takes a host's name and a command. Default: srun in a Slurm "
                   "allocation, else ssh")
        ->type_name("COMMAND");
    app.add_option("--remote-run", raw.remote_run,
                   "Path of npushmem-run on the other hosts, if it differs from the path of this one")
        ->type_name("PATH");
    app.add_flag("--agent-client", raw.agent_client)->group("");
    app.add_option("--nodes", raw.nodes, "Emulate K hosts: PEs of different hosts cannot map each other's memory")
        ->type_name("K");
    app.add_option("--map-by", raw.map_by,
                   "Assign PEs to hosts by this rule: block (neighbours together, the default) or round-robin")
        ->type_name(fmt::format("RULE:{{{}}}", fmt::join(names_of(map_rules), ",")));
    app.add_option("-x", raw.exports, "Set VAR to value for every PE; may be repeated")
        ->type_name("VAR=value")
        ->allow_extra_args(false);
    app.add_flag("-t,--tag-output,--prefix", raw.tag_output, "Put [pe N] in front of every line that a PE writes");
    app.add_option("--bind", raw.bind,
                   "Bind PEs to CPUs: none; core, hwthread or numa (PE i to the i-th, starting over when they are used "
                   "up); share (equal parts of the machine's cores); device (equal parts of the cores near the NPU "
                   "that the PE drives, never outside the CPUs that the launcher itself may use); auto (the default): "
                   "share with at "
                   "least as many cores as PEs, else none")
        ->type_name(fmt::format("UNIT:{{{}}}", fmt::join(names_of(bindings), ",")));
    app.add_option("--timeout", raw.timeout, "End the job, with status 124, after this many seconds")
        ->type_name("SECONDS");
    app.add_flag("-v,--verbose", raw.verbose, "Report where each PE starts and how it ends");
    app.formatter(std::make_shared<HelpText>());
    app.footer(footer);
}

template <class Value>
std::string name_in(const Choices<Value>& names, Value wanted) {
    const auto found = std::ranges::find(names, wanted, &std::pair<std::string, Value>::second);
    return found != names.end() ? found->first : "";
}

template <class Value>
Result<Value> choice(const char* option, const std::string& text, const Choices<Value>& all) {
    for (const auto& [name, value] : all)
        if (name == text) return value;
    return Status{Code::argument,
                  fmt::format("{} must be one of {}, not '{}'", option, fmt::join(names_of(all), ", "), text)};
}

Result<int> whole_number(const char* option, const std::string& text, int high) {
    const bool digits = !text.empty() && text.size() < 9 && text.find_first_not_of("0123456789") == std::string::npos;
    const int value = digits ? std::stoi(text) : 0;
    if (value >= 1 && value <= high) return value;
    return Status{Code::argument, fmt::format("{} must be a whole number from 1 to {}, not '{}'", option, high, text)};
}

Result<std::chrono::milliseconds> seconds(const char* option, const std::string& text) {
    const bool plain = !text.empty() && text.size() < 16 &&
                       text.find_first_not_of("0123456789.") == std::string::npos &&
                       std::count(text.begin(), text.end(), '.') <= 1 && text != ".";
    const double value = plain ? std::stod(text) : 0.0;
    if (value >= 0.001 && value <= 1e9) return std::chrono::milliseconds(static_cast<std::int64_t>(value * 1000));
    return Status{Code::argument, fmt::format("{} must be a number of seconds from 0.001 to 1e9 such as 30 or 0.5, not "
                                              "'{}'",
                                              option, text)};
}

bool is_variable_name(const std::string& name) {
    const auto allowed = [](unsigned char c) { return std::isalnum(c) != 0 || c == '_'; };
    return !name.empty() && std::isdigit(static_cast<unsigned char>(name[0])) == 0 &&
           std::all_of(name.begin(), name.end(), allowed);
}

Result<Variable> variable(const std::string& text) {
    const auto equals = text.find('=');
    if (equals == std::string::npos)
        return Status{Code::argument, fmt::format("-x must be VAR=value, not '{}' (the launcher's own environment is "
                                                  "passed on anyway)",
                                                  text)};
    Variable made{text.substr(0, equals), text.substr(equals + 1)};
    if (!is_variable_name(made.name))
        return Status{Code::argument, fmt::format("-x '{}': '{}' is not the name of a variable", text, made.name)};
    for (const char* ours : {"NPUSHMEM_PE", "NPUSHMEM_NPES", "NPUSHMEM_UNIQUEID", "NPUSHMEM_LAUNCHER_FD"})
        if (made.name == ours)
            return Status{Code::argument, fmt::format("-x '{}': npushmem-run sets {} itself", text, ours)};
    return made;
}

// The schedules that PEs follow by themselves are variables of theirs.
Result<std::string> checked_schedule(const std::string& text, Options& options) {
    const auto schedule = npu::Schedule::parse(text);
    if (!schedule.ok()) return schedule.status().within("--npu-check");
    options.exports.push_back({"NPUSHMEM_NPU_CHECK", "1"});
    options.exports.push_back({"NPUSHMEM_NPU_SCHEDULE", text});
    return text;
}

// Keeps the first failure of a sequence of conversions.
class Conversion {
public:
    template <class Value, class Target>
    void take(Result<Value> from, Target& into) {
        if (from.ok())
            into = std::move(from).value();
        else if (status_.ok())
            status_ = from.status();
    }
    void fail(std::string message) {
        if (status_.ok()) status_ = Status{Code::argument, std::move(message)};
    }
    [[nodiscard]] const Status& status() const { return status_; }

private:
    Status status_;
};

std::vector<std::string> words_of(const std::string& text, char between) {
    std::vector<std::string> out;
    for (const auto& word : split(text, between))
        if (!trimmed(word).empty()) out.emplace_back(trimmed(word));
    return out;
}

std::string own_path() {
    std::error_code error;
    return std::filesystem::read_symlink("/proc/self/exe", error).string();
}

void take_hosts(Conversion& conversion, const RawOptions& raw, Options& options) {
    options.hosts = words_of(raw.hosts, ',');
    options.rsh = words_of(raw.rsh.value_or("ssh"), ' ');
    options.rsh_given = raw.rsh.has_value();
    options.local = raw.local;
    options.remote_run = raw.remote_run.empty() ? own_path() : raw.remote_run;
    options.agent_client = raw.agent_client;
    if (!raw.hosts.empty() && options.hosts.empty())
        conversion.fail(fmt::format("--hosts '{}' names no host", raw.hosts));
    if (options.rsh.empty()) conversion.fail("--rsh is empty");
    if (options.hosts.size() > static_cast<std::size_t>(options.npes))
        conversion.fail(fmt::format("--hosts names {} hosts and needs at least as many PEs, but -n is {}",
                                    options.hosts.size(), options.npes));
    if (!options.hosts.empty() && options.local) conversion.fail("--hosts and --local contradict each other");
    if (!options.hosts.empty() && options.nodes > 0)
        conversion.fail("--hosts and --nodes contradict each other: real hosts are not emulated");
}

void check_hosts(Conversion& conversion, const Options& options) {
    if (options.nodes > options.npes)
        conversion.fail(
            fmt::format("--nodes {} needs at least as many PEs, but -n is {}", options.nodes, options.npes));
    for (const auto& variable : options.exports)
        if (options.nodes > 0 && variable.name == "NPUSHMEM_EMULATED_HOST")
            conversion.fail("-x NPUSHMEM_EMULATED_HOST contradicts --nodes, which sets it for every PE");
}

Result<Options> converted(const RawOptions& raw) {
    Options options;
    Conversion conversion;
    conversion.take(whole_number("-n", raw.npes, max_pes), options.npes);
    if (!raw.nodes.empty()) conversion.take(whole_number("--nodes", raw.nodes, max_pes), options.nodes);
    conversion.take(choice<MapBy>("--map-by", raw.map_by, map_rules), options.map_by);
    conversion.take(choice<Bind>("--bind", raw.bind, bindings), options.bind);
    if (!raw.timeout.empty()) conversion.take(seconds("--timeout", raw.timeout), options.timeout);
    for (const auto& text : raw.exports) conversion.take(variable(text), options.exports.emplace_back());
    if (!raw.npu_check.empty()) conversion.take(checked_schedule(raw.npu_check, options), options.npu_check);
    int runs = 0;
    conversion.take(whole_number("--npu-check-runs", raw.npu_check_runs, 99'999'999), runs);
    options.npu_check_runs = static_cast<std::uint64_t>(runs);
    take_hosts(conversion, raw, options);
    check_hosts(conversion, options);
    options.tag_output = raw.tag_output;
    options.verbose = raw.verbose;
    if (!conversion.status().ok()) return conversion.status();
    return options;
}

// Takes the program and its arguments from the words that CLI11 did not recognise. A leading option among them is a
// misspelt option of npushmem-run.
Result<std::vector<std::string>> command_in(const std::vector<std::string>& rest, const CLI::App& app) {
    auto first = rest.begin();
    const bool marked = first != rest.end() && *first == "--";
    if (marked) ++first;
    if (first == rest.end())
        return Status{Code::argument, "no program is named; usage: npushmem-run -n N program [arguments]"};
    if (marked || first->empty() || first->front() != '-') return std::vector<std::string>(first, rest.end());
    std::vector<std::string> known;
    for (const auto* option : app.get_options())
        for (const auto& name : option->get_lnames()) known.push_back("--" + name);
    const auto near = nearest(first->substr(0, first->find('=')), known);
    return Status{Code::argument, fmt::format("unknown option '{}'{}", *first,
                                              near.empty() ? "" : fmt::format("; did you mean {}?", near))};
}

// Accepts -np as mpirun does: CLI11 reads it as -n with the value "p". The program's words are not changed.
std::vector<std::string> with_np_as_n(std::vector<std::string> arguments, const CLI::App& app) {
    for (std::size_t i = 0; i < arguments.size() && arguments[i].starts_with('-') && arguments[i] != "--"; ++i) {
        if (arguments[i] == "-np") arguments[i] = "-n";
        const CLI::Option* option = app.get_option_no_throw(arguments[i]);
        if (option != nullptr && option->get_items_expected_max() > 0) ++i;  // skips the option's value
    }
    return arguments;
}

EarlyExit mistake(const std::string& message) {
    return {exit_usage, fmt::format("npushmem-run: {}\nTry 'npushmem-run --help'.\n", message)};
}

}  // namespace

std::string name_of(MapBy rule) { return name_in(map_rules, rule); }
std::string name_of(Bind bind) { return name_in(bindings, bind); }

std::variant<Options, EarlyExit> parse_options(const std::vector<std::string>& arguments) {
    CLI::App app{"Starts N processes as the PEs of one npushmem job, on this host or on several.", "npushmem-run"};
    RawOptions raw;
    declare(app, raw);
    declare_kernel_checks(app, raw);
    if (auto document = requested_document(app, man_text(), arguments)) return EarlyExit{0, std::move(*document)};
    try {
        auto words = with_np_as_n(arguments, app);
        app.parse(std::vector<std::string>(words.rbegin(), words.rend()));
    } catch (const CLI::CallForHelp&) {
        return EarlyExit{0, app.help()};
    } catch (const CLI::CallForVersion& version) {
        return EarlyExit{0, version.what() + std::string("\n")};
    } catch (const CLI::ParseError& error) {
        return mistake(error.what());
    }
    auto command = command_in(app.remaining(), app);
    if (!command.ok()) return mistake(command.status().message());
    auto options = converted(raw);
    if (!options.ok()) return mistake(options.status().message());
    options.value().command = std::move(command).value();
    return std::move(options).value();
}

}  // namespace npushmem::run
