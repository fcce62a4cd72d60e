//! What must change a verdict, and does.

use common::root_process;
use coroner::report::model::{Evidence, Remedy};
use rayon::prelude::*;
use regex::Regex;

use super::*;

/// What the line states, without its header: what every printing of it has in common.
fn statement(line: &str) -> &str {
    let end = line.trim_end();
    let from = end.char_indices().rev().nth(79).map_or(0, |(at, _)| at);
    &end[from..]
}

/// Takes out line after line, as long as the report quotes one that states the same cause.
fn without_the_cause(subject: &Subject) -> Option<Report> {
    let cause = &subject.before.cause.as_ref()?.id;
    let mut inputs = subject.inputs.clone();
    for _ in 0..60 {
        let report = examine_texts(&inputs);
        let root = report.root.as_ref();
        let (Some(root), true) = (root, report.cause.as_ref().is_some_and(|c| c.id == *cause)) else {
            return Some(report);
        };
        let words = statement(&root.place.text).to_owned();
        inputs = inputs
            .iter()
            .map(|t| {
                let here = t.name == root.place.input;
                let lines = t.text().split_inclusive('\n').zip(1_u64..);
                let kept = lines.filter(|(l, no)| !(l.trim_end().ends_with(&words) || here && *no == root.place.line));
                Text::new(t.name.clone(), kept.map(|(l, _)| l).collect::<String>())
            })
            .collect();
    }
    None
}

/// The other process of the same kind that a root's process can change places with.
fn double(report: &Report) -> Option<((String, i64), (String, i64))> {
    let root = report.root.as_ref()?.place.process.clone()?;
    let own = report.processes.iter().find(|p| p.id == root)?;
    let label = |id: &str| id.split(" pid=").next().unwrap_or_default().to_owned();
    let shape = |id: &str| label(id).trim_end_matches(|c: char| c.is_ascii_digit()).to_owned();
    let other = report.processes.iter().find(|p| {
        p.id != own.id
            && p.pid.is_some()
            && p.node == own.node
            && shape(&p.id) == shape(&own.id)
            && label(&p.id) != label(&own.id)
    })?;
    Some(((label(&own.id), own.pid?), (label(&other.id), other.pid?)))
}

/// Below this confidence a verdict says that it may be another cause.
const WEAK: f64 = 0.7;

fn strong(report: &Report) -> bool {
    let cause = report.cause.as_ref();
    cause.is_some_and(|c| Catalog::shared().strength(&c.id) == Strength::Strong)
}

fn confidence(report: &Report) -> f64 {
    report.cause.as_ref().map_or(0.0, |c| c.confidence)
}

/// A change, what became of the verdict, and whether that is what had to.
type Row = (&'static str, Report, bool);

/// Without what states the cause there is no strong cause.
fn cause_removed(subject: &Subject) -> Row {
    let name = "all that states the cause removed";
    match without_the_cause(subject) {
        Some(after) => {
            let good = !strong(&after) || confidence(&after) < WEAK;
            (name, after, good)
        }
        None => (name, subject.before.clone(), false),
    }
}

/// Without the victim's own lines the cause is less certain; with its name exchanged for another's, that one is the root.
fn victim_changed(subject: &Subject) -> Vec<Row> {
    let Some(((label, pid), (other, new))) = double(&subject.before) else {
        return Vec::new();
    };
    let mine = format!("({label} pid={pid})");
    if !subject.inputs.iter().any(|t| t.text().contains(&mine)) {
        return Vec::new();
    }
    let rest: Vec<Text> = subject.inputs.iter().map(|t| t.keep(|l| !l.contains(&mine))).collect();
    let removed = examine_texts(&rest);
    let lower = match subject.fate(&removed) {
        Fate::Unchanged => confidence(&removed) < confidence(&subject.before),
        fate => fate == Fate::Weakened,
    };
    let theirs = format!("({other} pid={new})");
    let swap = |text: &str| {
        let text = text.replace(&mine, "\u{1}").replace(&theirs, "\u{2}");
        text.replace('\u{1}', &theirs).replace('\u{2}', &mine)
    };
    let swapped = subject.inputs.iter().map(|t| Text::new(t.name.clone(), swap(t.text())));
    let swapped = examine_texts(&swapped.collect::<Vec<_>>());
    let follows = strong(&swapped) && root_process(&swapped).pid == Some(new);
    vec![
        ("the victim's own lines removed", removed, lower),
        ("another process made the victim", swapped, follows),
    ]
}

/// Puts what another process says in consequence a minute before the root, where its new time belongs.
fn consequence_first(subject: &Subject) -> Option<Row> {
    let clock = Regex::new(r"\d\d:\d\d:\d\d").unwrap();
    let before = &subject.before;
    let root = before.root.as_ref()?;
    let time = clock.find(root.place.time_local.as_deref()?)?.as_str();
    let (hour, rest) = time.split_once(':')?;
    let (minute, second) = rest.split_once(':')?;
    let minute = minute.parse::<u32>().ok()?.checked_sub(1)?;
    let earlier = format!("{hour}:{minute:02}:{second}");
    let stamped = |e: &&Evidence| {
        e.role == "consequence" && e.place.process != root.place.process && clock.is_match(&e.place.text)
    };
    let moved = before.evidence.iter().find(stamped)?;
    let one = |text: &Text| {
        let mut lines: Vec<String> = text.text().split_inclusive('\n').map(str::to_owned).collect();
        if text.name == moved.place.input {
            let line = lines.remove(moved.place.line as usize - 1);
            let line = clock.replace(&line, earlier.as_str()).into_owned();
            let later = |l: &String| clock.find(l).is_some_and(|m| m.as_str() > earlier.as_str());
            let at = lines.iter().position(later).unwrap_or(lines.len());
            lines.insert(at, line);
        }
        Text::new(text.name.clone(), lines.concat())
    };
    let after = examine_texts(&subject.inputs.iter().map(one).collect::<Vec<_>>());
    let same = after.root.as_ref().is_some_and(|r| r.place.text == root.place.text);
    let good = !same || confidence(&after) < confidence(before);
    Some(("a consequence before the root", after, good))
}

/// Replaces one figure of the log that a remedy's sum uses.
fn figure_replaced(subject: &Subject) -> Option<Row> {
    let sum = |remedy: &Remedy| remedy.arithmetic.clone().unwrap_or_default();
    let remedies = &subject.before.remedies;
    let (remedy, used) = remedies.iter().find_map(|remedy| {
        let measured = subject.before.measurements.iter().rev();
        let words = sum(remedy);
        let mut used = measured.filter(|m| {
            m.printed.contains('.')
                && words
                    .split(' ')
                    .any(|w| w.contains('.') && m.printed.split(' ').next() == Some(w))
        });
        used.find(|m| m.name.ends_with("_gib")).map(|used| (remedy, used))
    })?;
    let printed = used.printed.split(' ').next()?;
    // A little more of it, so that the sum still has a solution.
    let more = format!("{:.2}", printed.parse::<f64>().ok()? * 1.02 + 0.02);
    let inputs = subject.inputs.iter();
    let replaced = inputs.map(|t| Text::new(t.name.clone(), t.text().replace(printed, &more)));
    let after = examine_texts(&replaced.collect::<Vec<_>>());
    let follows = after
        .remedies
        .iter()
        .any(|r| r.id == remedy.id && sum(r).split(' ').any(|word| word == more) && sum(r) != sum(remedy));
    Some(("a figure replaced", after, follows))
}

/// Drops the log of each node that only one file speaks for.
fn node_dropped(subject: &Subject) -> Vec<Row> {
    let ranked = |node: &str| {
        let mut all = subject.before.processes.iter();
        all.any(|p| p.node.as_deref() == Some(node) && p.rank.is_some())
    };
    let nodes = subject.inputs.iter().enumerate().filter(|(_, text)| {
        let stem = Path::new(&text.name).file_stem().unwrap().to_string_lossy();
        stem.starts_with("node-") && ranked(&stem)
    });
    nodes
        .map(|(dropped, _)| {
            let mut inputs = subject.inputs.clone();
            inputs.remove(dropped);
            let after = examine_texts(&inputs);
            let named = !after.log.missing.is_empty() && after.log.missing != subject.before.log.missing;
            ("one node's file dropped", after, named)
        })
        .collect()
}

#[test]
fn what_must_change_a_verdict_changes_it() {
    let rows = |subject: &Subject| -> Vec<(String, Row)> {
        let mut rows = vec![cause_removed(subject)];
        rows.extend(victim_changed(subject));
        rows.extend(consequence_first(subject));
        rows.extend(figure_replaced(subject));
        rows.extend(node_dropped(subject));
        let before = |row| (format!("{} · {}", subject.id, told(&subject.before)), row);
        rows.into_iter().map(before).collect()
    };
    let subjects: Vec<Subject> = subjects().into_iter().filter(|s| strong(&s.before)).collect();
    let all: Vec<_> = subjects.par_iter().flat_map(rows).collect();
    let mut table = Table::default();
    let mut faults = Vec::new();
    for (before, (name, after, good)) in all {
        table.add(name, if good { Fate::Unchanged } else { Fate::Changed });
        if !good {
            faults.push(format!(
                "{before} · {name}: {} {:.2} {:?}",
                told(&after),
                confidence(&after),
                after.log.missing
            ));
        }
    }
    let wrong = table.print("change", ["as it must", "", "not"]);
    println!("{}", faults.join("\n"));
    assert!(
        wrong < 0.1,
        "{:.1} % do not change as they must:\n{}",
        100.0 * wrong,
        faults.join("\n")
    );
}
