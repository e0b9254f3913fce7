// How long this process has been running.
#pragma once

namespace examples {

/// Seconds since the system started this process, loading of its libraries included, to a hundredth. Where the system
/// does not say: since its static variables were made.
double process_age();

}  // namespace examples
