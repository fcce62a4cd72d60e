use std::fs;
use std::io::Write;

use rawzip::{CompressionMethod, ZipArchiveWriter};

use super::*;
use crate::intake::{SkipKind, discover};

/// An archive of members with their methods.
fn archive(members: &[(&str, &[u8], CompressionMethod)]) -> Vec<u8> {
    let mut out = ZipArchiveWriter::new(Vec::new());
    for (name, bytes, method) in members {
        let (mut entry, config) = out.new_file(*name).compression_method(*method).start().unwrap();
        let descriptor = if *method == CompressionMethod::DEFLATE {
            let encoder = flate2::write::DeflateEncoder::new(&mut entry, flate2::Compression::default());
            let mut writer = config.wrap(encoder);
            writer.write_all(bytes).unwrap();
            let (encoder, descriptor) = writer.finish().unwrap();
            encoder.finish().unwrap();
            descriptor
        } else {
            let mut writer = config.wrap(&mut entry);
            writer.write_all(bytes).unwrap();
            writer.finish().unwrap().1
        };
        entry.finish(descriptor).unwrap();
    }
    out.finish().unwrap()
}

fn found(bytes: &[u8]) -> (Discovery, tempfile::TempDir) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.zip");
    fs::write(&path, bytes).unwrap();
    (discover(&[path], &Limits::default()), dir)
}

fn read(input: &InputSpec) -> (Vec<u8>, Vec<String>) {
    let mut source = input.open(&Limits::default()).unwrap();
    let mut bytes = Vec::new();
    source.read_to_end(&mut bytes).unwrap();
    (bytes, source.notes().to_vec())
}

fn names(found: &Discovery) -> Vec<&str> {
    let inputs = found.inputs.iter();
    inputs.map(|i| i.name.rsplit_once("a.zip!/").unwrap().1).collect()
}

fn text() -> Vec<u8> {
    (0..20_000)
        .flat_map(|n| format!("INFO line {n}\n").into_bytes())
        .collect()
}

#[test]
fn members_are_read_however_they_are_packed() {
    let zst = zstd::stream::encode_all(&text()[..], 1).unwrap();
    let (found, _dir) = found(&archive(&[
        ("d/one.log", &text(), CompressionMethod::DEFLATE),
        ("two.log", b"INFO two\n", CompressionMethod::STORE),
        ("three.log", &zst, CompressionMethod::ZSTD),
        ("four.log.zst", &zst, CompressionMethod::DEFLATE),
        ("d\\five.log", b"", CompressionMethod::STORE),
        ("d/.hidden", b"x", CompressionMethod::STORE),
        ("core", b"\x7fELF\x02", CompressionMethod::STORE),
    ]));
    let want = ["d/five.log", "d/one.log", "four.log.zst", "three.log", "two.log"];
    assert_eq!(names(&found), want);
    let whole = [Vec::new(), text(), text(), text(), b"INFO two\n".to_vec()];
    for (input, want) in found.inputs.iter().zip(whole) {
        assert_eq!(read(input), (want, vec![]), "{}", input.name);
    }
    let skipped: Vec<&str> = found.skipped.iter().map(|s| s.why.as_str()).collect();
    assert_eq!(skipped, ["1 hidden entry is left out", "1 binary entry is left out"]);
}

#[test]
fn what_cannot_be_read_is_told_and_the_rest_is_read() {
    let inner = archive(&[("x", b"x", CompressionMethod::STORE)]);
    let (found, _dir) = found(&archive(&[
        ("inner.zip", &inner, CompressionMethod::STORE),
        ("odd.log", b"text", CompressionMethod::LZMA),
        ("good.log", b"INFO\n", CompressionMethod::DEFLATE),
    ]));
    assert_eq!(names(&found), ["good.log"]);
    let whys: Vec<&str> = found.skipped.iter().map(|s| s.why.as_str()).collect();
    assert!(whys[0].starts_with("an archive inside an archive"), "{whys:?}");
    assert_eq!(whys[1], "its compression, method 14, is not known");
    assert!(found.skipped.iter().all(|s| s.kind == SkipKind::Unreadable));
}

#[test]
fn damage_is_a_note_and_no_error() {
    let whole = archive(&[("a.log", &text(), CompressionMethod::DEFLATE)]);
    let (cut, _dir) = found(&whole[..whole.len() / 2]);
    assert!(cut.inputs.is_empty() && cut.skipped[0].why.contains("cut off or damaged"));

    let stored = archive(&[("a.log", &text(), CompressionMethod::STORE)]);
    let mut wrong = stored.clone();
    wrong[stored.len() / 2] ^= 1;
    let (found, _dir) = found(&wrong);
    let (bytes, notes) = read(&found.inputs[0]);
    assert_eq!(bytes.len(), text().len());
    assert!(
        notes[0].starts_with("the ZIP data cannot be read") && notes[0].ends_with("its checksum is wrong"),
        "{notes:?}"
    );
}

#[test]
fn packages_and_overlapping_members_are_not_opened() {
    for name in ["META-INF/MANIFEST.MF", "x-1.0.dist-info/RECORD", "model/data.pkl"] {
        let (found, _dir) = found(&archive(&[
            ("a.txt", b"text\n", CompressionMethod::STORE),
            (name, b"text\n", CompressionMethod::STORE),
        ]));
        assert!(found.inputs.is_empty());
        assert!(found.skipped[0].why.starts_with("it is a document"), "{name}");
    }
    let mut bytes = archive(&[
        ("a.log", b"INFO a\n", CompressionMethod::STORE),
        ("b.log", b"INFO b\n", CompressionMethod::STORE),
    ]);
    // The second entry of the table of contents gets the place of the first.
    let second = bytes.windows(4).rposition(|w| w == b"PK\x01\x02").unwrap();
    bytes[second + 42..second + 46].fill(0);
    let (found, _dir) = found(&bytes);
    assert!(found.inputs.is_empty());
    assert_eq!(
        found.skipped[0].why,
        "its members overlap, which those of no log archive do"
    );
}

#[test]
fn members_beyond_the_limit_are_told() {
    let members: Vec<(String, &[u8], CompressionMethod)> = (0..5)
        .map(|n| (format!("{n}.log"), &b"INFO\n"[..], CompressionMethod::STORE))
        .collect();
    let members: Vec<_> = members.iter().map(|(n, b, m)| (n.as_str(), *b, *m)).collect();
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.zip");
    fs::write(&path, archive(&members)).unwrap();
    let limits = Limits {
        inputs: 3,
        ..Limits::default()
    };
    let found = discover(&[path], &limits);
    assert_eq!(found.inputs.len(), 3);
    assert!(
        found.skipped[0].why.starts_with("more than 3 inputs"),
        "{:?}",
        found.skipped
    );
}
