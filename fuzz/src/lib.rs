//! The fuzz targets: functions of any bytes that must neither panic nor say something unsafe.
//!
//! Owns what each target runs and demands. `fuzz_targets/` calls them under libFuzzer, `tests/fuzz.rs` of the package on
//! mutated logs with a stable toolchain.

use std::io::{Cursor, Read};
use std::sync::Arc;

use coroner::catalog::Catalog;
use coroner::dialect::reader::Reader;
use coroner::dialect::traceback::exception_line;
use coroner::dialect::{header, settings};
use coroner::envelope::{Peeler, Profile};
use coroner::event::InputId;
use coroner::intake::{InputSpec, Limits, LineReader, Source};
use coroner::record::Record;
use coroner::redact::{Level, Names, Redactor};
use coroner::report::model::Report;
use coroner::report::{Format, Style, limit, render};
use coroner::{AttemptChoice, Examiner, Options};

/// Limits at which a few kilobytes already reach every cap.
fn small() -> Limits {
    Limits {
        line_bytes: 4096,
        block_bytes: 512,
        sample_bytes: 4096,
        reverse_bytes: 16 << 10,
        text_bytes: 1 << 20,
        growth: 50,
        free_growth_bytes: 64 << 10,
        decoder_bytes: 8 << 20,
        archive_bytes: 64 << 10,
        event_bytes: 64 << 10,
        inputs: 8,
    }
}

fn catalog() -> &'static Catalog {
    Catalog::shared()
}

/// Decompression and lines: all that is read is given out once, within the limits.
pub fn intake(data: &[u8]) {
    let limits = small();
    let Ok(mut source) = Source::new(Cursor::new(data.to_vec()), &limits) else {
        return;
    };
    let mut text = Vec::new();
    source.read_to_end(&mut text).expect("damage is a note and no error");
    assert!(text.len() as u64 <= limits.text_bytes + limits.block_bytes as u64 + (64 << 10));
    let mut lines = LineReader::new(text.as_slice(), &limits);
    lines.sample();
    let (mut count, mut kept) = (0, 0);
    while let Some(line) = lines.next().expect("memory has no errors") {
        count += 1;
        assert_eq!(line.no, count);
        assert!(line.bytes.len() <= limits.line_bytes);
        kept += line.bytes.len() as u64 + line.skipped + u64::from(line.ended);
    }
    // A byte-order mark on the first line is no part of it.
    assert!(lines.bytes() == text.len() as u64 && kept <= lines.bytes() && kept + 3 >= lines.bytes());
}

/// Every envelope: what is peeled is clean text of a line that was given.
pub fn envelope(data: &[u8]) {
    let profile = Profile::of(&data[..data.len().min(4096)]);
    let mut peeler = Peeler::new(profile);
    let last = data.split(|b| *b == b'\n').count() as u64;
    let mut out = |record: Record<'_>| {
        assert!(record.line <= last, "line {} of {last}", record.line);
        let control = |c: char| c.is_control() && c != '\t' && c != '\n' && c != '\r';
        assert!(!record.text.contains(control), "{:?}", record.text);
    };
    for (no, line) in (1..).zip(data.split(|b| *b == b'\n')) {
        peeler.line(no, 0, line, &mut out);
    }
    peeler.finish(&mut out);
}

/// Headers, settings and the reader of one source, on bare lines.
pub fn dialect(data: &[u8]) {
    read(&String::from_utf8_lossy(data));
}

/// Tracebacks, with the lines that make them whole put between what is given.
pub fn traceback(data: &[u8]) {
    const PARTS: [&str; 6] = [
        "Traceback (most recent call last):",
        "  File \"/usr/lib/python3/a.py\", line 7, in f",
        "    x = g(1)",
        "    ^^^^^^^^",
        "ValueError: no",
        "During handling of the above exception, another exception occurred:",
    ];
    let mut text = String::new();
    for line in String::from_utf8_lossy(data).lines() {
        match line.chars().next().and_then(|c| PARTS.get(c as usize % 9)) {
            Some(part) => text.push_str(part),
            None => text.push_str(line),
        }
        text.push('\n');
    }
    read(&text);
}

fn read(text: &str) {
    let mut reader = Reader::new(catalog(), InputId(0), 64 << 10);
    let tag = Arc::default();
    for (line, text) in (1..).zip(text.lines()) {
        let _ = (header::parse(text), settings::parse(text), exception_line(text));
        reader.record(&Record {
            line,
            byte: 0,
            text: text.into(),
            shown: text.into(),
            tag: Arc::clone(&tag),
            stamp: None,
            repeated: 0,
        });
    }
    let _ = reader.clone().root_stands();
    let harvest = reader.finish();
    assert!(harvest.events.is_sorted_by_key(|e| e.place.line));
}

/// Rule files: any text is rules or a sentence on what is wrong.
pub fn rules(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    if let Ok(catalog) = Catalog::from_texts(&[("fuzz.toml", text)]) {
        coroner::catalog::check::check(&catalog);
        let input = InputSpec::memory("a.log", text.as_bytes().to_vec());
        coroner::examine(&catalog, &[input], &Options::default());
    }
}

/// A whole examination of one log, or of several where the byte 1 stands between them, in every format.
pub fn whole(data: &[u8]) {
    let options = Options {
        limits: small(),
        ..Options::default()
    };
    let mut examiner = Examiner::new(catalog(), options);
    for (n, bytes) in data.split(|b| *b == 1).take(4).enumerate() {
        let name = ["node-a.log", "node-b.log", "raylet.out", "dmesg"][n % 4];
        examiner.read(&InputSpec::memory(name, bytes.to_vec()));
    }
    let report = examiner.report();
    examiner.report_on(AttemptChoice::LastFailed);
    let mut redacted = report.clone();
    Redactor::new(Level::All, Vec::new(), Names::default()).apply(&mut redacted);
    for report in [report, redacted] {
        shown(&report);
    }
}

/// What every view of a report owes its reader.
pub fn shown(report: &Report) {
    assert!(report.headline.chars().count() <= 120, "{}", report.headline);
    for format in Format::ALL {
        let page = render(report, *format, &Style::default());
        if let Some(c) = page.chars().find(|c| unsafe_to_show(*c)) {
            panic!("{c:?} in {}:\n{page:?}", format.id());
        }
        if *format == Format::Json {
            serde_json::from_str::<serde_json::Value>(&page).expect("JSON");
        }
        if let Ok(text) = limit::fit(report, *format, &Style::default(), Some(3000)) {
            assert!(text.chars().count() <= 3000, "{}", format.id());
        }
    }
}

/// What moves a cursor, colours, turns the direction of text, or cannot be seen.
pub fn unsafe_to_show(c: char) -> bool {
    c.is_control() && c != '\n' && c != '\t'
        || matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}')
}
