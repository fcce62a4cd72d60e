//! What was before the launch.
//!
//! Owns the comparison of an event of the machine's own log, which may go back for weeks, with the launch's first and
//! last stamps. Clocks without a zone may be hours apart: the same machine often logs in local time, its containers in
//! UTC. Never judges what an event means.

use super::{Launches, Placed};
use crate::time::Stamp;

/// Seconds before the first line of a launch from which on an event is none of it.
const LONG: f64 = 60.0;
/// Seconds after the last line of a launch in which its end may be told.
const TOLD: f64 = 120.0;
/// Zones are multiples of this apart, in seconds, but for a few that lie a quarter of an hour beside.
const ZONE: f64 = 1800.0;
/// Furthest zones from UTC, in seconds.
const FURTHEST: f64 = 14.0 * 3600.0;

/// How sure it is that an event was before the launch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Earlier {
    /// Read in another zone, its stamp is one of the launch's time.
    Perhaps,
    /// In any zone.
    Surely,
}

/// Whether an event was long before the first line of the launch.
pub fn before(launches: &Launches, placed: &Placed) -> Option<Earlier> {
    let told = placed.event.place.time.as_ref()?;
    let engines = || launches.processes.all().iter().filter(|p| p.role.is_engine());
    let after = |stamp: &Stamp| stamp.seconds_since(told);
    let first = engines().filter_map(|p| after(p.first.as_ref()?)).reduce(f64::min)?;
    let last = engines().filter_map(|p| after(p.last.as_ref()?)).reduce(f64::max)?;
    if first <= LONG {
        return None;
    }
    let zoned = |stamp: &Stamp| stamp.offset.is_some();
    let known = zoned(told) && engines().filter_map(|p| p.first.as_ref()).all(zoned);
    Some(match !known && is_of_another_zone(first, last) {
        true => Earlier::Perhaps,
        false => Earlier::Surely,
    })
}

/// Whether some difference of zones puts an event that was so many seconds before first and last within the launch.
fn is_of_another_zone(first: f64, last: f64) -> bool {
    let ahead = (first / ZONE).ceil() * ZONE;
    ahead <= FURTHEST && ahead <= last + TOLD
}

#[cfg(test)]
mod tests {
    use super::is_of_another_zone;

    #[test]
    fn zones_lie_half_hours_apart() {
        for (first, last) in [
            (3590.0, 3700.0),
            (3600.0, 3700.0),
            (8.0 * 3600.0 - 40.0, 8.0 * 3600.0 - 10.0),
        ] {
            assert!(is_of_another_zone(first, last), "{first}");
        }
        for (first, last) in [
            (3605.0, 3700.0),
            (72.0 * 3600.0, 72.0 * 3600.0 + 60.0),
            (15.0 * 3600.0, 15.1 * 3600.0),
        ] {
            assert!(!is_of_another_zone(first, last), "{first}");
        }
    }
}
