// SPDX-License-Identifier: BSD-3-Clause
// The configuration. A table has one row per variable: a row parses its text, prints it and documents it. Defaults are
// text and go through the same parser as a user's value.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/config_file.hpp"
#include "core/base/parse.hpp"
#include "npushmem/plugin/abi.h"
#include "npushmem/plugin/status.hpp"

namespace npushmem {

// The process environment as an interface: configuration is a function of a value, and tests need no setenv.
class Environment {
public:
    virtual ~Environment() = default;
    [[nodiscard]] virtual std::optional<std::string> get(const std::string& name) const = 0;
    // Returns all variables whose name starts with NPUSHMEM_, with their full names.
    [[nodiscard]] virtual std::map<std::string, std::string> npushmem_variables() const = 0;
};

// True if the program has rights that its caller lacks: it is set-user-ID or set-group-ID, or has file capabilities.
// Then the environment is not to be trusted.
bool has_gained_privileges();

// The only reader of the process environment. Empty for a program that has gained privileges, as with secure_getenv.
// Not safe against a concurrent setenv, like getenv itself.
class ProcessEnvironment final : public Environment {
public:
    explicit ProcessEnvironment(bool privileged = has_gained_privileges()) : privileged_(privileged) {}

    [[nodiscard]] std::optional<std::string> get(const std::string& name) const override;
    [[nodiscard]] std::map<std::string, std::string> npushmem_variables() const override;

private:
    bool privileged_;
};

// A variable of the OpenSHMEM standard: SHMEM_VERSION, SHMEM_INFO, SHMEM_SYMMETRIC_SIZE, SHMEM_DEBUG, and their
// deprecated forms SMA_*. Each sets the NPUSHMEM_* variable of the same meaning, unless that one is set.
struct StandardVariable {
    const char* row;       // name of the configuration row, without NPUSHMEM_
    const char* names[2];  // the first one that is set counts
    const char* meaning;
    const char* accepted;
    // Converts the standard's syntax to the row's.
    Result<std::string> (*translate)(std::string_view text);
};

std::span<const StandardVariable> standard_variables();

// The value that a standard variable in the environment gives to a row.
struct StandardValue {
    const StandardVariable* variable;
    std::string name;
    std::string text;
};
std::optional<StandardValue> standard_value(const Environment& environment, std::string_view row);

// Returns the help text that SHMEM_INFO requests.
std::string describe_standard_variables();

// The report of PE 0 at start (NPUSHMEM_INFO): none, prose for people, or one line of JSON for programs.
enum class StartReportForm { none, text, json };

// Every variable of the runtime as a typed value. Read once, then passed on as const. It has one member for each row of
// the table, in one struct, because a row names the member into which it parses; it has no invariants to maintain.
struct Settings {
    std::string config_file;
    // bootstrap
    std::string bootstrap;
    std::string bootstrap_pmi;
    std::string bootstrap_plugin;
    std::string uniqueid;
    std::int64_t pe = -1;
    std::int64_t npes = -1;
    std::int64_t emulated_host = -1;
    std::string launcher_fd;
    // transports
    std::string transports;
    bool disable_p2p = false;
    std::string remote_transport;
    std::string remote_order;
    std::string ib_enable_ibgda;  // auto, 0 or 1
    std::string plugin_path;
    // memory
    ByteCount symmetric_size;
    std::string heap_dir;
    bool huge_pages = true;
    bool share_between_containers = true;
    bool static_data = true;
    // topology
    bool enable_nic_pe_mapping = false;
    std::string hca_list;
    std::string hca_pe_mapping;
    std::string nic_rails;
    std::string nic_policy;
    std::int64_t nics_per_pe = 0;
    bool nic_arbitration = true;
    std::int64_t device = -1;
    std::string topo_file;
    // waiting and collectives
    Duration timeout{};
    Duration report_after{};
    bool survives_deaths = false;  // ON_PEER_DEATH=survive
    std::string barrier_algo;
    std::string coll_tuning_file;
    std::string coll_library;
    // emulated NPU
    std::int64_t npu_blocks = 0;
    std::int64_t npu_vector_cores = 0;
    std::string npu_device;
    bool npu_check = false;
    std::string npu_check_report;
    std::string npu_schedule;
    std::string npu_barrier;
    // reports
    bool check = false;
    StartReportForm info = StartReportForm::none;
    bool version = false;
    bool stats = false;
    std::int64_t stats_every = 16;
    std::string on_error;
    std::string debug;
    std::string debug_subsys;
    std::string debug_file;
};

struct ConfigRow {
    const char* name;  // without NPUSHMEM_
    const char* default_value;
    const char* type;  // accepted values: "bool", "size", "int 0..7", ...
    const char* subsystem;
    const char* meaning;
    Status (*parse)(std::string_view text, Settings& into);
};

// The runtime's own rows, sorted by subsystem, then in reading order.
std::span<const ConfigRow> config_rows();

// Checks a text against a type name of npushmem_config_row, for plugins' rows.
Status check_typed(std::string_view type, std::string_view text);

// Whether the value of a variable of this name, without NPUSHMEM_, may grant access to a job or a service: the name
// contains UNIQUEID, SECRET, SESSION, TOKEN, PASSWORD, PASSWD, CREDENTIAL or COOKIE. Users send reports to others, so
// reports do not contain such values.
bool is_secret(std::string_view name);

// The value in effect of one variable, for reports. The views refer to text that lives as long as the process.
struct EffectiveValue {
    std::string_view name;
    std::string value;
    std::string_view default_value;
    std::string_view type;
    std::string_view subsystem;
    std::string_view meaning;
    bool from_environment = false;
    std::string standard;  // the standard variable that set the value, or that NPUSHMEM_<name> overruled
    std::string place;     // "job.conf:3" if the configuration file set the value, else empty

    [[nodiscard]] std::string variable() const { return "NPUSHMEM_" + std::string(name); }
    [[nodiscard]] bool is_default() const { return !from_environment && place.empty(); }
};

class Config {
public:
    // Reads all rows from the environment and, behind it, from the file that NPUSHMEM_CONFIG_FILE names there. Fails
    // with Code::config on a malformed value or line and on a file that cannot be read; the message has the variable,
    // the value, its line in the file and the accepted syntax.
    static Result<Config> read(const Environment& environment, const ContentReader& read_file = read_content);

    [[nodiscard]] const Settings& settings() const { return settings_; }
    // The bootstrap that the program requests; it replaces AUTO only. Empty: none.
    void request_bootstrap(std::string name) { requested_bootstrap_ = std::move(name); }
    [[nodiscard]] const std::string& requested_bootstrap() const { return requested_bootstrap_; }

    // Returns one line for each standard variable that is set: it is used, or NPUSHMEM_<name> overrules it.
    [[nodiscard]] std::string describe_standard() const;
    // Returns whether the standard variable of this row is set.
    [[nodiscard]] bool is_standard_variable_set(std::string_view name) const;

    // Adds a plugin's rows, owned by `subsystem`. Malformed values fail as in read. A plugin's rows may be declared
    // repeatedly.
    Status declare(const char* subsystem, std::span<const npushmem_config_row> rows);

    // Returns the effective text of a declared variable; null if no row has this name.
    [[nodiscard]] const char* value(std::string_view name) const;

    [[nodiscard]] const std::deque<EffectiveValue>& effective() const { return effective_; }

    // Returns what the environment, or else the configuration file, gives to a variable by its full name, whether or
    // not a row declares it.
    [[nodiscard]] std::optional<std::string> given(const std::string& name) const;

    // Returns whether the environment and the configuration file give both the same values.
    [[nodiscard]] bool is_given_alike(const Config& other) const;

    // Returns the full names of the NPUSHMEM_* variables that are given and that no row declares, in alphabetical
    // order.
    [[nodiscard]] std::vector<std::string> unknown_names() const;
    // Returns one sentence for each of them, with its place in the configuration file and the nearest known name.
    [[nodiscard]] std::vector<std::string> unknown_variables() const;

private:
    [[nodiscard]] EffectiveValue effective_value(std::string_view name, std::string_view default_value) const;
    [[nodiscard]] Status read_row(const ConfigRow& row, const Environment& environment);

    Settings settings_;
    std::string requested_bootstrap_;
    std::deque<EffectiveValue> effective_;                   // a deque: pointers returned by value() survive declare()
    std::map<std::string, std::string> npushmem_variables_;  // NPUSHMEM_* as found
    FileValues file_values_;
};

// Returns what Config::given returns, for one variable where there is no configuration; nothing if the file cannot be
// read.
std::optional<std::string> given_variable(const std::string& name, const Environment& environment);

}  // namespace npushmem
