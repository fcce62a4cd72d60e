//! Lines: blocks of bytes cut at `\n`, with numbers and offsets that stay right and memory that stays bounded.
//!
//! Owns the notion of a line. Never decodes text and never resolves a `\r`: the envelope does.

use std::io::{self, Read};

use memchr::{memchr, memchr_iter, memrchr};

use super::limits::Limits;

/// Bytes of room that a reader begins with, unless a block is smaller.
const FIRST: usize = 64 << 10;
/// Blocks that fit behind the longest line.
const BLOCKS: usize = 4;
const UTF8_MARK: &[u8] = b"\xef\xbb\xbf";

/// One line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Line<'a> {
    /// Number from 1.
    pub no: u64,
    /// Offset of its first byte in the decompressed input.
    pub byte: u64,
    /// Its bytes without the `\n`, and without a byte-order mark on line 1.
    pub bytes: &'a [u8],
    /// Bytes cut out because the line is longer than [`Limits::line_bytes`].
    pub skipped: u64,
    /// Whether a `\n` ends it; only the last line of an input may lack one.
    pub ended: bool,
}

/// Cuts a reader into lines.
///
/// An error of the reader leaves everything as it was, so a reader that answers `WouldBlock` can be asked again.
pub struct LineReader<R> {
    inner: R,
    limits: Limits,
    /// Allocated once, at the first read.
    buf: Vec<u8>,
    /// The current line starts here.
    start: usize,
    /// No `\n` stands between `start` and here.
    scanned: usize,
    /// Bytes from here on are free.
    end: usize,
    /// Bytes of the current line already dropped behind its head.
    dropped: u64,
    /// Lines given out.
    lines: u64,
    /// Offset of the current line.
    offset: u64,
    eof: bool,
    /// Nothing but blanks was given out or passed over so far.
    blank: bool,
}

impl<R: Read> LineReader<R> {
    /// A reader of lines.
    pub fn new(inner: R, limits: &Limits) -> Self {
        Self {
            inner,
            limits: Limits {
                block_bytes: limits.block_bytes.max(1),
                ..*limits
            },
            buf: Vec::new(),
            start: 0,
            scanned: 0,
            end: 0,
            dropped: 0,
            lines: 0,
            offset: 0,
            eof: false,
            blank: true,
        }
    }

    /// The beginning of what has not been read yet, up to [`Limits::sample_bytes`], without consuming it.
    /// Waits until so much is there or the input ends; an error is met again by [`next`](Self::next).
    pub fn sample(&mut self) -> &[u8] {
        while !self.eof && self.end - self.start < self.limits.sample_bytes {
            if self.fill().is_err() {
                break;
            }
        }
        let end = self.end.min(self.start + self.limits.sample_bytes);
        self.buf.get(self.start..end).unwrap_or_default()
    }

    /// The next line, `None` at the end of the input.
    #[allow(clippy::should_implement_trait)] // A line borrows from the reader, which no `Iterator` can express.
    pub fn next(&mut self) -> io::Result<Option<Line<'_>>> {
        loop {
            let fresh = self.buf.get(self.scanned..self.end).unwrap_or_default();
            if let Some(at) = memchr(b'\n', fresh) {
                return Ok(Some(self.take(self.scanned + at, true)));
            }
            self.scanned = self.end;
            if self.eof {
                let rest = self.start < self.end || self.dropped > 0;
                return Ok(rest.then(|| self.take(self.end, false)));
            }
            self.fill()?;
        }
    }

    /// What was read and not given out yet, from the start of a line. Empty while an overlong line is being read.
    pub fn window(&self) -> &[u8] {
        self.buf.get(self.start..self.end).unwrap_or_default()
    }

    /// Reads one more block into the window; `false` if it is full, and only [`next`](Self::next) can go on.
    ///
    /// # Errors
    /// What the reader below answers.
    pub fn more(&mut self) -> io::Result<bool> {
        if self.start == 0 && self.end + self.limits.block_bytes > self.most() {
            return Ok(self.eof);
        }
        self.fill().map(|()| true)
    }

    /// Passes over the first `bytes` of the window, which end with a line, and returns how many lines these are.
    pub fn skip(&mut self, bytes: usize) -> u64 {
        let to = self.end.min(self.start + bytes);
        let window = self.buf.get(self.start..to).unwrap_or_default();
        let passed = memchr_iter(b'\n', window).count() as u64;
        self.pass(bytes, passed);
        passed
    }

    /// Passes over the first `bytes` of the window, which are so many whole lines.
    pub fn pass(&mut self, bytes: usize, lines: u64) {
        let to = self.end.min(self.start + bytes);
        self.blank = self.blank && is_blank(self.buf.get(self.start..to).unwrap_or_default());
        self.offset += (to - self.start) as u64;
        self.lines += lines;
        self.start = to;
        self.scanned = self.scanned.max(to);
    }

    /// Where the last line begins of what was read, and where what was not read begins, in bytes from the start of the
    /// input. `None` within an overlong line, or if nothing but blanks was read.
    pub fn unread(&self) -> Option<(u64, u64)> {
        let window = self.window();
        let line = memrchr(b'\n', window)? as u64 + 1;
        (!self.blank && self.dropped == 0).then(|| (self.offset + line, self.offset + window.len() as u64))
    }

    /// Leaves the window, and goes on at byte `to`, where a line begins; so many are between it and the last line of
    /// the window. The reader below goes on there too. Returns how many lines were passed over.
    pub fn go_on(&mut self, to: u64, between: u64) -> u64 {
        let passed = between + memchr_iter(b'\n', self.window()).count() as u64;
        self.lines += passed;
        self.offset = to;
        (self.start, self.scanned, self.end) = (0, 0, 0);
        passed
    }

    /// Treats what has come so far as the whole input; [`next`](Self::next) gives it out, an unfinished line last.
    pub fn stop(&mut self) {
        self.eof = true;
    }

    /// Whether the reader below has nothing more to give.
    pub fn at_end(&self) -> bool {
        self.eof
    }

    /// Whether all lines so far are empty or blank.
    pub fn blank(&self) -> bool {
        self.blank
    }

    /// Lines given out so far.
    pub fn lines(&self) -> u64 {
        self.lines
    }

    /// Bytes of the lines given out so far, line ends included.
    pub fn bytes(&self) -> u64 {
        self.offset
    }

    /// The reader below.
    pub fn get_ref(&self) -> &R {
        &self.inner
    }

    /// Gives out the line that ends at `at`, exclusive.
    fn take(&mut self, at: usize, ended: bool) -> Line<'_> {
        let length = (at - self.start) as u64 + self.dropped;
        let mut kept = self.start..at;
        if length > self.limits.line_bytes as u64 {
            kept.end = self.join_tail(at);
        }
        let skipped = length - kept.len() as u64;
        let byte = self.offset;
        self.lines += 1;
        self.offset += length + u64::from(ended);
        self.dropped = 0;
        self.start = if ended { at + 1 } else { at };
        self.scanned = self.start;
        let bytes = self.buf.get(kept).unwrap_or_default();
        let bytes = match self.lines {
            1 => bytes.strip_prefix(UTF8_MARK).unwrap_or(bytes),
            _ => bytes,
        };
        self.blank = self.blank && skipped == 0 && is_blank(bytes);
        Line {
            no: self.lines,
            byte,
            bytes,
            skipped,
            ended,
        }
    }

    /// Cuts the middle out of a line that is too long, and returns where it ends now.
    ///
    /// Of the end only whole `\r` segments are kept: a record glued behind hours of progress bar is worth having,
    /// whereas the end of a long value, moved to where it seems to begin something, would lie.
    fn join_tail(&mut self, at: usize) -> usize {
        let head = self.start + self.head_bytes();
        let tail = at.saturating_sub(self.tail_bytes()).max(head);
        match memchr(b'\r', self.buf.get(tail..at).unwrap_or_default()) {
            Some(cr) => {
                self.buf.copy_within(tail + cr..at, head);
                head + (at - tail - cr)
            }
            None => head,
        }
    }

    fn head_bytes(&self) -> usize {
        self.limits.line_bytes - self.tail_bytes()
    }

    fn tail_bytes(&self) -> usize {
        self.limits.line_bytes / 4
    }

    /// Reads one block behind `end`.
    fn fill(&mut self) -> io::Result<()> {
        self.make_room();
        loop {
            match self.inner.read(self.buf.get_mut(self.end..).unwrap_or_default()) {
                Ok(0) => self.eof = true,
                Ok(n) => self.end += n,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
                Err(e) => return Err(e),
            }
            return Ok(());
        }
    }

    /// Bytes held at most: the longest line, and room for several blocks, so that what stays is moved to the front only
    /// once for all of them.
    fn most(&self) -> usize {
        self.limits.line_bytes.max(self.limits.sample_bytes) + BLOCKS * self.limits.block_bytes
    }

    /// What was read and not given out stands at the front now.
    fn now_in_front(&mut self) {
        self.end -= self.start;
        self.scanned -= self.start;
        self.start = 0;
    }

    /// Moves the current line to the front when the room behind it gets small, and drops its middle when it fills
    /// the buffer by itself.
    fn make_room(&mut self) {
        let (block, most) = (self.limits.block_bytes, self.most());
        // Room is taken as the source turns out to need it: most logs are short. New room is nought without being written,
        // so that of a large one only as much counts as is read into.
        if self.buf.len() < most && self.end - self.start >= self.buf.len() / 2 {
            let mut room = vec![0; (2 * self.buf.len()).clamp(FIRST.min(block).min(most), most)];
            if let Some(front) = room.get_mut(..self.end - self.start) {
                front.copy_from_slice(self.window());
            }
            self.buf = room;
            self.now_in_front();
        }
        if self.start > 0 && self.buf.len() - self.end < block {
            self.buf.copy_within(self.start..self.end, 0);
            self.now_in_front();
        }
        if self.end == most {
            let (head, tail) = (self.head_bytes(), self.end - self.tail_bytes());
            self.buf.copy_within(tail..self.end, head);
            self.dropped += (tail - head) as u64;
            self.end -= tail - head;
            self.scanned = self.end;
        }
    }
}

/// Lines held in memory, for a source that has to be read in reverse.
#[derive(Debug, Default)]
pub struct HeldLines {
    bytes: Vec<u8>,
    spans: Vec<Span>,
    left_out: u64,
}

#[derive(Debug)]
struct Span {
    no: u64,
    byte: u64,
    start: usize,
    end: usize,
    skipped: u64,
    ended: bool,
}

impl HeldLines {
    /// Takes the rest of `reader`, up to [`Limits::reverse_bytes`] counted with the bookkeeping. Of a newest-first
    /// source the first lines are the newest, so what is beyond the limit is the oldest part: it is only counted.
    pub fn collect<R: Read>(reader: &mut LineReader<R>, limits: &Limits) -> io::Result<Self> {
        let mut held = Self::default();
        while let Some(line) = reader.next()? {
            held.push(&line, limits);
        }
        Ok(held)
    }

    /// Takes one more line, or counts it beyond the limit.
    pub fn push(&mut self, line: &Line<'_>, limits: &Limits) {
        let start = self.bytes.len();
        let cost = line.bytes.len() + (self.spans.len() + 1) * size_of::<Span>();
        if self.left_out > 0 || start + cost > limits.reverse_bytes {
            self.left_out += 1;
            return;
        }
        self.bytes.extend_from_slice(line.bytes);
        self.spans.push(Span {
            no: line.no,
            byte: line.byte,
            start,
            end: self.bytes.len(),
            skipped: line.skipped,
            ended: line.ended,
        });
    }

    /// The lines as they stand in the input; `.rev()` gives the oldest of a newest-first source first.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = Line<'_>> + ExactSizeIterator {
        self.spans.iter().map(|s| Line {
            no: s.no,
            byte: s.byte,
            bytes: self.bytes.get(s.start..s.end).unwrap_or_default(),
            skipped: s.skipped,
            ended: s.ended,
        })
    }

    /// Lines beyond the limit.
    pub fn left_out(&self) -> u64 {
        self.left_out
    }
}

fn is_blank(bytes: &[u8]) -> bool {
    bytes.iter().all(u8::is_ascii_whitespace)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blank_is_what_holds_nothing_but_blanks() {
        for (input, blank) in [("", true), ("\n \t\r\n\n  ", true), ("\n\nx\n", false), ("  x", false)] {
            let mut lines = LineReader::new(input.as_bytes(), &small());
            while lines.next().unwrap().is_some() {}
            assert_eq!(lines.blank(), blank, "{input:?}");
        }
        let mut passed = LineReader::new(&b"\n\nx\n\n"[..], &small());
        passed.sample();
        assert_eq!((passed.skip(2), passed.blank()), (2, true));
        assert_eq!((passed.skip(2), passed.blank()), (1, false));
    }

    fn small() -> Limits {
        Limits {
            line_bytes: 16,
            block_bytes: 8,
            sample_bytes: 16,
            ..Limits::default()
        }
    }

    type Owned = (u64, u64, String, u64, bool);

    fn all(input: &[u8], limits: &Limits) -> Vec<Owned> {
        let mut reader = LineReader::new(input, limits);
        let mut out = Vec::new();
        while let Some(l) = reader.next().unwrap() {
            out.push((
                l.no,
                l.byte,
                String::from_utf8_lossy(l.bytes).into_owned(),
                l.skipped,
                l.ended,
            ));
        }
        assert_eq!(reader.bytes(), input.len() as u64);
        out
    }

    #[test]
    fn numbers_and_offsets_are_those_of_the_input() {
        let lines = all(b"a\r\n\nbc\nlast", &small());
        let expected = [
            (1, 0, "a\r", 0, true),
            (2, 3, "", 0, true),
            (3, 4, "bc", 0, true),
            (4, 7, "last", 0, false),
        ];
        assert_eq!(lines, expected.map(|(n, b, s, k, e)| (n, b, s.to_owned(), k, e)));
    }

    #[test]
    fn a_mark_is_no_part_of_the_first_line_and_counts_in_the_offset() {
        let lines = all(b"\xef\xbb\xbfone\n\xef\xbb\xbftwo\n", &small());
        assert_eq!((lines[0].1, lines[0].2.as_str()), (0, "one"));
        assert_eq!((lines[1].1, lines[1].2.as_str()), (7, "\u{feff}two"));
    }

    #[test]
    fn a_long_line_keeps_its_head_and_counts_the_rest() {
        let mut input = vec![b'x'; 1000];
        input.extend_from_slice(b"\nnext\n");
        let lines = all(&input, &small());
        assert_eq!(lines[0], (1, 0, "x".repeat(12), 988, true));
        assert_eq!(lines[1], (2, 1001, "next".into(), 0, true));
    }

    #[test]
    fn a_record_glued_behind_a_long_progress_bar_survives() {
        for bars in 1..60 {
            let mut input = b"50%|##\r".repeat(bars);
            input.extend_from_slice(b"E\nnext");
            let lines = all(&input, &small());
            assert!(lines[0].2.ends_with("\rE"), "{bars}: {:?}", lines[0]);
            assert!(lines[0].2.len() <= 16);
            assert_eq!(lines[0].2.len() as u64 + lines[0].3, bars as u64 * 7 + 1);
            assert_eq!(lines[1].1, bars as u64 * 7 + 2);
        }
    }

    #[test]
    fn every_length_and_limit_gives_the_same_lines_as_a_plain_split() {
        let text: Vec<u8> = (0..60usize)
            .flat_map(|n| [vec![b'a' + (n % 26) as u8; n % 17], vec![b'\n']].concat())
            .collect();
        for block in 1..20 {
            let limits = Limits {
                block_bytes: block,
                ..small()
            };
            let got: Vec<String> = all(&text, &limits).into_iter().map(|l| l.2).collect();
            let plain: Vec<&str> = std::str::from_utf8(&text).unwrap().lines().collect();
            assert_eq!(got, plain, "block {block}");
        }
    }

    #[test]
    fn a_sample_consumes_nothing() {
        let limits = small();
        let mut reader = LineReader::new(&b"first\nsecond is longer\nthird"[..], &limits);
        assert_eq!(reader.sample(), b"first\nsecond is ");
        assert_eq!(reader.next().unwrap().unwrap().bytes, b"first");
        assert_eq!(reader.sample(), b"second is longer");
        assert_eq!(reader.next().unwrap().unwrap().bytes, b"second is longer");
        assert_eq!(reader.next().unwrap().unwrap().bytes, b"third");
        assert!(reader.next().unwrap().is_none());
    }

    #[test]
    fn a_reader_that_has_nothing_yet_is_asked_again_and_can_be_stopped() {
        struct Drip(Vec<Option<&'static [u8]>>);
        impl Read for Drip {
            fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
                match self.0.pop() {
                    Some(Some(part)) => {
                        buf[..part.len()].copy_from_slice(part);
                        Ok(part.len())
                    }
                    _ => Err(io::ErrorKind::WouldBlock.into()),
                }
            }
        }
        let limits = Limits {
            block_bytes: 16,
            ..small()
        };
        let mut reader = LineReader::new(Drip(vec![Some(b"f\nrest"), None, Some(b"hal")]), &limits);
        assert!(reader.next().is_err());
        assert_eq!(reader.next().unwrap().unwrap().bytes, b"half");
        assert!(reader.next().is_err());
        reader.stop();
        assert_eq!(reader.next().unwrap().unwrap().bytes, b"rest");
        assert!(reader.next().unwrap().is_none());
    }

    #[test]
    fn held_lines_come_back_in_reverse_and_stay_below_their_limit() {
        let limits = Limits {
            reverse_bytes: 500,
            ..small()
        };
        let text = "line\n".repeat(100);
        let held = HeldLines::collect(&mut LineReader::new(text.as_bytes(), &limits), &limits).unwrap();
        let kept = held.iter().len() as u64;
        assert!(kept > 0 && kept + held.left_out() == 100);
        let back: Vec<u64> = held.iter().rev().map(|l| l.no).collect();
        assert_eq!(back, (1..=kept).rev().collect::<Vec<_>>());
    }
}
