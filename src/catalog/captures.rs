//! Named groups of a match → figures, settings, identity, victim, exit status.
//!
//! Owns the naming convention of groups and the reading of numbers with units. Never decides what they mean.

use std::sync::Arc;

use crate::event::{self, Coords, ExitStatus, Figure, Victim};

/// What the groups of one match say.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Captured {
    /// Figures.
    pub figures: Vec<Figure>,
    /// Settings.
    pub settings: Vec<(Arc<str>, Arc<str>)>,
    /// The process the line tells of.
    pub victim: Victim,
    /// Its end.
    pub exit: Option<ExitStatus>,
    /// Identity of the process that printed the line.
    pub identity: Identity,
    /// A quoted text to look up in turn.
    pub inner: Option<String>,
    /// The worker's method that was running.
    pub method: Option<Arc<str>>,
}

/// What a line says about the process that prints it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Identity {
    /// Process id.
    pub pid: Option<i64>,
    /// Global rank.
    pub rank: Option<u32>,
    /// Number of ranks.
    pub world_size: Option<u32>,
    /// Coordinates.
    pub coords: Coords,
    /// CUDA device.
    pub device: Option<u32>,
    /// Host.
    pub host: Option<Arc<str>>,
    /// Program version.
    pub version: Option<Arc<str>>,
    /// Model.
    pub model: Option<Arc<str>>,
}

impl Identity {
    /// Takes the rank and the number of ranks that another line gives, where nothing is known of them or where it speaks
    /// of more ranks: NCCL ranks a process anew in each part of the launch, and its rank is the one among all.
    pub fn place_among(&mut self, other: &Self) {
        let larger = self
            .world_size
            .zip(other.world_size)
            .is_some_and(|(own, all)| all > own);
        if larger && other.rank.is_some() {
            (self.rank, self.world_size) = (other.rank, other.world_size);
        }
        self.rank = self.rank.or(other.rank);
        self.world_size = self.world_size.or(other.world_size);
    }
}

/// Endings of group names that make a figure; the unit is part of the name.
const FIGURE_SUFFIXES: &[&str] = &[
    "_gib",
    "_mib",
    "_bytes",
    "_s",
    "_ms",
    "_tokens",
    "_x",
    "_fraction",
    "_percent",
    "_count",
    "_blocks",
    "_gb",
];

/// Sorts the groups of a match.
pub fn sort(captures: &[(String, &str)]) -> Captured {
    let mut out = Captured::default();
    let mut setting = None;
    for (name, text) in captures {
        match name.as_str() {
            "setting" => setting = Some(*text),
            "value" => out
                .settings
                .extend(setting.take().map(|name| (name.into(), (*text).into()))),
            _ => take(&mut out, name, text),
        }
    }
    out
}

fn take(out: &mut Captured, name: &str, text: &str) {
    match name {
        "pid" => out.identity.pid = number(text).and_then(event::pid),
        "rank" => out.identity.rank = rank(text),
        "world_size" => out.identity.world_size = rank(text),
        "local_rank" => out.identity.coords.local = rank(text),
        "tp" => out.identity.coords.tp = rank(text),
        "pp" => out.identity.coords.pp = rank(text),
        "dp" => out.identity.coords.dp = rank(text),
        "ep" => out.identity.coords.ep = rank(text),
        "device" => out.identity.device = rank(text),
        "host" => out.identity.host = Some(text.into()),
        "version" => out.identity.version = Some(version(text).into()),
        "model" => out.identity.model = Some(text.into()),
        "method" => out.method = Some(text.into()),
        "inner" => out.inner = Some(text.to_owned()),
        "victim_pid" => out.victim.pid = number(text).and_then(event::pid),
        "victim_rank" => out.victim.rank = rank(text),
        "victim_label" => out.victim.label = Some(text.into()),
        "victim_node" => out.victim.node = Some(text.into()),
        "victim_local" => out.victim.coords.local = rank(text),
        "victim_dp" => out.victim.coords.dp = rank(text),
        "victim_tp" => out.victim.coords.tp = rank(text),
        "exit_code" => out.exit = number::<i32>(text).map(exit_status),
        "exit_signal" => out.exit = signal_number(text).map(ExitStatus::Signal),
        _ => {
            if let Some(setting) = name.strip_prefix("set_") {
                out.settings.push((setting.into(), text.into()));
            } else if let Some(figure) = name.strip_prefix("size_") {
                if let Some(value) = size_gib(text) {
                    let name = format!("{figure}_gib");
                    out.figures.push(Figure {
                        name: name.into(),
                        value,
                        printed: text.into(),
                    });
                }
            } else if FIGURE_SUFFIXES.iter().any(|s| name.ends_with(s))
                && let Some(value) = decimal(text)
            {
                out.figures.push(Figure {
                    name: name.into(),
                    value,
                    printed: text.into(),
                });
            }
        }
    }
}

fn number<T: std::str::FromStr>(text: &str) -> Option<T> {
    text.trim().replace([',', '_'], "").parse().ok()
}

fn rank(text: &str) -> Option<u32> {
    number(text).and_then(event::rank)
}

/// A decimal number with optional thousands separators; not finite ones are dropped.
pub fn decimal(text: &str) -> Option<f64> {
    let text = text.trim().trim_end_matches('.');
    text.replace([',', '_'], "")
        .parse::<f64>()
        .ok()
        .filter(|v| v.is_finite())
}

/// An exit code as Python and shells print it: below 0 or 129–165 stands for a signal.
pub fn exit_status(code: i32) -> ExitStatus {
    match code {
        -64..=-1 => ExitStatus::Signal(-code),
        129..=165 => ExitStatus::Signal(code - 128),
        _ => ExitStatus::Code(code),
    }
}

/// A signal by number, name, or the word that shells and `srun` print for it.
pub fn signal_number(text: &str) -> Option<i32> {
    let text = text.trim();
    if let Ok(n) = text.parse::<i32>() {
        return (1..=64).contains(&n).then_some(n);
    }
    let name = text.strip_prefix("SIG").unwrap_or(text);
    let n = match name.to_ascii_uppercase().as_str() {
        "HUP" => 1,
        "INT" => 2,
        "QUIT" => 3,
        "ILL" | "ILLEGAL INSTRUCTION" | "ILLEGAL HARDWARE INSTRUCTION" => 4,
        "ABRT" | "ABORT" | "ABORTED" => 6,
        "BUS" | "BUS ERROR" => 7,
        "FPE" => 8,
        "KILL" | "KILLED" => 9,
        "USR1" => 10,
        "SEGV" | "SEGMENTATION FAULT" => 11,
        "PIPE" => 13,
        "TERM" | "TERMINATED" => 15,
        _ => return None,
    };
    Some(n)
}

/// Sizes that no machine has, GiB: an exbibyte.
const NO_SIZE: f64 = (1 << 30) as f64;

/// A size with its unit, in GiB, below an exbibyte either way; engines print negative ones too. `GB`, `GiB` and `G` all are 2^30 bytes, as torch, vLLM, SGLang and Ray print them.
pub fn size_gib(text: &str) -> Option<f64> {
    let text = text.trim();
    let split = text.find(|c: char| c.is_ascii_alphabetic())?;
    let value = decimal(text.get(..split)?)?;
    let unit = text.get(split..)?.trim();
    let size = match unit.to_ascii_lowercase().as_str() {
        "b" | "byte" | "bytes" => value / (1024.0 * 1024.0 * 1024.0),
        "kb" | "kib" | "ki" | "k" => value / (1024.0 * 1024.0),
        "mb" | "mib" | "mi" | "m" => value / 1024.0,
        "gb" | "gib" | "gi" | "g" => value,
        "tb" | "tib" | "ti" | "t" => value * 1024.0,
        _ => return None,
    };
    (size.abs() < NO_SIZE).then_some(size)
}

/// A version without the word of another line that is printed right behind it: `0.11.0ValueError: …`. No release is
/// spelled with a capital letter; a local part (`+CUDA124`) may be.
fn version(text: &str) -> &str {
    let release = text.split('+').next().unwrap_or(text);
    match release.find(|c: char| c.is_ascii_uppercase()) {
        Some(at) if at > 0 => text.split_at(at).0,
        _ => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_in_gib() {
        assert_eq!(size_gib("20.00 MiB"), Some(20.0 / 1024.0));
        assert_eq!(size_gib("11.12 GiB"), Some(11.12));
        assert_eq!(size_gib("2.51GB"), Some(2.51));
        assert_eq!(size_gib("1073741824 bytes"), Some(1.0));
        assert_eq!(size_gib("seven GiB"), None);
        assert_eq!(size_gib("-1.50 GiB"), Some(-1.5));
        for size in [
            "1e999 GiB",
            "1e309 GiB",
            "1e300 TiB",
            "2e9 GiB",
            "-1e18 MiB",
            "nan GiB",
            "inf GiB",
        ] {
            assert_eq!(size_gib(size), None, "{size}");
        }
    }

    #[test]
    fn exit_codes_above_128_and_below_0_are_signals() {
        assert_eq!(exit_status(-9), ExitStatus::Signal(9));
        assert_eq!(exit_status(137), ExitStatus::Signal(9));
        assert_eq!(exit_status(1), ExitStatus::Code(1));
        assert_eq!(exit_status(255), ExitStatus::Code(255));
        assert_eq!(signal_number("SIGSEGV"), Some(11));
        assert_eq!(signal_number("Killed"), Some(9));
        assert_eq!(signal_number("Segmentation fault"), Some(11));
        assert_eq!(signal_number("Stopped"), None);
    }

    #[test]
    fn numbers_that_no_system_gives_name_nobody() {
        for (name, text) in [
            ("victim_pid", "-9"),
            ("victim_pid", "0"),
            ("victim_pid", "99999999999"),
            ("pid", "-9223372036854775808"),
            ("rank", "4294967295"),
            ("victim_rank", "-1"),
            ("world_size", "1e9"),
        ] {
            let captured = sort(&[(name.to_owned(), text)]);
            assert!(captured.victim.is_empty(), "{name} {text}");
            let identity = &captured.identity;
            assert_eq!(
                (identity.pid, identity.rank, identity.world_size),
                (None, None, None),
                "{name} {text}"
            );
        }
        assert_eq!(sort(&[("exit_code".to_owned(), "99999999999")]).exit, None);
    }

    #[test]
    fn a_version_ends_where_another_line_begins() {
        for (printed, meant) in [
            ("0.11.0ValueError", "0.11.0"),
            ("0.11.0rc2INFO", "0.11.0rc2"),
            ("0.6.3.post1", "0.6.3.post1"),
            ("0.4.1+CUDA124", "0.4.1+CUDA124"),
            ("v1", "v1"),
        ] {
            assert_eq!(version(printed), meant);
        }
    }

    #[test]
    fn groups_go_where_their_names_say() {
        let captured = sort(&[
            ("kv_capacity_tokens".to_owned(), "919,824"),
            ("set_max_model_len".to_owned(), "4096"),
            ("setting".to_owned(), "NCCL_IB_HCA"),
            ("value".to_owned(), "mlx5"),
            ("value".to_owned(), "of nothing"),
            ("victim_pid".to_owned(), "187"),
            ("exit_code".to_owned(), "-9"),
            ("tp".to_owned(), "3"),
        ]);
        assert_eq!(captured.figures.first().map(|f| f.value), Some(919_824.0));
        assert_eq!(
            captured.settings.first().map(|(n, v)| (&**n, &**v)),
            Some(("max_model_len", "4096"))
        );
        assert_eq!(captured.victim.pid, Some(187));
        assert_eq!(captured.exit, Some(ExitStatus::Signal(9)));
        assert_eq!(captured.identity.coords.tp, Some(3));
    }
}
