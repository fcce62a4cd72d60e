//! The peeling of one line's prefixes.
//!
//! Owns the order in which transports are tried. Each try costs a look at the first byte; nothing is copied.

use super::profile::{MonthStamp, Profile, host_shape};
use super::said::Said;
use super::{MAX_LAYERS, cluster, container, grammar, journal, ray, stamps};
use crate::time::Stamp;

/// Peels layer after layer, until nothing peels or the line turns out to be part of a longer one.
pub(super) fn peel<'a>(profile: &Profile, mut s: &'a str, said: &mut Said<'a>) -> &'a str {
    for _ in 0..MAX_LAYERS {
        match layer(profile, s, said) {
            Some(rest) => s = rest.strip_prefix('\u{feff}').unwrap_or(rest),
            None => break,
        }
        if said.partial {
            break;
        }
    }
    s
}

fn layer<'a>(profile: &Profile, s: &'a str, said: &mut Said<'a>) -> Option<&'a str> {
    let certain = match s.as_bytes().first()? {
        b'(' => ray::driver(s, said),
        b'[' => bracket(s, said),
        b'0'..=b'9' => digit(profile, s, said),
        b'A'..=b'Z' => letter(profile, s, said),
        b'<' => journal::priority(s, said),
        b':' => ray::marked(s),
        b'^' => echoed(s),
        _ => None,
    };
    certain.or_else(|| doubtful(profile, s, said))
}

/// `^Ctext`: a terminal shows the keys pressed where the cursor stands, in front of what a program prints next.
fn echoed(s: &str) -> Option<&str> {
    let rest = s.strip_prefix("^C").or_else(|| s.strip_prefix("^\\"))?;
    (!rest.trim().is_empty()).then_some(rest)
}

fn bracket<'a>(s: &'a str, said: &mut Said<'a>) -> Option<&'a str> {
    match s.as_bytes().get(1)? {
        b'0'..=b'9' => ci_stamp(s, said)
            .or_else(|| cluster::mpirun(s, said))
            .or_else(|| journal::uptime(s, said)),
        b' ' => journal::uptime(s, said),
        b'A'..=b'Z' => journal::kernel_date(s, said).or_else(|| cluster::tee(s, said)),
        _ => container::kubectl(s, said)
            .or_else(|| cluster::rank(s, said))
            .or_else(|| cluster::tee(s, said))
            .or_else(|| cluster::mpirun(s, said)),
    }
}

/// `[2026-07-13T19:39:36Z] text` of Buildkite and Jenkins. The blank-separated form is SGLang's and NCCL's own.
fn ci_stamp<'a>(s: &'a str, said: &mut Said<'a>) -> Option<&'a str> {
    let zoned = |at: &Stamp| at.offset.is_some() && s.as_bytes().get(11) == Some(&b'T');
    let (at, rest) = stamps::bracketed(s).filter(|(at, _)| zoned(at))?;
    said.at(at);
    Some(rest.strip_prefix(' ').unwrap_or(rest))
}

fn digit<'a>(profile: &Profile, s: &'a str, said: &mut Said<'a>) -> Option<&'a str> {
    let b = s.as_bytes();
    match b.get(2)? {
        b':' => cluster::honcho(s, said),
        b'0'..=b'9' if b.get(10) == Some(&b'T') => container::cri(s, said)
            .or_else(|| journal::host(s, false, said))
            .or_else(|| logcli(s, said))
            .or_else(|| collector_stamp(s, said)),
        b'0'..=b'9' if b.get(10) == Some(&b'.') => journal::host(s, profile.month == MonthStamp::Syslog, said),
        _ => None,
    }
}

/// `2026-11-25T12:00:00Z {pod="vllm-0"} text`
fn logcli<'a>(s: &'a str, said: &mut Said<'a>) -> Option<&'a str> {
    let (at, rest) = stamps::iso(s)?;
    let rest = container::labels(rest.strip_prefix(' ')?, said)?;
    said.at(at);
    Some(rest)
}

/// A stamp to the ten-millionth of a second or finer with its zone: Docker, the kubelet and hosted CI write those,
/// programs do not.
fn collector_stamp<'a>(s: &'a str, said: &mut Said<'a>) -> Option<&'a str> {
    let fraction = s
        .as_bytes()
        .get(20..)?
        .iter()
        .take_while(|b| b.is_ascii_digit())
        .count();
    if fraction < 7 {
        return None;
    }
    let (at, rest) = stamps::iso(s).filter(|(at, _)| at.offset.is_some())?;
    let text = gitlab(rest).or_else(|| behind_stamp(rest))?;
    said.at(at);
    Some(text)
}

/// ` 00O text`: GitLab's runner numbers the streams, and marks a continued line with `+`.
fn gitlab(s: &str) -> Option<&str> {
    let (mark, text) = s.split_at_checked(" 00O ".len())?;
    let hex = |c: &u8| c.is_ascii_hexdigit() && !c.is_ascii_uppercase();
    match mark.as_bytes() {
        [b' ', high, low, b'O' | b'E', b' ' | b'+'] if hex(high) && hex(low) => Some(text),
        _ => None,
    }
}

/// The text behind a bare stamp: one separator is the transport's.
pub(super) fn behind_stamp(s: &str) -> Option<&str> {
    if s.is_empty() {
        Some(s)
    } else {
        s.strip_prefix([' ', '\t'])
    }
}

fn letter<'a>(profile: &Profile, s: &'a str, said: &mut Said<'a>) -> Option<&'a str> {
    // A month or a weekday: three letters and a blank.
    if s.as_bytes().get(3) != Some(&b' ') {
        return None;
    }
    journal::host(s, profile.month == MonthStamp::Syslog, said)
}

/// The prefixes that only the profile can tell from program text.
fn doubtful<'a>(profile: &Profile, s: &'a str, said: &mut Said<'a>) -> Option<&'a str> {
    bare_stamp(profile, s, said)
        .or_else(|| piped(profile, s, said))
        .or_else(|| ranks(profile, s, said))
        .or_else(|| host(profile, s, said))
        .or_else(|| if profile.steps { container::step(s, said) } else { None })
        .or_else(|| unknown(profile, s, said))
}

fn bare_stamp<'a>(profile: &Profile, s: &'a str, said: &mut Said<'a>) -> Option<&'a str> {
    let (at, rest) = match s.as_bytes().first()? {
        b'0'..=b'9' if profile.bare_iso && !grammar::program(s) => stamps::iso(s)?,
        b'A'..=b'Z' if profile.month == MonthStamp::Bare => stamps::month_day(s)?,
        // Behind the transport's stamp a program's own may follow in the same form.
        b'[' if profile.bracket_stamp && said.stamp.is_none() => stamps::bracketed(s)?,
        _ => return None,
    };
    let rest = gitlab(rest).or_else(|| behind_stamp(rest))?;
    said.at(at);
    Some(rest)
}

fn piped<'a>(profile: &Profile, s: &'a str, said: &mut Said<'a>) -> Option<&'a str> {
    if profile.piped.names.is_empty() {
        return None;
    }
    let (name, column, text) = container::piped(s)?;
    if !profile.piped.names.contains(name) && !profile.piped.columns.contains(&column) {
        return None;
    }
    container::named(name, said);
    Some(text)
}

fn ranks<'a>(profile: &Profile, s: &'a str, said: &mut Said<'a>) -> Option<&'a str> {
    let labelled = profile.labelled.then(|| cluster::labelled(s)).flatten();
    let (rank, text) = labelled.or_else(|| profile.bracketed.then(|| cluster::bracketed(s)).flatten())?;
    said.task = Some(rank);
    Some(text)
}

fn host<'a>(profile: &Profile, s: &'a str, said: &mut Said<'a>) -> Option<&'a str> {
    if profile.hosts.is_empty() {
        return None;
    }
    let (host, text) = cluster::host(s)?;
    profile.hosts.binary_search(&host_shape(host)).ok()?;
    said.node = Some(host);
    Some(text)
}

fn unknown<'a>(profile: &Profile, s: &'a str, said: &mut Said<'a>) -> Option<&'a str> {
    let (prefix, text) = profile
        .unknown
        .iter()
        .find_map(|prefix| Some((prefix, prefix.strip(s)?)))?;
    let head = s.strip_suffix(text).unwrap_or_default();
    container::stern(head, said);
    if let Some(at) = prefix.stamp(head) {
        said.at(at);
    }
    Some(text)
}
