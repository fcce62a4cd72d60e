//! Where the outputs go, checked before anything is read.
//!
//! Owns what must not be a target: an input, and the target of another output. Never decides what is written.

use std::collections::HashSet;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use super::args::{Examine, Form};
use super::error::CliError;
use super::output::Output;
use crate::intake::{Discovery, InputSpec};
use crate::report::Format;
use crate::store::{self, Access, Identity, Place};

/// One form and where it goes.
pub struct Target<'a> {
    /// The form.
    pub format: Format,
    /// The file, as it was given.
    pub file: &'a Path,
    place: io::Result<Place>,
}

impl Target<'_> {
    /// Writes a text: a file whole or not at all.
    pub fn write(&self, text: &str) -> Result<(), CliError> {
        let written = match &self.place {
            Ok(Place::Stdout) => return Output::Stdout.write(text),
            Ok(Place::Stderr) => return Output::Stderr.write(text),
            Ok(Place::File(path)) => store::replace(path, text, Access::Kept),
            Ok(Place::Stream(path)) => store::stream(path).and_then(|to| super::output::put(to, text)),
            Err(e) => return Err(unwritten(self.file, e, OF_FILE)),
        };
        let help = if matches!(self.place, Ok(Place::File(_))) {
            OF_FILE
        } else {
            OF_STREAM
        };
        written.map_err(|e| unwritten(self.file, &e, help))
    }
}

/// What to do where a file cannot be written.
const OF_FILE: &str = "the folder must exist and be writable, and have room; a file that was there before is as it was";
/// What to do where something else cannot.
const OF_STREAM: &str =
    "it is a pipe or device, which takes no more; give a file, whose old content stays until all is written";

fn unwritten(file: &Path, e: &io::Error, help: &'static str) -> CliError {
    CliError::File {
        file: file.display().to_string(),
        text: e.to_string(),
        help,
    }
}

/// The targets of an examination.
///
/// # Errors
/// When one is an input, or two are the same.
pub fn targets<'a>(args: &'a Examine, found: &Discovery) -> Result<Vec<Target<'a>>, CliError> {
    let with_file = |form: &'a Form| form.file.as_deref().map(|file| (form.format, file));
    let targets: Vec<Target<'a>> = args
        .format
        .iter()
        .filter_map(with_file)
        .map(|(format, file)| Target {
            format,
            file,
            place: Place::of(file),
        })
        .collect();
    let mut taken = Taken::default();
    if targets.len() < args.format.len() || args.pipe.pass_through {
        taken.files.extend(open(&io::stdout()));
    }
    // A target that cannot be written is told when its turn comes, so that the others are.
    let mut files: Vec<(&Path, &Place)> = targets
        .iter()
        .filter_map(|target| Some((target.file, target.place.as_ref().ok()?)))
        .collect();
    let map = args.redact.map.as_deref().map(|file| (file, Place::of(file)));
    files.extend(
        map.iter()
            .filter_map(|(file, place)| Some((*file, place.as_ref().ok()?))),
    );
    for (file, place) in &files {
        taken.take(file, place)?;
    }
    if files.iter().any(|(_, place)| place.identity().is_some()) {
        let mut inputs: HashSet<Identity> = found.opened.iter().filter_map(|path| Identity::of(path)).collect();
        if found.inputs.iter().any(InputSpec::is_stdin) {
            inputs.extend(open(&io::stdin()));
        }
        for (file, place) in &files {
            if place.identity().is_some_and(|own| inputs.contains(&own)) {
                return Err(CliError::InputAsOutput {
                    file: file.display().to_string(),
                });
            }
        }
    }
    Ok(targets)
}

/// The file that is open as standard input or output, if it is one.
#[cfg(unix)]
fn open(stream: &impl std::os::fd::AsFd) -> Option<Identity> {
    let owned = stream.as_fd().try_clone_to_owned().ok()?;
    Identity::open(&File::from(owned))
}

#[cfg(not(unix))]
fn open<T>(_: &T) -> Option<Identity> {
    None
}

/// What is already written to.
#[derive(Default)]
struct Taken {
    places: Vec<PathBuf>,
    files: HashSet<Identity>,
}

impl Taken {
    fn take(&mut self, file: &Path, place: &Place) -> Result<(), CliError> {
        let (Place::File(path) | Place::Stream(path)) = place else {
            return Ok(());
        };
        let known = self.places.contains(path) || place.identity().is_some_and(|own| !self.files.insert(own));
        self.places.push(path.clone());
        match known {
            true => Err(CliError::SameTarget {
                file: file.display().to_string(),
            }),
            false => Ok(()),
        }
    }
}
