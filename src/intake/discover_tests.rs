use std::fs;
use std::io::{Read, Write};

use super::*;

fn tree() -> tempfile::TempDir {
    tempfile::tempdir().unwrap()
}

fn put(root: &Path, name: &str, bytes: &[u8]) -> PathBuf {
    let path = root.join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, bytes).unwrap();
    path
}

fn names(found: &Discovery, root: &Path) -> Vec<String> {
    let prefix = format!("{}/", root.display());
    found.inputs.iter().map(|i| i.name.replace(&prefix, "")).collect()
}

fn text(input: &InputSpec) -> String {
    let mut out = String::new();
    input
        .open(&Limits::default())
        .unwrap()
        .read_to_string(&mut out)
        .unwrap();
    out
}

fn tar(members: &[(&str, &[u8])]) -> Vec<u8> {
    let mut builder = tar::Builder::new(Vec::new());
    for (name, bytes) in members {
        let mut header = tar::Header::new_gnu();
        header.set_size(bytes.len() as u64);
        header.set_mode(0o644);
        builder.append_data(&mut header, name, *bytes).unwrap();
    }
    builder.into_inner().unwrap()
}

fn gz(bytes: &[u8]) -> Vec<u8> {
    let mut e = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    e.write_all(bytes).unwrap();
    e.finish().unwrap()
}

#[test]
fn a_folder_is_walked_in_order_and_what_is_left_out_is_counted() {
    let dir = tree();
    let root = dir.path();
    put(root, "a.log.1", b"old\n");
    put(root, "a.log", b"new\n");
    put(root, "sub/b.log", b"b\n");
    put(root, ".git/x.log", b"hidden\n");
    put(root, ".hidden.log", b"hidden\n");
    put(root, "core.1", b"\x7fELF\x02\x01\x01");
    put(root, ".gitignore", b"*.log\n");
    let found = discover(&[root.to_owned()], &Limits::default());
    assert_eq!(names(&found, root), ["a.log.1", "a.log", "sub/b.log"]);
    let why: Vec<&str> = found.skipped.iter().map(|s| s.why.as_str()).collect();
    assert_eq!(why, ["3 hidden entries are left out", "1 binary entry is left out"]);
    assert!(found.skipped.iter().all(|s| s.kind == SkipKind::PassedOver));
}

#[test]
fn a_missing_path_is_skipped_beside_one_that_is_there() {
    let dir = tree();
    let there = put(dir.path(), "a.log", b"a\n");
    let found = discover(&[dir.path().join("gone.log"), there], &Limits::default());
    assert_eq!(found.inputs.len(), 1);
    assert_eq!(found.skipped[0].why, "there is no such file or folder");
    assert_eq!(found.skipped[0].kind, SkipKind::Unreadable);
}

#[test]
fn a_given_file_is_read_however_damaged_it_looks_unless_it_is_another_format() {
    let dir = tree();
    let noise = put(dir.path(), "noise", &[1, 2, 3, 0, 0, 0, 4, 5].repeat(100));
    let rar = put(dir.path(), "logs.rar", b"Rar!\x1a\x07rest");
    let found = discover(&[noise, rar], &Limits::default());
    assert_eq!(found.inputs.len(), 1);
    assert_eq!(found.skipped[0].why, "it is a RAR archive, which is not read as a log");
}

#[test]
fn no_path_is_standard_input_and_it_is_read_once() {
    assert_eq!(discover(&[], &Limits::default()).inputs[0].name, "-");
    let twice = discover(&["-".into(), "/dev/stdin".into()], &Limits::default());
    assert_eq!(twice.inputs.len(), 1);
    assert!(twice.inputs[0].is_stdin());
}

#[test]
fn members_of_an_archive_are_inputs() {
    let dir = tree();
    let big = "INFO a line that repeats\n".repeat(20_000);
    let packed = gz(b"from gzip\n");
    let nested = tar(&[("x", b"x")]);
    let members: [(&str, &[u8]); 6] = [
        ("./s/worker.log", big.as_bytes()),
        ("s/old.log.gz", &packed),
        ("s/.hidden", b"h"),
        ("s/image.png", b"\x89PNG\r\n\x1a\n\x00\x00"),
        ("s/inner.tar", &nested),
        ("s/empty.log", b""),
    ];
    for (name, bytes) in [("a.tar", tar(&members)), ("a.tar.gz", gz(&tar(&members)))] {
        let path = put(dir.path(), name, &bytes);
        let found = discover(&[path], &Limits::default());
        let want = [
            format!("{name}!/s/empty.log"),
            format!("{name}!/s/old.log.gz"),
            format!("{name}!/s/worker.log"),
        ];
        assert_eq!(names(&found, dir.path()), want);
        assert_eq!(text(&found.inputs[2]), big);
        assert_eq!(text(&found.inputs[1]), "from gzip\n");
        assert_eq!(found.skipped.len(), 3, "{:?}", found.skipped);
    }
}

#[test]
fn an_archive_cut_off_gives_its_members_up_to_there() {
    let dir = tree();
    let whole = tar(&[("a.log", b"first\n"), ("b.log", &b"second line\n".repeat(1000))]);
    let path = put(dir.path(), "cut.tar", &whole[..whole.len() - 8000]);
    let found = discover(&[path], &Limits::default());
    assert_eq!(text(&found.inputs[0]), "first\n");
    assert!(text(&found.inputs[1]).starts_with("second line\n"));
    let source = found.inputs[1].open(&Limits::default()).unwrap();
    assert!(
        source.notes()[0].starts_with("the archive is cut off"),
        "{:?}",
        source.notes()
    );
}

#[test]
fn an_archive_too_large_to_hold_says_so_and_goes_on() {
    let dir = tree();
    let noise: Vec<u8> = (0..100_000u32)
        .flat_map(|n| format!("{:x}\n", n.wrapping_mul(2_654_435_761)).into_bytes())
        .collect();
    let path = put(
        dir.path(),
        "a.tar",
        &tar(&[("big.log", &noise), ("small.log", b"small\n")]),
    );
    let limits = Limits {
        archive_bytes: 10_000,
        ..Limits::default()
    };
    let found = discover(&[path], &limits);
    assert_eq!(text(&found.inputs[0]), "small\n");
    assert!(found.skipped[0].why.contains("unpack it"));
    // Two archives share the room of one.
    let half: Vec<u8> = noise[..16_000].to_vec();
    let paths = ["b.tar", "c.tar"].map(|name| put(dir.path(), name, &tar(&[("half.log", &half)])));
    let found = discover(&paths, &limits);
    let names = |names: Vec<&str>| {
        names
            .iter()
            .map(|n| n.rsplit('/').nth(1).unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(
        names(found.inputs.iter().map(|i| i.name.as_str()).collect()),
        ["b.tar!"]
    );
    assert_eq!(
        names(found.skipped.iter().map(|s| s.input.as_str()).collect()),
        ["c.tar!"]
    );
}

#[test]
fn too_many_files_are_cut_with_a_word() {
    let dir = tree();
    for n in 0..10 {
        put(dir.path(), &format!("{n}.log"), b"x\n");
    }
    let limits = Limits {
        inputs: 4,
        ..Limits::default()
    };
    let found = discover(&[dir.path().to_owned()], &limits);
    assert_eq!(found.inputs.len(), 4);
    assert_eq!(found.skipped.len(), 1);
}

#[cfg(unix)]
#[test]
fn links_are_followed_once_and_loops_do_no_harm() {
    use std::os::unix::fs::symlink;
    let dir = tree();
    let root = dir.path();
    put(root, "session_1/raylet.out", b"r\n");
    symlink(root.join("session_1"), root.join("session_latest")).unwrap();
    symlink(root, root.join("session_1/up")).unwrap();
    symlink(root.join("nowhere"), root.join("dangling.log")).unwrap();
    let found = discover(&[root.to_owned()], &Limits::default());
    assert_eq!(names(&found, root), ["session_1/raylet.out"]);
    assert_eq!(found.skipped.len(), 1, "{:?}", found.skipped);
    assert!(found.skipped[0].input.ends_with("dangling.log"));
}

#[cfg(unix)]
#[test]
fn an_open_pipe_of_the_shell_is_an_input_and_a_named_pipe_is_none() {
    use std::os::fd::AsRawFd;
    let (reader, mut writer) = std::io::pipe().unwrap();
    let path = PathBuf::from(format!("/dev/fd/{}", reader.as_raw_fd()));
    writer.write_all(b"through a pipe\n").unwrap();
    drop(writer);
    let found = discover(&[path], &Limits::default());
    assert_eq!(text(&found.inputs[0]), "through a pipe\n");

    let dir = tree();
    let fifo = dir.path().join("fifo");
    assert!(
        std::process::Command::new("mkfifo")
            .arg(&fifo)
            .status()
            .unwrap()
            .success()
    );
    let found = discover(&[fifo], &Limits::default());
    assert_eq!(
        found.skipped[0].why,
        "it is a named pipe, which may wait for ever: read it with `coroner < PIPE`"
    );
}

#[cfg(unix)]
#[test]
fn what_is_no_file_is_skipped_and_never_waited_for() {
    let dir = tree();
    let socket = dir.path().join("s.sock");
    let _listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
    put(dir.path(), "a.log", b"a\n");
    let found = discover(&["/dev/null".into(), socket, dir.path().to_owned()], &Limits::default());
    assert_eq!(found.inputs.len(), 1);
    let why: Vec<&str> = found.skipped.iter().map(|s| s.why.as_str()).collect();
    assert_eq!(
        why,
        [
            "it is a device, which holds no log",
            "it is a socket, which holds no log",
            "1 special (socket, pipe or device) entry is left out",
        ]
    );
}

#[test]
fn a_member_whose_name_claims_gigabytes_is_not_read() {
    let dir = tree();
    let mut header = tar::Header::new_gnu();
    header.set_path("././@LongLink").unwrap();
    header.set_entry_type(tar::EntryType::GNULongName);
    header.set_size(3 << 30);
    header.set_cksum();
    let mut whole = tar(&[("a.log", b"first\n")]);
    whole.truncate(whole.len() - 1024);
    whole.extend_from_slice(header.as_bytes());
    let path = put(dir.path(), "bomb.tar", &whole);
    // A hole costs no disk.
    let file = fs::OpenOptions::new().write(true).open(&path).unwrap();
    file.set_len(whole.len() as u64 + (3 << 30)).unwrap();
    let found = discover(&[path], &Limits::default());
    assert_eq!(found.inputs.len(), 1);
    assert_eq!(text(&found.inputs[0]), "first\n");
    assert!(
        found.skipped[0].why.contains("headers of a member"),
        "{:?}",
        found.skipped
    );
}
