// SPDX-License-Identifier: BSD-3-Clause
// Files that describe an emulated device.
#include "npushmem/npu/device_model.hpp"

#include "tests/fuzz/targets.hpp"

namespace npushmem::fuzz {

void device_model(Input input) {
    const auto model = npu::DeviceModel::parse(text_of(input));
    if (!model.ok()) return require_message(model.status());
    const npu::DeviceModel& parsed = model.value();
    for (const double rate :
         {parsed.gm_rate, parsed.copy_rate, parsed.vector_rate, parsed.hccs_rate, parsed.switch_rate})
        require(rate > 0 && rate <= 1e12, "a rate is out of range");
    require(parsed.group >= 1, "an empty group of PEs");
    const auto again = npu::DeviceModel::parse(parsed.text());
    require(again.ok(), "the text of a model is rejected");
    require(again.value().text() == parsed.text(), "a model changes by formatting and parsing");
}

}  // namespace npushmem::fuzz
