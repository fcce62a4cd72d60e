//! The examination: inputs in, report out.
//!
//! Owns the one-way flow intake → envelope → dialect → launch → verdict → report for one incident, and the state of
//! an examination that is fed as its input arrives.

mod hearing;

use std::collections::BTreeSet;
use std::io::{self, Read};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use crate::assemble::{self, Input};
use crate::catalog::Catalog;
use crate::dialect::reader::{Quiet, Reader};
use crate::envelope::{Peeler, Profile};
use crate::event::InputId;
use crate::intake::{HeldLines, InputSpec, Limits, LineReader, sort_inputs};
use crate::launch::{Launches, Source, relation};
use crate::report::model::{Examined, Finding, Outcome, Report, SkippedReport, UNRELATED};
use crate::territory::{Gates, Walk};
use crate::time::Stamp;
use crate::verdict::{self, replicas};

/// Incidents of equal size that are judged to find the one to examine.
const MAX_JUDGED: usize = 16;
/// Inputs and incidents that a sentence about unrelated inputs names at most.
const MAX_NAMES: usize = 3;
/// The part of the memory for events that one more source gets when the ones before it have used it up.
const LEAST_SHARE: usize = 4096;

/// Which attempt the report is on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum AttemptChoice {
    /// The last one, whatever its outcome.
    #[default]
    Last,
    /// The last one that failed; the last one if none did.
    LastFailed,
    /// The n-th, from 1.
    Number(usize),
}

/// Options of an examination.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Limits on what is read.
    pub limits: Limits,
    /// Which attempt.
    pub attempt: AttemptChoice,
    /// Whether all inputs are taken for one incident, even if they look unrelated.
    pub one_incident: bool,
    /// When the logs were collected, against which silence is measured; the last stamp of any input without it.
    pub now: Option<Stamp>,
    /// Whether every line is read, also where a line can only count (see [`territory`]).
    pub plain: bool,
}

/// Examines all inputs as the logs of one incident. The order in which they are given does not matter.
pub fn examine(catalog: &Catalog, inputs: &[InputSpec], options: &Options) -> Report {
    let mut examiner = Examiner::new(catalog, options.clone());
    let mut inputs = inputs.to_vec();
    sort_inputs(&mut inputs);
    for input in &inputs {
        examiner.read(input);
    }
    examiner.report()
}

/// An examination in progress.
pub struct Examiner<'c> {
    catalog: &'c Catalog,
    gates: Arc<Gates>,
    options: Options,
    /// Shared with the reports that are made of them.
    sources: Vec<Arc<Source>>,
    open: Option<Open<'c>>,
    names: Vec<String>,
    notes: Vec<String>,
    examined: Examined,
    /// The inputs read so far whose last line has no end.
    cut: BTreeSet<InputId>,
    /// Nothing but blank lines was read so far.
    blank: bool,
    /// What the events of the sources read so far take, bytes.
    kept_bytes: usize,
    stop: Option<Arc<AtomicBool>>,
    /// The walk through the open source, where not all of its lines are read.
    walk: Option<Box<Walk>>,
    /// The line behind the last one that was heard.
    next: u64,
    /// What the last line was, if it was quiet, and how much of it is shown.
    quiet: Option<(Quiet, usize)>,
}

#[derive(Clone)]
struct Open<'c> {
    peeler: Peeler,
    reader: Reader<'c>,
}

impl<'c> Examiner<'c> {
    /// An examination of nothing yet.
    pub fn new(catalog: &'c Catalog, options: Options) -> Self {
        Self {
            catalog,
            gates: Gates::with(catalog.added_literals()),
            options,
            sources: Vec::new(),
            open: None,
            names: Vec::new(),
            notes: Vec::new(),
            examined: Examined::default(),
            cut: BTreeSet::new(),
            blank: true,
            kept_bytes: 0,
            stop: None,
            walk: None,
            next: 1,
            quiet: None,
        }
    }

    /// Ends the reading of inputs as soon as this is true: what is known by then is what a report tells.
    pub fn stop_when(&mut self, stop: Arc<AtomicBool>) {
        self.stop = Some(stop);
    }

    /// Notes an input that is left out.
    pub fn skip(&mut self, input: &str, why: &str) {
        self.examined.skipped.push(SkippedReport {
            input: input.to_owned(),
            why: why.to_owned(),
        });
    }

    /// Notes a sentence about the examination for the findings.
    pub fn note(&mut self, sentence: String) {
        // It tells of what was in the input, or is missing of it.
        self.blank = false;
        self.notes.push(sentence);
    }

    /// Reads one input to its end. What cannot be read is noted, never an error: the other inputs still count.
    pub fn read(&mut self, input: &InputSpec) {
        let mut source = match input.open(&self.options.limits) {
            Ok(source) => source,
            Err(error) => {
                self.skip(&input.name, &error.to_string());
                return;
            }
        };
        if let Some(stop) = &self.stop {
            source.stop_when(Arc::clone(stop));
        }
        let ahead = source.ahead().cloned();
        let mut lines = LineReader::new(source, &self.options.limits);
        let profile = Profile::of(lines.sample());
        let reverse = profile.newest_first();
        self.notes.extend(profile.notes());
        self.begin(&input.name, profile);
        if let (Some(walk), Some(ahead)) = (&mut self.walk, &ahead) {
            walk.look_ahead(ahead);
        }
        let failed = if reverse {
            self.feed_reversed(&mut lines)
        } else {
            self.feed(&mut lines)
        };
        // What could not be read may have held anything.
        self.blank &= lines.blank() && failed.is_ok() && lines.get_ref().notes().is_empty();
        if let Err(error) = failed {
            self.skip(&input.name, &format!("{error}; what was read before it is examined"));
        }
        self.examined.bytes += lines.bytes();
        if let Some(why) = lines.get_ref().missed() {
            let rest = if lines.bytes() > 0 {
                "; what was read before it is examined"
            } else {
                ""
            };
            self.skip(&input.name, &format!("{why}{rest}"));
        }
        let told = |note: &&String| Some(note.as_str()) != lines.get_ref().missed();
        let decode_notes: Vec<String> = lines.get_ref().notes().iter().filter(told).cloned().collect();
        self.notes
            .extend(decode_notes.into_iter().map(|note| format!("{}: {note}", input.name)));
        self.end();
    }

    fn feed<R: Read>(&mut self, lines: &mut LineReader<R>) -> io::Result<()> {
        while self.step(lines)? {}
        Ok(())
    }

    fn feed_reversed<R: Read>(&mut self, lines: &mut LineReader<R>) -> io::Result<()> {
        let held = HeldLines::collect(lines, &self.options.limits)?;
        for line in held.iter().rev() {
            self.line(&line);
        }
        Ok(())
    }

    /// Begins a source that is fed line by line.
    pub fn begin(&mut self, name: &str, profile: Profile) {
        self.end();
        let id = InputId(u32::try_from(self.names.len()).unwrap_or(u32::MAX));
        self.names.push(name.to_owned());
        let by_territory = !self.options.plain && profile.line_by_line();
        self.walk = by_territory.then(|| Box::new(Walk::new(Arc::clone(&self.gates))));
        (self.next, self.quiet) = (1, None);
        let newest_first = profile.newest_first();
        self.open = Some(Open {
            peeler: Peeler::new(profile),
            reader: Reader::new(self.catalog, id, self.budget()).newest_first(newest_first),
        });
        self.examined.files += 1;
    }

    /// Adds to the count of bytes of a source that is fed line by line.
    pub fn count_bytes(&mut self, bytes: u64) {
        self.examined.bytes += bytes;
    }

    /// Ends the open source.
    pub fn end(&mut self) {
        let Some(open) = self.open.take() else { return };
        let (name, input) = self.current();
        let source = close(open, name, input);
        self.kept_bytes += source.harvest.bytes;
        self.sources.push(Arc::new(source));
    }

    /// What the events of one more source may take. A little is left for each, however many there are.
    fn budget(&self) -> usize {
        let all = self.options.limits.event_bytes;
        all.saturating_sub(self.kept_bytes).max(all / LEAST_SHARE)
    }

    /// Keeps the inputs of the largest incident, and says which others there are.
    fn leave_out_unrelated(&self, sources: &mut Vec<Arc<Source>>, examined: &mut Examined) -> Option<Finding> {
        // The common case of one input needs no look at all its events.
        if sources.len() < 2 {
            return None;
        }
        let mut groups = relation::groups(self.catalog, sources);
        if groups.len() < 2 {
            return None;
        }
        let which = self.lead(&mut groups, sources);
        let [kept, others @ ..] = groups.as_slice() else {
            return None;
        };
        let launches: Vec<&relation::Group> = others.iter().filter(|g| !g.is_mute()).collect();
        let name = |&at: &usize| sources.get(at).map(|s| s.name.clone());
        for group in others {
            let launch = group
                .launch()
                .map_or_else(String::new, |own| format!(": {}", own.describe()));
            let why = match group.is_mute() {
                true => "tells of no launch".to_owned(),
                false => format!("belongs to another launch than the one examined{launch}"),
            };
            let left = group.members.iter().filter_map(name);
            examined.skipped.extend(left.map(|input| SkippedReport {
                input,
                why: why.clone(),
            }));
        }
        // Names are told without the folder that they are all in.
        let folder = common_folder(sources);
        let short = |at: &usize| sources.get(*at)?.name.get(folder..);
        let told = |group: &relation::Group, most: usize| {
            let names: Vec<&str> = group.members.iter().take(most).filter_map(short).collect();
            let more = beyond(group.members.len(), most, " and");
            let launch = group
                .launch()
                .map_or_else(String::new, |own| format!(" ({})", own.describe()));
            format!("{}{more}{launch}", names.join(", "))
        };
        let left: Vec<String> = launches.iter().take(MAX_NAMES).map(|group| told(group, 1)).collect();
        let finding = (!launches.is_empty()).then(|| Finding {
            id: UNRELATED.to_owned(),
            title: format!(
                "The inputs hold {} unrelated launches, and this report is on one of them, {}. It is {}. Left out: {}{}. \
                 `coroner scan` with the same paths examines each; --one-incident takes all for one",
                launches.len() + 1,
                which,
                told(kept, MAX_NAMES),
                left.join("; "),
                beyond(launches.len(), MAX_NAMES, "; and"),
            ),
            severity: "warning".to_owned(),
            evidence: Vec::new(),
        });
        let mut at = 0;
        sources.retain(|_| {
            at += 1;
            kept.members.binary_search(&(at - 1)).is_ok()
        });
        finding
    }

    /// Puts the group to examine in front, and says which one that is: of equally large ones the last that failed. What
    /// reads like a failure need not be one, so the likeliest are judged.
    fn lead(&self, groups: &mut [relation::Group], sources: &[Arc<Source>]) -> &'static str {
        let largest = groups.first().map_or(0, |g| g.members.len());
        let around = groups.first().is_some_and(relation::Group::is_around);
        let equal = |g: &&relation::Group| !g.is_mute() && g.is_around() == around && g.members.len() == largest;
        let equals = groups.iter().take_while(equal);
        if equals.clone().count() == 1 {
            return "the one with the most files";
        }
        let failed = |group: &relation::Group| {
            let own: Vec<Arc<Source>> = group
                .members
                .iter()
                .filter_map(|&at| sources.get(at).cloned())
                .collect();
            let mut launches = Launches::build(self.catalog, &own);
            let last = launches.attempts.saturating_sub(1);
            verdict::judge(self.catalog, &mut launches, last).outcome == Outcome::Failed
        };
        let at = equals.filter(|g| g.looks_failed()).take(MAX_JUDGED).position(failed);
        if let Some(front) = at.and_then(|at| groups.get_mut(..=at)) {
            front.rotate_right(1);
        }
        match (at.is_some(), groups.first().is_some_and(relation::Group::is_dated)) {
            (true, true) => "the last one that failed",
            (true, false) => "one that failed",
            (false, true) => "the last one",
            (false, false) => "the one with the longest log",
        }
    }

    /// The inputs that were not read or not read to their end.
    pub fn unread(&self) -> &[SkippedReport] {
        &self.examined.skipped
    }

    /// Notes whether the last line read so far of the open source has an end.
    fn note_end(&mut self, ended: bool) {
        if ended && self.cut.is_empty() {
            return;
        }
        let id = InputId(u32::try_from(self.names.len().saturating_sub(1)).unwrap_or(u32::MAX));
        match ended {
            true => _ = self.cut.remove(&id),
            false => _ = self.cut.insert(id),
        }
    }

    fn current(&self) -> (String, InputId) {
        let last = self.names.len().saturating_sub(1);
        (
            self.names.get(last).cloned().unwrap_or_default(),
            InputId(u32::try_from(last).unwrap_or(u32::MAX)),
        )
    }

    /// Whether a root failure stands and the log has shown the end of a process or a last carrier, so that a report
    /// made now would not change by waiting.
    ///
    /// What is still held back for lines to come, such as an unfinished traceback, counts as it is.
    pub fn root_stands(&self) -> bool {
        self.open.as_ref().is_some_and(|open| {
            let Open { mut peeler, mut reader } = open.clone();
            peeler.finish(&mut |record| {
                reader.record(&record);
            });
            reader.root_stands()
        })
    }

    /// The report on what was read so far.
    pub fn report(&self) -> Report {
        self.report_on(self.options.attempt)
    }

    /// The report on another attempt than that of the options.
    pub fn report_on(&self, attempt: AttemptChoice) -> Report {
        let mut sources = self.sources.clone();
        if let Some(open) = &self.open {
            let (name, input) = self.current();
            sources.push(Arc::new(close(open.clone(), name, input)));
        }
        let mut examined = self.examined.clone();
        let unrelated = match self.options.one_incident {
            true => None,
            false => self.leave_out_unrelated(&mut sources, &mut examined),
        };
        for source in &sources {
            examined
                .capped
                .extend(source.harvest.capped.iter().map(|c| format!("{}: {c}", source.name)));
        }
        let mut launches = Launches::build(self.catalog, &sources);
        let mut all: Vec<_> = (0..launches.attempts)
            .map(|n| verdict::judge(self.catalog, &mut launches, n))
            .collect();
        let chosen = match attempt {
            AttemptChoice::Last => None,
            AttemptChoice::LastFailed => all.iter().rposition(|v| v.outcome == Outcome::Failed),
            AttemptChoice::Number(n) => n.checked_sub(1).filter(|n| *n < all.len()),
        };
        let chosen = chosen.unwrap_or(all.len().saturating_sub(1));
        let mut beside = Vec::new();
        if let Some(verdict) = all.get_mut(chosen) {
            beside = replicas::keep_to_root(self.catalog, &mut launches, verdict);
        }
        let input = Input {
            source: self.names.join(" "),
            names: &self.names,
            examined,
            notes: &self.notes,
            now: self.options.now.clone(),
            cut: &self.cut,
            blank: self.blank,
            beside: &beside,
        };
        #[expect(clippy::expect_used, reason = "every launch has at least one attempt")]
        let verdict = all.get(chosen).expect("an attempt");
        let mut report = assemble::assemble(self.catalog, &launches, verdict, &all, input);
        report.findings.splice(0..0, unrelated);
        report
    }
}

/// How many there are beyond the `most` that are named, behind a word that joins them on.
fn beyond(all: usize, most: usize, joint: &str) -> String {
    match all.saturating_sub(most) {
        0 => String::new(),
        more => format!("{joint} {more} more"),
    }
}

/// The length of the folder that the names of all sources begin with, its last slash included.
fn common_folder(sources: &[Arc<Source>]) -> usize {
    let mut names = sources.iter().map(|s| s.name.as_str());
    let first = names.next().unwrap_or("");
    let same = |a: &str, b: &str| a.bytes().zip(b.bytes()).take_while(|(a, b)| a == b).count();
    let shared = names.fold(first.len(), |len, name| len.min(same(first, name)));
    let within = first.as_bytes().get(..shared).unwrap_or_default();
    within.iter().rposition(|b| *b == b'/').map_or(0, |at| at + 1)
}

fn close(open: Open<'_>, name: String, input: InputId) -> Source {
    let Open { mut peeler, mut reader } = open;
    peeler.finish(&mut |record| {
        reader.record(&record);
    });
    Source {
        input,
        name,
        harvest: reader.finish(),
    }
}
