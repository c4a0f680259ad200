// SPDX-License-Identifier: BSD-3-Clause
// Virtual time: estimates how long a kernel would run on a modelled device, and how busy its pipes would be.
//
//   VirtualTime time(DeviceModel::read("device.txt").value());
//   LaunchConfig config(20);
//   config.hooks = time.hooks();
//   launch(stream, config, kernel, ...);     // or CheckedJob::run(config, kernel), for all PEs at once
//   ...
//   std::cout << time.report().text();
//   time.write_timeline(file);               // view the file in Perfetto or chrome://tracing
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
        double seconds = 0;            // total virtual time of all launches
        std::array<double, 4> busy{};  // for S, V, MTE2, MTE3: the busy share of all cores' time, 0 to 1
    };
    // One direction of a link, from PE `from` to PE `to`. A PE's port to the switch counts as a link between the PE and
    // the switch; -1 stands for the switch.
    struct Link {
        int from = 0;
        int to = 0;
        double bytes = 0;
        double busy = 0;  // time that the bytes take at the link's rate, as a share of seconds(), 0 to 1
    };
    std::vector<Pe> pes;
    std::vector<Link> links;  // only links that carried data

    // Returns the largest Pe::seconds.
    [[nodiscard]] NPUSHMEM_NPU_EXPORT double seconds() const;
    // Returns a table with one line per PE. It does not include the links.
    [[nodiscard]] NPUSHMEM_NPU_EXPORT std::string text() const;
};

// One object serves all PEs of a process. Operations run immediately, as in fast mode, and advance the virtual clocks
// of their pipes. With CheckedJob, the same kernel with the same data takes the same virtual time. PEs on several
// threads reserve a shared link in the order of their calls, so their virtual times may differ between runs. Run one
// launch at a time on each PE. The virtual clocks of PEs in other processes are unknown here, so a wait for their
// signals adds only the virtual time of the last poll.
class NPUSHMEM_NPU_EXPORT VirtualTime {
public:
    explicit VirtualTime(const DeviceModel& model = {});
    VirtualTime(const VirtualTime&) = delete;
    VirtualTime& operator=(const VirtualTime&) = delete;
    ~VirtualTime();

    // Returns the factory for LaunchConfig::hooks. This object must outlive all launches that use the factory.
    [[nodiscard]] HooksFactory hooks();

    // Call report(), write_timeline() and reset() only while no launch with these hooks runs.
    [[nodiscard]] VirtualReport report() const;
    // Writes the trace events in the Chrome trace format. Each PE is a process, and each pipe of a core is a thread.
    // An arrow (a flow event) leads from each signal, atomic operation, or put of at most 64 bytes to the wait that it
    // ended; if a put to the same PE precedes the signal, the arrow begins at the put. A wait whose value was there
    // before has no arrow. Only the first million events since the creation or reset() are recorded.
    void write_timeline(std::ostream& out) const;
    // Resets the virtual clocks to 0, and discards all busy times, byte counts and trace events.
    void reset();

private:
    class Impl;
    std::unique_ptr<Impl> impl_;
};

}  // namespace npushmem::npu
