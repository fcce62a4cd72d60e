//! What a line does to an open block: frame, exception line, message, chain or end.
//!
//! Owns the states of one block and the limits on what is kept of it. Never knows of other blocks.

use super::lines::{
    bare_kind, exception_line, frame_line, is_exception_type, is_group_rule, is_marker, native_frame, notebook_code,
    notebook_frame,
};
use super::message::{Known, in_build, is_over, is_whole};
use super::{Line, Open, RawException, RawFrame, Shape, Site, State};

/// Frames kept of one exception; deeper stacks keep the outermost and the innermost half.
const MAX_FRAMES: usize = 256;
/// Lines kept of one exception's message.
const MAX_MESSAGE_LINES: usize = 96;
/// Bytes kept of one exception's message.
const MAX_MESSAGE_BYTES: usize = 16 * 1024;
/// Exceptions kept of one chain.
const MAX_CHAIN: usize = 32;

pub(super) enum Step {
    Kept,
    /// It is for others, and the block goes on below it.
    Passed,
    Done,
}

pub(super) fn step<P: Clone>(open: &mut Open<P>, text: &str, line: Line<'_>, place: Site<'_, P>, known: Known) -> Step {
    if open.block.shape == Shape::Native {
        return step_native(open, text, line);
    }
    if let Some(frame) = frame_line(text) {
        match open.state {
            // Ray prints the remote frames right below the carrier's own exception line, without a new `Traceback`.
            State::Message | State::Between => {
                push_current(open);
                open.nested = true;
                open.state = State::Frames;
            }
            State::Frames => {}
        }
        push_frame(open, frame);
        open.flat = !text.starts_with(' ');
        open.block.last_line = line.no;
        return Step::Kept;
    }
    match open.state {
        State::Frames if open.notebook.is_some() => step_notebook(open, text, line, place),
        State::Frames => step_frames(open, text, line, place),
        State::Message => step_message(open, text, line, place, known),
        State::Between => {
            if text.trim().is_empty() {
                return Step::Kept;
            }
            // A separator without a traceback below: the chained exception stands alone.
            if exception_line(text).is_some() {
                push_current(open);
                return step_frames(open, text, line, place);
            }
            Step::Done
        }
    }
}

pub(super) fn step_frames<P: Clone>(open: &mut Open<P>, text: &str, line: Line<'_>, place: Site<'_, P>) -> Step {
    let below_flat = open.flat && open.current.frames.last().is_some_and(|f| f.code.is_empty());
    let code = below_flat && !text.trim().is_empty() && exception_line(text).is_none();
    let indented = code || text.starts_with("    ") || text.starts_with('\t');
    if indented || text.trim_start().starts_with("[Previous line repeated") {
        if let Some(last) = open.current.frames.last_mut()
            && last.code.is_empty()
            && !is_marker(text)
        {
            last.code = text.trim().chars().take(200).collect();
        }
        open.block.last_line = line.no;
        return Step::Kept;
    }
    if let Some((kind, message)) = exception_line(text).or_else(|| bare_kind(text)) {
        raise(open, kind, message, line, place);
        return Step::Kept;
    }
    if text.trim().is_empty() || is_marker(text) || text.starts_with("  ") {
        return Step::Kept;
    }
    // Something else between the frames: another process, or the end is missing. Raw blocks wait for their own lines.
    if open.current.frames.is_empty() || line.logged && open.opened_by_log {
        return Step::Done;
    }
    open.bytes += 1;
    if open.bytes > 200 { Step::Done } else { Step::Passed }
}

/// Between the header and the exception line of a notebook stand paths and numbered lines of code.
fn step_notebook<P: Clone>(open: &mut Open<P>, text: &str, line: Line<'_>, place: Site<'_, P>) -> Step {
    let named = |kind: &str| {
        let last = kind.rsplit('.').next();
        open.notebook.as_deref().and_then(|named| named.rsplit('.').next()) == last
    };
    let alone = (text.trim_end(), "");
    let raised = exception_line(text).or_else(|| is_exception_type(alone.0).then_some(alone));
    if let Some((kind, message)) = raised.filter(|(kind, _)| named(kind)) {
        raise(open, kind, message, line, place);
    } else if let Some(frame) = notebook_frame(text) {
        push_frame(open, frame);
    } else if let Some(code) = notebook_code(text) {
        if let Some(last) = open.current.frames.last_mut() {
            last.code = code.chars().take(200).collect();
        }
    } else if !text.trim().is_empty() && !text.starts_with([' ', '\t']) {
        return Step::Done;
    }
    open.block.last_line = line.no;
    Step::Kept
}

/// The exception line, behind which its message may go on.
fn raise<P: Clone>(open: &mut Open<P>, kind: &str, message: &str, line: Line<'_>, place: Site<'_, P>) {
    open.current.kind = kind.to_owned();
    open.current.lines.push((message.to_owned(), place()));
    open.bytes = message.len();
    open.state = State::Message;
    open.whole = is_whole(kind, message, line.message);
    open.after_blank = false;
    open.block.last_line = line.no;
}

pub(super) fn step_message<P: Clone>(
    open: &mut Open<P>,
    text: &str,
    line: Line<'_>,
    place: Site<'_, P>,
    known: Known,
) -> Step {
    let trimmed = text.trim();
    if trimmed.starts_with("The above exception was the direct cause of")
        || trimmed.starts_with("During handling of the above exception")
    {
        open.state = State::Between;
        open.block.last_line = line.no;
        return Step::Kept;
    }
    if is_group_rule(trimmed) {
        open.nested = true;
        open.block.last_line = line.no;
        return Step::Kept;
    }
    if trimmed.is_empty() {
        open.after_blank = true;
        return Step::Kept;
    }
    let over = is_over(
        &open.current.lines,
        text,
        line.logged && open.block.logged,
        known,
        open.after_blank,
    );
    if open.whole || over || open.current.lines.len() >= MAX_MESSAGE_LINES {
        return Step::Done;
    }
    // A carrier's header line (`ray::Worker.load() (pid=…)`) is followed by remote frames: wait for them.
    if open.bytes + text.len() <= MAX_MESSAGE_BYTES {
        open.bytes += text.len() + 1;
        open.current.lines.push((text.trim_end().to_owned(), place()));
        // A blank line of a build's parts the next line only.
        open.after_blank &= !in_build(&open.current.lines);
    } else {
        open.block.cut += 1;
    }
    open.block.last_line = line.no;
    Step::Kept
}

pub(super) fn step_native<P>(open: &mut Open<P>, text: &str, line: Line<'_>) -> Step {
    if text.trim().is_empty() {
        // A blank line parts two threads; what follows decides.
        return Step::Kept;
    }
    match native_frame(text) {
        Some(frame) => {
            push_frame(open, frame);
            open.block.last_line = line.no;
            Step::Kept
        }
        None => Step::Done,
    }
}

pub(super) fn push_current<P: Clone>(open: &mut Open<P>) {
    let done = std::mem::replace(&mut open.current, empty());
    open.bytes = 0;
    open.after_blank = false;
    if done.kind.is_empty() && done.frames.is_empty() {
        return;
    }
    if open.block.chain.len() >= MAX_CHAIN {
        open.block.cut += 1;
        return;
    }
    // What is nested in an exception is older than it: it goes in front of its carrier.
    if std::mem::take(&mut open.nested) && !open.block.chain.is_empty() {
        let at = open.block.chain.len() - 1;
        open.block.chain.insert(at, done);
    } else {
        open.block.chain.push(done);
    }
}

pub(super) fn push_frame<P>(open: &mut Open<P>, frame: RawFrame) {
    let frames = &mut open.current.frames;
    if frames.len() >= MAX_FRAMES {
        frames.remove(MAX_FRAMES / 2);
        open.block.cut += 1;
    }
    frames.push(frame);
}

pub(super) fn empty<P>() -> RawException<P> {
    RawException {
        kind: String::new(),
        lines: Vec::new(),
        frames: Vec::new(),
    }
}
