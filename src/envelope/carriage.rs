//! Carriage returns and glued records: one line into the pieces that count.
//!
//! Owns the resolving of progress bars. A terminal overwrites each state of a bar with the next; here all states but
//! the last of a bar go, and a record that was written behind a bar, or behind another NCCL record, stands on its own.

use std::borrow::Cow;
use std::sync::LazyLock;

use memchr::{memchr, memchr_iter, memchr3_iter, memmem};

use super::grammar;

/// The bracket of a bar with its times, its rate and what was added to them.
const LONGEST_BRACKET: usize = 160;

/// Built once: it is asked of every line.
static NCCL: LazyLock<memmem::Finder<'static>> = LazyLock::new(|| memmem::Finder::new("NCCL "));

/// Records that one line is split into; what follows them stays together.
const MOST_RECORDS: usize = 256;

/// Bytes that are compared together.
const BLOCK: usize = 32;

/// A line without the states of a bar that are overwritten by one of the same letters at the same places. Hours of a
/// bar are looked at in whole blocks this way, and only what is left is read.
pub(super) fn latest(line: &[u8]) -> Cow<'_, [u8]> {
    let mut kept = Vec::new();
    // Up to where the line is kept or overwritten, and where the next state begins.
    let (mut done, mut at) = (0, 0);
    while let Some((_, rest)) = line.split_at_checked(at)
        && let Some(length) = memchr(b'\r', rest)
    {
        let (state, next) = rest.split_at(length + 1);
        let alike = alike(rest, next);
        // No return ends the last state.
        let ended = alike + usize::from(alike == next.len());
        let overwritten = ended / state.len() * state.len();
        if overwritten > 0 && str::from_utf8(state).is_ok_and(|state| is_bar(state) && !is_glued(state)) {
            kept.extend_from_slice(line.get(done..at).unwrap_or_default());
            done = at + overwritten;
        }
        at += overwritten.max(state.len());
    }
    match line.get(done..) {
        Some(rest) if done > 0 => {
            kept.extend_from_slice(rest);
            Cow::Owned(kept)
        }
        _ => Cow::Borrowed(line),
    }
}

/// For how many bytes two texts differ in digits, blanks and signs alone.
fn alike(a: &[u8], b: &[u8]) -> usize {
    let same = |a: u8, b: u8| a == b || matches!(a, b' '..=b'9') & matches!(b, b' '..=b'9');
    let pairs = || a.iter().zip(b);
    // Without an early exit inside the block the compiler uses vector instructions.
    let blocks = a.as_chunks::<BLOCK>().0.iter().zip(b.as_chunks::<BLOCK>().0);
    let whole = blocks.take_while(|(a, b)| a.iter().zip(*b).fold(true, |all, (a, b)| all & same(*a, *b)));
    let whole = whole.count() * BLOCK;
    whole + pairs().skip(whole).take_while(|(a, b)| same(**a, **b)).count()
}

/// The pieces of a line with carriage returns, in order.
pub(super) fn pieces(line: &str) -> Vec<&str> {
    let mut kept: Vec<&str> = Vec::new();
    let mut glued = Vec::new();
    let mut behind_bar = false;
    let mut state: Option<&str> = None;
    for segment in line.split('\r').filter(|s| !s.trim().is_empty()) {
        // Nearly every state of a bar is the one before it with other figures.
        if let Some(last) = kept.last_mut().filter(|_| behind_bar)
            && state.is_some_and(|state| next_state(state, segment))
        {
            (*last, state) = (segment, Some(segment));
            continue;
        }
        split_glued(segment, &mut glued);
        state = Some(segment).filter(|_| glued.len() == 1);
        for piece in glued.drain(..) {
            let bar = is_bar(piece);
            match kept.last_mut() {
                Some(last) if behind_bar && bar && same_bar(last, piece) => *last = piece,
                _ => kept.push(piece),
            }
            behind_bar = bar;
        }
    }
    kept
}

/// Whether a line without carriage returns is more than one record; cheap, since it is asked of every line.
pub(super) fn is_glued(line: &str) -> bool {
    next_glued(line).is_some()
}

fn split_glued<'a>(line: &'a str, out: &mut Vec<&'a str>) {
    let mut rest = line;
    while out.len() < MOST_RECORDS
        && let Some(at) = next_glued(rest)
    {
        let (record, behind) = rest.split_at(at);
        out.push(record);
        rest = behind;
    }
    out.push(rest);
}

/// Where the first record behind the start of `line` begins.
fn next_glued(line: &str) -> Option<usize> {
    behind_bar(line).or_else(|| behind_nccl(line))
}

/// `…| 8/28 [00:14<00:25,  1.30s/it][2025-05-16 10:48:21 TP1] …`: what stands directly behind the bar's bracket.
fn behind_bar(line: &str) -> Option<usize> {
    let b = line.as_bytes();
    for end in memchr_iter(b']', b) {
        let (bar, behind) = b.split_at(end);
        let rate = bar.ends_with(b"/s") || bar.ends_with(b"/it");
        // A blank behind the bracket is tqdm's or vLLM's own suffix: ` (eager)`.
        if !rate || matches!(behind.get(1), None | Some(b' ' | b'\r')) {
            continue;
        }
        let near = bar.split_at(end.saturating_sub(LONGEST_BRACKET)).1;
        let Some(inside) = memchr::memrchr(b'[', near).and_then(|open| near.get(open + 1..)) else {
            continue;
        };
        if inside.first().is_some_and(u8::is_ascii_digit) && inside.iter().take(8).any(|&c| c == b':') {
            return Some(end + 1);
        }
    }
    None
}

/// A second NCCL header of the same host within the first one's line.
fn behind_nccl(line: &str) -> Option<usize> {
    // Nearly every line fails here: ` NCCL ` must stand in it twice.
    let b = line.as_bytes();
    NCCL.find_iter(b).nth(1)?;
    let host = grammar::nccl(line)?;
    memmem::find_iter(b, host.as_bytes())
        .skip(1)
        .find(|at| b.get(at + host.len()..).is_some_and(grammar::nccl_tail))
}

/// Whether `s` is a state of a progress bar.
pub(super) fn is_bar(s: &str) -> bool {
    has_mark(s) && !grammar::program(s)
}

/// Whether `s` has a percentage, a rate or the strokes of a bar: `%|`, `8%`, `it/s`, `s/it`, `B/s`, `##`, `━`, `█`.
fn has_mark(s: &str) -> bool {
    let b = s.as_bytes();
    let mark = |at: usize| {
        matches!(
            b.split_at(at),
            ([.., b'0'..=b'9'], [b'%', ..])
                | (_, [b'%', b'|', ..] | [b'#', b'#', ..])
                | ([.., b'i', b't'] | [.., b'B'], [b'/', b's', ..])
                | ([.., b's'], [b'/', b'i', b't', ..])
        )
    };
    memchr3_iter(b'%', b'/', b'#', b).any(mark) || !s.is_ascii() && s.contains(['━', '█'])
}

/// Whether `s` is vLLM's process prefix and nothing else.
pub(super) fn is_process(s: &str) -> bool {
    let s = s.trim_end();
    s.starts_with('(') && s.ends_with(')') && s.len() < 100 && grammar::program(s)
}

/// Whether two states of bars differ in their figures and strokes alone.
fn next_state(a: &str, b: &str) -> bool {
    fn parts(s: &str) -> Option<[&[u8]; 3]> {
        let s = s.as_bytes();
        let (first, last) = (memchr::memchr(b'|', s)?, memchr::memrchr(b'|', s)?);
        let (head, rest) = s.split_at(first);
        let (strokes, tail) = rest.split_at(last - first);
        Some([head, strokes, tail])
    }
    let alike = |a: &[u8], b: &[u8]| {
        let digits = |(a, b): (&u8, &u8)| a == b || a.is_ascii_digit() & b.is_ascii_digit();
        // Without an early exit the compiler can use vector instructions.
        let block = |(a, b): (&[u8], &[u8])| a.iter().zip(b).fold(true, |alike, pair| alike & digits(pair));
        a.len() == b.len() && a.chunks(32).zip(b.chunks(32)).all(block)
    };
    let (Some([a_head, _, a_tail]), Some([b_head, strokes, b_tail])) = (parts(a), parts(b)) else {
        return false;
    };
    alike(a_head, b_head) && alike(a_tail, b_tail) && !strokes.iter().any(u8::is_ascii_alphanumeric)
}

/// Bars are told apart by what stands before their percentage, without the figures in it.
fn same_bar(a: &str, b: &str) -> bool {
    fn before(s: &str) -> &str {
        let plain = memchr::memchr2(b'%', b'|', s.as_bytes()).unwrap_or(s.len());
        let head = s.split_at(plain).0;
        head.find('━').map_or(head, |at| head.split_at(at).0)
    }
    let (a, b) = (before(a), before(b));
    // Nearly all; letters of other scripts are slow to tell.
    if a.is_ascii() && b.is_ascii() {
        let letter = |b: &&u8| b.is_ascii_alphabetic();
        let (a, b) = (a.as_bytes(), b.as_bytes());
        let alike = |(a, b): (&u8, &u8)| a == b || !a.is_ascii_alphabetic() && !b.is_ascii_alphabetic();
        return a.len() == b.len() && a.iter().zip(b).all(alike) || a.iter().filter(letter).eq(b.iter().filter(letter));
    }
    let letters = |s: &str| s.chars().filter(|c| c.is_alphabetic()).collect::<Vec<_>>();
    letters(a) == letters(b)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_last_state_of_a_bar_stays() {
        let line = "Loading:   0%|          | 0/2 [00:00<?, ?it/s]\rLoading:  50%|█████     | 1/2 [00:01<00:01,  1.00s/it]\rLoading: 100%|██████████| 2/2 [00:02<00:00,  1.00s/it]";
        assert_eq!(pieces(line), ["Loading: 100%|██████████| 2/2 [00:02<00:00,  1.00s/it]"]);
    }

    #[test]
    fn a_state_is_the_next_one_if_only_its_figures_and_strokes_differ() {
        let a = "Capturing (bs=8):  29%|██▊       | 8/28 [00:14<00:25,  1.30s/it]";
        assert!(next_state(
            a,
            "Capturing (bs=4):  36%|███▌      | 9/28 [00:15<00:24,  1.29s/it]"
        ));
        for other in [
            // Another length, another label, a record behind it, words between its strokes, no bar.
            "Capturing (bs=4):  36%|███▌      | 10/28 [00:15<00:24,  1.29s/it]",
            "Capturing (xs=4):  36%|███▌      | 9/28 [00:15<00:24,  1.29s/it]",
            "Capturing (bs=4):  36%|███▌      | 9/28 [00:15<00:24,  1.29s/it]Killed",
            "Capturing (bs=4):  36%|Error| 9/28 [00:15<00:24,  1.29s/it]",
            "Capturing (bs=4):  36%",
        ] {
            assert!(!next_state(a, other), "{other}");
        }
        let glued = format!("{a}Killed");
        let line = [a, &glued, &glued.replace("29%", "31%"), a].join("\r");
        assert_eq!(
            pieces(&line),
            [
                a,
                "Killed",
                &glued[..glued.len() - 6].replace("29%", "31%"),
                "Killed",
                a
            ]
        );
    }

    #[test]
    fn states_of_a_bar_go_in_runs_of_the_same_letters() {
        let bar = |label: &str, step: usize| {
            let strokes = "#".repeat(step / 4);
            format!(
                "{label} (bs={step}):{:3}%|{strokes:<6}| {step}/24 [00:0{}<00:09,  2.1it/s]",
                step * 4,
                step % 9
            )
        };
        let states =
            |label: &str, steps: std::ops::Range<usize>| steps.map(|n| bar(label, n)).collect::<Vec<_>>().join("\r");
        let kept = |line: &str| String::from_utf8(latest(line.as_bytes()).into_owned()).unwrap();
        let long = states("Capturing", 10..24);
        assert_eq!(kept(&long), bar("Capturing", 23));
        assert_eq!(
            kept(&format!("\r{long}\rdone")),
            format!("\r{}\rdone", bar("Capturing", 23))
        );
        let two = format!("{}\r{}", states("Loading", 0..10), long);
        assert_eq!(kept(&two), format!("{}\r{}", bar("Loading", 9), bar("Capturing", 23)));
        for whole in [
            // Letters that differ, records that are no bars, a record behind a bar, and what is cut.
            format!("{}\r{}", bar("Capturing", 1), bar("Captured!", 2)),
            "INFO step 1 of 9\rINFO step 2 of 9".to_owned(),
            format!("{0}Killed\r{0}Killed", bar("Capturing", 1)),
            format!("{}\r{}", bar("Capturing", 1), &bar("Capturing", 2)[..40]),
            bar("Capturing", 1),
            String::new(),
        ] {
            assert!(matches!(latest(whole.as_bytes()), Cow::Borrowed(_)), "{whole}");
        }
    }

    /// What is overwritten changes nothing but how much there is to look at.
    #[test]
    fn the_pieces_of_a_line_are_those_of_its_latest_states() {
        let states = [
            "Capturing (bs=8):  29%|##        | 8/28 [00:14<00:25,  1.30s/it]",
            "Capturing (bs=4):  36%|###       | 9/28 [00:15<00:24,  1.29s/it]",
            "Capturing (bs=2):  39%|####      | 10/28 [00:16<00:23,  1.29s/it]",
            "Capturing (bs=2):  39%|███▌      | 10/28 [00:16<00:23,  1.29s/it]",
            "Capturing (bs=1):  42%|███▊      | 11/28 [00:16<00:23,  1.29s/it]",
            "Loading:  50%|#####     | 1/2 [00:01<00:01,  1.00s/it]",
            "Loading:   0%|          | 0/2 [00:00<?, ?it/s]",
            "Loading:  50%|#####     | 1/2 [00:01<00:01,  1.00s/it]Killed",
            "INFO 11-25 13:00:07 [a.py:1] usage 3%",
            "INFO 11-25 13:00:08 [a.py:1] usage 4%",
            "words",
            "",
        ];
        let mut state = 7_usize;
        for _ in 0..20_000 {
            let mut line = String::new();
            while !state.is_multiple_of(11) {
                state = state
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1_442_695_040_888_963_407);
                line += states[(state >> 33) % states.len()];
                line.push('\r');
            }
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            let line = line.trim_end_matches('\r');
            let latest = latest(line.as_bytes());
            assert_eq!(pieces(str::from_utf8(&latest).unwrap()), pieces(line), "{line:?}");
        }
    }

    #[test]
    fn two_bars_keep_a_state_each() {
        let line = "Capturing (PIECEWISE):  50%|█ | 1/2 [00:01<00:01,  1.00s/it]\rCapturing (PIECEWISE): 100%|██| 2/2 [00:02<00:00,  1.00s/it]\rCapturing (FULL):  50%|█ | 1/2 [00:01<00:01,  1.00s/it]";
        assert_eq!(pieces(line).len(), 2);
    }

    #[test]
    fn figures_in_the_label_of_a_bar_change() {
        let line = "Capturing batches (bs=8 avail_mem=14.45 GB):  29%|██▊       | 8/28 [00:14<00:25,  1.30s/it]\rCapturing batches (bs=4 avail_mem=14.40 GB):  32%|███▏      | 9/28 [00:15<00:24,  1.29s/it]";
        assert_eq!(pieces(line).len(), 1);
    }

    #[test]
    fn records_behind_a_bar_stand_alone() {
        for record in [
            "[2025-05-16 10:48:21 TP1] Scheduler hit an exception: Traceback (most recent call last):",
            "(EngineCore pid=3) ERROR 11-25 13:00:07 [core.py:1] x",
            "Traceback (most recent call last):",
            "node-a:1:2 [0] NCCL INFO x",
            "Killed",
        ] {
            let line = format!("Capturing:  29%|██▊ | 8/28 [00:14<00:25,  1.30s/it]{record}");
            assert!(is_glued(&line), "{line}");
            assert_eq!(
                pieces(&line),
                ["Capturing:  29%|██▊ | 8/28 [00:14<00:25,  1.30s/it]", record]
            );
        }
    }

    #[test]
    fn what_shows_a_bar() {
        for bar in [
            "a  3% b",
            "x%|",
            "2.0it/s",
            "1.3s/it",
            "5MB/s",
            "[##  ]",
            "Loading ━━╸",
            "a █ b",
            "%|",
            "##",
        ] {
            assert!(is_bar(bar), "{bar}");
        }
        for other in [
            "",
            "100 % of",
            "a/b",
            "12 tok/s",
            "# 1 of #2",
            "größer",
            "/s",
            "t/s",
            "%",
            "s/i",
        ] {
            assert!(!is_bar(other), "{other}");
        }
    }

    #[test]
    fn text_behind_a_carriage_return_is_kept() {
        let line = "Loading: 100%|██| 2/2 [00:02<00:00,  1.00s/it]\rINFO 11-25 13:00:07 [a.py:1] usage 3%\rplain words";
        assert_eq!(pieces(line).len(), 3);
    }

    #[test]
    fn two_nccl_records_in_a_line() {
        let line =
            "node-a:803563:803603 [0] NCCL INFO comm 0x1 rank 0 nranks node-a:803564:803604 [1] NCCL INFO Setting";
        assert_eq!(pieces(line), [&line[..58], &line[58..]]);
    }

    #[test]
    fn what_is_not_glued() {
        for line in [
            "x [12 tok/s] of node",
            "a: 100%|██| 2/2 [00:02<00:00,  1.00s/it] (eager)",
            "a: 100%|██| 2/2 [00:02<00:00,  1.00s/it]",
            "node-a:1:2 [0] NCCL INFO NCCL version 2.27",
            "a[0]/s]b",
        ] {
            assert!(!is_glued(line), "{line}");
        }
    }
}
