#include "core/tools/run/rendezvous.hpp"

#include <fmt/format.h>

#include <array>
#include <cstddef>

#include "core/base/log.hpp"
#include "core/base/version.hpp"
#include "core/plugin/loader.hpp"
#include "core/plugin/opened_plugin.hpp"
#include "core/plugin/plugin_finder.hpp"

namespace npushmem::run {
namespace {

// Gives the plugin the values of the PEs' environment, and a log of warnings and errors.
class LauncherHost {
public:
    explicit LauncherHost(EnvironmentBlock environment) : environment_(std::move(environment)) {}
    LauncherHost(const LauncherHost&) = delete;
    LauncherHost& operator=(const LauncherHost&) = delete;

    [[nodiscard]] const npushmem_host& table() const { return table_; }

private:
    static void log(void* context, std::int32_t level, const char* subsystem, const char* message) {
        static_cast<LauncherHost*>(context)->log_.write(static_cast<LogLevel>(level), subsystem, "{}", message);
    }
    static const char* config(void* context, const char* name) {
        return static_cast<LauncherHost*>(context)->environment_.value(fmt::format("NPUSHMEM_{}", name));
    }

    EnvironmentBlock environment_;
    Log log_;
    npushmem_host table_{sizeof table_, library_version.major, library_version.minor, this, log, config};
};

class PluginRendezvous final : public Rendezvous {
public:
    PluginRendezvous(const EnvironmentBlock& environment, std::shared_ptr<const LoadedBootstrap> plugin)
        : outer_(environment), plugin_(std::move(plugin)), host_(outer_.table(), plugin_->config_rows()) {}

    Status make_id() { return make_uniqueid(*plugin_, host_.table(), id_); }

    [[nodiscard]] std::string unique_id() const override {
        std::string digits;
        for (const std::byte byte : id_) digits += fmt::format("{:02x}", std::to_integer<unsigned>(byte));
        return digits;
    }

    void pe_ended(int pe, int npes, const std::string& how) override {
        (void)report_ended_rank(*plugin_, host_.table(), id_, pe, npes, how);
    }

private:
    LauncherHost outer_;
    std::shared_ptr<const LoadedBootstrap> plugin_;  // its service runs as long as the library is loaded
    PluginHost host_;
    std::array<std::byte, NPUSHMEM_UNIQUEID_BYTES> id_{};
};

}  // namespace

Result<std::unique_ptr<Rendezvous>> Rendezvous::open(const EnvironmentBlock& environment) {
    const char* path = environment.value("NPUSHMEM_PLUGIN_PATH");
    const PluginFinder finder(plugin_search_path(path == nullptr ? "" : path));
    auto plugin = load_bootstrap(finder, "uid");
    if (!plugin.ok()) return plugin.status().within("the job's rendezvous cannot be opened");
    auto made = std::make_unique<PluginRendezvous>(environment, std::move(plugin).value());
    const Status status = made->make_id();
    if (!status.ok()) return status.within("the job's rendezvous cannot be opened");
    return std::unique_ptr<Rendezvous>(std::move(made));
}

}  // namespace npushmem::run
