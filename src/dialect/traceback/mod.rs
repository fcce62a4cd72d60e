//! Puts Python tracebacks together: chained, grouped, nested, torn, prefixed line by line, interleaved.
//!
//! Owns the open blocks of tracebacks and faulthandler dumps, one per speaker; a line is offered with
//! the key of its speaker and either belongs to a block or is handed back. Never looks at what an exception means.

mod lines;
mod message;
mod step;
mod tools;

use std::collections::HashMap;

use lines::{Head, frame_line, is_thread_head, notebook_head, strip_margin, traceback_head};
pub use lines::{exception_line, looks_like_error};
use message::begins_another;
pub use message::{Known, Printed, certain};
use step::{Step, empty, push_current, step};

/// Blocks open at the same time; the oldest is closed when more begin.
const MAX_OPEN: usize = 512;
/// Lines of other speakers after which an unfinished block is taken as torn.
const MAX_AGE: u64 = 4000;

/// A line as the assembler needs it.
#[derive(Debug, Clone, Copy)]
pub struct Line<'a> {
    /// Line number.
    pub no: u64,
    /// Position in the caller's list of places, so that places are copied only for blocks.
    pub message: &'a str,
    /// Whether it carried a log header.
    pub logged: bool,
}

/// A frame before it is shared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RawFrame {
    /// File.
    pub file: String,
    /// Line in the file.
    pub line: u32,
    /// Function.
    pub function: String,
    /// Source line.
    pub code: String,
}

/// Gives the place of the line at hand; called only for lines that are kept, which few are.
pub type Site<'a, P> = &'a dyn Fn() -> P;

/// One exception of a finished block; `P` is the caller's place type.
#[derive(Debug, Clone)]
pub struct RawException<P> {
    /// Type; empty when the block is torn before its exception line.
    pub kind: String,
    /// Lines of the message, with the place of each; the first is the exception line itself.
    pub lines: Vec<(String, P)>,
    /// Frames, outermost first.
    pub frames: Vec<RawFrame>,
}

/// How a block was printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// A Python traceback.
    Python,
    /// A faulthandler dump.
    Native,
    /// `Exception ignored in`, never-retrieved tasks, threads that only print.
    Ignored,
}

/// A finished block.
#[derive(Debug, Clone)]
pub struct Block<P> {
    /// Chain, oldest first; at least one.
    pub chain: Vec<RawException<P>>,
    /// Shape.
    pub shape: Shape,
    /// Whether its lines carried a log header.
    pub logged: bool,
    /// First line.
    pub first_line: u64,
    /// Last line.
    pub last_line: u64,
    /// Whether the end is missing.
    pub torn: bool,
    /// Whether the end of the source ended it.
    pub at_end: bool,
    /// Frames, lines of messages and chained exceptions that were more than is kept.
    pub cut: u64,
    /// Whether there was no traceback above the exception line.
    pub bare: bool,
    /// The key it was opened with.
    pub key: u64,
    /// Place of the line that opened it, which names the speaker where the lines below carry no prefix.
    pub opener: P,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Between the `Traceback` line and the exception line.
    Frames,
    /// Behind an exception line: message continues, or a chain goes on.
    Message,
    /// Behind a chain separator: a further `Traceback` line is due.
    Between,
}

#[derive(Clone)]
struct Open<P> {
    block: Block<P>,
    current: RawException<P>,
    state: State,
    after_blank: bool,
    /// The exception line says all that there is: no further line is of its message.
    whole: bool,
    /// Blanks before every line of it beyond those that Python prints: a table holds it.
    margin: usize,
    /// The last frame stood without its indentation, and so will the code below it.
    flat: bool,
    /// The next traceback is nested in the exception line above (Ray's remote header, exception groups).
    nested: bool,
    opened_by_log: bool,
    /// Lines below the first one carry its prefix too, so that what has none is hardly a part of it.
    prefixed: bool,
    /// The type that a notebook's header names, with which its exception line begins.
    notebook: Option<String>,
    touched: u64,
    bytes: usize,
}

/// How a line begins that says of the traceback below it that nothing ended for it. Ray's driver prints the logs and
/// errors of its workers in threads of their own.
const IGNORED: [&str; 3] = [
    "Exception ignored in",
    "Exception in thread ray_print_logs",
    "Exception in thread ray_listen_error_messages",
];

/// Blanks before a frame.
const FRAME_INDENT: usize = 2;

/// Blanks that a line begins with.
fn blanks(text: &str) -> usize {
    text.len() - text.trim_start_matches(' ').len()
}

/// What a message says of the traceback right below it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Foretold {
    /// Nothing ended for it.
    Ignored,
    /// It was caught, and is a part of the message's record.
    Logged,
}

/// What became of an offered line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Taken {
    /// It belongs to a block.
    Yes,
    /// It belongs to a block that a header line of another key opened.
    Adopted,
    /// It is for others.
    No,
}

/// The assembler of one source.
#[derive(Clone)]
pub struct Assembler<P> {
    open: HashMap<u64, Open<P>>,
    /// Block that un-prefixed lines continue, because its header line had a prefix and its body has none.
    adopter: Option<u64>,
    /// What the last line says of the block that begins next.
    foretold: Option<Foretold>,
}

impl<P: Clone> Default for Assembler<P> {
    fn default() -> Self {
        Self {
            open: HashMap::new(),
            adopter: None,
            foretold: None,
        }
    }
}

impl<P: Clone> Assembler<P> {
    /// Offers a line. `bare` says that its key has no log header and no label; `known` what the catalog knows it as.
    pub fn offer(
        &mut self,
        key: u64,
        bare: bool,
        line: Line<'_>,
        place: Site<'_, P>,
        known: Known,
        out: &mut Vec<Block<P>>,
    ) -> Taken {
        let text = strip_margin(line.message);
        if let Some(head) = traceback_head(text) {
            return self.begin(key, bare, head, line, place, out);
        }
        if let Some(kind) = notebook_head(text) {
            let taken = self.begin(key, bare, Head::Plain, line, place, out);
            if let Some(open) = self.open.get_mut(&key) {
                // A notebook goes on below: what its cell raised need not have ended anything.
                open.block.bare = true;
                open.notebook = Some(kind.to_owned());
            }
            return taken;
        }
        let trimmed = text.trim_start();
        if bare && IGNORED.iter().any(|head| trimmed.starts_with(head)) || trimmed.ends_with("was never retrieved") {
            self.foretold = Some(Foretold::Ignored);
        }
        if text.starts_with("Fatal Python error: ") || is_thread_head(text) {
            return self.native(key, text, line, place, out);
        }
        let own = self.open.contains_key(&key);
        let target = if own {
            key
        } else {
            self.adopter.filter(|_| bare).unwrap_or(key)
        };
        if !self.open.contains_key(&target) && frame_line(text).is_some() {
            // The log is cut above: frames without their header still end in an exception line.
            self.insert(key, Shape::Python, line, place);
            if let Some(open) = self.open.get_mut(&key) {
                open.block.bare = true;
            }
        }
        let Some(open) = self.open.get_mut(&target) else {
            return Taken::No;
        };
        let taken = if own || target == key {
            Taken::Yes
        } else {
            Taken::Adopted
        };
        open.prefixed |= own && !bare;
        if open.prefixed && taken == Taken::Adopted && open.state == State::Message && begins_another(text) {
            self.close(target, out);
            return Taken::No;
        }
        open.touched = line.no;
        if open.state == State::Frames && open.current.frames.is_empty() && frame_line(text).is_some() {
            open.margin = blanks(text).saturating_sub(FRAME_INDENT);
        }
        let text = text.get(open.margin.min(blanks(text))..).unwrap_or(text);
        match step(open, text, line, place, known) {
            Step::Kept => taken,
            Step::Passed => Taken::No,
            Step::Done => {
                self.close(target, out);
                Taken::No
            }
        }
    }

    /// Tells what the message above says of the traceback that begins next.
    pub fn foretell(&mut self, foretold: Foretold) {
        self.foretold = Some(foretold);
    }

    /// Opens a block at an exception line that has no traceback above it, for the lines of its message below.
    pub fn begin_bare(&mut self, key: u64, line: Line<'_>, place: Site<'_, P>, kind: &str, message: &str) {
        self.insert(key, Shape::Python, line, place);
        if let Some(open) = self.open.get_mut(&key) {
            open.current.kind = kind.to_owned();
            open.current.lines.push((message.to_owned(), place()));
            open.bytes = message.len();
            open.state = State::Message;
            open.block.bare = true;
        }
    }

    /// Whether any block is unfinished.
    pub fn is_open(&self) -> bool {
        !self.open.is_empty()
    }

    /// Tells that a line with a header came whose key is another one of the same speaker: its open message ends.
    pub fn interrupt(&mut self, key: u64, out: &mut Vec<Block<P>>) {
        if self.open.get(&key).is_some_and(|o| o.state != State::Frames) {
            self.close(key, out);
        }
    }

    /// Tells that a header line without a label came, itself of the block `own`: un-prefixed messages end here.
    pub fn interrupt_bare(&mut self, bare_key: u64, own: u64, out: &mut Vec<Block<P>>) {
        self.interrupt(bare_key, out);
        if let Some(key) = self.adopter.filter(|&k| k != own) {
            self.interrupt(key, out);
        }
    }

    /// Closes blocks nobody added to for long. Call now and then.
    pub fn expire(&mut self, now: u64, out: &mut Vec<Block<P>>) {
        let old: Vec<u64> = self
            .open
            .iter()
            .filter(|(_, o)| now.saturating_sub(o.touched) > MAX_AGE)
            .map(|(k, _)| *k)
            .collect();
        for key in old {
            self.close(key, out);
        }
    }

    /// The source ends: closes everything.
    pub fn finish(&mut self, out: &mut Vec<Block<P>>) {
        for open in self.open.values_mut() {
            open.block.at_end = true;
        }
        self.close_all(out);
    }

    /// Closes everything.
    pub fn close_all(&mut self, out: &mut Vec<Block<P>>) {
        let mut keys: Vec<u64> = self.open.keys().copied().collect();
        keys.sort_unstable();
        for key in keys {
            self.close(key, out);
        }
    }

    fn begin(
        &mut self,
        key: u64,
        bare: bool,
        head: Head,
        line: Line<'_>,
        place: Site<'_, P>,
        out: &mut Vec<Block<P>>,
    ) -> Taken {
        let target = if self.open.contains_key(&key) || !bare {
            key
        } else {
            self.adopter.unwrap_or(key)
        };
        if let Some(open) = self.open.get_mut(&target) {
            let linked = open.state == State::Between || open.nested;
            if linked && head != Head::Intro {
                push_current(open);
                open.state = State::Frames;
                open.touched = line.no;
                open.block.last_line = line.no;
                return Taken::Yes;
            }
            self.close(target, out);
        }
        if self.open.len() >= MAX_OPEN
            && let Some((&oldest, _)) = self.open.iter().min_by_key(|(_, o)| o.touched)
        {
            self.close(oldest, out);
        }
        let foretold = self.foretold.take();
        let shape = match foretold {
            Some(Foretold::Ignored) => Shape::Ignored,
            _ => Shape::Python,
        };
        self.insert(key, shape, line, place);
        if let Some(open) = self.open.get_mut(&key).filter(|_| foretold == Some(Foretold::Logged)) {
            open.block.logged = true;
        }
        if !bare {
            self.adopter = Some(key);
        } else {
            self.adopter = None;
        }
        Taken::Yes
    }

    fn insert(&mut self, key: u64, shape: Shape, line: Line<'_>, place: Site<'_, P>) {
        let block = Block {
            chain: Vec::new(),
            shape,
            logged: line.logged,
            first_line: line.no,
            last_line: line.no,
            torn: false,
            at_end: false,
            cut: 0,
            bare: false,
            key,
            opener: place(),
        };
        let open = Open {
            block,
            current: empty(),
            state: State::Frames,
            after_blank: false,
            whole: false,
            margin: 0,
            flat: false,
            nested: false,
            opened_by_log: line.logged,
            prefixed: false,
            notebook: None,
            touched: line.no,
            bytes: 0,
        };
        self.open.insert(key, open);
    }

    fn native(&mut self, key: u64, text: &str, line: Line<'_>, place: Site<'_, P>, out: &mut Vec<Block<P>>) -> Taken {
        if is_thread_head(text) {
            // Only the current thread's frames tell where the process was; other threads may stand above it.
            let current = text.starts_with("Current thread");
            match self.open.get_mut(&key) {
                Some(open) if open.block.shape == Shape::Native && (current || open.current.frames.is_empty()) => {
                    open.current.frames.clear();
                    open.state = State::Frames;
                    open.block.last_line = line.no;
                    return Taken::Yes;
                }
                Some(open) if open.block.shape == Shape::Native => self.close(key, out),
                _ => {}
            }
            return Taken::No;
        }
        self.close(key, out);
        self.insert(key, Shape::Native, line, place);
        if let Some(open) = self.open.get_mut(&key) {
            open.current.kind = "Fatal Python error".to_owned();
            let message = text.strip_prefix("Fatal Python error: ").unwrap_or(text);
            open.current.lines.push((message.to_owned(), place()));
            open.state = State::Frames;
        }
        // The banner itself is also a message that the catalog may know.
        Taken::No
    }

    fn close(&mut self, key: u64, out: &mut Vec<Block<P>>) {
        let Some(mut open) = self.open.remove(&key) else { return };
        if self.adopter == Some(key) {
            self.adopter = None;
        }
        if open.block.shape == Shape::Native {
            open.current.frames.reverse();
        }
        open.block.torn = open.current.kind.is_empty();
        push_current(&mut open);
        // Of a traceback that the end of the source cuts below its head, the head is all there is.
        if !open.block.chain.is_empty() || open.block.torn && open.block.at_end {
            out.push(open.block);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(lines: &[&str]) -> Vec<Block<u64>> {
        let mut assembler = Assembler::default();
        let mut out = Vec::new();
        for (i, text) in lines.iter().enumerate() {
            let no = i as u64 + 1;
            let line = Line {
                no,
                message: text,
                logged: false,
            };
            let _ = assembler.offer(1, true, line, &|| no, Known::No, &mut out);
        }
        assembler.finish(&mut out);
        out
    }

    #[test]
    fn a_chain_is_oldest_first() {
        let blocks = run(&[
            "Traceback (most recent call last):",
            "  File \"/a.py\", line 1, in inner",
            "    x()",
            "    ^^^",
            "KeyError: 'a'",
            "",
            "During handling of the above exception, another exception occurred:",
            "",
            "Traceback (most recent call last):",
            "  File \"/b.py\", line 2, in outer",
            "    y()",
            "ValueError: bad",
            "more of it",
        ]);
        assert_eq!(blocks.len(), 1);
        let chain = &blocks[0].chain;
        assert_eq!(
            chain.iter().map(|e| e.kind.as_str()).collect::<Vec<_>>(),
            ["KeyError", "ValueError"]
        );
        assert_eq!(chain[0].frames[0].code, "x()");
        assert_eq!(
            chain[1].lines.iter().map(|(l, n)| (l.as_str(), *n)).collect::<Vec<_>>(),
            [("bad", 12), ("more of it", 13)]
        );
    }

    #[test]
    fn remote_frames_under_a_carrier_are_the_original() {
        let blocks = run(&[
            "Traceback (most recent call last):",
            "  File \"/driver.py\", line 1, in main",
            "ray.exceptions.RayTaskError(ValueError): ray::W.load() (pid=7, ip=10.0.0.1)",
            "  File \"/w.py\", line 2, in load",
            "    raise ValueError(1)",
            "ValueError: inner",
        ]);
        let kinds: Vec<_> = blocks[0].chain.iter().map(|e| e.kind.as_str()).collect();
        assert_eq!(kinds, ["ValueError", "ray.exceptions.RayTaskError(ValueError)"]);
    }

    #[test]
    fn a_faulthandler_dump_has_its_frames_outermost_first() {
        for head in ["Current thread 0x00007f", "Stack"] {
            let blocks = run(&[
                "Fatal Python error: Segmentation fault",
                "",
                &format!("{head} (most recent call first):"),
                "  File \"/in.py\", line 2 in inner",
                "  File \"/out.py\", line 9 in outer",
                "",
                "Extension modules: a, b",
            ]);
            assert_eq!(blocks[0].shape, Shape::Native);
            let frames = blocks[0].chain[0].frames.iter();
            let functions: Vec<_> = frames.map(|f| f.function.as_str()).collect();
            assert_eq!(functions, ["outer", "inner"], "{head}");
        }
    }

    #[test]
    fn a_torn_block_is_kept_as_torn() {
        let blocks = run(&[
            "Traceback (most recent call last):",
            "  File \"/a.py\", line 1, in f",
            "    x()",
        ]);
        assert!(blocks[0].torn && blocks[0].at_end);
        let head = run(&["Traceback (most recent call last):"]);
        assert!(head[0].torn && head[0].chain.is_empty());
    }

    #[test]
    fn frames_without_their_indentation_are_frames() {
        let blocks = run(&[
            "Traceback (most recent call last):",
            "File \"/a.py\", line 1, in load_model",
            "x()",
            "ValueError: bad",
        ]);
        assert_eq!(blocks[0].chain[0].frames[0].function, "load_model");
        assert!(run(&["File \"<string>\", line 1", "SyntaxError: bad"]).is_empty());
    }

    #[test]
    fn a_hub_error_has_paragraphs_and_still_is_chained() {
        let blocks = run(&[
            "Traceback (most recent call last):",
            "  File \"/a.py\", line 1, in f",
            "hub.GatedRepoError: 401 Client Error. (Request ID: 1)",
            "",
            "Cannot access gated repo for url x.",
            "",
            "The above exception was the direct cause of the following exception:",
            "",
            "Traceback (most recent call last):",
            "  File \"/b.py\", line 2, in g",
            "OSError: gated",
        ]);
        assert_eq!(blocks.len(), 1);
        assert_eq!(blocks[0].chain[0].lines.len(), 2);
        assert_eq!(blocks[0].chain[1].kind, "OSError");
    }

    #[test]
    fn a_notebook_prints_its_own_layout() {
        let blocks = run(&[
            "UnsupportedOperation                      Traceback (most recent call last)",
            "/tmp/ipython-input-1.py in <cell line: 0>()",
            "      1 from vllm import LLM",
            "----> 2 llm = LLM(model='x')",
            "",
            "File /usr/lib/python3/dist-packages/vllm/utils.py:102, in Pipe.suppress(self)",
            "    101 def suppress(self):",
            "--> 102     fd = sys.stdout.fileno()",
            "",
            "UnsupportedOperation: fileno",
        ]);
        assert_eq!((blocks.len(), blocks[0].bare), (1, true));
        let raised = &blocks[0].chain[0];
        assert_eq!(
            (raised.kind.as_str(), raised.lines[0].0.as_str()),
            ("UnsupportedOperation", "fileno")
        );
        let frames: Vec<_> = raised
            .frames
            .iter()
            .map(|f| (f.function.as_str(), f.line, f.code.as_str()))
            .collect();
        assert_eq!(
            frames,
            [
                ("<module>", 0, "llm = LLM(model='x')"),
                ("suppress", 102, "fd = sys.stdout.fileno()")
            ]
        );
        let interrupted = run(&[
            "KeyboardInterrupt                         Traceback (most recent call last)",
            "Cell In[3], line 1",
            "----> 1 main()",
            "",
            "KeyboardInterrupt: ",
        ]);
        assert_eq!(interrupted[0].chain[0].kind, "KeyboardInterrupt");
    }

    #[test]
    fn frames_below_a_cut_keep_their_exception() {
        let blocks = run(&["  File \"/a.py\", line 1, in profile_run", "    x()", "ValueError: bad"]);
        assert_eq!(blocks.len(), 1);
        assert_eq!(blocks[0].chain[0].frames[0].function, "profile_run");
    }
}
