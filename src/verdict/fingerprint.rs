//! The fingerprint: the same failure on other hosts, pids, ranks and times has the same one.
//!
//! Owns the masking of what varies. Uses neither signature ids nor line numbers nor counts.

use crate::event::Exception;

/// Characters of a masked message that take part.
const KEPT: usize = 200;

/// Endings of source files, whose `name:line` is no host with its port.
const SOURCES: [&str; 7] = [".py", ".cpp", ".cc", ".cu", ".cuh", ".h", ".hpp"];

/// Masks numbers, identifiers, addresses, hosts with their ports, and paths. How many numbers follow one another does
/// not show: a tensor may have another rank.
pub fn mask(text: &str) -> String {
    let mut out = String::with_capacity(text.len().min(KEPT));
    let mut words = text.split_whitespace().peekable();
    while let Some(word) = words.next() {
        if out.len() >= KEPT {
            break;
        }
        // `(node-a, 29500)` of torch.
        if word.starts_with('(')
            && let Some(host) = word.strip_suffix(',')
            && let Some(port) = words.next_if(|next| is_host_with_port(&format!("{host}:{next}")))
        {
            out.push_str(" <host>");
            out.extend(port.chars().filter(char::is_ascii_punctuation));
            continue;
        }
        let masked = match () {
            () if word.contains('/') => "<path>".to_owned(),
            () if is_host_with_port(word) => "<host>".to_owned(),
            () => masked(word),
        };
        match masked.strip_prefix('#') {
            Some(rest) if out.ends_with('#') => out.push_str(rest),
            _ => {
                if !out.is_empty() {
                    out.push(' ');
                }
                out.push_str(&masked);
            }
        }
    }
    out
}

fn masked(word: &str) -> String {
    let mut out = String::with_capacity(word.len());
    let mut in_number = false;
    let mut rest = word;
    while let Some(c) = rest.chars().next() {
        let end = rest.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(rest.len());
        let (run, behind) = rest.split_at(end.max(c.len_utf8()));
        rest = behind;
        if is_identifier(run) {
            if !in_number {
                out.push('#');
            }
            in_number = true;
            continue;
        }
        for c in run.chars() {
            if c.is_ascii_digit() {
                if !in_number {
                    out.push('#');
                }
                in_number = true;
            } else {
                in_number &= matches!(c, '.' | ',' | ':');
                if !in_number {
                    out.push(c);
                }
            }
        }
    }
    out
}

/// An address, or a part of what is written in hexadecimal digits, such as the id of a GPU, an actor or a node.
fn is_identifier(run: &str) -> bool {
    let (digits, long) = match run.strip_prefix("0x") {
        Some(digits) => (digits, 1),
        None => (run, 4),
    };
    digits.len() >= long
        && digits.bytes().all(|b| b.is_ascii_hexdigit())
        && (long == 1 || digits.bytes().any(|b| b.is_ascii_digit()))
}

/// `node-a:29500`, `[head.example.org]:6379`, and `node-a:4123:4123` of NCCL, but not `scheduler.py:1234`.
fn is_host_with_port(word: &str) -> bool {
    let word = word.trim_matches(|c: char| !c.is_ascii_alphanumeric());
    let Some((host, numbers)) = word.split_once(':') else {
        return false;
    };
    let host = host.trim_end_matches(']');
    let numbers: Vec<&str> = numbers.split(':').collect();
    let fits = match numbers.as_slice() {
        [port] => (4..=5).contains(&port.len()),
        [_, _] => true,
        _ => false,
    };
    fits && numbers
        .iter()
        .all(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()))
        && host.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(&b))
        && host.bytes().any(|b| b.is_ascii_alphabetic())
        && !SOURCES.iter().any(|end| host.ends_with(end))
}

/// Hash over cause, phase, exception type, masked message and innermost frame.
pub fn fingerprint(cause: &str, phase: Option<&str>, exception: Option<&Exception>, text: &str) -> String {
    let mut hasher = xxhash_rust::xxh3::Xxh3::new();
    let mut add = |part: &str| {
        hasher.update(part.as_bytes());
        hasher.update(b"\0");
    };
    add(cause);
    add(phase.unwrap_or(""));
    match exception {
        Some(exception) => {
            add(exception.kind.rsplit('.').next().unwrap_or(""));
            add(&mask(exception.message.split('\n').next().unwrap_or("")));
            if let Some(frame) = exception.frames.last() {
                add(frame.file.rsplit(['/', '\\']).next().unwrap_or(""));
                add(&frame.function);
            }
        }
        None => add(&mask(text)),
    }
    format!("f1:{:016x}", hasher.digest())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_varies_is_masked() {
        assert_eq!(
            mask("GPU 1 has 79.19 GiB, pid 4242"),
            mask("GPU 7 has 139.80 GiB, pid 17")
        );
        assert_eq!(mask("at 0x7f3a01 in f"), mask("at 0xdeadbeef in f"));
        assert_eq!(mask("open /a/b: no"), mask("open /c: no"));
        for (one, other) in [
            ("rank 3 of 8 is lost", "rank 11 of 64 is lost"),
            (
                "cannot reach node-a:29500 now",
                "cannot reach gx7-b.example.org:51200 now",
            ),
            ("node-a:41:41 [0] NCCL WARN no", "gx7-b:4123:5123 [3] NCCL WARN no"),
            ("shape torch.Size([16, 4096]) is odd", "shape torch.Size([8192]) is odd"),
            ("actor 0f3ab2c4d5 died", "actor b9c1e6fa01 died"),
            ("GPU-3f2a11b0-92de-4b1c is lost", "GPU-11c0ffee-ab12-7c4d is lost"),
            ("connect to (node-0.hs, 20000).", "connect to (gx7-1.other.org, 29500)."),
            (
                "connect to [node-0.hs]:20000 now",
                "connect to [gx7-1.other.org]:29500 now",
            ),
            ("at 12:01:59.123 in step 4", "at 03:44:00.9 in step 17"),
            ("port of [fe80::3efd:1] is shut", "port of [fe80::9abc:7] is shut"),
        ] {
            assert_eq!(mask(one), mask(other));
        }
        for (one, other) in [
            ("out of memory", "invalid device"),
            ("in scheduler.py:1234", "in worker.py:1234"),
            ("rank 3 is lost", "node 3 is lost"),
            ("decade of facade", "facade of decade"),
        ] {
            assert_ne!(mask(one), mask(other));
        }
    }
}
