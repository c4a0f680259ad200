// Virtual time: how long a kernel would take on a modelled device, and what its pipes would do meanwhile.
//
//   VirtualTime time(DeviceModel::read("device.txt").value());
//   LaunchConfig config(20);
//   config.hooks = time.hooks();
//   launch(stream, config, kernel, ...);     // or CheckedJob::run(config, kernel), for all PEs at once
//   ...
//   std::cout << time.report().text();
//   time.write_timeline(file);               // opens in a browser's trace viewer
#pragma once

#include <array>
#include <iosfwd>
#include <memory>
#include <string>
#include <vector>

#include "npushmem/npu/device_model.hpp"
#include "npushmem/npu/hooks.hpp"

namespace npushmem::npu {

struct VirtualReport {
    struct Pe {
        int pe = 0;
        int cores = 0;                 // of the largest launch
        double seconds = 0;            // all launches, one after the other
        std::array<double, 4> busy{};  // share of the cores' time that S, V, MTE2, MTE3 worked, 0 to 1
    };
    // One direction of a link; -1: the switch, whose ports are links as well.
    struct Link {
        int from = 0;
        int to = 0;
        double bytes = 0;
        double busy = 0;  // share of seconds() that the bytes take at the link's rate, 0 to 1
    };
    std::vector<Pe> pes;
    std::vector<Link> links;  // that were used

    // Of the slowest PE.
    [[nodiscard]] NPUSHMEM_NPU_EXPORT double seconds() const;
    [[nodiscard]] NPUSHMEM_NPU_EXPORT std::string text() const;
};

// One for all PEs of a process. Launches run as in fast mode, each operation where it is written, and take as long as
// that takes; the same kernel over the same data takes the same virtual time. One launch at a time on each PE; times
// that other processes' PEs cause are not known here, their signals count as there when they are seen.
class NPUSHMEM_NPU_EXPORT VirtualTime {
public:
    explicit VirtualTime(const DeviceModel& model = {});
    VirtualTime(const VirtualTime&) = delete;
    VirtualTime& operator=(const VirtualTime&) = delete;
    ~VirtualTime();

    // For LaunchConfig::hooks. What it makes refers to this object.
    [[nodiscard]] HooksFactory hooks();

    // When no launch with these hooks runs.
    [[nodiscard]] VirtualReport report() const;
    // The Chrome trace format: a process per PE, a thread per pipe of each core. The first million commands.
    void write_timeline(std::ostream& out) const;
    // Back to 0.
    void reset();

private:
    class Impl;
    std::unique_ptr<Impl> impl_;
};

}  // namespace npushmem::npu
