//! One examination, from the paths to the exit status.
//!
//! Owns the order of things: discover, read, report, and when to report again. Never judges.

use std::io::{self, IsTerminal, Read};
use std::mem::ManuallyDrop;
use std::time::Duration;

use indicatif::ProgressBar;

use super::args::{Attempt, Color, Examine, Looks};
use super::error::CliError;
use super::exit::{CLEAN, FAILED, FailOn, NO_REPORT, UNKNOWN};
use super::output::{Output, complain, remark, rendered};
use super::pipe::{Listener, Patience, Pause, Pipe, Signals, Wanted};
use super::targets::{Target, targets};
use crate::envelope::Profile;
use crate::examine::{AttemptChoice, Examiner, Options};
use crate::intake::{HeldLines, InputSpec, Limits, LineReader, STDIN, SkipKind, Skipped, discover, is_tar, is_zip};
use crate::redact::Redactor;
use crate::report::model::{Finding, Outcome, Report, UNRELATED};
use crate::report::{Format, Style, attempt_in_words};

/// How long after the first signal the end of the input is waited for.
const GRACE: Duration = Duration::from_secs(10);

/// What is said where standard input is a terminal: nothing will come unless it is typed.
const AT_TERMINAL: &str = "\
no log is given, so it is read from this terminal: paste it and press Ctrl-D, or end with Ctrl-C and give
  a file, a folder or an archive   coroner serve.log
  the output of the launch         vllm serve MODEL 2>&1 | tee -i launch.log | coroner
coroner --help has more";

/// Examines, reports and returns the status.
pub fn run(args: &Examine, looks: &Looks) -> Result<u8, CliError> {
    let limits = args.memory.limits();
    let found = discover(&args.paths, &limits);
    let missed: Vec<&Skipped> = found
        .skipped
        .iter()
        .filter(|s| s.kind == SkipKind::Unreadable)
        .collect();
    if found.inputs.is_empty() {
        let skipped = found.skipped.iter().map(|s| (s.input.as_str(), s.why.as_str()));
        return Err(CliError::nothing_readable(skipped));
    }
    let targets = targets(args, &found)?;
    // What is asked for wrongly is told before a launch depends on its pipe being read.
    // The program ends with the catalog: taking it apart takes longer than most logs take to read.
    let catalog = &ManuallyDrop::new(args.judging.rules.load()?);
    let failed = [Outcome::Failed.id().to_owned()];
    let chosen = args.judging.fail_on.as_deref().unwrap_or(&failed);
    let fail_on = FailOn::new(chosen, catalog).map_err(|word| CliError::FailOn { word })?;
    let redactor = args.redact.redactor()?;
    // Files are examined first: standard input may be reported on while it is still open, and they belong into that
    // report. But it is read from the very start, so that it passes through without delay.
    let (stdin, files): (Vec<_>, Vec<_>) = found.inputs.iter().partition(|input| input.is_stdin());
    let (signals, pipe) = match stdin.is_empty() {
        true => (Signals::watch(Wanted::Report).map_err(CliError::Signals)?, None),
        false => {
            let signals = pipe_signals(args)?;
            (signals.clone(), Some(pipe(args, signals, &limits)))
        }
    };
    missed.iter().for_each(|s| warn(&s.input, &s.why));
    let options = Options {
        plain: false,
        one_incident: args.one_incident,
        now: args.now.clone(),
        limits,
        attempt: match args.attempt {
            Some(Attempt::One(choice)) => choice,
            Some(Attempt::All) | None => AttemptChoice::Last,
        },
    };
    let mut session = Session {
        args,
        looks,
        fail_on,
        limits,
        examiner: Examiner::new(catalog, options),
        told: found.skipped.len(),
        unreadable: !missed.is_empty(),
        counted: 0,
        output: if args.pipe.pass_through {
            Output::Stderr
        } else {
            Output::Stdout
        },
        targets,
        published: Vec::new(),
        redactor,
    };
    found
        .skipped
        .iter()
        .for_each(|s| session.examiner.skip(&s.input, &s.why));
    session.examiner.stop_when(signals.stop());
    session.files(&files);
    match pipe {
        Some(pipe) => session.stdin(pipe),
        None => session.publish(signals.stopped().then_some(Pause::Interrupted)),
    }
}

/// What signals mean while standard input is read.
fn pipe_signals(args: &Examine) -> Result<Signals, CliError> {
    if io::stdin().is_terminal() {
        remark(match args.paths.is_empty() {
            true => AT_TERMINAL,
            false => "reading standard input; Ctrl-D ends it",
        });
        Ok(Signals::default())
    } else {
        Signals::watch(Wanted::End).map_err(CliError::Signals)
    }
}

/// Starts to read standard input.
fn pipe(args: &Examine, signals: Signals, limits: &Limits) -> Pipe {
    let patience = Patience {
        settle: args.pipe.settle,
        grace: GRACE,
    };
    let copy = args.pipe.pass_through.then(io::stdout);
    Pipe::stdin(copy, patience, signals, limits)
}

/// An examination with what was already said of it.
struct Session<'a> {
    args: &'a Examine,
    looks: &'a Looks,
    fail_on: FailOn,
    limits: Limits,
    examiner: Examiner<'a>,
    /// Skipped inputs that were already warned of.
    told: usize,
    unreadable: bool,
    /// Bytes of standard input that are counted in the examination.
    counted: u64,
    output: Output,
    targets: Vec<Target<'a>>,
    /// The verdicts printed last.
    published: Vec<Verdict>,
    /// Used for every report, so that pseudonyms stay the same.
    redactor: Redactor,
}

/// What makes a report worth printing again when it changes.
#[derive(PartialEq, Eq)]
struct Verdict {
    outcome: Outcome,
    phase: Option<String>,
    cause: Option<String>,
    root: Option<(String, u64)>,
}

impl Verdict {
    fn of(report: &Report) -> Self {
        Self {
            outcome: report.outcome,
            phase: report.phase.clone(),
            cause: report.cause.as_ref().map(|c| c.id.clone()),
            root: report.root.as_ref().map(|r| (r.place.input.clone(), r.place.line)),
        }
    }
}

impl Session<'_> {
    fn files(&mut self, files: &[&InputSpec]) {
        // Shown on a terminal only.
        let progress = ProgressBar::new_spinner();
        progress.enable_steady_tick(Duration::from_millis(200));
        for (n, input) in files.iter().enumerate() {
            progress.set_message(format!("{} of {}: {}", n + 1, files.len(), input.name));
            self.examiner.read(input);
        }
        progress.finish_and_clear();
    }

    fn stdin(&mut self, mut pipe: Pipe) -> Result<u8, CliError> {
        let sample = pipe.sample();
        let archive = if is_zip(sample) {
            Some(("ZIP", "zip"))
        } else {
            is_tar(sample).then_some(("tar", "tar.gz"))
        };
        if let Some((kind, ending)) = archive {
            return Err(CliError::ArchiveInPipe { kind, ending });
        }
        let profile = Profile::of(sample);
        let newest_first = profile.newest_first();
        profile.notes().into_iter().for_each(|note| self.examiner.note(note));
        self.examiner.begin(STDIN, profile);
        if newest_first {
            let mut held = Held {
                lines: HeldLines::default(),
                limits: self.limits,
            };
            let pause = pipe.read(&mut held);
            let notes = pipe.finish(&mut held);
            held.lines.iter().rev().for_each(|line| self.examiner.line(&line));
            return self.end(&pipe, notes, pause);
        }
        loop {
            let pause = pipe.read(&mut self.examiner);
            if pause == Pause::Settled && self.args.pipe.keep_reading {
                self.count(&pipe);
                self.publish(Some(pause))?;
            } else {
                let notes = pipe.finish(&mut self.examiner);
                return self.end(&pipe, notes, pause);
            }
        }
    }

    fn end(&mut self, pipe: &Pipe, notes: Vec<String>, pause: Pause) -> Result<u8, CliError> {
        self.count(pipe);
        notes
            .into_iter()
            .for_each(|note| self.examiner.note(format!("{STDIN}: {note}")));
        self.examiner.end();
        self.publish(Some(pause))
    }

    fn count(&mut self, pipe: &Pipe) {
        self.examiner.count_bytes(pipe.bytes() - self.counted);
        self.counted = pipe.bytes();
    }

    /// Prints the reports, unless they would say what was printed before, and gives the status.
    fn publish(&mut self, pause: Option<Pause>) -> Result<u8, CliError> {
        let mut reports = self.reports()?;
        let unread = self.examiner.unread();
        for s in unread.iter().skip(self.told) {
            self.unreadable = true;
            warn(&s.input, &s.why);
        }
        self.told = unread.len();
        let unrelated = reports
            .first()
            .and_then(|r| r.findings.iter().find(|f| f.id == UNRELATED));
        if let Some(finding) = unrelated.filter(|_| self.published.is_empty()) {
            // The report names them; here its first sentence is enough.
            let first = finding.title.split(". ").next().unwrap_or(&finding.title);
            remark(&format!("{first}; `coroner scan` examines each"));
        }
        for report in &mut reports {
            let examined = &report.examined;
            if examined.files == 0 || examined.bytes == 0 && !examined.skipped.is_empty() {
                let skipped = report
                    .examined
                    .skipped
                    .iter()
                    .map(|s| (s.input.as_str(), s.why.as_str()));
                return Err(CliError::nothing_readable(skipped));
            }
            report.source = self.source();
            report.findings.extend(pause.and_then(|p| self.finding(p)));
        }
        for report in &mut reports {
            self.redactor.apply(report);
        }
        let verdicts: Vec<Verdict> = reports.iter().map(Verdict::of).collect();
        if verdicts != self.published {
            let written = self.write(&reports);
            let kept = self.args.redact.keep(self.redactor.names());
            written.and(kept)?;
            self.published = verdicts;
        }
        Ok(self.status(&reports))
    }

    /// Writes every form that is asked for; files first, so that they stand when the output says so. One that cannot
    /// be written keeps no other from it.
    fn write(&self, reports: &[Report]) -> Result<(), CliError> {
        let style = self.output.style(self.looks, self.args.explain_confidence);
        let plain = Style {
            color: self.looks.color == Color::Always,
            width: Style::default().width,
            ..style.clone()
        };
        let mut faults = Vec::new();
        for target in &self.targets {
            let text = self.rendered(reports, target.format, &plain);
            faults.extend(text.and_then(|text| target.write(&text)).err());
        }
        for form in self.args.format.iter().filter(|form| form.file.is_none()) {
            let text = self.rendered(reports, form.format, &style);
            faults.extend(text.and_then(|text| self.output.write(&text)).err());
        }
        // The last is told by whoever ends the program.
        let last = faults.pop();
        faults.into_iter().for_each(complain);
        last.map_or(Ok(()), Err)
    }

    fn rendered(&self, reports: &[Report], format: Format, style: &Style) -> Result<String, CliError> {
        let text = |max| rendered(reports, format, style, max).map(|text| self.looks.report(text, format));
        let whole = text(self.args.max_chars);
        // What ASCII writes longer is left out elsewhere.
        let longer = |told: &String| Some(told.chars().count().saturating_sub(self.args.max_chars?)).filter(|n| *n > 0);
        let whole = match whole.as_ref().ok().and_then(longer) {
            Some(more) => text(self.args.max_chars.map(|max| max.saturating_sub(more))),
            None => whole,
        };
        whole.map_err(|few| CliError::MaxChars {
            asked: self.args.max_chars.unwrap_or_default(),
            format: format.id(),
            least: few.least,
            help: match format {
                Format::Html => "the style of the page takes most of it; markdown and the other texts take 80",
                Format::Json => "an object has all its fields, also where they are empty; the texts for people take 80",
                _ => "give it as much, or leave the option out",
            },
        })
    }

    /// The paths as given; in which order makes no difference.
    fn source(&self) -> String {
        let mut paths: Vec<_> = self.args.paths.iter().map(|p| p.to_string_lossy()).collect();
        paths.sort();
        if paths.is_empty() {
            STDIN.to_owned()
        } else {
            paths.join(" ")
        }
    }

    fn reports(&self) -> Result<Vec<Report>, CliError> {
        let report = self.examiner.report();
        let found = report.attempts.len();
        match self.args.attempt {
            Some(Attempt::One(AttemptChoice::Number(asked))) if asked > found.max(1) => {
                let list: Vec<String> = report.attempts.iter().map(|a| attempt_in_words(&report, a)).collect();
                let list = list.join("\n");
                Err(CliError::Attempt { asked, found, list })
            }
            Some(Attempt::All) if found > 1 => Ok((1..=found)
                .map(|n| self.examiner.report_on(AttemptChoice::Number(n)))
                .collect()),
            _ => Ok(vec![report]),
        }
    }

    fn status(&self, reports: &[Report]) -> u8 {
        if self.args.strict && self.unreadable {
            return NO_REPORT;
        }
        if self.args.exit_zero {
            return CLEAN;
        }
        let statuses: Vec<u8> = reports.iter().map(|r| self.fail_on.status(r)).collect();
        [FAILED, UNKNOWN]
            .into_iter()
            .find(|s| statuses.contains(s))
            .unwrap_or(CLEAN)
    }

    /// What a report has to say about an input that has not ended.
    fn finding(&self, pause: Pause) -> Option<Finding> {
        let (id, title) = match pause {
            Pause::End => return None,
            Pause::Settled => (
                "input.open",
                format!(
                    "The input is still open; this report is made because nothing came for {:?} after the failure",
                    self.args.pipe.settle
                ),
            ),
            Pause::Interrupted => (
                "input.interrupted",
                "Reading was interrupted before the input ended".to_owned(),
            ),
        };
        Some(Finding {
            id: id.to_owned(),
            title,
            severity: "info".to_owned(),
            evidence: Vec::new(),
        })
    }
}

fn warn(input: &str, why: &str) {
    remark(&format!("{input}: {why}"));
}

impl Listener for Examiner<'_> {
    fn step<R: Read>(&mut self, lines: &mut LineReader<R>) -> io::Result<bool> {
        Examiner::step(self, lines)
    }

    fn failure_stands<R: Read>(&mut self, lines: &mut LineReader<R>) -> bool {
        // Whatever keeps the rest from being read will be met again.
        let _ = self.catch_up(lines);
        self.root_stands()
    }
}

/// Keeps the lines of a newest-first source until its end.
struct Held {
    lines: HeldLines,
    limits: Limits,
}

impl Listener for Held {
    fn step<R: Read>(&mut self, lines: &mut LineReader<R>) -> io::Result<bool> {
        let line = lines.next()?;
        if let Some(line) = &line {
            self.lines.push(line, &self.limits);
        }
        Ok(line.is_some())
    }

    fn failure_stands<R: Read>(&mut self, _: &mut LineReader<R>) -> bool {
        false
    }
}
