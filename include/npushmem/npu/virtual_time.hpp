// Virtual time: an estimate of the time of a kernel, and of the activity of its pipes, on a modelled device.
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
        int cores = 0;                 // cores of the largest launch
        double seconds = 0;            // total of all launches, one after the other
        std::array<double, 4> busy{};  // share of the cores' time in which S, V, MTE2, MTE3 were busy, 0 to 1
    };
    // One direction of a link; -1: the switch. The switch's ports count as links.
    struct Link {
        int from = 0;
        int to = 0;
        double bytes = 0;
        double busy = 0;  // share of seconds() that the bytes need at the link's rate, 0 to 1
    };
    std::vector<Pe> pes;
    std::vector<Link> links;  // the links that were used

    // Seconds of the slowest PE.
    [[nodiscard]] NPUSHMEM_NPU_EXPORT double seconds() const;
    [[nodiscard]] NPUSHMEM_NPU_EXPORT std::string text() const;
};

// One object serves all PEs of a process. Launches run as in fast mode, with its real duration; the same kernel over
// the same data takes the same virtual time. Run one launch at a time on each PE. Delays caused by PEs of other
// processes are unknown here: their signals count as arrived when they are seen.
class NPUSHMEM_NPU_EXPORT VirtualTime {
public:
    explicit VirtualTime(const DeviceModel& model = {});
    VirtualTime(const VirtualTime&) = delete;
    VirtualTime& operator=(const VirtualTime&) = delete;
    ~VirtualTime();

    // Returns the factory for LaunchConfig::hooks. Its hooks refer to this object.
    [[nodiscard]] HooksFactory hooks();

    // Call only while no launch with these hooks runs.
    [[nodiscard]] VirtualReport report() const;
    // Writes the Chrome trace format: a process per PE, a thread per pipe of each core. Limited to the first million
    // commands.
    void write_timeline(std::ostream& out) const;
    // Resets all times to 0.
    void reset();

private:
    class Impl;
    std::unique_ptr<Impl> impl_;
};

}  // namespace npushmem::npu
