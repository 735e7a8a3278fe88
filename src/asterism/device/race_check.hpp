// For debugging: is every pair of conflicting accesses ordered? Vector clocks over queues (Lamport 1978; Fidge 1988), by addresses,
// so that arrays made over the same foreign memory are seen, which no ledger can order.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

#include "asterism/device/buffer.hpp"

namespace asterism::device::race_check {

/// From now on each submission is checked: a conflict with a task that nothing orders it after is an error that names both.
/// Costs a pass over the live accesses for each submission, and memory for each task until it is switched again.
void enable(bool on);
bool enabled();

void submitted(std::uint64_t queue, host::Ticket const& ticket, int event, std::vector<Intent> const& intents,
               std::vector<host::Ticket> const& after);
void recorded(std::uint64_t queue, host::Ticket const& event);
void host_waited(std::uint64_t tasks, std::uint64_t number);
void forget(void const* memory, std::size_t bytes);

}  // namespace asterism::device::race_check
