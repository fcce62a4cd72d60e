//! Errors as they may be shown: what they quote of names, arguments and files never acts on a terminal.
//!
//! Owns the cleaning of a diagnostic. Never words one.

use std::error::Error;
use std::fmt::{self, Debug, Display, Formatter};
use std::ops::Deref;

use miette::{Diagnostic, LabeledSpan, NamedSource, Severity, SourceCode};

use crate::report::text::{of_same_length, safe, safe_lines};

/// A diagnostic behind a pointer, cleaned.
pub struct Clean<P> {
    inner: P,
    code: Option<NamedSource<String>>,
}

impl<P: Deref<Target: Diagnostic>> Clean<P> {
    /// Cleans a diagnostic.
    pub fn new(inner: P) -> Self {
        let code = inner.source_code().and_then(whole);
        Self { inner, code }
    }
}

/// All of a file that is quoted, cleaned so that every place in it stays where it is.
fn whole(code: &dyn SourceCode) -> Option<NamedSource<String>> {
    let all = code.read_span(&(0, 0).into(), 0, usize::MAX).ok()?;
    let text = of_same_length(&String::from_utf8_lossy(all.data()));
    Some(NamedSource::new(safe(all.name().unwrap_or_default()), text))
}

impl<P: Deref<Target: Diagnostic>> Display for Clean<P> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(&safe_lines(&self.inner.to_string()))
    }
}

impl<P: Deref<Target: Diagnostic>> Debug for Clean<P> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        Display::fmt(self, f)
    }
}

/// A message says of its causes what there is to say.
impl<P: Deref<Target: Diagnostic>> Error for Clean<P> {}

impl<P: Deref<Target: Diagnostic>> Diagnostic for Clean<P> {
    fn severity(&self) -> Option<Severity> {
        self.inner.severity()
    }

    fn help<'a>(&'a self) -> Option<Box<dyn Display + 'a>> {
        let help = self.inner.help()?.to_string();
        Some(Box::new(safe_lines(&help).into_owned()))
    }

    fn source_code(&self) -> Option<&dyn SourceCode> {
        Some(self.code.as_ref()?)
    }

    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        let labels = self.inner.labels()?.map(|label| {
            let text = label.label().map(|text| safe_lines(text).into_owned());
            LabeledSpan::new_with_span(text, *label.inner())
        });
        Some(Box::new(labels))
    }
}
