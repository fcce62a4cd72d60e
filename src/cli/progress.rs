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

/// Unreadable inputs that are named; the records name all.
const NAMED: u64 = 20;

/// The bar with its counts.
pub struct Progress {
    bar: ProgressBar,
    quiet: bool,
    done: u64,
    total: Arc<AtomicU64>,
    ended: Arc<AtomicBool>,
    failed: u64,
    healthy: u64,
    other: u64,
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
        bar.set_style(style("{spinner} {bytes} {binary_bytes_per_sec} {wide_msg}"));
        let progress = Self {
            bar,
            quiet,
            done: 0,
            total: Arc::default(),
            ended: Arc::default(),
            failed: 0,
            healthy: 0,
            other: 0,
            unread: 0,
        };
        if shown {
            progress.bar.enable_steady_tick(Duration::from_millis(200));
            let whole =
                style("{bar:24} {percent}% {bytes} of {total_bytes} {binary_bytes_per_sec}, {eta} left {wide_msg}");
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
        match outcome {
            "failed" => self.failed += 1,
            "healthy" | "stopped" => self.healthy += 1,
            _ => self.other += 1,
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
        let of = match self.total.load(Ordering::Relaxed) {
            0 => String::new(),
            total => format!(" of {total}"),
        };
        let (done, failed, healthy) = (self.done, self.failed, self.healthy);
        let (other, unread) = (self.other, self.unread);
        self.bar.set_message(format!(
            "{done}{of}: {failed} failed, {healthy} healthy, {other} other, {unread} unreadable"
        ));
    }

    /// Removes the bar.
    pub fn end(&self) {
        self.ended.store(true, Ordering::Relaxed);
        self.bar.finish_and_clear();
    }
}
