//! The open source of an examination, line by line.
//!
//! Owns the way of a line from its reader through the envelope to the dialect, and what is answered to the walk that
//! chooses the lines. Never opens a source.

use std::io::{self, Read};

use super::{Examiner, Open};
use crate::dialect::reader::{Quiet, Said};
use crate::intake::{Line, LineReader};
use crate::territory::{Heard, Listener, Voice};

impl Examiner<'_> {
    /// Goes one step through the open source: hears a line of it, or passes over such as need not be heard. `false` at
    /// its end. After `WouldBlock` it can be asked again.
    ///
    /// # Errors
    /// What the reader below answers.
    pub fn step<R: Read>(&mut self, lines: &mut LineReader<R>) -> io::Result<bool> {
        if let Some(mut walk) = self.walk.take() {
            let went = walk.step(lines, self);
            self.walk = Some(walk);
            return went;
        }
        let line = lines.next()?;
        if let Some(line) = &line {
            self.line(line);
        }
        Ok(line.is_some())
    }

    /// Hears what would be heard if the source ended here: more may never come.
    ///
    /// # Errors
    /// What the reader below answers.
    pub fn catch_up<R: Read>(&mut self, lines: &mut LineReader<R>) -> io::Result<()> {
        let Some(mut walk) = self.walk.take() else {
            return Ok(());
        };
        let went = walk.catch_up(lines, self);
        self.walk = Some(walk);
        went
    }

    /// Feeds one line of the open source.
    pub fn line(&mut self, line: &Line<'_>) {
        self.hear(line);
    }

    /// Feeds one line, and says which record of it was quiet, if that is all of the line, and how much is shown of it.
    fn hear(&mut self, line: &Line<'_>) -> Option<(Quiet, usize)> {
        let open = self.open.as_mut()?;
        let Open { peeler, reader } = open;
        self.blank = self.blank && line.skipped == 0 && line.bytes.trim_ascii().is_empty();
        let mut records = 0;
        let mut quiet = None;
        peeler.line(line.no, line.byte, line.bytes, &mut |record| {
            let said = reader.record(&record);
            records += 1;
            let shown = record.shown.as_bytes();
            let bare = records == 1 && record.line == line.no && line.bytes.ends_with(shown);
            quiet = said.filter(|_| bare).map(|said| (said, shown.len()));
        });
        self.examined.lines += 1;
        if line.skipped > 0 && self.examined.capped.len() < 20 {
            self.examined.capped.push(format!(
                "line {}: {} bytes behind the line limit were skipped",
                line.no, line.skipped
            ));
        }
        self.note_end(line.ended);
        quiet
    }
}

impl Listener for Examiner<'_> {
    fn line(&mut self, line: &Line<'_>) -> Heard {
        if line.no > self.next
            && let Some(open) = &mut self.open
        {
            open.reader.pass_over();
        }
        self.next = line.no + 1;
        self.quiet = self.hear(line);
        self.open
            .as_ref()
            .map_or_else(Heard::default, |Open { peeler, reader }| Heard {
                launching: reader.launching(),
                launches: reader.launches(),
                idle: peeler.is_idle() && reader.is_idle(),
            })
    }

    fn quiet(&self) -> Option<Voice> {
        let (Quiet { speaker, said }, shown) = self.quiet?;
        let counted = matches!(said, Said::Counted(_));
        Some(Voice {
            speaker,
            shown,
            counted,
        })
    }

    fn always_quiet(&self, line: &Line<'_>) -> bool {
        let marker = match self.quiet.map(|(quiet, _)| quiet.said) {
            Some(Said::Nothing) => None,
            Some(Said::Marker(id) | Said::Counted(id)) => Some(id),
            Some(Said::New | Said::Again) | None => return false,
        };
        self.catalog.holds_only(line.bytes, marker)
    }

    fn echo(&mut self, line: u64, shown: &[u8], voice: Voice) {
        if let Some(open) = &mut self.open {
            open.reader.echo(line, shown, voice.speaker, voice.counted);
        }
        self.examined.lines += 1;
    }

    fn echoed(&mut self, last: &[(u64, &[u8])]) {
        let Some(open) = &mut self.open else { return };
        for (line, text) in last {
            open.reader.remember(*line, text);
            self.next = line + 1;
        }
        self.note_end(true);
    }

    fn pass(&mut self, lines: u64) {
        self.examined.lines += lines;
    }
}
