//! How far a scan is, on standard error and only on a terminal.
//!
//! Owns the bar and what is counted for it. Says nothing that the records do not.

use std::io::{self, IsTerminal};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::output::remark;
use crate::batch::walk::{Choice, Found, walk};
use crate::report::model::Outcome;
use crate::report::text::count;

/// Unreadable inputs that are named; the records name all.
const NAMED: u64 = 20;

/// The outcomes, in the order in which they are counted; a narrow terminal cuts the last ones off.
const OUTCOMES: [Outcome; 6] = [
    Outcome::Failed,
    Outcome::Degraded,
    Outcome::Running,
    Outcome::Healthy,
    Outcome::Stopped,
    Outcome::NoLaunch,
];

/// The bar with its counts.
pub struct Progress {
    bar: ProgressBar,
    quiet: bool,
    done: u64,
    total: Arc<AtomicU64>,
    ended: Arc<AtomicBool>,
    outcomes: [(&'static str, u64); OUTCOMES.len()],
    unread: u64,
}

impl Progress {
    /// A bar for a scan of this choice. What there is to do is counted beside it, by a walk of its own.
    pub fn start(choice: &Choice, quiet: bool) -> Self {
        let shown = !quiet && io::stderr().is_terminal();
        let target = match shown {
            true => ProgressDrawTarget::stderr_with_hz(5),
            false => ProgressDrawTarget::hidden(),
        };
        let bar = ProgressBar::with_draw_target(None, target);
        // The templates are constant; were one wrong, the bar would look plain.
        let style = |template| ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());
        bar.set_style(style("{spinner} {bytes} {binary_bytes_per_sec}\n{wide_msg}"));
        let progress = Self {
            bar,
            quiet,
            done: 0,
            total: Arc::default(),
            ended: Arc::default(),
            outcomes: OUTCOMES.map(|outcome| (outcome.id(), 0)),
            unread: 0,
        };
        if shown {
            progress.bar.enable_steady_tick(Duration::from_millis(200));
            let whole =
                style("{bar:24} {percent}% {bytes} of {total_bytes} {binary_bytes_per_sec}, {eta} left\n{wide_msg}");
            progress.count(choice.clone(), whole);
        }
        progress
    }

    fn count(&self, choice: Choice, style: ProgressStyle) {
        let (bar, total, ended) = (self.bar.clone(), Arc::clone(&self.total), Arc::clone(&self.ended));
        thread::spawn(move || {
            let (mut incidents, mut bytes) = (0, 0);
            for found in walk(choice).into_iter().flatten() {
                if ended.load(Ordering::Relaxed) {
                    return;
                }
                incidents += 1;
                bytes += match found {
                    Found::Incident(incident) => incident.bytes,
                    Found::Unreadable { .. } => 0,
                };
            }
            total.store(incidents, Ordering::Relaxed);
            bar.set_length(bytes);
            bar.set_style(style);
        });
    }

    /// An incident of so many bytes is finished.
    pub fn examined(&mut self, bytes: u64) {
        self.done += 1;
        self.bar.inc(bytes);
        self.tell();
    }

    /// A report with this outcome was made.
    pub fn report(&mut self, outcome: &str) {
        if let Some((_, n)) = self.outcomes.iter_mut().find(|(name, _)| *name == outcome) {
            *n += 1;
        }
    }

    /// An input could not be read.
    pub fn unread(&mut self, source: &str, why: &str) {
        self.unread += 1;
        if self.quiet || self.unread > NAMED + 1 {
            return;
        }
        self.bar.suspend(|| match self.unread > NAMED {
            true => remark("further inputs that cannot be read are told by their records"),
            false => remark(&format!("{source}: {why}")),
        });
    }

    fn tell(&self) {
        if self.bar.is_hidden() {
            return;
        }
        self.bar.set_message(self.counts());
    }

    /// How many incidents are done, and what came out.
    fn counts(&self) -> String {
        let mut text = count(self.done);
        match self.total.load(Ordering::Relaxed) {
            0 => {}
            total => text.push_str(&format!(" of {}", count(total))),
        }
        let unread = ("unreadable", self.unread);
        let told = self.outcomes.iter().chain([&unread]).filter(|(_, n)| *n > 0);
        for (n, (name, number)) in told.enumerate() {
            text.push_str(if n == 0 { ": " } else { ", " });
            text.push_str(&format!("{} {name}", count(*number)));
        }
        text
    }

    /// Removes the bar.
    pub fn end(&self) {
        self.ended.store(true, Ordering::Relaxed);
        self.bar.finish_and_clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_outcome_has_its_count() {
        let mut progress = Progress::start(&Choice::default(), true);
        assert_eq!(progress.counts(), "0");
        for (outcome, times) in [("no-launch", 2), ("failed", 1200), ("stopped", 1)] {
            (0..times).for_each(|_| progress.report(outcome));
        }
        (0..1203).for_each(|_| progress.examined(10));
        progress.unread("a", "no");
        progress.total.store(20_000, Ordering::Relaxed);
        assert_eq!(
            progress.counts(),
            "1,203 of 20,000: 1,200 failed, 1 stopped, 2 no-launch, 1 unreadable"
        );
    }
}
