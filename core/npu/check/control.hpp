// Who decides when things happen that hardware may do at any time.
#pragma once

namespace npushmem::npu::check {

class Control {
public:
    Control() = default;
    Control(const Control&) = delete;
    Control& operator=(const Control&) = delete;
    virtual ~Control() = default;

    // A command was queued: run it (and what stands before it) at once? Otherwise when something forces it.
    virtual bool run_command() = 0;
    // A signal to another PE: let it arrive at once? Otherwise at the next fence or quiet, or when nobody else can run.
    virtual bool deliver_signal() = 0;
    // The running core is about to do what others can see: shall another go first?
    virtual bool give_way() = 0;
    // The running core has made many calls without waiting: cores that were set aside get a turn, too.
    virtual void long_turn() {}
    // Nobody would run what was put off while a core waits (peers are other processes): run it before.
    [[nodiscard]] virtual bool impatient() const { return false; }
};

}  // namespace npushmem::npu::check
