//! The fingerprint: the same failure on other hosts, pids, ranks and times has the same one.
//!
//! Owns the masking of what varies. Uses neither signature ids nor line numbers nor counts.

use crate::event::Exception;

/// Characters of a masked message that take part.
const KEPT: usize = 200;

/// Masks numbers, addresses, paths and quoted names.
pub fn mask(text: &str) -> String {
    let mut out = String::with_capacity(text.len().min(KEPT));
    for word in text.split_whitespace() {
        if out.len() >= KEPT {
            break;
        }
        if !out.is_empty() {
            out.push(' ');
        }
        if word.contains('/') {
            out.push_str("<path>");
            continue;
        }
        let mut in_number = false;
        let mut rest = word.chars();
        while let Some(c) = rest.next() {
            if !in_number
                && c == '0'
                && let Some(digits) = rest.as_str().strip_prefix('x')
            {
                out.push('#');
                rest = digits.trim_start_matches(|c: char| c.is_ascii_hexdigit()).chars();
                in_number = true;
            } else if c.is_ascii_digit() {
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
        assert_ne!(mask("out of memory"), mask("invalid device"));
    }
}
